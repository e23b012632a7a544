"""`anyrec.open` and what it gives."""

from __future__ import annotations

import pathlib
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import anyrec

WORDS = [b"zero", b"one", b"", b"three", b"four"]


@pytest.fixture(params=["words.rec", "words.ffr", "words.grail-rio"])
def path(request: pytest.FixtureRequest) -> str:
    with anyrec.create(request.param) as writer:
        for word in WORDS:
            writer.write(word)
    return str(request.param)


def test_indices_slices_lists_and_arrays_give_the_records(path: str) -> None:
    dataset = anyrec.open(path)
    assert len(dataset) == 5
    assert [dataset[i] for i in range(5)] == WORDS
    assert dataset[-1] == b"four" and dataset[np.int64(3)] == b"three"
    assert dataset[1:4] == WORDS[1:4]
    assert dataset[::-2] == WORDS[::-2]
    assert dataset[10:] == []
    assert dataset[[3, 0, 3]] == [b"three", b"zero", b"three"]
    assert dataset[np.array([-1, 1], dtype=np.int8)] == [b"four", b"one"]
    assert dataset[range(2)] == WORDS[:2]
    assert dataset[[]] == []
    assert list(dataset) == WORDS
    assert isinstance(dataset, Sequence)


@pytest.mark.parametrize("index", [5, -6, 2**70, -(2**70)])
def test_an_index_outside_is_an_index_error(path: str, index: int) -> None:
    dataset = anyrec.open(path)
    with pytest.raises((IndexError, OverflowError)):
        dataset[index]
    with pytest.raises((IndexError, OverflowError)):
        dataset.read([0, index])


@pytest.mark.parametrize("index", [1.0, "1", None, [0.5], ["a"], np.array([1.5])])
def test_what_is_no_index_is_a_type_error(path: str, index: object) -> None:
    with pytest.raises(TypeError):
        anyrec.open(path)[index]  # type: ignore[call-overload]


def test_a_batch_is_a_sequence_of_records_over_one_buffer(path: str) -> None:
    batch = anyrec.open(path).read([3, 1, 3, 2])
    assert isinstance(batch, Sequence) and len(batch) == 4
    assert all(isinstance(record, anyrec.Record) for record in batch)
    assert batch.to_list() == [b"three", b"one", b"three", b""]
    assert [array.tobytes() for array in batch.numpy()] == batch.to_list()
    assert [bytes(record) for record in batch[1:]] == batch.to_list()[1:]
    assert bytes(batch[-2]) == b"three"
    assert batch.offsets.tolist() == [0, 5, 8, 13, 13] and batch.nbytes == 13
    assert batch.buffer.tobytes() == b"threeonethree"
    assert b"one" in batch and b"two" not in batch
    assert batch.index(b"three", 1) == 2 and batch.count(b"three") == 2
    with pytest.raises(IndexError):
        batch[4]
    again = pickle.loads(pickle.dumps(batch))
    assert again.to_list() == batch.to_list()


def test_the_repr_says_what_it_is(path: str) -> None:
    dataset = anyrec.open(path)
    assert repr(dataset) == f"<Dataset {path!r}: {dataset.format}>"
    assert repr(anyrec.open([path, path])) == f"<Dataset {path!r} and 1 more: {dataset.format}>"
    assert repr(dataset.read([0, 1])) == "<Batch of 2 records, 7 bytes>"
    assert repr(dataset[1]) == "<Record of 3 bytes: b'one'>"


def test_a_dataset_pickles_by_path_and_options(path: str) -> None:
    dataset = anyrec.open(path, verify=False)
    again = pickle.loads(pickle.dumps(dataset))
    assert type(again) is anyrec.Dataset
    assert list(again) == WORDS and again.options == {"verify": False} and again.paths == [path]


def test_a_closed_dataset_says_so_and_its_records_stay(path: str) -> None:
    with anyrec.open(path) as dataset:
        record, batch, array = dataset[3], dataset.read([0, 1]), dataset[4].numpy()
    assert dataset.closed
    with pytest.raises(anyrec.ClosedError, match="the dataset is closed"):
        dataset[0]
    del dataset
    assert record == b"three" and batch.to_list() == [b"zero", b"one"] and array.tobytes() == b"four"


def test_records_do_not_change_when_the_file_does(path: str) -> None:
    dataset = anyrec.open(path)
    record, listed, iterated = dataset[0], dataset[[0]][0], next(iter(dataset))
    batch = dataset.read([0])
    with open(path, "r+b") as file:
        file.truncate(0)
    assert record == listed == iterated == batch.to_list()[0] == b"zero"
    with pytest.raises(anyrec.CorruptRecord, match="cut short"):
        dataset[1]


