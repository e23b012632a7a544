"""What was written together comes back together: payload, label, key and ids."""

from __future__ import annotations

import gc
import io
import math
import pathlib
import pickle
import random
import subprocess
import sys
import warnings
from typing import Any

import anyrec
import anyrec.mxnet
import numpy as np
import pytest

RAW = [b"meow", b"", b"\0" * 40, np.arange(30, dtype=np.float32).tobytes(), b"\xff\xd8\xff\xe0" + b"x" * 90]


def pets(path: str = "pets.rec") -> anyrec.Dataset:
    """Five labelled records, with keys."""
    with anyrec.create(path) as writer:
        for number, data in enumerate(RAW):
            writer.write(data, key=10 + number, label=number % 2)
    return anyrec.open(path)


def told(*records: anyrec.Record) -> Any:
    """Records without their type: mypy does not know that a record equals ``bytes``."""
    return records


def test_a_record_has_what_was_written_with_it() -> None:
    with anyrec.create("pets.rec") as writer:
        writer.write(b"meow", label=1.0)
        writer.write(b"woof", label=[2.0, 3.5])
    one, two = told(*anyrec.open("pets.rec"))
    assert (len(one), one.payload, one.label, one.key, one.ids) == (28, b"meow", 1.0, None, (0, 0))
    assert two.label is not None and two.payload == b"woof"
    np.testing.assert_array_equal(two.label, [2.0, 3.5])
    (by_number,) = told(anyrec.open("pets.rec")[1])
    assert (by_number.payload, by_number.ids) == (b"woof", (1, 0))
    assert one.payload.payload == b"meow" and one.payload.label == 1.0


@pytest.mark.parametrize("copy", [True, False])
def test_payloads_come_back_by_every_way_of_reading(copy: bool) -> None:
    pets()
    whole = anyrec.open("pets.rec", copy=copy)
    for dataset in (whole.payloads, anyrec.open("pets.rec", payload=True, copy=copy)):
        assert [bytes(dataset[n]) for n in range(5)] == RAW
        assert [bytes(record) for record in dataset] == RAW
        assert [bytes(record) for record in dataset[:]] == RAW
        assert dataset.read([4, 0, 0]).to_list() == [RAW[4], RAW[0], RAW[0]]
        assert [data for batch in dataset.batches(2) for data in batch.to_list()] == RAW
        assert [bytes(record) for record in dataset.select([3, 1])] == [RAW[3], RAW[1]]
        buffer = np.zeros(300, np.uint8)
        ends = dataset.read_into(slice(None), buffer)
        assert [bytes(buffer[ends[n] : ends[n + 1]]) for n in range(5)] == RAW
        for records in (dataset[:], list(dataset), dataset.read([0, 1, 2, 3, 4])):
            assert [(record.label, record.key) for record in records] == [(n % 2, 10 + n) for n in range(5)]
    assert anyrec.open("pets.rec")[0] != b"meow", "raw bytes stay raw"
    assert [bytes(record) for record in anyrec.open("pets.rec").select([3, 1]).payloads] == [RAW[3], RAW[1]]


def test_a_loader_with_labels_gives_payloads() -> None:
    loader = anyrec.Loader(pets(), 2, shuffle=True, labels=True)
    found = [pair for batch in loader for pair in zip(batch.indices.tolist(), batch.to_list(), batch.labels)]
    assert sorted(found) == [(n, RAW[n], n % 2) for n in range(5)]
    (raw,) = anyrec.Loader(pets("raw.rec"), 5)
    assert raw[0].payload == b"meow" and len(raw[0]) == 28 and raw[0].label == 0.0
    (plain,) = anyrec.Loader(pets("other.rec").payloads, 5, decode=lambda record: (bytes(record), record.key))
    assert plain == [(RAW[n], 10 + n) for n in range(5)]


