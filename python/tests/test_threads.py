"""One dataset, many threads."""

from __future__ import annotations

import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import anyrec
from anyrec import _anyrec

RECORDS = [random.Random(n).randbytes(n * 37 % 5000) for n in range(500)]


@pytest.fixture(params=["many.rec", "many.ffr", "many.grail-rio"])
def path(request: pytest.FixtureRequest) -> str:
    options: dict[str, Any] = (
        {"transformers": ["zstd"], "max_items": 20} if request.param.endswith("rio") else {}
    )
    with anyrec.create(request.param, **options) as writer:
        for record in RECORDS:
            writer.write(record)
    return str(request.param)


def test_sixteen_threads_on_one_dataset_read_the_right_records(path: str) -> None:
    dataset = anyrec.open(path)
    start = threading.Barrier(16)

    def read(seed: int) -> int:
        chosen = random.Random(seed)
        start.wait()
        for _ in range(30):
            indices = [chosen.randrange(len(RECORDS)) for _ in range(20)]
            assert dataset.read(indices).to_list() == [RECORDS[i] for i in indices]
            one = chosen.randrange(len(RECORDS))
            assert dataset[one] == RECORDS[one]
        assert list(dataset) == RECORDS
        return seed

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(read, range(16))) == list(range(16))


def test_threads_that_share_an_iterator_get_every_record_once(path: str) -> None:
    iterator = iter(anyrec.open(path))
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda _: list(iterator), range(8)))
    assert sorted(bytes(record) for part in parts for record in part) == sorted(RECORDS)


def test_closing_while_others_read_ends_in_an_exception_and_nothing_worse(path: str) -> None:
    dataset = anyrec.open(path)

    def read() -> None:
        with pytest.raises(anyrec.ClosedError):
            while True:
                assert dataset.read([1, 400]).to_list() == [RECORDS[1], RECORDS[400]]

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    dataset.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_threads_that_share_a_writer_write_every_record() -> None:
    with anyrec.create("out.grail-rio", transformers=["zstd"], max_items=10) as writer:
        with ThreadPoolExecutor(8) as pool:
            numbers = list(pool.map(writer.write, RECORDS))
    assert sorted(numbers) == list(range(len(RECORDS)))
    dataset = anyrec.open("out.grail-rio")
    assert [dataset[number] for number in numbers] == RECORDS


def test_other_threads_run_while_a_file_is_verified() -> None:
    with anyrec.create("large.ffr", durability="process") as writer:
        for _ in range(40):
            writer.write(bytes(5_000_000))
    ticks = 0
    seen = []
    ticking = threading.Event()
    done = threading.Event()

    def verify() -> None:
        # Starting a thread takes as long as the verification where both really run at once.
        ticking.wait()
        before = ticks
        assert _anyrec.verify("large.ffr")["sound"]
        seen.append(ticks - before)
        done.set()

    # Nobody is interrupted: a thread runs Python only when another one lets go by itself, as
    # `sleep` does, and as the verification must.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread = threading.Thread(target=verify)
        thread.start()
        while not done.is_set():
            ticks += 1
            ticking.set()
            time.sleep(0.001)
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert seen[0] > 0