def test_without_a_copy_records_are_lent_from_the_file() -> None:
    with anyrec.create("large.ffr") as writer:
        writer.write(b"x" * 100_000)
    lent = anyrec.open("large.ffr", copy=False)
    # Two reads of a mapped record are the same memory; two copies are not.
    assert lent[0].numpy().ctypes.data == lent[0].numpy().ctypes.data
    copied = anyrec.open("large.ffr")
    first, second = copied[0], copied[0]
    assert first.numpy().ctypes.data != second.numpy().ctypes.data


def test_a_directory_a_pattern_and_a_list_are_numbered_through(own_folder: pathlib.Path) -> None:
    for name in ["b.ffr", "a.ffr", "c.ffr"]:
        with anyrec.create(own_folder / name) as writer:
            writer.write(name)
    assert list(anyrec.open(own_folder)) == [b"a.ffr", b"b.ffr", b"c.ffr"]
    assert list(anyrec.open("[bc].ffr")) == [b"b.ffr", b"c.ffr"]
    both = anyrec.open([own_folder / "c.ffr", "a.ffr"])
    assert list(both) == both[:] == [b"c.ffr", b"a.ffr"]
    assert both.read([1, 0, 1]).to_list() == [b"a.ffr", b"c.ffr", b"a.ffr"]
    with pytest.raises(ValueError, match="no file matches the pattern"):
        anyrec.open("nothing*.ffr")


def test_keys_labels_and_positions_of_mxnet_records() -> None:
    with anyrec.create("pets.rec") as writer:
        assert writer.write(b"\xff\xd8\xff cat", key=7, label=1.0) == 0
        assert writer.write(b"\xff\xd8\xff dog", key=5, label=[2.0, 3.5]) == 1
    dataset = anyrec.open("pets.rec")
    assert dataset.format == "mxnet"
    assert [dataset.key(i) for i in (0, 1, -1)] == [7, 5, 5]
    assert dataset.label(0) == 1.0
    label = dataset.label(1)
    assert isinstance(label, np.ndarray) and label.tolist() == [2.0, 3.5]
    assert dataset.find(5) == 1 and dataset.find(6) is None
    assert dataset.position(0) == (0, 0) and dataset.position(1)[0] > 0


def test_metadata_says_what_the_file_says(own_folder: pathlib.Path) -> None:
    anyrec.idx.write("x-idx3-short", np.zeros((4, 3, 2), dtype=np.int16))
    metadata = anyrec.open("x-idx3-short").metadata
    assert metadata["shape"] == (4, 3, 2) and metadata["dtype"] == "int16"
    with anyrec.grail.Writer("g.grail-rio", header=[("a", 1), ("a", True), ("b", b"\xff")]) as writer:
        writer.set_trailer(b"end")
    metadata = anyrec.open("g.grail-rio").metadata
    assert metadata["header"] == [("trailer", True), ("a", 1), ("a", True), ("b", b"\xff")]
    assert metadata["trailer"] == b"end" and metadata["version"] == "2"


def test_a_damaged_record_is_raised_and_iteration_can_go_on(own_folder: pathlib.Path) -> None:
    with anyrec.create("words.ffr") as writer:
        for word in WORDS:
            writer.write(word)
    data = bytearray((own_folder / "words.ffr").read_bytes())
    data[data.index(b"one")] ^= 1
    (own_folder / "words.ffr").write_bytes(data)
    dataset = anyrec.open("words.ffr")
    with pytest.raises(anyrec.CorruptRecord) as caught:
        dataset[1]
    assert (caught.value.record, caught.value.path) == (1, "words.ffr")
    iterator = iter(dataset)
    assert next(iterator) == b"zero"
    with pytest.raises(anyrec.CorruptRecord):
        next(iterator)
    assert list(iterator) == WORDS[2:]
    assert list(anyrec.open("words.ffr", skip_damage=True)) == [WORDS[0], *WORDS[2:]]


