"""A thousand forks in the middle of everything: no child hangs, and none reads anything wrong."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import anyrec
from anyrec import grail, idx, mxnet

FORKS = 1000
WATCHDOG = 60
COUNT = 240
SIZE = 4000

Way = Callable[[], object]


def record(number: int) -> bytes:
    return number.to_bytes(4, "little") * (SIZE // 4)


def make(name: str) -> str:
    if "idx" in name:
        rows = np.frombuffer(b"".join(map(record, range(COUNT))), np.uint8)
        idx.write(name, rows.reshape(COUNT, SIZE))
        return name
    options: dict[str, Any] = {"transformers": ["zstd"], "max_items": 7} if name.endswith("rio") else {}
    with anyrec.create(name, **options) as writer:
        for number in range(COUNT):
            keyed = {"key": number} if name.endswith("rec") else {}
            writer.write(record(number), **keyed)
    return name


FILES = ["x.rec", "x.ffr", "x.grail-rio", "x-idx2-ubyte", "y-idx2-ubyte.gz"]


def ways(name: str, dataset: Any, loader: Any) -> dict[str, Way]:
    """What a child may do with what it has from its parent, and the parent's other threads are using."""
    some = [5, 200, 5, 17, 100]

    def check(good: bool) -> None:
        assert good

    def loaded() -> None:
        for _, batch in zip(range(3), loader):
            check(batch.to_list() == [record(number) for number in batch.indices.tolist()])

    found: dict[str, Way] = {
        "one": lambda: check(dataset[77] == record(77)),
        "batch": lambda: check(dataset.read(some).to_list() == [record(number) for number in some]),
        "slice": lambda: check(dataset[10:20] == [record(number) for number in range(10, 20)]),
        "scan": lambda: check([bytes(one) for one in dataset] == [record(n) for n in range(COUNT)]),
        "batches": lambda: check(
            [one for batch in dataset.batches(50) for one in batch.to_list()]
            == [record(n) for n in range(COUNT)]
        ),
        "open": lambda: check(anyrec.open(name)[3] == record(3)),
        "loader": loaded,
        "new loader": lambda: check(sum(len(batch) for batch in anyrec.Loader(dataset, 16)) == COUNT),
        "verify": lambda: check(anyrec.verify(name).sound),
    }
    if name.endswith(".rec"):
        found["key"] = lambda: check(dataset[dataset.find(9)] == record(9))
        found["mxnet"] = lambda: check(mxnet.MXRecordIO(name, "r").read() == record(0))
    if name.endswith("rio"):
        found["scanner"] = lambda: check(bytes(next(iter(grail.Scanner(name)))) == record(0))
    return found


@pytest.fixture
def busy() -> Iterator[Callable[[str], tuple[Any, Any]]]:
    """Datasets that threads of this process and loaders' threads are reading from all the time."""
    stop = threading.Event()
    threads: list[threading.Thread] = []

    def start(work: Way) -> None:
        def run() -> None:
            while not stop.is_set():
                work()

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    def open_busy(name: str) -> tuple[Any, Any]:
        dataset = anyrec.open(name)
        readers = anyrec.Loader(dataset, 4, shuffle=True, seed=1, threads=2)

        def load() -> None:
            for _ in readers:
                if stop.is_set():
                    break

        start(load)
        start(lambda: dataset.read(range(0, COUNT, 3)))
        start(lambda: [None for _ in anyrec.open(name)])
        return dataset, anyrec.Loader(dataset, 8, shuffle=True, seed=2, threads=2)

    yield open_busy
    stop.set()
    for thread in threads:
        thread.join()


def fork(way: Way) -> int:
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(WATCHDOG)
            way()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
    return child


@pytest.mark.parametrize("name", FILES)
def test_children_of_a_process_that_reads_on_many_threads_neither_hang_nor_err(
    own_folder: pathlib.Path, name: str, busy: Callable[[str], tuple[Any, Any]]
) -> None:
    dataset, loader = busy(make(name))
    # The loader is under way when the process forks.
    assert len(next(iter(loader))) == 8
    chosen = ways(name, dataset, loader)
    pick = random.Random(name)
    tried: dict[str, int] = dict.fromkeys(chosen, 0)
    for _ in range(FORKS // len(FILES)):
        way = pick.choice(list(chosen))
        status = os.waitstatus_to_exitcode(os.waitpid(fork(chosen[way]), 0)[1])
        assert status == 0, f"{way}: the child ended with {status} (-{signal.SIGALRM:d} is a hang)"
        tried[way] += 1
    assert all(tried.values()), tried