def test_formats_without_headers_have_payloads_too() -> None:
    for path in ("a.ffr", "a.grail-rio"):
        with anyrec.create(path) as writer:
            writer.write(b"\0" * 50)
        (record,) = told(*anyrec.open(path, payload=True))
        assert (record, record.payload, record.label, record.ids) == (b"\0" * 50, b"\0" * 50, None, None)
    (record,) = told(anyrec.Record(b"mine"))
    assert (record.payload, record.label, record.key, record.ids) == (b"mine", None, None, None)


def test_random_records_come_back_as_they_were_written() -> None:
    rng = random.Random(5)
    labels: list[Any] = [0.0, 1.0, 1e-7, 2.0**44, float("inf"), [1.0, 2.0], [1e-9, 0.0], float("nan")]
    for run in range(60):
        count = rng.randrange(2, 12)
        written = []
        with anyrec.create(f"{run}.rec") as writer:
            for number in range(count):
                data = rng.choice([rng.randbytes(rng.randrange(60)), bytes(rng.randrange(60)), b"text"])
                label: Any = rng.choice(labels) if number else rng.choice(labels[:-1])
                label = None if number and rng.random() < 0.2 else label
                writer.write(data, label=label)
                is_none = label is None or (isinstance(label, float) and math.isnan(label))
                written.append((data, None if is_none else np.float32(np.ravel(label)).tolist()))
        dataset = anyrec.open(f"{run}.rec")
        read = [(bytes(r.payload), None if r.label is None else np.ravel(r.label).tolist()) for r in dataset]
        assert read == written


def test_a_payload_that_looks_like_a_header_is_kept() -> None:
    header = anyrec.mxnet.pack(anyrec.mxnet.IRHeader(0, 3.0, 0, 0), b"inner")
    with anyrec.create("x.rec") as writer:
        writer.write(header, label=3.0)
    (record,) = anyrec.open("x.rec")
    assert record.payload == header


