"""What the Python peers share: the command line, the manifest, the list of mismatches.

A peer wraps an original implementation in two commands. `write` makes files with it and records in
`manifest.jsonl` what its own reader finds in them. `read` takes files made by another library and reports
where its reader disagrees with their manifest.
"""

import argparse
import contextlib
import hashlib
import json
import random
import sys
import traceback
from pathlib import Path

MANIFEST = "manifest.jsonl"


def digest(data):
    """A record in the manifest's form: [length, sha256]."""
    return [len(data), hashlib.sha256(data).hexdigest()]


class Report:
    """Prints one JSON line per mismatch, and counts them."""

    def __init__(self):
        self.file = None
        self.mismatches = 0

    def mismatch(self, what, expected, found):
        self.mismatches += 1
        line = {"file": self.file, "what": what, "expected": expected, "found": found}
        # Flushed, so that earlier findings survive if a library crashes the process.
        print(json.dumps(line), flush=True)

    def compare(self, what, expected, found):
        if expected != found:
            self.mismatch(what, expected, found)

    def compare_lists(self, what, expected, found):
        """Reports only the first difference: after a shift every later item differs too."""
        if len(expected) != len(found):
            self.mismatch(f"{what}: count", len(expected), len(found))
        for position, (one, other) in enumerate(zip(expected, found)):
            if one != other:
                self.mismatch(f"{what}[{position}]", one, other)
                return

    @contextlib.contextmanager
    def attempt(self, what):
        """Turns any exception of the library into a mismatch, so that the run continues."""
        try:
            yield
        except Exception as error:
            self.mismatch(what, "no exception", f"{type(error).__name__}: {error}")


def write_all(directory, seed, count, write_file):
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / MANIFEST, "w", encoding="utf-8") as manifest:
        for ordinal in range(count):
            # Seeded per file: file 17 is the same whatever the count.
            entry = write_file(directory, ordinal, random.Random(f"{seed}/{ordinal}"))
            manifest.write(json.dumps(entry) + "\n")


def read_all(directory, fields, check_file):
    report = Report()
    checked = 0
    with open(directory / MANIFEST, encoding="utf-8") as manifest:
        for line in manifest:
            entry = json.loads(line)
            report.file = entry.get("file")
            checked += 1
            # Otherwise a misspelt or forgotten field would silently skip a check.
            if set(entry) != fields:
                report.mismatch("manifest fields", sorted(fields), sorted(entry))
                continue
            with report.attempt("check"):
                check_file(directory, entry, report)
    print(json.dumps({"checked": checked, "mismatches": report.mismatches}))
    return 1 if report.mismatches else 0


def main(description, fields, write_file, check_file):
    parser = argparse.ArgumentParser(description=description)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="write seeded random files and their manifest")
    write.add_argument("directory", type=Path)
    write.add_argument("--seed", type=int, required=True)
    write.add_argument("--count", type=int, required=True)
    read = commands.add_parser("read", help="check the files in a directory against its manifest")
    read.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    try:
        if arguments.command == "write":
            write_all(arguments.directory, arguments.seed, arguments.count, write_file)
            sys.exit(0)
        sys.exit(read_all(arguments.directory, fields, check_file))
    except Exception:
        # Not 1, which would mean that files were read and found wrong.
        traceback.print_exc()
        sys.exit(2)