@pytest.fixture(params=["auto", "mapped", "positional"])
def access(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_ways_of_reading_and_threads_change_nothing(path: str, access: Any, threads: int) -> None:
    many = [2, 0, 4] * 400
    for copy in [True, False]:
        dataset = anyrec.open(path, access=access, threads=threads, copy=copy)
        assert dataset.read(many).to_list() == [WORDS[i] for i in many]
        assert dataset.read(np.array(many)).to_list() == [WORDS[i] for i in many]
        assert dataset[many] == [WORDS[i] for i in many]
        assert list(dataset) == WORDS


def test_records_are_read_into_an_array_of_the_callers(path: str) -> None:
    dataset = anyrec.open(path)
    buffer = np.full(20, 9, dtype=np.uint8)
    offsets = dataset.read_into([3, 1, 3, 2], buffer)
    assert offsets.tolist() == [0, 5, 8, 13, 13]
    assert buffer[:13].tobytes() == b"threeonethree" and (buffer[13:] == 9).all()
    assert dataset.read_into(slice(1, 2), buffer[5:]).tolist() == [0, 3]
    assert buffer[:9].tobytes() == b"threeonet"


def test_an_array_that_records_cannot_be_read_into_is_refused(path: str) -> None:
    dataset = anyrec.open(path)
    with pytest.raises(ValueError, match="too small.*9 bytes.*8 bytes"):
        dataset.read_into([0, 3], np.zeros(8, dtype=np.uint8))
    frozen = np.zeros(20, dtype=np.uint8)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="not writable"):
        dataset.read_into([0], frozen)
    with pytest.raises(ValueError, match="not contiguous"):
        dataset.read_into([0], np.zeros(40, dtype=np.uint8)[::2])
    with pytest.raises(TypeError):
        dataset.read_into([0], np.zeros(20, dtype=np.int32))


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_batches_are_the_records_in_order(path: str, access: Any, size: int) -> None:
    batches = [batch.to_list() for batch in anyrec.open(path, access=access).batches(size)]
    assert sum(batches, []) == WORDS
    assert all(len(batch) == size for batch in batches[:-1])
    with pytest.raises(ValueError, match="at least one"):
        anyrec.open(path).batches(0)


def test_batches_stay_as_they_are_while_others_are_read(path: str) -> None:
    dataset = anyrec.open(path)
    kept = [dataset.read([i]) for i in range(5)]
    views = [batch[0] for batch in dataset.batches(1)]
    for _ in range(20):
        dataset.read([3, 3, 3])
    dataset.close()
    del dataset
    assert [batch.to_list() for batch in kept] == [[word] for word in WORDS]
    assert views == WORDS


def test_what_is_kept_of_an_iteration_does_not_change() -> None:
    """The iterator makes the next record of one that nobody has any more, and of no other."""
    words = [f"record {i}".encode() for i in range(3000)]
    with anyrec.create("many.ffr") as writer:
        for word in words:
            writer.write(word)
    records: dict[int, Any] = {}
    views: dict[int, Any] = {}
    arrays: dict[int, Any] = {}
    slices: dict[int, Any] = {}
    for i, record in enumerate(anyrec.open("many.ffr")):
        assert record == words[i]
        if i % 5 == 0:
            records[i] = record
        elif i % 5 == 1:
            views[i] = memoryview(record)[1:]
        elif i % 5 == 2:
            arrays[i] = record.numpy()
        elif i % 5 == 3:
            slices[i] = record[2:]
    assert all(record == words[i] for i, record in records.items())
    assert all(view == words[i][1:] for i, view in views.items())
    assert all(array.tobytes() == words[i] for i, array in arrays.items())
    assert all(part == words[i][2:] for i, part in slices.items())
    assert list(anyrec.open("many.ffr")) == words
    one = iter(anyrec.open("many.ffr"))
    assert [next(one), next(one), next(one)] == words[:3]


def test_damage_is_raised_in_its_place_and_the_records_around_it_are_given() -> None:
    """Of small records and of ones that are read one by one."""
    for size in [100, 200_000]:
        path = pathlib.Path(f"damaged-{size}.ffr")
        with anyrec.create(path) as writer:
            for i in range(20):
                writer.write(bytes([i]) * size)
        offset, _ = anyrec.open(path).position(7)
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(b"\xff")
        for copy in [True, False]:
            records = iter(anyrec.open(path, copy=copy))
            seen: list[int] = []
            while True:
                try:
                    seen.append(next(records)[0])
                except anyrec.CorruptRecord as error:
                    assert error.record == 7
                    seen.append(-7)
                except StopIteration:
                    break
            assert seen == [*range(7), -7, *range(8, 20)]


@pytest.mark.parametrize("access", ["mapped", "positional"])
@pytest.mark.parametrize("name", ["x.rec", "x.ffr", "x.grail-rio"])
def test_batches_that_are_read_in_many_parts_have_every_record(name: str, access: Any) -> None:
    options: dict[str, Any] = {"transformers": ["zstd"], "max_items": 3} if name.endswith("rio") else {}
    small = [bytes([n]) * (n % 7) for n in range(200)]
    large = [bytes([n]) * 1_000_003 for n in range(40)]
    with anyrec.create(name, **options) as writer:
        for record in small + large:
            writer.write(record)
    dataset = anyrec.open(name, access=access, threads=2)
    numbers = [n * 7 % 200 for n in range(150_000)]
    assert dataset.read(numbers).to_list() == [small[n] for n in numbers]
    assert dataset.read(range(239, -1, -1)).to_list() == (small + large)[::-1]
    with pytest.raises(IndexError):
        dataset.read([0] * 100_000 + [240])
    assert dataset.read([1, 2]).to_list() == small[1:3]
