"""Image loaders over face data sets and IDX files, and folders with splits."""

from __future__ import annotations

import os
import pathlib
import pickle
import shutil
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import golden

import anyrec
from anyrec import idx
from anyrec.insightface import FaceDataset
from anyrec.mxnet import IRHeader, MXIndexedRecordIO, pack, pack_img

PERSONS = [0, 0, 1, 2, 2, 2]


def face(key: int) -> npt.NDArray[np.uint8]:
    return np.full((8, 8, 3), 20 * key, np.uint8)


def make_faces(folder: str, header: str = "last", labels: int = 1, property: bool = True) -> None:
    """A folder of six faces, with the header record first, last or absent."""
    os.mkdir(folder)
    if property:
        pathlib.Path(folder, "property").write_text("3,8,8")
    images_end, end = len(PERSONS) + 1, len(PERSONS) + 4
    first = pack(IRHeader(0, [images_end, end], 0, 0), b"")
    with MXIndexedRecordIO(f"{folder}/train.idx", f"{folder}/train.rec", "w") as record:
        if header == "first":
            record.write_idx(0, first)
        for key, person in enumerate(PERSONS, 1):
            label: Any = person if labels == 1 else [person] + [7] * (labels - 1)
            record.write_idx(key, pack_img(IRHeader(0, label, key, 0), face(key), 3, ".png"))
        if header != "none":
            for key, (begin, stop) in enumerate([(1, 3), (3, 4), (4, 7)], images_end):
                record.write_idx(key, pack(IRHeader(0, [begin, stop], key, 0), b""))
        if header == "last":
            record.write_idx(0, first)


