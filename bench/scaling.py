#!/usr/bin/env python3
"""How A1, A3 and L1 scale with threads: 1, 2, 4, 8 and 16 of them on one machine.

    python3 bench/scaling.py --limit anyrec-bench-limit --folder /dev/shm --json FILE
    python3 bench/scaling.py --plot FILE            # draws FILE's figures as SVG next to it

Needs NumPy, the anyrec wheel and the limit's program (`cargo build --release --package
anyrec-bench-limit`); the plot needs matplotlib and can be drawn on another machine. Repetitions of all
numbers of threads are interleaved, and a figure is the median of its repetitions. Figures are gigabytes
of records per second.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

THREADS = [1, 2, 4, 8, 16]
RECORD = (90_000, 110_000)


def main():
    arguments = parse_arguments()
    if arguments.plot:
        draw(json.loads(arguments.plot.read_text(encoding="utf-8")), arguments.plot.with_suffix(".svg"))
        return
    os.environ["ANYREC_BENCH_LIMIT"] = str(arguments.limit)
    with tempfile.TemporaryDirectory(prefix="anyrec-scaling-", dir=arguments.folder) as folder:
        results = measure_all(Path(folder), arguments)
    for name, figures in results["figures"].items():
        print(f"{name:24}", *(f"{figure['threads']:3}: {figure['rate'] / 1e9:6.2f}" for figure in figures))
    for name, rate in results["limits"].items():
        print(f"{name:24} {rate / 1e9:11.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--limit", type=Path, help="the limit's program")
    parser.add_argument("--folder", type=Path, help="folder for the files (default: the temporary folder)")
    parser.add_argument("--size", type=int, default=4 << 30, help="bytes of records (4 GiB)")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="minimum seconds per measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="only draw the figures of this file")
    arguments = parser.parse_args()
    if not arguments.plot and not arguments.limit:
        parser.error("--limit is needed")
    return arguments


def measure_all(folder, arguments):
    """Measures every kind of work with every number of threads, interleaved."""
    import machine
    import measure
    from data import Records, Set
    from peers import anyrec, limit

    ours, limits = anyrec.Contestant(), limit.Contestant()
    records = Records(Set("A", arguments.size * 2 // sum(RECORD), *RECORD))
    base = {
        "folder": str(folder), "data": "A", "seed": 0,
        "minimum": arguments.seconds, "maximum": 8 * arguments.seconds,
    }  # fmt: skip
    for format in ("ffr", "rec", "grail"):
        measure.prepare(ours, {**base, "options": {"format": format}}, records)
    works = {"A1 .ffr, random batches": ("random", {"format": "ffr"})}
    works |= {
        f"A3 {shown}, scan in Batches": ("scan", {"format": format, "batches": 64})
        for format, shown in (("rec", ".rec"), ("ffr", ".ffr"), ("grail", "GRAIL"))
    }
    works["L1 .ffr, loader"] = ("epoch", {"format": "ffr"})
    plain = {
        "pread, 1 thread": ("random", "pread"),
        "read(2), 1 thread": ("scan", "read"),
        "memcpy, 1 thread": ("", "memcpy"),
    }
    samples = {}
    for repetition in range(arguments.repetitions):
        for name, (kind, do) in plain.items():
            task = {**base, "kind": kind, "seed": repetition, "options": {"do": do, "format": "ffr"}}
            samples.setdefault(name, []).append(rate_of(limits.measure(task, records)))
        for name, (kind, options) in works.items():
            for threads in THREADS:
                task = {**base, "seed": repetition, "options": {**options, "threads": threads}}
                found = measure.KINDS[kind](ours, task, records)
                samples.setdefault((name, threads), []).append(rate_of(found))
        print(f"repetition {repetition + 1} of {arguments.repetitions}", file=sys.stderr)
    return {
        "figures": {
            name: [{"threads": n, "rate": statistics.median(samples[name, n])} for n in THREADS] for name in works
        },
        "limits": {name: statistics.median(samples[name]) for name in plain},
        "machine": machine.describe({}),
        "bytes": records.total,
    }


def rate_of(found):
    return found["bytes"] / found["seconds"]


def draw(results, path):
    """Draws lines over the number of threads, with the plain system calls as horizontal lines."""
    import machine
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "anyrec"
    plt.rcParams["svg.fonttype"] = "none"
    figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
    for name, figures in results["figures"].items():
        axis.plot(
            [each["threads"] for each in figures], [each["rate"] / 1e9 for each in figures], marker="o", label=name
        )
    for name, rate in results["limits"].items():
        axis.axhline(rate / 1e9, color="gray", linewidth=0.8, linestyle="--")
        axis.text(THREADS[0], rate / 1e9, name, fontsize=7, va="bottom")
    axis.set_xscale("log", base=2)
    axis.set_xticks(THREADS, [str(each) for each in THREADS])
    axis.set_xlabel("threads")
    axis.set_ylabel("GB/s")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8)
    axis.set_title(machine.in_words(results["machine"]), fontsize=7, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
