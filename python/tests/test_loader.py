"""The loader: the same batches whatever reads them, and exact resume."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import anyrec

WATCHDOG = 60
COUNT = 203


@pytest.fixture(params=["many.rec", "many.ffr", "many.grail-rio"])
def path(request: pytest.FixtureRequest) -> str:
    return write(str(request.param))


def record(number: int) -> bytes:
    return b"%d " % number * (number % 7 + 1)


def write(name: str, count: int = COUNT) -> str:
    with anyrec.create(name) as writer:
        for number in range(count):
            writer.write(record(number))
    return name


def numbers(loader: Any) -> list[list[int]]:
    """The numbers of an iteration's batches; every record must be the one its number says."""
    found = []
    for batch in loader:
        assert batch.to_list() == [record(number) for number in batch.indices]
        found.append(batch.indices.tolist())
    return found


def loader_threads() -> int:
    """Threads of loaders in this process."""
    found = 0
    for task in os.listdir("/proc/self/task"):
        # A thread may end while the list is read.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            name = pathlib.Path(f"/proc/self/task/{task}/comm").read_text()
            found += name.startswith("anyrec-loader")
    return found


def test_an_epoch_in_order_has_every_record(path: str) -> None:
    loader = anyrec.Loader(path, 50)
    assert len(loader) == 5
    assert sum(numbers(loader), []) == list(range(COUNT))
    assert (loader.epoch, loader.step, len(loader)) == (1, 0, 5)


def test_batches_do_not_depend_on_threads_or_ranks(path: str) -> None:
    options: dict[str, Any] = {"shuffle": True, "seed": 3}
    order = sum(numbers(anyrec.Loader(path, 6, threads=1, **options)), [])
    assert sorted(order) == list(range(COUNT)) != order
    for world in [1, 2, 3, 8]:
        for threads in [1, 2, 7]:
            ranks = [
                numbers(anyrec.Loader(path, 6, rank=rank, world=world, threads=threads, **options))
                for rank in range(world)
            ]
            assert len({tuple(map(len, rank)) for rank in ranks}) == 1
            together = [number for step in zip(*ranks, strict=True) for batch in step for number in batch]
            assert together[:COUNT] == order


def test_epochs_differ_and_can_be_chosen() -> None:
    loader = anyrec.Loader(write("a.ffr"), 20, shuffle=True, block=16, window=4)
    first, second = numbers(loader), numbers(loader)
    assert first != second
    assert numbers(anyrec.Loader("a.ffr", 20, shuffle=True, block=16, window=4, epoch=1)) == second
    loader.set_epoch(0)
    assert numbers(loader) == first


def test_the_last_batches_are_shared_evenly_or_dropped() -> None:
    write("a.ffr", 21)
    ranks = [list(anyrec.Loader("a.ffr", 4, rank=rank, world=4)) for rank in range(4)]
    assert [[len(batch) for batch in rank] for rank in ranks] == [[4, 2]] * 4
    assert [rank[1].padding for rank in ranks] == [0, 0, 1, 2]
    real = [n for rank in ranks for batch in rank for n in batch.indices[: len(batch) - batch.padding].tolist()]
    assert sorted(real) == list(range(21))
    assert [len(anyrec.Loader("a.ffr", 4, rank=rank, world=4, drop_last=True)) for rank in range(4)] == [1] * 4


