"""Another process cuts a file short while it is read by default: an error, never the end of the process."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time

import pytest

import anyrec

CODE = """
import anyrec, sys
name, road = sys.argv[1:]
record = bytes(range(1, 251)) * 16
dataset = anyrec.open(name)
count = len(dataset)
print("go", flush=True)
sys.stdin.readline()
try:
    while True:
        if road == "one":
            found = [dataset[number] for number in range(0, count, 7)]
        elif road == "batch":
            found = dataset.read(range(count)).to_list()
        elif road == "scan":
            found = list(dataset)
        elif road == "loader":
            found = [one for batch in anyrec.Loader(dataset, 64, shuffle=True) for one in batch.to_list()]
        assert all(one == record for one in found), "wrong bytes"
except (anyrec.AnyrecError, OSError) as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("road", ["one", "batch", "scan", "loader"])
@pytest.mark.parametrize("name", ["a b.rec", "a b.ffr", "a b.grail-rio"])
def test_a_file_that_is_cut_short_is_an_error(own_folder: pathlib.Path, name: str, road: str) -> None:
    with anyrec.create(name, durability="process") as writer:
        for _ in range(2000):
            writer.write(bytes(range(1, 251)) * 16)
    command = [sys.executable, "-c", CODE, name, road]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline() == "go\n"
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(0.1)
        with open(name, "r+b") as file:
            # Within a page: the rest of that page reads as zeros without any signal.
            file.truncate(1_000_001)
        told = process.communicate(timeout=60)[0]
    assert process.returncode == 0, process.returncode
    assert "cut short" in told, told
