"""`anyrec.idx`: IDX files as NumPy arrays."""

from __future__ import annotations

import gc
import hashlib
import pathlib

import numpy as np
import pytest

import anyrec
from anyrec import idx
from conftest import golden, manifest

TYPES = ["uint8", "int8", "int16", "int32", "float32", "float64"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 0, 2), (4, 3, 2)])
def test_arrays_come_back(dtype: str, shape: tuple[int, ...], suffix: str) -> None:
    array = (np.arange(np.prod(shape, dtype=int)) - 3).astype(dtype).reshape(shape)
    idx.write("x" + suffix, array)
    again = idx.read("x" + suffix)
    assert again.dtype == np.dtype(dtype) and again.dtype.isnative and again.shape == shape
    assert np.array_equal(again, array)


def test_any_memory_order_and_byte_order_is_written_right() -> None:
    array = np.arange(24, dtype=">i4").reshape(2, 3, 4)
    for number, variant in enumerate([array, array.T, array[:, ::-2], np.asfortranarray(array)]):
        idx.write(f"{number}-idx3-int", variant)
        assert np.array_equal(idx.read(f"{number}-idx3-int"), variant)


def test_bytes_are_mapped_on_request_and_outlive_everything() -> None:
    idx.write("x-idx2-ubyte", np.arange(6, dtype=np.uint8).reshape(2, 3))
    array = idx.read("x-idx2-ubyte", mapped=True)
    assert not array.flags.writeable and not array.flags.owndata
    pathlib.Path("x-idx2-ubyte").unlink()
    gc.collect()
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_memory_of_its_own_is_writable_and_does_not_follow_the_file() -> None:
    idx.write("x-idx1-ubyte", np.arange(6, dtype=np.uint8))
    array = idx.read("x-idx1-ubyte")
    array[0] = 9
    pathlib.Path("x-idx1-ubyte").write_bytes(b"")
    assert array.tolist() == [9, 1, 2, 3, 4, 5]


def test_other_types_and_cut_files_are_refused(own_folder: pathlib.Path) -> None:
    with pytest.raises(TypeError, match="not int64: convert"):
        idx.write("x", np.arange(3, dtype=np.int64))
    idx.write("x-idx1-ubyte", np.arange(100, dtype=np.uint8))
    data = (own_folder / "x-idx1-ubyte").read_bytes()
    (own_folder / "x-idx1-ubyte").write_bytes(data[:-1])
    with pytest.raises(anyrec.CorruptRecord):
        idx.read("x-idx1-ubyte")
    with pytest.raises(FileExistsError):
        idx.write("x-idx1-ubyte", np.zeros(1, np.uint8))