def test_resume_is_exact_at_every_step_and_twice_in_a_row() -> None:
    write("a.ffr", 60)
    options: dict[str, Any] = {"shuffle": True, "seed": 2**64 - 1}
    whole = anyrec.Loader("a.ffr", 7, **options)
    epochs = [numbers(whole) for _ in range(3)]
    for step in range(len(epochs[0]) + 1):
        first = anyrec.Loader("a.ffr", 7, **options)
        batches = iter(first)
        for _ in range(step):
            next(batches)
        state = json.loads(json.dumps(first.state_dict()))
        # The seed comes with the state.
        second = anyrec.Loader("a.ffr", 7, shuffle=True, threads=3)
        second.load_state_dict(state)
        # After the last batch of an epoch, the state is the beginning of the next.
        expected = epochs[0][step:] or epochs[1]
        assert (second.left, len(second)) == (len(expected), len(epochs[0]))
        one = next(iter(second)).indices.tolist()
        third = anyrec.Loader("a.ffr", 7, shuffle=True)
        third.load_state_dict(second.state_dict())
        assert [one, *(numbers(third) if len(expected) > 1 else [])] == expected
        assert numbers(third) == epochs[1 if epochs[0][step:] else 2]


def test_the_state_at_the_end_of_an_epoch_is_the_next_ones_beginning() -> None:
    write("a.ffr", 20)
    loader = anyrec.Loader("a.ffr", 5, shuffle=True)
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    at_the_last_batch = loader.state_dict()
    assert (at_the_last_batch["epoch"], at_the_last_batch["consumed"], loader.left) == (1, 0, 0)
    assert next(batches, None) is None
    assert loader.state_dict() == at_the_last_batch
    second = numbers(loader)
    again = anyrec.Loader("a.ffr", 5, shuffle=True)
    again.load_state_dict(at_the_last_batch)
    assert numbers(again) == second


def test_an_iteration_left_early_is_followed_by_the_next_epoch() -> None:
    write("a.ffr", 20)
    loader = anyrec.Loader("a.ffr", 5, shuffle=True)
    epochs = [numbers(loader) for _ in range(3)]
    loader = anyrec.Loader("a.ffr", 5, shuffle=True)
    for _ in loader:
        break
    assert loader_threads() == 0
    state = loader.state_dict()
    assert (state["epoch"], state["consumed"]) == (0, 5)
    assert numbers(loader) == epochs[1]
    loader.load_state_dict(state)
    loader.set_epoch(0)  # as trainers do before every epoch
    assert numbers(loader) == epochs[0][1:]
    loader.set_epoch(2)
    loader.set_step(3)
    assert (loader.left, numbers(loader)) == (1, epochs[2][3:])


def test_an_iteration_that_gave_no_batch_does_not_count() -> None:
    # Trainers ask for iterators more often than they use them.
    loader = anyrec.Loader(write("a.ffr"), 50, shuffle=True)
    epochs = [numbers(loader) for _ in range(2)]
    loader.set_epoch(0)
    iter(loader)
    assert next(iter(loader)).indices.tolist() == epochs[0][0]
    iter(loader)
    assert numbers(loader) == epochs[1]


def test_an_older_iteration_is_told_that_it_is_over() -> None:
    loader = anyrec.Loader(write("a.ffr"), 5)
    older = iter(loader)
    next(older)
    newer = iter(loader)
    next(newer)
    with pytest.raises(anyrec.InvalidArgument, match="this iterator is stale"):
        next(older)
    del older
    assert len(next(newer)) == 5
    assert len(next(newer)) == 5


def test_a_run_goes_on_with_other_numbers_of_ranks() -> None:
    write("a.ffr")
    seen: list[int] = []
    state: dict[str, Any] | None = None
    for world, batch_size, steps in [(8, 4, 2), (6, 5, 3), (3, 2, 1000)]:
        states = []
        for rank in range(world):
            loader = anyrec.Loader("a.ffr", batch_size, shuffle=True, seed=5, rank=rank, world=world)
            if state is not None:
                loader.load_state_dict(state)
            batches = iter(loader)
            for _ in range(min(steps, loader.left)):
                batch = next(batches)
                seen += batch.indices[: len(batch) - batch.padding].tolist()
            states.append(loader.state_dict())
        assert all(other == states[0] for other in states)
        state = json.loads(json.dumps(states[0]))
    assert sorted(seen) == list(range(COUNT))