def loaded(loader: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    with loader:
        batches = list(loader)
    return np.concatenate([batch.data for batch in batches]), np.concatenate([batch.labels for batch in batches])


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("header", ["first", "last", "none"])
def test_a_face_folder_loads_the_images_and_nothing_else(header: str, labels: int) -> None:
    make_faces("faces", header, labels)
    sources: list[Any] = ["faces", pathlib.Path("faces"), FaceDataset("faces")]
    for data in sources:
        images, persons = loaded(anyrec.ImageLoader(data, 4, dtype="uint8"))
        assert images.shape == (6, 3, 8, 8)
        assert images[:, 0, 0, 0].tolist() == [20, 40, 60, 80, 100, 120]
        assert persons.dtype == np.int64 and persons.tolist() == PERSONS


def test_the_record_file_of_a_face_folder_is_recognised_by_its_header() -> None:
    make_faces("faces", property=False)
    images, persons = loaded(anyrec.ImageLoader("faces/train.rec", 4, 8, steps=[anyrec.image.CentreCrop(8)]))
    assert len(images) == 6 and persons.tolist() == PERSONS


def test_a_face_folder_without_an_index_file_loads_too() -> None:
    make_faces("faces")
    os.unlink("faces/train.idx")
    _, persons = loaded(anyrec.ImageLoader("faces", 4))
    assert persons.tolist() == PERSONS


def test_shuffled_faces_keep_their_persons_and_survive_pickling() -> None:
    make_faces("faces")
    loader = anyrec.ImageLoader(FaceDataset("faces"), 2, dtype="uint8", shuffle=True)
    images, persons = loaded(pickle.loads(pickle.dumps(loader)))
    found = [(int(image[0, 0, 0]) // 20, int(person)) for image, person in zip(images, persons)]
    assert found != sorted(found) and sorted(found) == list(enumerate(PERSONS, 1))


def test_a_transform_of_a_face_dataset_is_not_dropped_silently() -> None:
    make_faces("faces")
    with pytest.raises(anyrec.InvalidArgument, match="transform"):
        anyrec.ImageLoader(FaceDataset("faces", transform=np.negative), 2)


def test_ordinary_image_records_are_no_faces() -> None:
    with anyrec.create("photos.rec", index_file=True) as writer:
        for key in range(3):
            writer.write(pack_img(IRHeader(0, 0.5, key, 0), face(key + 1), 3, ".png"), key=key)
    images, labels = loaded(anyrec.ImageLoader("photos.rec", 3, 8, steps=[anyrec.image.CentreCrop(8)]))
    assert len(images) == 3 and labels.dtype == np.float32 and labels.tolist() == [0.5] * 3


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_images_load_gray_and_in_colour_with_their_labels(suffix: str) -> None:
    path = golden("idx", f"train-images-idx3-ubyte{suffix}")
    expected = idx.read(path)
    classes = idx.read(golden("idx", "train-labels-idx1-ubyte"))
    gray, labels = loaded(anyrec.ImageLoader(path, 3, channels=1, dtype="uint8"))
    assert np.array_equal(gray[:, 0], expected)
    assert labels.dtype == np.int64 and labels.tolist() == classes.tolist()
    colour, _ = loaded(anyrec.ImageLoader(path, 3))
    assert colour.dtype == np.float32
    assert np.array_equal(colour, np.repeat(expected[:, None], 3, axis=1).astype(np.float32))


def test_idx_images_go_through_the_steps() -> None:
    pixels = np.arange(5 * 6 * 4 * 3, dtype=np.uint8).reshape(5, 6, 4, 3)
    idx.write("colour-idx4-ubyte", pixels)
    steps = [anyrec.image.CentreCrop((2, 2)), anyrec.image.Normalise(mean=1, std=2)]
    loader = anyrec.ImageLoader("colour-idx4-ubyte", 5, 2, steps=steps, layout="NHWC")
    with loader:
        batch = next(iter(loader))
    assert np.array_equal(batch.data, (pixels[:, 2:4, 1:3].astype(np.float32) - 1) / 2)
    assert batch.labels is None


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("flat-idx2-ubyte", np.zeros((3, 4), np.uint8)),
        ("wide-idx3-int", np.zeros((3, 4, 4), np.int32)),
        ("planes-idx4-ubyte", np.zeros((3, 5, 4, 7), np.uint8)),
        ("labels-idx1-ubyte", np.zeros(3, np.uint8)),
    ],
)
def test_arrays_that_are_no_images_are_refused(name: str, array: npt.NDArray[Any]) -> None:
    idx.write(name, array)
    with pytest.raises(anyrec.InvalidArgument, match="holds no images"):
        anyrec.ImageLoader(name, 3)


def test_the_torch_loader_gives_class_numbers_as_tensors() -> None:
    torch = pytest.importorskip("torch")
    from anyrec.torch import ImageLoader

    make_faces("faces")
    sources: list[Any] = ["faces", golden("idx", "train-images-idx3-ubyte")]
    for data in sources:
        with ImageLoader(data, 2) as loader:
            batch = next(iter(loader))
        assert batch.data.dtype == torch.float32 and batch.labels.dtype == torch.int64
        assert batch.labels.ndim == 1


def copy_set(folder: str, pattern: str = "{}", suffixes: tuple[str, ...] = ("",)) -> None:
    os.makedirs(folder, exist_ok=True)
    for split in ("train", "t10k"):
        for part in ("images-idx3-ubyte", "labels-idx1-ubyte"):
            for suffix in suffixes:
                name = pattern.format(split if pattern == "{}" else {"t10k": "test"}.get(split, split))
                shutil.copy(golden("idx", f"{split}-{part}{suffix}"), f"{folder}/{name}-{part}{suffix}")


@pytest.mark.parametrize("suffixes", [("",), (".gz",), ("", ".gz")])
def test_a_folder_of_mnist_opens_by_split(suffixes: tuple[str, ...]) -> None:
    copy_set("mnist", suffixes=suffixes)
    for split, stem in [("train", "train"), ("test", "t10k"), ("t10k", "t10k")]:
        dataset = anyrec.open("mnist", split=split)
        images = idx.read(golden("idx", f"{stem}-images-idx3-ubyte"))
        assert len(dataset) == len(images) and bytes(dataset[0]) == images[0].tobytes()
        assert np.array_equal(dataset.labels(), idx.read(golden("idx", f"{stem}-labels-idx1-ubyte")))
    assert len(anyrec.Loader(anyrec.open("mnist", split="test"), 1)) == len(dataset)
    assert len(pickle.loads(pickle.dumps(dataset))) == len(dataset)


def test_a_folder_of_several_splits_names_them() -> None:
    copy_set("mnist")
    for use in (anyrec.open, lambda folder: anyrec.ImageLoader(folder, 2)):
        with pytest.raises(anyrec.InvalidArgument, match="'t10k', 'train'") as caught:
            use("mnist")
        assert "split=" in (caught.value.hint or "")
    with pytest.raises(anyrec.InvalidArgument, match="'valid' does not exist: the folder has 't10k', 'train'"):
        anyrec.open("mnist", split="valid")


def test_emnist_names_its_splits_by_their_ends() -> None:
    copy_set("emnist", "emnist-letters-{}")
    assert len(anyrec.open("emnist", split="train")) == len(anyrec.open("emnist", split="letters-train"))
    copy_set("emnist", "emnist-digits-{}")
    with pytest.raises(anyrec.InvalidArgument, match="'test' is ambiguous"):
        anyrec.open("emnist", split="test")
    assert len(anyrec.open("emnist", split="emnist-digits-test")) > 0


def test_one_split_needs_no_name_and_other_paths_have_none() -> None:
    copy_set("mnist")
    for name in os.listdir("mnist"):
        if name.startswith("t10k"):
            os.unlink(f"mnist/{name}")
    assert anyrec.open("mnist").label(0) is not None
    for other in ["mnist/train-images-idx3-ubyte", ["mnist"]]:
        with pytest.raises(anyrec.InvalidArgument, match="no splits"):
            anyrec.open(other, split="train")
