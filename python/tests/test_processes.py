"""Fork, spawn and forkserver: the same data, and no hang."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

import anyrec
from anyrec import _anyrec, grail

WATCHDOG = 60
RECORDS = [bytes([n % 256]) * (n % 97) for n in range(300)]


@pytest.fixture(params=["many.rec", "many.ffr", "many.grail-rio"])
def path(request: pytest.FixtureRequest) -> str:
    options: dict[str, Any] = (
        {"transformers": ["flate"], "max_items": 20} if request.param.endswith("rio") else {}
    )
    with anyrec.create(request.param, **options) as writer:
        for record in RECORDS:
            writer.write(record)
    return str(request.param)


def read_all(dataset: Any, answer: Any) -> None:
    data = dataset.read(range(len(dataset))).to_list()
    answer.put(data == [bytes(record) for record in dataset] and data)


@pytest.mark.parametrize("read_before", [False, True], ids=["unread", "read"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_reads_what_its_parent_reads(path: str, method: str, read_before: bool) -> None:
    context: Any = multiprocessing.get_context(method)
    dataset = anyrec.open(path)
    if read_before:
        assert dataset.read([5, 3]).to_list() == [RECORDS[5], RECORDS[3]]
    answer = context.Queue()
    processes = [context.Process(target=read_all, args=(dataset, answer)) for _ in range(2)]
    for process in processes:
        process.start()
    for _ in processes:
        assert answer.get(timeout=WATCHDOG) == RECORDS
    for process in processes:
        process.join(WATCHDOG)
        assert process.exitcode == 0
    assert list(dataset) == RECORDS


def run_in_fork(work: Any) -> int:
    """Runs `work` in a forked child and gives its exit code: 0 if it returned."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(WATCHDOG)
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_fork_in_the_middle_of_other_threads_reads_does_not_hang(path: str) -> None:
    dataset = anyrec.open(path)
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            dataset.read(range(0, 300, 7))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()

    def check() -> None:
        assert dataset.read(range(300)).to_list() == RECORDS and list(dataset) == RECORDS

    try:
        assert [run_in_fork(check) for _ in range(20)] == [0] * 20
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("name", ["large.rec", "large.ffr", "large.grail-rio"])
def test_a_forked_child_goes_on_with_a_scan_that_is_read_ahead(name: str) -> None:
    records = [n.to_bytes(4, "little") * (n % 50_000) for n in range(200)]
    with anyrec.create(name) as writer:
        for record in records:
            writer.write(record)
    for taken in range(0, 200, 20):
        scan = iter(anyrec.open(name))
        assert [bytes(next(scan)) for _ in range(taken)] == records[:taken]

        def check(scan: Any = scan, taken: int = taken) -> None:
            assert list(scan) == records[taken:]

        assert run_in_fork(check) == 0
        check()


@pytest.mark.parametrize("name", ["x.rec", "x.ffr", "x.grail-rio"])
def test_a_writer_belongs_to_its_process(own_folder: pathlib.Path, name: str) -> None:
    options: dict[str, Any] = {"transformers": ["zstd"]} if name.endswith("rio") else {}
    writer = [anyrec.create(name, **options)]
    writer[0].write(b"parent's")

    def meddle() -> None:
        with pytest.raises(ValueError, match="belongs to another process"):
            writer[0].write(b"child's")
        with pytest.raises(ValueError, match="belongs to another process"):
            writer[0].close()
        with pytest.raises(ZeroDivisionError), writer[0]:
            assert not writer[0].closed
            _ = 1 / 0
        writer.clear()
        gc.collect()

    assert run_in_fork(meddle) == 0
    writer[0].write(b"parent's again")
    writer[0].close()
    assert list(anyrec.open(name)) == [b"parent's", b"parent's again"]
    assert anyrec.verify(name).sound and len(list(own_folder.iterdir())) == 1


def test_other_readers_work_in_a_forked_child() -> None:
    with anyrec.create("x.rec") as writer:
        writer.write(b"one")
        writer.write(b"two")
    anyrec.convert("x.rec", "x.ffr")
    anyrec.convert("x.rec", "x.grail-rio")
    mxnet, ffrecord, scanner = (
        _anyrec.MxReader("x.rec"),
        _anyrec.FfReader(["x.ffr"]),
        grail.Scanner("x.grail-rio"),
    )
    assert mxnet.read() == b"one" and next(scanner) == b"one" and ffrecord.read_one(0).tobytes() == b"one"

    def check() -> None:
        assert mxnet.read() == b"two" and next(scanner) == b"two" and ffrecord.read_one(1).tobytes() == b"two"

    assert run_in_fork(check) == 0
    check()


def test_importing_starts_no_thread() -> None:
    code = "import anyrec, os; print(len(os.listdir('/proc/self/task')))"
    # NumPy's own linear algebra starts threads unless told not to.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "1"


def test_ctrl_c_ends_long_work_at_once_and_leaves_no_output(own_folder: pathlib.Path) -> None:
    # Takes far longer to compress than the signal is away.
    record = os.urandom(2_000_000)
    with anyrec.create("large.rec", durability="process") as writer:
        for _ in range(200):
            writer.write(record)
    code = (
        "import anyrec, sys\n"
        "print('go', flush=True)\n"
        "while True:\n"
        "    anyrec.convert('large.rec', 'out.grail-rio', transformers=['zstd 19'], max_items=1)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"go\n"
    threading.Event().wait(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=WATCHDOG)
    assert b"KeyboardInterrupt" in errors
    assert sorted(path.name for path in own_folder.iterdir()) == ["large.rec"]
