#!/usr/bin/env python3
"""Side-by-side benchmarks: anyrec, its peers and the machine's limit, interleaved in one run.

`cargo xtask bench` sets everything up and calls this; `bench/README.md` explains the rows.
"""

import argparse
import dataclasses
import json
import shutil
import statistics
import struct
import sys
import time
from pathlib import Path

import machine
import photos
import report
import rows as table
from data import TIMES_OVER, noise, sets
from worker import Failed, Workers

PREPARE_SECONDS = 900
UNITS = {"bytes/s": "bytes", "records/s": "records", "blocks/s": "blocks", "images/s": "records", "1/s": "records"}


def main():
    arguments = parse_arguments()
    folder = arguments.data / ("quick" if arguments.quick else "full")
    chosen_sets = sets(arguments.quick)
    make_place(folder, chosen_sets)
    arrays = make_arrays(folder, arguments.quick)
    pictures = {
        "path": str(folder / "photos.rec"),
        "folder": str(arguments.data / "photos"),
        "count": photos.COUNT // 2 if arguments.quick else photos.COUNT,
    }
    rows = table.rows(arguments.quick, arrays, pictures)
    rows = [row for row in rows if not arguments.only or row.id in arguments.only]
    workers = Workers(dict(arguments.python), dict(arguments.missing), arguments.data / "logs", arguments.limit)
    run = Run(arguments, folder, chosen_sets, workers)
    if any(row.kind == "images" for row in rows):
        run.missing["images"] = make_photos(**pictures)
    results = []
    try:
        for id in dict.fromkeys(row.id for row in rows):
            results += run.measure([row for row in rows if row.id == id])
            report.show_progress(id, results)
    finally:
        workers.close()
    judge(results, rows)
    about = machine.describe(workers.versions)
    report.print_all(results, about)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        arguments.json.with_suffix(".machine.json").write_text(
            json.dumps({**about, "quick": arguments.quick, "repetitions": arguments.repetitions}, indent=1) + "\n",
            encoding="utf-8",
        )
    if arguments.plots:
        import plots

        plots.draw(results, about, arguments.plots)