def test_a_state_of_something_else_is_refused() -> None:
    loader = anyrec.Loader(write("a.ffr"), 5, shuffle=True)
    other = anyrec.Loader(write("b.ffr", 10), 5, shuffle=True)
    with pytest.raises(anyrec.InvalidArgument, match="expected 10 records shuffled, found 203 records") as raised:
        loader.load_state_dict(other.state_dict())
    assert raised.value.hint is not None
    with pytest.raises(anyrec.InvalidArgument, match="version is None"):
        loader.load_state_dict({"step": 3})
    assert loader.step == 0


def damage(path: str, damaged: list[int]) -> None:
    dataset = anyrec.open(path)
    data = bytearray(pathlib.Path(path).read_bytes())
    for number in damaged:
        data[dataset.position(number)[0]] ^= 1
    pathlib.Path(path).write_bytes(data)


def test_damaged_records_are_raised_skipped_or_replaced() -> None:
    damage(write("a.ffr", 20), [2, 7, 19])
    raising = anyrec.Loader("a.ffr", 5)
    batches = iter(raising)
    for _ in range(2):
        with pytest.raises(anyrec.CorruptRecord) as raised:
            next(batches)
        assert (raised.value.record, raising.step) == (2, 0)
    skipping = anyrec.Loader("a.ffr", 5, on_error="skip")
    assert numbers(skipping) == [[0, 1, 3, 4], [5, 6, 8, 9], [10, 11, 12, 13, 14], [15, 16, 17, 18]]
    assert skipping.failed == 3
    assert [(epoch, number) for epoch, number, _ in skipping.errors] == [(0, 2), (0, 7), (0, 19)]
    assert all(isinstance(error, anyrec.CorruptRecord) for _, _, error in skipping.errors)
    replacing = anyrec.Loader("a.ffr", 5, on_error="replace")
    assert numbers(replacing)[::3] == [[0, 1, 3, 3, 4], [15, 16, 17, 18, 15]]
    with pytest.raises(ValueError, match="raise, skip, replace or blank"):
        anyrec.Loader("a.ffr", 5, on_error="ignore")  # type: ignore[call-overload]


def test_views_select_and_filter() -> None:
    with anyrec.create("pets.rec") as writer:
        for number in range(30):
            writer.write(b"%d" % number, key=100 + number, label=float(number % 3))
    pets = anyrec.open("pets.rec")
    twos = pets.filter(labels=2)
    assert (len(twos), twos.label(-1), twos.key(0)) == (10, 2.0, 102)
    assert [bytes(pet)[-1:] for pet in twos[:3]] == [b"2", b"5", b"8"]
    assert len(pets.filter(labels=[0, 2])) == len(pets.filter(labels=lambda label: label != 1)) == 20
    assert pets.filter(keys=[103, 101, 999]).indices.tolist() == [1, 3]
    assert pets.select(slice(None, None, -10)).indices.tolist() == [29, 19, 9]
    assert pets.select(np.arange(30) % 7 == 0).filter(labels=1).indices.tolist() == [7, 28]
    view = pets.select([5, -1, 5])
    assert [bytes(pet)[-1:] for pet in view] == [b"5", b"9", b"5"] and view.read([1, 0])[0] == pets[-1]
    assert view.select([1]).indices.tolist() == [29]
    assert view.labels().tolist() == [2.0, 2.0, 2.0]
    again = pickle.loads(pickle.dumps(view))
    assert list(again) == list(view) and repr(again).startswith("<View of 3 records of <Dataset 'pets.rec'")
    for wrong in ([30], [-31], np.array([0, 99])):
        with pytest.raises(IndexError, match="there is no record"):
            pets.select(wrong)
    with pytest.raises(IndexError):
        view[3]


