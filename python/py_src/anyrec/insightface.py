"""Face data sets in the layout of InsightFace and ArcFace: ``train.rec``, ``train.idx``, ``property``.

>>> from anyrec.insightface import FaceDataset
>>> from anyrec.mxnet import IRHeader, MXIndexedRecordIO, pack, pack_img
>>> import numpy, pathlib
>>> pathlib.Path("faces").mkdir()
>>> image = numpy.zeros((112, 112, 3), numpy.uint8)
>>> with MXIndexedRecordIO("faces/train.idx", "faces/train.rec", "w") as record:
...     for key, identity in [(1, 0), (2, 0), (3, 1)]:
...         record.write_idx(key, pack_img(IRHeader(0, identity, key, 0), image))
...     record.write_idx(4, pack(IRHeader(0, [1, 3], 4, 0), b""))
...     record.write_idx(5, pack(IRHeader(0, [3, 4], 5, 0), b""))
...     record.write_idx(0, pack(IRHeader(0, [4, 6], 0, 0), b""))
>>> faces = FaceDataset("faces")
>>> len(faces), faces[2][0].shape, faces[2][1], faces.identities
(3, (112, 112, 3), 1, [range(0, 2), range(2, 3)])
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _anyrec
from .errors import CorruptRecord, FileMissing
from .mxnet import unpack

if TYPE_CHECKING:
    from typing import Generic, TypeVar

    _Sample = TypeVar("_Sample", covariant=True)

    class _Base(Generic[_Sample]): ...

else:
    try:
        from torch.utils.data import Dataset as _Base
    except ImportError:
        # Everything but the base class works without PyTorch.
        from typing import Generic, TypeVar

        class _Base(Generic[TypeVar("_Sample")]):
            pass


__all__ = ["FaceDataset"]

# The key of the record that says which keys are images, if there is one.
_HEADER_KEY = 0


class FaceDataset(_Base[Any]):
    """The images of a face data set, each with the number of the person.

    Args:
        root: the folder, or the ``.rec`` file in it.
        transform: applied to the decoded image (height x width x 3, uint8, RGB).
        decode: whether to decode the image; otherwise it is the ``bytes`` of the image file.

    A sample is ``(image, label)``. All layouts in use are supported. With a header record under key 0,
    that record says which keys are images and which are identities; without one, every key is an image.
    There may be one label or several; the first is the person. A missing index file is rebuilt in memory.
    """

    classes: int | None
    """Number of persons, from the file ``property`` if there is one."""
    image_size: tuple[int, int] | None
    """Height and width, from the file ``property`` if there is one."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Callable[[Any], Any] | None = None,
        *,
        decode: bool = True,
    ) -> None:
        self.root = os.fspath(root)
        self.transform = transform
        self.decode = decode
        self.path = _record_file(Path(root))
        self._readers = threading.local()
        self._offsets = _offsets(self.path)
        self.classes, self.image_size = _property(self.path.with_name("property"))
        self.keys, self._identity_keys = self._layout()

    def _layout(self) -> tuple[Sequence[int], Sequence[int]]:
        """Returns the keys of the images, and those of the identity records."""
        if _HEADER_KEY in self._offsets:
            header, payload = unpack(self._record(_HEADER_KEY))
            # Several labels prove nothing, because images can have them too. Only a header has no
            # payload.
            if header.flag > 0 and not payload:
                return self._described(header.label)
        return list(self._offsets), []

    def _described(self, label: Any) -> tuple[Sequence[int], Sequence[int]]:
        images_end = int(label[0])
        identities_end = int(label[1]) if len(label) > 1 else images_end
        images = range(_HEADER_KEY + 1, images_end)
        identities = range(images_end, identities_end)
        missing = next((key for key in images if key not in self._offsets), None)
        if missing is not None:
            raise CorruptRecord(
                f"{self.path}: the header record declares images {images.start} to {images.stop - 1}, "
                f"but the index file has no key {missing}",
                path=str(self.path),
                hint="anyrec.index() rebuilds the index file",
            )
        return images, identities

    @property
    def identities(self) -> list[range]:
        """The samples of each person, from the file's identity records; empty if it has none."""
        ranges = []
        for key in self._identity_keys:
            header, _ = unpack(self._record(key))
            first, last = (int(number) for number in header.label[:2])
            ranges.append(range(first - 1, last - 1))
        return ranges

    def label(self, index: int) -> int:
        """Returns the person of a sample without decoding its image."""
        header, _ = unpack(self._record(self._key(index)))
        return _person(header.label)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        header, payload = unpack(self._record(self._key(index)))
        image: Any = payload
        if self.decode:
            image = _anyrec.decode_image(payload, 1, rgb=True)
        if self.transform is not None:
            image = self.transform(image)
        return image, _person(header.label)

    def _key(self, index: int) -> int:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no sample {index}: the data set has {len(self)}")
        return self.keys[index]

    def _record(self, key: int) -> bytes:
        # A reader has a file position, so each thread of each process has its own reader.
        process, reader = getattr(self._readers, "opened", (None, None))
        if reader is None or process != os.getpid():
            reader = _anyrec.MxReader(self.path)
            self._readers.opened = os.getpid(), reader
        return reader.read_at(self._offsets[key])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_readers"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._readers = threading.local()

    def __repr__(self) -> str:
        persons = "" if self.classes is None else f" of {self.classes} persons"
        return f"<FaceDataset {os.fspath(self.path)!r}: {len(self)} images{persons}>"


def _person(label: Any) -> int:
    return int(label if isinstance(label, float) else label[0])


def _record_file(root: Path) -> Path:
    if root.is_file():
        return root
    train = root / "train.rec"
    if train.is_file():
        return train
    files = sorted(root.glob("*.rec"))
    if len(files) == 1:
        return files[0]
    raise FileMissing(
        f"{root}: found neither train.rec nor a single other .rec file",
        path=str(root),
        errno=2,
        hint="pass the path of the .rec file itself" if files else None,
    )


def _offsets(path: Path) -> dict[int, int]:
    """Returns the offset of each key's record."""
    index = path.with_suffix(".idx")
    if index.is_file():
        entries = _anyrec.parse_index(index.read_bytes(), str(index))
    else:
        entries, _ = _anyrec.rebuild_index(path)
    return {int(key): offset for key, offset in entries}


def _property(path: Path) -> tuple[int | None, tuple[int, int] | None]:
    """Reads the text file ``property``: persons, height, width."""
    try:
        numbers = [int(number) for number in path.read_text(encoding="utf-8").split(",")[:3]]
    except (OSError, ValueError):
        return None, None
    classes = numbers[0] if numbers else None
    return classes, (numbers[1], numbers[2]) if len(numbers) == 3 else None
