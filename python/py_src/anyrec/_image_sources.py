"""What an image loader accepts: record files of images, face data sets, IDX files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _anyrec
from .errors import CorruptRecord, InvalidArgument
from .view import Mix, View, opened

if TYPE_CHECKING:
    from .dataset import Dataset
    from .insightface import FaceDataset


class ImageSource(NamedTuple):
    """Records that hold images, and what is known about them."""

    records: Dataset | View | Mix
    size: tuple[int, int] | None = None
    """Height and width, if all images have the same."""
    unencoded: tuple[int, int, int] | None = None
    """Height, width and channels, if the records are the samples themselves."""
    classes: bool = False
    """Whether the first label is the number of a class."""


def images_of(data: Any) -> ImageSource:
    """Finds the images in what the caller passed."""
    if isinstance(data, Mix):
        return _of_mix(data)
    faces = _faces(data)
    return _of_faces(faces) if faces is not None else _of_records(opened(data))


def _of_records(records: Dataset | View) -> ImageSource:
    dataset = records.dataset if isinstance(records, View) else records
    if dataset.format != "idx":
        return ImageSource(records)
    metadata = dataset.metadata
    shape, dtype = metadata["shape"], metadata["dtype"]
    image = (*shape[1:], 1) if len(shape) == 3 else tuple(shape[1:])
    if dtype != "uint8" or len(image) != 3 or image[2] not in (1, 3, 4) or 0 in image:
        raise InvalidArgument(
            f"{metadata['files'][0]}: an array of {dtype} with the shape {tuple(shape)} holds no images; "
            "expected uint8 with the shape (images, height, width), or with 1, 3 or 4 channels as the last "
            "dimension"
        )
    return ImageSource(records, (image[0], image[1]), (image[0], image[1], image[2]), classes=True)


def _of_mix(mix: Mix) -> ImageSource:
    parts = [_of_records(part) for part in mix.parts]
    if len({part.unencoded for part in parts}) > 1:
        raise InvalidArgument("the parts of the mix hold images of different kinds or sizes")
    return parts[0]._replace(records=mix) if parts else ImageSource(mix)


def _faces(data: Any) -> FaceDataset | None:
    """Returns the face data set, if ``data`` is one or the path of one."""
    from .insightface import FaceDataset

    if isinstance(data, FaceDataset):
        return data
    if not isinstance(data, str | os.PathLike):
        return None
    path = Path(data)
    if path.is_dir():
        files = sorted(path.glob("*.rec"))
        path = path / "train.rec" if path / "train.rec" in files else files[0] if len(files) == 1 else path
    if path.suffix != ".rec" or not path.is_file():
        return None
    declared = path.with_name("property").is_file() and os.path.isdir(data)
    return FaceDataset(path) if declared or _has_header(path) else None


def _has_header(path: Path) -> bool:
    """Whether key 0 is the header record of a face data set: labels and nothing else."""
    if not path.with_suffix(".idx").is_file():
        return False
    reader = _anyrec.Dataset([path])
    number = reader.find(0)
    if number is None:
        return False
    record = reader[number]
    try:
        flag, *_, length = _anyrec.unpack_header(record)
    except CorruptRecord:
        return False
    return flag > 0 and length == len(record)


def _of_faces(faces: FaceDataset) -> ImageSource:
    if faces.transform is not None:
        raise InvalidArgument(
            "the FaceDataset has a transform, which an image loader does not call",
            hint="pass steps=[...] or apply=... instead",
        )
    from .dataset import open

    dataset = open(faces.path)
    keys = faces.keys
    offsets = np.fromiter((faces._offsets[key] for key in keys), dtype=np.int64, count=len(keys))
    # Records are numbered in file order.
    every = np.unique(np.fromiter(faces._offsets.values(), dtype=np.int64))
    numbers = np.searchsorted(every, offsets)
    if len(every) != len(dataset):
        # The index file omits records.
        numbers = np.array([dataset.find(key) for key in keys], dtype=np.int64)
    return ImageSource(dataset.select(numbers), faces.image_size, classes=True)