def test_views_are_loaded_like_datasets() -> None:
    view = anyrec.open(write("a.ffr")).select(range(3, 100, 3))
    loader = anyrec.Loader(view, 4, shuffle=True, threads=2)
    found = [(batch.indices.tolist(), batch.to_list()) for batch in loader]
    assert sorted(number for batch, _ in found for number in batch) == list(range(len(view)))
    for batch, records in found:
        assert records == [record(int(view.indices[number])) for number in batch]
    assert len(pickle.loads(pickle.dumps(loader))) == len(loader)


def test_mixtures_keep_their_weights_and_resume() -> None:
    first, second = anyrec.open(write("a.ffr", 100)), anyrec.open(write("b.ffr", 1000))
    mix = anyrec.Mix([first, second.select(range(500))], [1, 3], samples=800)
    assert len(mix) == 800
    loader = anyrec.Loader(mix, 32, shuffle=True, seed=9)
    epochs = [[batch.indices.tolist() for batch in loader] for _ in range(3)]
    uses = np.concatenate([np.concatenate(epoch) for epoch in epochs])
    assert abs(int((uses < 100).sum()) - 600) < 40 and uses.max() < 600
    again = anyrec.Loader(mix, 32, shuffle=True)
    again.load_state_dict({**loader.state_dict(), "epoch": 1, "consumed": 64})
    assert [batch.indices.tolist() for batch in again] == epochs[1][2:]
    with pytest.raises(anyrec.InvalidArgument, match="2 datasets need as many weights, not 1"):
        anyrec.Mix([first, second], [1])


def test_labels_come_with_the_batch_and_survive_pickling() -> None:
    with anyrec.create("a.rec") as writer:
        for number in range(6):
            writer.write(b"x", label=number)
    with anyrec.create("b.rec") as writer:
        for number in range(6):
            writer.write(b"x", label=[number, 1])
    (one,) = anyrec.Loader("a.rec", 6, labels=True)
    assert one.labels.tolist() == [0, 1, 2, 3, 4, 5]
    (several,) = anyrec.Loader("b.rec", 6, labels=True)
    assert several.labels.shape == (6, 2)
    with pytest.warns(anyrec.MissingLabel, match="record 0 has no label"):
        (none,) = anyrec.Loader(write("c.ffr", 3), 6, labels=True)
    assert np.isnan(none.labels).all()
    again = pickle.loads(pickle.dumps(several))
    assert again.labels.tolist() == several.labels.tolist()
    assert again.indices.tolist() == several.indices.tolist() and list(again) == list(several)
    (plain,) = anyrec.Loader("a.rec", 6)
    assert plain.labels is None and anyrec.open("a.rec").read([1]).indices is None


def test_records_are_decoded_for_the_consumer() -> None:
    loader = anyrec.Loader(write("a.ffr", 5), 2, decode=lambda record: int(bytes(record).split()[0]))
    assert list(loader) == [[0, 1], [2, 3], [4]]


def test_memory_that_is_still_in_use_is_not_used_again() -> None:
    write("a.ffr")
    kept = list(anyrec.Loader("a.ffr", 3, threads=3))
    arrays = [batch.numpy()[0] for batch in kept]
    del kept
    for _ in anyrec.Loader("a.ffr", 3):
        pass
    assert [array.tobytes() for array in arrays] == [record(number) for number in range(0, COUNT, 3)]


def test_sixteen_loaders_work_at_once_and_leave_no_thread() -> None:
    write("a.ffr")
    expected = [numbers(anyrec.Loader("a.ffr", 9, shuffle=True, seed=seed)) for seed in range(16)]
    together = zip(*(anyrec.Loader("a.ffr", 9, shuffle=True, seed=seed) for seed in range(16)), strict=True)
    found = [[batch.indices.tolist() for batch in step] for step in together]
    assert [list(batches) for batches in zip(*found, strict=True)] == expected
    answers: dict[int, Any] = {}

    def work(seed: int) -> None:
        answers[seed] = numbers(anyrec.Loader("a.ffr", 9, shuffle=True, seed=seed))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG)
    assert [answers[seed] for seed in range(16)] == expected
    assert loader_threads() == 0