def parse_arguments():
    def pair(text):
        name, _, value = text.partition("=")
        return name, value

    parser = argparse.ArgumentParser(prog="cargo xtask bench", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="small data: under three minutes, rougher figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw SVG plots into this folder")
    parser.add_argument("--only", type=lambda text: set(text.split(",")), metavar="A1,B2", help="only these rows")
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="figures are medians of this many")
    # From xtask:
    parser.add_argument("--data", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--limit", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--python", type=pair, action="append", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--missing", type=pair, action="append", default=[], help=argparse.SUPPRESS)
    return parser.parse_args()


def make_place(folder, chosen_sets):
    """Returns the folder of the files, emptied if they were made for other records."""
    wanted = json.dumps({name: dataclasses.asdict(each) for name, each in chosen_sets.items()}, indent=1)
    stamp = folder / "sets.json"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        stamp.write_text(wanted, encoding="utf-8")


def make_arrays(folder, quick):
    """Makes IDX files of three dimensions: a large one and one of a megabyte."""
    paths = {}
    for name, megabytes in (("large", 128 if quick else 1024), ("small", 1)):
        path = folder / f"{name}-idx3-ubyte"
        paths[name] = str(path)
        if not path.exists():
            part = path.with_suffix(".part")
            with open(part, "wb") as file:
                file.write(struct.pack(">HBBIII", 0, 8, 3, megabytes, 1024, 1024))
                for number in range(megabytes):
                    file.write(noise()[number % 32 << 20 : (number % 32 + 1) << 20])
            part.rename(path)
    return paths


def make_photos(path, folder, count):
    """Makes the photos, and a `.rec` file that has all of them several times; returns the reason if that
    fails."""
    import anyrec

    path = Path(path)
    try:
        found = photos.photos(Path(folder), count)
    except photos.CannotFetch as reason:
        return f"there are no photos: {reason}"
    if not path.exists() or path.stat().st_mtime < found[-1].stat().st_mtime:
        with anyrec.create(str(path), overwrite=True) as writer:
            for number, photo in enumerate(found * TIMES_OVER):
                writer.write(photo.read_bytes(), key=number, label=number % count)
    return None


class Run:
    """Measures rows, and keeps track of which contestant has prepared what."""

    def __init__(self, arguments, folder, chosen_sets, workers):
        self._repetitions = arguments.repetitions
        self._folder = folder
        self._sets = chosen_sets
        self._workers = workers
        self._prepared = {}
        self.missing = {}
        """Why no contestant can do a kind of work."""
        self._minimum, self._maximum = (0.1, 0.25) if arguments.quick else (0.5, 4)

    def measure(self, rows):
        """Measures rows of one id together; returns their results."""
        tasks = {}
        for row in rows:
            for contestant in row.everyone():
                tasks.setdefault(key(row, contestant), (row, contestant))
        samples = {each: [] for each in tasks}
        failures = {}
        for each, (row, contestant) in tasks.items():
            reason = self._prepare(row, contestant)
            if reason:
                failures[each] = reason
        for repetition in range(self._repetitions):
            for each, (row, contestant) in tasks.items():
                if each in failures:
                    continue
                try:
                    samples[each].append(self._sample(row, contestant, repetition))
                except Failed as failure:
                    failures[each] = str(failure)
        return [result_of(row, samples, failures) for row in rows]

    def _sample(self, row, contestant, repetition):
        task = self._task(row, contestant, row.kind)
        task |= {"seed": repetition, "minimum": self._minimum, "maximum": self._maximum}
        if row.kind == "write":
            # Files are written completely; only a very slow contestant is stopped.
            task["maximum"] = 10 * self._maximum
        return self._workers.do(contestant.peer, task, 60 + 20 * self._maximum, row.fresh)

    def _prepare(self, row, contestant):
        """Makes a contestant's files; returns the reason if that fails."""
        if self.missing.get(row.kind):
            return self.missing[row.kind]
        if not row.data or row.kind == "write" or contestant.peer == "limit":
            return None
        options = dict(contestant.options)
        chosen = {"format": options["format"]} if "format" in options else {}
        if chosen.get("format") == "zstd":
            chosen["max_items"] = row.extra.get("block_items", 1024) - 1
        place = (contestant.peer, row.data, chosen.get("format"))
        if place not in self._prepared:
            try:
                task = {**self._task(row, contestant, "prepare"), "options": chosen}
                started = time.monotonic()
                self._workers.do(contestant.peer, task, PREPARE_SECONDS)
                if time.monotonic() - started > 1:
                    print(f"prepared {row.data} for {contestant.peer}", file=sys.stderr)
                self._prepared[place] = None
            except Failed as failure:
                self._prepared[place] = f"could not store the records: {failure}"
        return self._prepared[place]

    def _task(self, row, contestant, kind):
        chosen = self._sets.get(row.data)
        return {
            "kind": kind,
            "data": row.data,
            "set": dataclasses.asdict(chosen) if chosen else None,
            "folder": str(self._folder),
            "options": dict(contestant.options),
            **row.extra,
        }


def key(row, contestant):
    return (row.kind, row.data, row.unit == "blocks/s", contestant.peer, contestant.options)


def result_of(row, samples, failures):
    """Returns one line of the result: medians, ratios and reasons."""

    def rate_of(contestant):
        found = samples[key(row, contestant)]
        if not found or key(row, contestant) in failures:
            return None
        if row.unit == "MB":
            return statistics.median(sample["memory"] for sample in found) / table.MEGABYTE
        return statistics.median(sample[UNITS[row.unit]] / sample["seconds"] for sample in found)

    def ratio(rate):
        return rate / limit if rate is not None and limit else None

    rate, limit = rate_of(row.ours), rate_of(row.limit) if row.limit else None
    peers = {peer.shown: rate_of(peer) for peer in row.peers}
    result = {
        "id": row.id,
        "work": row.work,
        "unit": row.unit,
        "rate": rate,
        "limit_rate": limit,
        "ratio": ratio(rate),
        "peers": peers,
        "peer_ratios": {name: ratio(found) for name, found in peers.items()},
        "variants": {each.shown: rate_of(each) for each in row.variants},
        "failures": {each.shown: failures[key(row, each)] for each in row.everyone() if key(row, each) in failures},
    }
    ours = samples[key(row, row.ours)]
    for name, pick in (("memory", max), ("resident_before", max), ("step", max)):
        if ours and name in ours[0]:
            result[name] = pick(sample[name] for sample in ours)
    return result


def judge(results, rows):
    """Records for every target whether it is met."""
    for result, row in zip(results, rows, strict=True):
        verdicts = {target.text: target.met(result, results) for target in row.targets}
        result["targets"] = verdicts
        result["met"] = all(verdict is True for verdict in verdicts.values())


if __name__ == "__main__":
    main()