@pytest.mark.parametrize("entry", manifest("idx")["files"], ids=lambda entry: entry["path"])
def test_golden_files_read_as_their_manifest_says(entry: dict[str, object]) -> None:
    array = idx.read(golden("idx", str(entry["path"])))
    assert list(array.shape) == entry["shape"] and array.dtype == entry["dtype"] and array.dtype.isnative
    stored = np.ascontiguousarray(array.astype(array.dtype.newbyteorder(">")))
    assert hashlib.sha256(stored.tobytes()).hexdigest() == entry["data_be_sha256"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_images_have_the_labels_of_the_file_beside_them(suffix: str) -> None:
    images = f"t-images-idx3-ubyte{suffix}"
    idx.write(images, np.zeros((3, 2, 2), np.uint8))
    assert anyrec.open(images).label(0) is None
    idx.write("t-labels-idx1-ubyte", np.array([7, 0, 9], np.uint8))
    dataset = anyrec.open(images)
    assert [dataset.label(i) for i in range(3)] == [7.0, 0.0, 9.0] and dataset.label(-1) == 9.0
    assert dataset.key(0) is None and anyrec.open("t-labels-idx1-ubyte").label(0) is None
    with pytest.raises(IndexError):
        dataset.label(3)


def test_several_numbers_an_image_are_an_array() -> None:
    idx.write("q-images-idx3-ubyte", np.zeros((2, 1, 1), np.uint8))
    idx.write("q-labels-idx2-int", np.array([[1, 2], [3, 4]], np.int32))
    label = anyrec.open("q-images-idx3-ubyte").label(1)
    assert isinstance(label, np.ndarray) and label.tolist() == [3, 4]


def test_labels_of_other_images_are_told_when_a_label_is_asked_for() -> None:
    idx.write("t-images-idx3-ubyte", np.zeros((3, 2, 2), np.uint8))
    idx.write("t-labels-idx1-ubyte", np.arange(2, dtype=np.uint8))
    dataset = anyrec.open("t-images-idx3-ubyte")
    assert len(dataset) == len(list(dataset)) == 3 and dataset.key(0) is None
    assert anyrec.convert("t-images-idx3-ubyte", "t.rec").records == 3
    with pytest.raises(anyrec.StaleCompanion, match="expected 3 labels, found 2"):
        dataset.label(0)


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_written_one_by_one_come_back(dtype: str) -> None:
    rows = (np.arange(6) - 2).astype(dtype).reshape(3, 2)
    with anyrec.create("x-idx2", dtype=dtype, item_shape=[2], format="idx") as writer:
        for number, row in enumerate(rows):
            writer.write(row.astype(row.dtype.newbyteorder(">")) if number else row)
    assert np.array_equal(idx.read("x-idx2"), rows)


def test_arrays_of_another_type_and_lists_name_the_conversion() -> None:
    with pytest.raises(TypeError, match=r"\.astype\(np\.uint8\)"):
        idx.write("x", [1, 2, 3])
    writer = anyrec.create("x-idx2-ubyte", item_shape=[2])
    for data in (np.arange(2), [1, 2]):
        with pytest.raises(TypeError, match=r"\.astype\(np\.uint8\)"):
            writer.write(data)  # type: ignore[arg-type]
    writer.write(np.arange(2, dtype=np.uint8))
    writer.close()
    assert idx.read("x-idx2-ubyte").tolist() == [[0, 1]]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("dtype", TYPES)
def test_records_have_the_shape_and_type_of_their_file(dtype: str, suffix: str) -> None:
    array = (np.arange(24) - 3).astype(dtype).reshape(4, 3, 2)
    idx.write(f"x-idx3{suffix}", array)
    dataset = anyrec.open(f"x-idx3{suffix}")
    for found in [
        [record.numpy() for record in dataset],
        [dataset[number].numpy() for number in range(4)],
        [record.numpy() for record in dataset[[0, 1, 2, 3]]],
        dataset.read(range(4)).numpy(),
        next(iter(anyrec.Loader(dataset, 4))).numpy(),
        [record.numpy() for record in anyrec.open(f"x-idx3{suffix}", copy=False)[:]],
    ]:
        assert all(one.dtype == np.dtype(dtype) and one.dtype.isnative for one in found)
        assert np.array_equal(found, array)


def test_a_record_of_one_number_is_an_array_without_dimensions() -> None:
    idx.write("x-idx1-int", np.array([1, -2], np.int32))
    record = anyrec.open("x-idx1-int")[1]
    assert record.numpy().shape == () and record.numpy() == -2 and bytes(record) == b"\xff\xff\xff\xfe"


def test_a_part_of_a_record_and_records_of_other_formats_are_bytes() -> None:
    idx.write("x-idx2-ubyte", np.zeros((2, 6), np.uint8))
    assert anyrec.open("x-idx2-ubyte")[0][2:].numpy().shape == (4,)
    with anyrec.create("x.ffr") as writer:
        writer.write(b"bytes")
    assert anyrec.open("x.ffr")[0].numpy().tolist() == list(b"bytes")


def test_labels_beside_images_are_counted() -> None:
    dataset = anyrec.open(golden("idx", "train-images-idx3-ubyte"))
    labels = idx.read(golden("idx", "train-labels-idx1-ubyte")).tolist()
    assert dataset.label_counts() == {label: labels.count(label) for label in sorted(set(labels))}
    assert dataset.select([0, 0]).label_counts() == {labels[0]: 2}


def test_labels_of_several_numbers_and_missing_labels_are_counted() -> None:
    with anyrec.create("x.rec") as writer:
        for second in [2.5, 7.0, 2.5]:
            writer.write(b"x", label=[float(second < 7), second])
    assert anyrec.open("x.rec").label_counts() == {(0, 7): 1, (1, 2.5): 2}
    with anyrec.create("x.ffr") as plain:
        plain.write(b"x")
    assert anyrec.open("x.ffr").label_counts() == {None: 1}