def test_threads_start_with_the_first_batch_and_end_when_closed() -> None:
    write("a.ffr")
    with anyrec.Loader("a.ffr", 2, threads=3, shuffle=True) as loader:
        assert loader_threads() == 0
        batches = iter(loader)
        first = next(batches)
        assert 1 <= loader_threads() <= 3  # a thread has its name a moment after it started
        loader.close()
        assert loader_threads() == 0
        # Closing forgets nothing but what was read ahead.
        whole = numbers(anyrec.Loader("a.ffr", 2, shuffle=True))
        assert [first.indices.tolist(), next(batches).indices.tolist()] == whole[:2]
    assert loader_threads() == 0


def test_settings_without_sense_are_refused() -> None:
    write("a.ffr")
    for options in [{"batch_size": 0}, {"rank": 2, "world": 2}, {"block": 4}, {"block": 0, "shuffle": True}]:
        with pytest.raises(anyrec.InvalidArgument):
            anyrec.Loader("a.ffr", **{"batch_size": 1, **options})  # type: ignore[call-overload]
    with pytest.raises(anyrec.FileMissing):
        anyrec.Loader("missing.ffr", 1)


def go_on(loader: Any, answer: Any) -> None:
    signal.alarm(WATCHDOG)
    answer.put(numbers(loader))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_loader_goes_on_in_another_process(path: str, method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    loader = anyrec.Loader(path, 5, shuffle=True, threads=2)
    expected = [numbers(loader) for _ in range(3)]
    # In the middle of an epoch, its threads at work.
    loader.set_epoch(1)
    loader.set_step(3)
    answer = context.Queue()
    if method == "fork":
        batches = iter(loader)
        assert next(batches).indices.tolist() == expected[1][3]
        rest = expected[2]  # iterating again begins the next epoch
    else:
        rest = expected[1][3:]
    process = context.Process(target=go_on, args=(loader, answer))
    process.start()
    assert answer.get(timeout=WATCHDOG) == rest
    process.join(WATCHDOG)
    assert process.exitcode == 0
    if method == "fork":
        assert [batch.indices.tolist() for batch in batches] == expected[1][4:]


def test_a_forked_child_goes_on_with_the_iteration_itself(path: str) -> None:
    loader = anyrec.Loader(path, 5, shuffle=True, threads=2)
    expected = numbers(anyrec.Loader(path, 5, shuffle=True))
    batches = iter(loader)
    next(batches)
    child = os.fork()
    if child == 0:
        signal.alarm(WATCHDOG)
        right = [batch.indices.tolist() for batch in batches] == expected[1:]
        os._exit(0 if right else 1)
    assert [batch.indices.tolist() for batch in batches] == expected[1:]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


WAITS = """
import os, signal, threading
import anyrec
from anyrec import grail

entered, released = threading.Event(), threading.Event()

def decode(data):
    entered.set()
    released.wait()
    return data

grail.register_transformer("slow", lambda config: bytes, lambda config: decode)
with anyrec.create("a.grail-rio", transformers=["slow"], max_items=10) as writer:
    for i in range(100):
        writer.write(b"x" * 1000)

def interrupted(*_):
    released.set()
    raise KeyboardInterrupt

def interrupt():
    entered.wait()
    os.kill(os.getpid(), signal.SIGINT)

released.set()
loader = anyrec.Loader("a.grail-rio", 10, threads=4)  # counts the records
released.clear()
entered.clear()
signal.signal(signal.SIGINT, interrupted)
threading.Thread(target=interrupt).start()
try:
    next(iter(loader))
except KeyboardInterrupt:
    names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
    print(sum(name.startswith("anyrec-loader") for name in names))
"""


def test_an_interrupt_while_waiting_ends_it_and_the_threads() -> None:
    done = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, text=True, timeout=WATCHDOG)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
