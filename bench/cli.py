#!/usr/bin/env python3
"""Speed and memory of the command line on one large file.

    cargo build --release
    python3 bench/cli.py [--size 2G] [--folder DIR] [--binary PATH] [--json FILE]

Makes an FFRecord file with anyrec's own writer and reads it once to cache it. Then measures `cat FILE >
/dev/null`, `anyrec verify` and `anyrec convert`, each in its own process under GNU time (Debian's package
`time`), and compares the fastest of several runs. Exits with 1 if a bound is missed:

- verify runs at half the rate of cat or more;
- the peak memory of convert stays under 300 MB.

Needs three times the file's size on the disk and, to measure more than the disk, as much memory. Uses
only Python's standard library.
"""

import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

RECORD = 110_000
MEMORY_BOUND = 300_000_000
RATE_BOUND = 0.5
TIME = "/usr/bin/time"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    arguments = parse_arguments()
    if not os.access(TIME, os.X_OK):
        sys.exit(f"{TIME} is missing: install GNU time (apt-get install time)")
    with tempfile.TemporaryDirectory(prefix="anyrec-bench-", dir=arguments.folder) as folder:
        results = measure(arguments, folder)
    print_table(results)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)
            file.write("\n")
    sys.exit(0 if all(results["bounds"].values()) else 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--size", default="2G", help="size of the file: 512M, 2G (default 2G)")
    parser.add_argument("--folder", help="folder for the files (default: the temporary folder)")
    parser.add_argument("--binary", default=os.path.join(ROOT, "target", "release", "anyrec"))
    parser.add_argument("--runs", type=int, default=5, help="number of runs, of which the fastest counts")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    return parser.parse_args()


def measure(arguments, folder):
    binary = arguments.binary
    path = make_file(binary, parse_size(arguments.size), folder)
    size = os.path.getsize(path)
    output = os.path.join(folder, "out")
    commands = {
        "cat": ["cat", path],
        "verify": [binary, "verify", path],
        "convert to MXNet": [binary, "convert", "--force", path, output + ".rec"],
        "convert to FFRecord": [binary, "convert", "--force", path, output + ".ffr"],
        "convert to GRAIL": [binary, "convert", "--force", path, output + ".grail-rio"],
        "convert to GRAIL, zstd": [
            binary, "convert", "--force", "--transformer", "zstd", path, output + ".grail-rio",
        ],
    }
    timed(commands["cat"])
    runs = {}
    for name, command in commands.items():
        # Converting waits for the disk to write two gigabytes; fewer rounds are enough.
        rounds = arguments.runs if name in ("cat", "verify") else min(arguments.runs, 2)
        best = min((timed(command) for _ in range(rounds)), key=lambda run: run["wall"])
        best["rate"] = size / max(best["wall"], 0.01)
        runs[name] = best
        for leftover in os.listdir(folder):
            if leftover.startswith("out."):
                os.remove(os.path.join(folder, leftover))
    ratio = runs["verify"]["rate"] / runs["cat"]["rate"]
    peak = max(run["peak"] for name, run in runs.items() if name.startswith("convert"))
    return {
        "file_bytes": size,
        "record_bytes": RECORD,
        "cores": len(os.sched_getaffinity(0)),
        "runs": runs,
        "verify_rate_over_cat_rate": ratio,
        "convert_peak_memory": peak,
        "bounds": {
            "verify at half the rate of cat or more": ratio >= RATE_BOUND,
            "convert under 300 MB": peak < MEMORY_BOUND,
        },
    }


def make_file(binary, size, folder):
    """Makes an .ffr file of that size, of incompressible bytes, with no two records alike."""
    count = max(size // RECORD, 1)
    array = os.path.join(folder, "made-idx2-ubyte")
    path = os.path.join(folder, "made.ffr")
    noise = random.Random(1).randbytes(4 * RECORD)
    with open(array, "wb") as file:
        file.write(struct.pack(">HBBII", 0, 8, 2, count, RECORD))
        for number in range(count):
            begin = number * 7919 % (3 * RECORD)
            file.write(struct.pack(">Q", number) + noise[begin + 8 : begin + RECORD])
    subprocess.run([binary, "convert", array, path], check=True, stdout=subprocess.DEVNULL)
    os.remove(array)
    return path


def timed(command):
    """Runs a command under GNU time; returns wall time, processor time and peak memory."""
    result = subprocess.run(
        [TIME, "-v", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{result.stderr}")

    def value(label):
        found = re.search(rf"^\s*{re.escape(label)}: (.+)$", result.stderr, re.MULTILINE)
        return found.group(1)

    clock = value("Elapsed (wall clock) time (h:mm:ss or m:ss)")
    wall = 0.0
    for piece in clock.split(":"):
        wall = wall * 60 + float(piece)
    busy = float(value("User time (seconds)")) + float(value("System time (seconds)"))
    peak = int(value("Maximum resident set size (kbytes)")) * 1024
    return {"wall": wall, "busy": busy, "cores_used": busy / max(wall, 0.01), "peak": peak}


def print_table(results):
    print(f"{results['file_bytes'] / 2**30:.2f} GiB of records of {RECORD} bytes, {results['cores']} cores")
    print(f"{'':24} {'seconds':>8} {'GB/s':>6} {'cores used':>11} {'peak MB':>8}")
    for name, run in results["runs"].items():
        rate, peak = run["rate"] / 1e9, run["peak"] / 1e6
        print(f"{name:24} {run['wall']:8.2f} {rate:6.2f} {run['cores_used']:11.2f} {peak:8.1f}")
    print(f"verify rate / cat rate: {results['verify_rate_over_cat_rate']:.2f}")
    print(f"convert peak memory: {results['convert_peak_memory'] / 1e6:.1f} MB")
    for bound, met in results["bounds"].items():
        print(f"{'met   ' if met else 'MISSED'} {bound}")


def parse_size(text):
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "")
    if not number.isdigit():
        sys.exit(f"{text!r} is not a size: 512M, 2G")
    return int(number) * units.get(unit, 1)


if __name__ == "__main__":
    main()