def test_a_missing_label_is_told_and_the_others_are_there() -> None:
    with anyrec.create("some.rec") as writer:
        writer.write(b"meow", label=1.0)
        writer.write(b"who?")
    dataset = anyrec.open("some.rec")
    with pytest.warns(anyrec.MissingLabel, match="some.rec: 1 of 2 records .* first is record 1"):
        np.testing.assert_array_equal(dataset.labels(), [1.0, np.nan])
    assert [(bytes(record.payload), record.label) for record in dataset] == [(b"meow", 1.0), (b"who?", None)]
    assert dataset.label(1) is None
    with pytest.warns(anyrec.MissingLabel, match="record 1 has no label") as warned:
        batches = list(anyrec.Loader(dataset, 1, labels=True)) + list(anyrec.Loader(dataset, 2, labels=True))
    assert len(warned) == 2 and batches[1].to_list() == [b"who?"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(dataset.filter(labels=1.0)) == 1


def test_a_label_after_records_without_one_is_refused() -> None:
    with anyrec.create("late.rec") as writer:
        writer.write(b"first")
        with pytest.raises(anyrec.InvalidArgument, match="those before it have none"):
            writer.write(b"second", label=1.0)
        writer.write(b"third")
    assert [bytes(record) for record in anyrec.open("late.rec")] == [b"first", b"third"]


def test_a_file_that_cannot_be_split_says_which_record() -> None:
    with anyrec.mxnet.MXRecordIO("mixed.rec", "w") as record:
        record.write(anyrec.mxnet.pack(anyrec.mxnet.IRHeader(0, 3.0, 0, 0), b"image"))
        record.write(b"a text without a header, long enough to have one")
    mixed = anyrec.open("mixed.rec")
    for read in (
        lambda: mixed[0].payload,
        lambda: mixed.payloads[0],
        lambda: list(mixed.payloads),
        lambda: mixed.payloads.read([0]),
        lambda: list(anyrec.Loader(mixed, 2, labels=True)),
    ):
        with pytest.raises(anyrec.InvalidArgument, match="record 1 has no .* and record 0 does") as found:
            read()
        assert found.value.path == "mixed.rec" and "whole records" in str(found.value.hint)
    assert len(mixed[0]) == 29

    with anyrec.mxnet.MXRecordIO("zeros.rec", "w") as record:
        record.write(bytes(100))
    with pytest.raises(anyrec.InvalidArgument, match="nothing tells whether record 0"):
        anyrec.open("zeros.rec", payload=True)[0]


def test_one_odd_record_among_many_is_named() -> None:
    with anyrec.mxnet.MXRecordIO("odd.rec", "w") as record:
        for number in range(400):
            packed = anyrec.mxnet.pack(anyrec.mxnet.IRHeader(0, 3.0, number, 0), b"image")
            record.write(b"short" if number == 201 else packed)
    payloads = anyrec.open("odd.rec", payload=True)
    assert payloads[200] == b"image"
    for read in (lambda: payloads[201], lambda: list(payloads), lambda: payloads.read(range(150, 250))):
        with pytest.raises(anyrec.InvalidArgument, match="has no image header") as refused:
            read()
        assert refused.value.record == 201
    loader = anyrec.Loader(payloads, 400, labels=True, on_error="skip")
    assert [len(batch) for batch in loader] == [399] and loader.errors[0][1] == 201


def test_a_missing_index_file_is_told() -> None:
    dataset = pets()
    assert (dataset.key(0), dataset.find(12), dataset.find(99)) == (10, 2, None)
    pathlib.Path("pets.idx").unlink()
    dataset = anyrec.open("pets.rec")
    for ask in (lambda: dataset.key(0), lambda: dataset.find(12), lambda: dataset.filter(keys=[12])):
        with pytest.raises(anyrec.UnsupportedFormat, match="no keys, as there is no index file") as refused:
            ask()
        assert "anyrec.index()" in str(refused.value.hint)
    assert dataset[0].key is None, "the record itself was read without an index file"
    anyrec.index("pets.rec")
    assert anyrec.open("pets.rec").find(12) == 2


def test_records_after_damage_do_not_get_anothers_tags() -> None:
    pets("sound.rec")
    data = bytearray(pathlib.Path("sound.rec").read_bytes())
    data[anyrec.open("sound.rec").position(1)[0]] ^= 1
    pathlib.Path("sound.rec").write_bytes(data)
    found = []
    for record in anyrec.open("sound.rec", skip_damage=True):
        try:
            found.append((bytes(record)[-3:], record.key))
        except anyrec.InvalidArgument:
            found.append((bytes(record)[-3:], None))
    truth = {data[-3:]: 10 + n for n, data in enumerate(RAW)}
    assert len(found) == 4 and all(key is None or truth[end] == key for end, key in found)


def test_an_unclosed_writer_is_a_resource_warning() -> None:
    writer = anyrec.create("lost.rec")
    writer.write(b"one")
    writer.write(b"two")
    with pytest.warns(ResourceWarning, match="2 records of 'lost.rec' are lost"):
        del writer
        gc.collect()
    assert not pathlib.Path("lost.rec").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        anyrec.create("empty.rec")
        with anyrec.create("kept.rec") as kept:
            kept.write(b"x")
        aborted = anyrec.create("aborted.rec")
        aborted.write(b"x")
        aborted.abort()
        del aborted, kept
        gc.collect()


@pytest.mark.parametrize("make", ["anyrec.create('x.ffr')", "anyrec.grail.Writer('x.grail-rio')"])
def test_an_unclosed_writer_is_told_at_the_end_of_the_interpreter(make: str) -> None:
    script = f"import anyrec\nw = {make}\n(getattr(w, 'write', None) or w.append)(b'a record')\n"
    done = subprocess.run([sys.executable, "-Wd", "-c", script], capture_output=True, text=True, check=True)
    assert "ResourceWarning: unclosed writer: 1 records of 'x." in done.stderr


def test_decode_gets_the_same_kind_of_object_everywhere() -> None:
    torch = pytest.importorskip("torch")
    import anyrec.torch

    pets()
    seen: list[object] = []

    def decode(record: anyrec.Record) -> int:
        seen.append((type(record), bytes(record), record.label))
        return len(record)

    (lengths,) = anyrec.Loader("pets.rec", 5, labels=True, decode=decode)
    (batch,) = anyrec.torch.Loader("pets.rec", 5, labels=True, decode=decode)
    dataset = anyrec.torch.Dataset("pets.rec", decode=decode)
    samples = [dataset[n] for n in range(5)]
    assert lengths == samples == torch.as_tensor(batch.data).tolist() == [len(data) for data in RAW]
    assert seen == [(anyrec.Record, RAW[n], n % 2) for n in range(5)] * 3


def test_a_torch_dataset_gives_payloads_and_labels() -> None:
    pytest.importorskip("torch")
    import anyrec.torch

    pets()
    assert anyrec.torch.Dataset("pets.rec")[0] == b"meow"
    assert anyrec.torch.Dataset("pets.rec", labels=True)[[0, 1]] == [(b"meow", 0.0), (b"", 1.0)]
    assert len(anyrec.torch.Dataset("pets.rec", payload=False)[0]) == 28


def test_labels_beside_a_converted_file_are_told() -> None:
    anyrec.idx.write("train-images-idx3-ubyte", np.zeros((3, 2, 2), np.uint8))
    anyrec.idx.write("train-labels-idx1-ubyte", np.array([7, 8, 9], np.uint8))
    lost = anyrec.convert("train-images-idx3-ubyte", "lost.rec")
    told = "the labels in the file beside it are not converted; name their file with labels=..."
    assert lost.notices == (told,)
    kept = anyrec.convert("train-images-idx3-ubyte", "kept.rec", labels="train-labels-idx1-ubyte")
    assert not kept.notices
    assert [record.label for record in anyrec.open("kept.rec")] == [7.0, 8.0, 9.0]


def test_an_insightface_header_record_with_a_second_id_does_not_hide_the_labels() -> None:
    with anyrec.mxnet.MXRecordIO("faces.rec", "w") as record:
        for number in range(5):
            image = b"\xff\xd8\xff image"
            record.write(anyrec.mxnet.pack(anyrec.mxnet.IRHeader(0, number % 2, number, 0), image))
        record.write(anyrec.mxnet.pack(anyrec.mxnet.IRHeader(1, [21.0, 25.0], 0, 1), b""))
    dataset = anyrec.open("faces.rec")
    assert [dataset.label(number) for number in range(5)] == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert dataset.payloads[5] == b""


def test_paths_are_bytes_too_and_a_missing_folder_is_missing() -> None:
    pets()
    assert len(anyrec.open(b"pets.rec")) == len(anyrec.open([b"pets.rec"])) == 5
    with pytest.raises(FileNotFoundError):
        anyrec.open("no such folder", split="train")


def test_one_record_with_an_unusual_label_comes_back() -> None:
    for at, label in enumerate([1e-7, 2.0**44, math.inf, -3.0]):
        with anyrec.create(f"{at}.rec") as writer:
            writer.write(b"meow", label=label)
        (record,) = anyrec.open(f"{at}.rec")
        assert (bytes(record.payload), record.label) == (b"meow", float(np.float32(label)))


def test_a_raw_record_among_many_with_headers_is_not_cut() -> None:
    with anyrec.mxnet.MXRecordIO("odd.rec", "w") as record:
        for number in range(400):
            packed = anyrec.mxnet.pack(anyrec.mxnet.IRHeader(0, 3.0, number, 0), b"image")
            record.write(b"\0\0\0\0" + b"raw bytes, not an image" * 3 if number == 201 else packed)
    dataset = anyrec.open("odd.rec")
    assert dataset[201].label is None
    with pytest.raises(anyrec.InvalidArgument, match="has no image header") as refused:
        dataset.payloads[201]
    assert refused.value.record == 201
    # The iteration ends there: what follows would have lost its number.
    records = iter(dataset.payloads)
    for _ in range(201):
        next(records)
    with pytest.raises(anyrec.InvalidArgument):
        next(records)
    assert list(records) == []


def test_an_index_that_leaves_records_out_gives_no_wrong_key() -> None:
    for name, count in [("a.rec", 300), ("b.rec", 20)]:
        with anyrec.create(name) as writer:
            for number in range(count):
                writer.write(f"{name} {number}", key=number, label=number)
    lines = pathlib.Path("a.idx").read_text().splitlines()
    pathlib.Path("a.idx").write_text("\n".join(lines[:250] + lines[251:]) + "\n")
    for dataset in (anyrec.open(["a.rec", "b.rec"]), anyrec.open(["a.rec", "b.rec"], payload=True)):
        for record in dataset:
            number = int(bytes(record).split()[-1])
            for tag in ("key", "label"):
                try:
                    assert getattr(record, tag) in (None, number), (bytes(record), tag)
                except anyrec.AnyrecError:
                    pass


def test_a_pickled_record_says_that_only_its_bytes_are_left() -> None:
    record = pickle.loads(pickle.dumps(pets()[0]))
    assert record.numpy().size == len(record) == 28
    for name in ("payload", "label", "key", "ids"):
        with pytest.raises(anyrec.InvalidArgument, match="was pickled"):
            getattr(record, name)
    payload = pickle.loads(pickle.dumps(pets("b.rec").payloads[0]))
    assert payload.payload == b"meow"
    batch = pickle.loads(pickle.dumps(next(iter(anyrec.Loader("pets.rec", 2, labels=True)))))
    assert batch.labels.tolist() == [0.0, 1.0] and batch.to_list() == RAW[:2]
    with pytest.raises(anyrec.InvalidArgument, match="was pickled"):
        batch[0].label
    anyrec.idx.write("x-idx3-short", np.arange(12, dtype=np.int16).reshape(2, 2, 3))
    arrays = anyrec.open("x-idx3-short")
    assert pickle.loads(pickle.dumps(arrays[1])).numpy().tolist() == arrays[1].numpy().tolist()


def test_labels_of_some_records_tell_which_one_has_none() -> None:
    with anyrec.create("some.rec") as writer:
        for label in [1.0, None, 3.0]:
            writer.write(b"x", label=label)
    dataset = anyrec.open("some.rec")
    for indices in (slice(1, 3), [-2, 0], iter([1, 2]), np.array([1])):
        with pytest.warns(anyrec.MissingLabel, match="the first is record 1"):
            dataset.labels(indices)


def test_a_mix_of_payloads_and_whole_records_is_refused() -> None:
    mix = anyrec.Mix([pets("a.rec").payloads, pets("b.rec")])
    with pytest.raises(anyrec.InvalidArgument, match="some parts of the mix"):
        anyrec.Loader(mix, 2)
    assert len(next(iter(anyrec.Loader(mix, 4, labels=True)))) == 4


def test_a_forked_child_does_not_tell_of_its_parents_writer() -> None:
    script = """
import os, anyrec
writer = anyrec.create("x.ffr")
writer.write(b"a record")
if (child := os.fork()) == 0:
    del writer
    raise SystemExit(0)
os.waitpid(child, 0)
writer.close()
"""
    done = subprocess.run([sys.executable, "-Wd", "-c", script], capture_output=True, text=True, check=True)
    assert "ResourceWarning" not in done.stderr and len(anyrec.open("x.ffr")) == 1


def test_shards_of_images_are_no_splits() -> None:
    for shard in range(3):
        anyrec.idx.write(f"train-images-{shard}.idx3-ubyte", np.full((4, 2, 2), shard, np.uint8))
    assert len(anyrec.open(".")) == 12


def test_records_of_a_large_file_object_become_arrays() -> None:
    with anyrec.create("large.rec") as writer:
        for _ in range(300):
            writer.write(bytes(100_000))
    dataset = anyrec.open(io.BytesIO(pathlib.Path("large.rec").read_bytes()))
    assert next(iter(dataset)).numpy().size == 100_000
    assert [array.size for array in next(dataset.batches(3)).numpy()] == [100_000] * 3
