"""Nothing that is called wrongly panics, aborts or hangs: see ``misuse.py``."""

from __future__ import annotations

import inspect
import os
import pathlib
import struct
import subprocess
import sys
from typing import Any

import misuse
import numpy as np
import pytest
from conftest import TESTDATA

import anyrec
from anyrec import _anyrec, mxnet

CALLS = int(os.environ.get("ANYREC_MISUSE_CALLS", 100_000))
PROCESSES = 2
WATCHDOG = 900


def test_every_public_class_and_function_is_called() -> None:
    for name, value in misuse.public().items():
        if inspect.isclass(value) and not misuse.is_plain(value):
            assert misuse.maker(name, value), f"misuse.py does not know how to make a {name}"


def test_misuse_ends_in_exceptions_and_nothing_worse(tmp_path: pathlib.Path) -> None:
    sessions = CALLS // misuse.CALLS // PROCESSES
    started = []
    for number in range(PROCESSES):
        folder = tmp_path / str(number)
        folder.mkdir()
        misuse.prepare(folder, TESTDATA)
        first = number * sessions
        command = [sys.executable, misuse.__file__, str(first), str(sessions), str(folder)]
        errors = tmp_path / f"errors{number}"
        with errors.open("wb") as file:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, stdin=subprocess.DEVNULL)
        started.append((process, folder, errors, command))
    for process, folder, errors, command in started:
        try:
            said, _ = process.communicate(timeout=WATCHDOG)
        finally:
            process.kill()
        told = errors.read_text(errors="replace")
        seed = (folder / "reached").read_text().strip()
        again = f"again: python {misuse.__file__} {seed} 1 FOLDER (after prepare); or {' '.join(command[1:])}"
        assert process.returncode == 0, f"ended by {process.returncode} at seed {seed}; {again}\n{told[-5000:]}"
        assert "panicked at" not in told, f"{again}\n{told[-5000:]}"
        assert f"{sessions * misuse.CALLS} calls".encode() in said


@pytest.fixture
def words() -> anyrec.Dataset:
    with anyrec.create("words.ffr") as writer:
        for word in ["zero", "one", "two"]:
            writer.write(word)
    return anyrec.open("words.ffr")


def test_a_slice_with_the_largest_step_takes_one_record(words: anyrec.Dataset) -> None:
    assert words[1 :: sys.maxsize] == [b"one"]
    assert words[:: -sys.maxsize] == [b"two"]
    assert words.read(slice(1, None, sys.maxsize)).to_list() == [b"one"]


@pytest.mark.parametrize("numbers", [range(2**62), range(10**30), range(2, -(10**12), -1)], ids=repr)
def test_a_range_that_is_too_long_is_refused_at_once(words: anyrec.Dataset, numbers: range) -> None:
    with pytest.raises(IndexError):
        words.read(numbers)


@pytest.mark.parametrize("said", [2**62, 2**40, -1, 0, ValueError("no")], ids=repr)
def test_a_length_is_not_believed(words: anyrec.Dataset, said: Any) -> None:
    assert words.read(misuse.Lying(said, [2, 0])).to_list() == [b"two", b"zero"]
    assert len(_anyrec.Dataset(misuse.Lying(said, ["words.ffr"]))) == 3
    assert _anyrec.required_space(misuse.Lying(said, [1, 1]), 10) > 0


def test_numbers_that_never_end_are_a_memory_error() -> None:
    code = (
        "import anyrec, itertools, resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "try: anyrec.open('words.ffr').read(itertools.repeat(0))\n"
        "except MemoryError: print('too many')\n"
    )
    with anyrec.create("words.ffr") as writer:
        writer.write("one")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "too many\n", done.stderr


def test_a_file_that_claims_many_records_does_not_decide_how_many_are_listed() -> None:
    pathlib.Path("claims-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + struct.pack(">I", 2**32 - 1) + bytes(12))
    dataset = anyrec.open("claims-idx1-ubyte")
    assert len(dataset) == 2**32 - 1
    for work in (
        lambda: dataset[:], lambda: dataset.labels(), lambda: dataset.read(slice(None)),
        lambda: dataset.select(slice(None)), lambda: dataset.filter(labels=1),
    ):  # fmt: skip
        with pytest.raises(anyrec.AnyrecError):
            work()


def test_numbers_of_any_layout_are_read_right(words: anyrec.Dataset) -> None:
    unaligned = np.frombuffer(b"\0" + struct.pack("<2q", 2, 0), np.uint8)[1:].view("<i8")
    for numbers in (unaligned, np.array([0, 2])[::-1], np.array([2, 0], ">i8"), np.array([2, 0], np.uint8)):
        assert words.read(numbers).to_list() == [b"two", b"zero"]


SIGINT = """
import sys, threading, time, signal, anyrec
data = anyrec.open(sys.argv[1])
len(data)
work = {"read": lambda: data.read(slice(None)), "slice": lambda: data[:], "labels": data.labels,
        "list": lambda: list(data), "batches": lambda: list(data.batches(10**9)),
        "verify": data.verify}[sys.argv[2]]
sent = []
def send():
    sent.append(time.perf_counter())
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
timer = threading.Timer(0.1, send)
timer.daemon = True
try:
    timer.start()
    while True:
        work()
except KeyboardInterrupt:
    print(f"{time.perf_counter() - sent[0]:.3f}")
"""


@pytest.mark.parametrize("name", ["many.rec", "many.grail-rio", "large.ffr"])
def test_ctrl_c_is_heard_in_the_middle_of_a_long_call(name: str) -> None:
    count, size = (400, 1 << 20) if name.startswith("large") else (400_000, 60)
    record = mxnet.pack(mxnet.IRHeader(0, 1.0, 1, 0), bytes(size))
    with anyrec.create(name, durability="process") as writer:
        for _ in range(count):
            writer.write(record)
    for work in ("read", "slice", "labels", "list", "batches", "verify"):
        done = subprocess.run(
            [sys.executable, "-c", SIGINT, name, work], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        # About 0.05 s; it is only held against work that goes on to its end.
        assert float(done.stdout) < 2, work
