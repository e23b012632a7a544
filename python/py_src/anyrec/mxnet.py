"""A drop-in replacement for ``mxnet.recordio``: reads, writes and packs ``.rec`` files without MXNet.

:class:`ImageRecordIter` makes batches of their images.

Change one import, ``from anyrec import mxnet as recordio``, or run the script unchanged with
:mod:`anyrec.compat`:

>>> from anyrec import mxnet as recordio
>>> with recordio.MXIndexedRecordIO("faces.idx", "faces.rec", "w") as record:
...     for i in range(3):
...         header = recordio.IRHeader(flag=0, label=i * 0.5, id=i, id2=0)
...         record.write_idx(i, recordio.pack(header, f"payload {i}"))
>>> record = recordio.MXIndexedRecordIO("faces.idx", "faces.rec", "r")
>>> recordio.unpack(record.read_idx(2))
(HEADER(flag=0, label=1.0, id=2, id2=0), b'payload 2')

Beyond the original, paths may be :class:`pathlib.Path`, text is written as UTF-8, any buffer can be
written, and objects have a length and are context managers and iterable. A file is published when it is
closed. An exception inside ``with``, or a killed process, leaves the old file or none. Like the original,
closing does not wait for the disk; ``durability="machine"`` does.
"""

from __future__ import annotations

import atexit
import io
import numbers
import os
import struct
import warnings
import weakref
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from . import _anyrec
from ._mxnet.errors import MXNetError, as_original
from ._mxnet.ndarray import NDArray
from .errors import AnyrecError, InvalidArgument
from .image_record_iter import DataBatch, DataDesc, ImageRecordIter

if TYPE_CHECKING:
    from typing_extensions import Buffer
    from typing import Self

__all__ = [
    "DataBatch",
    "DataDesc",
    "IRHeader",
    "ImageRecordIter",
    "MXIndexedRecordIO",
    "MXNetError",
    "MXRecordIO",
    "NDArray",
    "pack",
    "pack_img",
    "unpack",
    "unpack_img",
]

_Payload = TypeVar("_Payload", bound="Buffer")


def _bytes_of(payload: Buffer | str) -> bytes:
    """Returns the bytes of a buffer in C order, or of a string in UTF-8."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode("utf-8")
    return memoryview(payload).tobytes()


# Writers left open are completed when the interpreter exits, as in the original.
_open_writers: weakref.WeakSet[MXRecordIO] = weakref.WeakSet()


@atexit.register
def _close_writers() -> None:
    for record in list(_open_writers):
        record.close()


class MXRecordIO:
    """Reads or writes a ``.rec`` file sequentially.

    Args:
        uri: the file's path.
        flag: ``"r"`` to read, ``"w"`` to write.
        durability: what a written file survives once it is closed: ``"process"`` the end of the process,
            ``"machine"`` a power failure too. The original has no such choice.

    >>> from anyrec.mxnet import MXRecordIO
    >>> with MXRecordIO("tmp.rec", "w") as record:
    ...     for i in range(3):
    ...         record.write(f"record_{i}")
    >>> record = MXRecordIO("tmp.rec", "r")
    >>> record.read(), record.read(), record.read(), record.read()
    (b'record_0', b'record_1', b'record_2', None)
    """

    uri: str
    """The file's path."""
    flag: str
    """``"r"`` or ``"w"``."""
    writable: bool
    """Whether it was opened for writing."""
    is_open: bool
    """Whether it is open now."""
    pid: int | None
    """The process that opened it; ``None`` if it is closed."""

    def __init__(
        self, uri: str | os.PathLike[str], flag: str, *, durability: Literal["process", "machine"] = "process"
    ) -> None:
        self.is_open = False
        self.pid = None
        self.handle: _anyrec.MxReader | _anyrec.MxWriter | None = None
        self.uri = os.fspath(uri)
        self.flag = flag
        self.durability = durability
        self.open()

    def open(self) -> None:
        """Opens the file (again)."""
        if self.flag not in ("r", "w"):
            raise ValueError(f"Invalid flag {self.flag}")
        try:
            self.handle = self._writer() if self.flag == "w" else _anyrec.MxReader(self.uri)
        except AnyrecError as error:
            raise as_original(error) from error
        self.writable = self.flag == "w"
        self.pid = os.getpid()
        self.is_open = True
        if self.writable:
            _open_writers.add(self)

    def _writer(self) -> _anyrec.MxWriter:
        return _anyrec.MxWriter(self.uri, durability=self.durability)

    def close(self) -> None:
        """Closes the file, and publishes it if it was written. Calling it again does nothing."""
        self._finish(keep=True)

    def _finish(self, *, keep: bool) -> None:
        """Closes the file; drops what was written unless it is to be kept."""
        if not self.is_open:
            return
        handle, own = self.handle, self.pid == os.getpid()
        self.is_open = False
        self.pid = None
        self.handle = None
        _open_writers.discard(self)
        # In a forked child the file belongs to the parent, and only the parent may complete it.
        if handle is None or not own:
            return
        try:
            if isinstance(handle, _anyrec.MxWriter) and not keep:
                handle.abort()
            else:
                handle.close()
        except AnyrecError as error:
            raise as_original(error) from error

    def reset(self) -> None:
        """Goes back to the first record; a writer starts again with an empty file."""
        if self.writable:
            self._finish(keep=False)
        else:
            # A subclass may close more than this file.
            self.close()
        self.open()

    def write(self, buf: Buffer | str) -> None:
        """Adds a record: any buffer, or a string, which is stored as UTF-8."""
        self._append(buf)

    # These are called for every record, so they check with as few calls as possible.

    def _append(self, buf: Buffer | str, key: bytes | None = None) -> int:
        """Adds a record, under a key if there is an index file, and returns its offset."""
        assert self.writable, "the file is open for reading and cannot be written"
        if self.pid != os.getpid():
            self._check_pid()
        writer: Any = self.handle
        data = buf if isinstance(buf, bytes) else _bytes_of(buf)
        try:
            offset: int = writer.write(data, key)
            return offset
        except AnyrecError as error:
            raise as_original(error) from error

    def read(self) -> bytes | None:
        """Returns the next record; ``None`` at the end, also when called again.

        An empty record is ``b""``: test for the end with ``is None``.
        """
        assert not self.writable, "the file is open for writing and cannot be read"
        if self.pid != os.getpid():
            self._check_pid()
        reader: Any = self.handle
        try:
            record: bytes | None = reader.read()
            return record
        except AnyrecError as error:
            raise as_original(error) from error

    def _reader(self) -> _anyrec.MxReader:
        assert not self.writable, "the file is open for writing and cannot be read"
        self._check_pid(allow_reset=False)
        assert isinstance(self.handle, _anyrec.MxReader)
        return self.handle

    def _check_pid(self, allow_reset: bool = False) -> None:
        """Ensures that this process opened the file."""
        if self.pid == os.getpid():
            return
        if allow_reset:
            self.reset()
        elif self.is_open:
            raise RuntimeError("Forbidden operation in multiple processes")
        else:
            raise RuntimeError("Forbidden operation in multiple processes (the file is closed)")

    def __iter__(self) -> Iterator[bytes]:
        """Iterates over the records from here to the end."""
        while (record := self.read()) is not None:
            yield record

    def __len__(self) -> int:
        """Returns the number of records in the whole file, whatever the current position."""
        if isinstance(self.handle, _anyrec.MxWriter):
            return self.handle.count
        try:
            return sum(1 for _ in _anyrec.MxReader(self.uri))
        except AnyrecError as error:
            raise as_original(error) from error

    def __bool__(self) -> bool:
        # A file without records is still a file.
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._finish(keep=False)

    def __del__(self) -> None:
        if getattr(self, "is_open", False):
            self.close()

    def __repr__(self) -> str:
        state = "" if self.is_open else ", closed"
        return f"<{type(self).__name__} {self.uri!r}, {self.flag!r}{state}>"

    def __getstate__(self) -> dict[str, Any]:
        # As in the original: this one is closed, and unpickling opens the file again.
        is_open = self.is_open
        self.close()
        state = dict(self.__dict__)
        state["is_open"] = is_open
        state["handle"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        is_open, self.is_open = self.is_open, False
        if is_open:
            self.open()


class MXIndexedRecordIO(MXRecordIO):
    """Reads or writes a ``.rec`` file and its index file, which locates records by key.

    Args:
        idx_path: the index file's path.
        uri: the ``.rec`` file's path.
        flag: ``"r"`` to read, ``"w"`` to write.
        key_type: converts a key in the index file, or given to :meth:`write_idx`.
        durability: as for :class:`MXRecordIO`.

    >>> from anyrec.mxnet import MXIndexedRecordIO
    >>> with MXIndexedRecordIO("tmp.idx", "tmp.rec", "w") as record:
    ...     for i in range(5):
    ...         record.write_idx(i, f"record_{i}")
    >>> record = MXIndexedRecordIO("tmp.idx", "tmp.rec", "r")
    >>> record.read_idx(3), record.keys, len(record)
    (b'record_3', [0, 1, 2, 3, 4], 5)
    """

    idx_path: str
    """The index file's path."""
    idx: dict[Any, int]
    """The offset of each key's record; of the last one if a key repeats."""
    keys: list[Any]
    """The keys in the order of the index file, including repeats."""
    key_type: Callable[[Any], Any]
    """The function that converts a key."""
    fidx: io.TextIOBase | None
    """The index file while this is open: all read, or (to write) one that only :meth:`write_idx` fills."""

    def __init__(
        self,
        idx_path: str | os.PathLike[str],
        uri: str | os.PathLike[str],
        flag: str,
        key_type: Callable[[Any], Any] = int,
        *,
        durability: Literal["process", "machine"] = "process",
    ) -> None:
        self.idx_path = os.fspath(idx_path)
        self.idx = {}
        self.keys = []
        self.key_type = key_type
        self.fidx = None
        super().__init__(uri, flag, durability=durability)

    def open(self) -> None:
        """Opens both files (again)."""
        super().open()
        self.idx = {}
        self.keys = []
        if self.writable:
            self.fidx = _WrittenIndex(self.idx_path)
            return
        try:
            self.fidx = self._read_index()
            # Index files are published after their data, so this one belongs to the data that is open.
            self._reader().check_still_named()
        except AnyrecError as error:
            self._finish(keep=False)
            raise as_original(error) from error
        except BaseException:
            self._finish(keep=False)
            raise

    def _finish(self, *, keep: bool) -> None:
        super()._finish(keep=keep)
        if self.fidx is not None:
            self.fidx.close()

    def _read_index(self) -> io.TextIOWrapper:
        """Reads the index file, and returns it at its end."""
        lines = open(self.idx_path, encoding="utf-8", errors="surrogateescape", newline=None)
        self.fidx = lines
        for number, line in enumerate(lines, start=1):
            columns = line.strip().split("\t")
            if columns == [""]:
                continue
            try:
                key, offset = self.key_type(columns[0]), int(columns[1])
            except (IndexError, ValueError) as error:
                raise ValueError(
                    f"{self.idx_path}: line {number} is not a key, a tab and an offset: {line!r}"
                ) from error
            self.idx[key] = offset
            self.keys.append(key)
        return lines

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "fidx": None}

    def _writer(self) -> _anyrec.MxWriter:
        return _anyrec.MxWriter(self.uri, index=self.idx_path, durability=self.durability)

    def seek(self, idx: Any) -> None:
        """Seeks to the record of a key; a forked child opens the file again."""
        assert not self.writable, "the file is open for writing and cannot seek"
        self._check_pid(allow_reset=True)
        reader, offset = self._reader(), self.idx[idx]
        try:
            reader.seek(offset)
        except AnyrecError as error:
            raise as_original(error) from error

    def tell(self) -> int:
        """Returns the offset at which the next record will be written."""
        assert self.writable, "the file is open for reading: only a writer can tell its position"
        self._check_pid(allow_reset=False)
        assert isinstance(self.handle, _anyrec.MxWriter)
        return self.handle.tell()

    def read_idx(self, idx: Any) -> bytes:
        """Returns the record of a key; :meth:`read` continues after it."""
        assert not self.writable, "the file is open for writing and cannot be read"
        if self.pid != os.getpid():
            self._check_pid(allow_reset=True)
        reader: Any = self.handle
        offset = self.idx[idx]
        try:
            record: bytes = reader.read_at(offset)
            return record
        except AnyrecError as error:
            raise as_original(error) from error

    def write_idx(self, idx: Any, buf: Buffer | str) -> None:
        """Adds a record under a key."""
        key = self.key_type(idx)
        name = str(key)
        if "\t" in name or "\n" in name or "\r" in name:
            raise ValueError(f"a key cannot contain a tab or a line break: {key!r}")
        position = self._append(buf, name.encode("utf-8", "surrogateescape"))
        self.idx[key] = position
        self.keys.append(key)

    def __len__(self) -> int:
        """Returns the number of keys."""
        return len(self.keys)


class _WrittenIndex(io.TextIOBase):
    """The index file of a writer, which :meth:`MXIndexedRecordIO.write_idx` fills."""

    mode = "w"

    def __init__(self, name: str) -> None:
        self.name = name

    def write(self, text: str, /) -> int:
        raise io.UnsupportedOperation(f"{self.name}: write_idx(key, record) adds to the index file")


IRHeader = namedtuple("HEADER", ["flag", "label", "id", "id2"])  # type: ignore[name-match]
IRHeader.__doc__ = """The header of an image record.

``flag`` is the number of labels, 0 for a single plain number (:func:`pack` sets it).
``label`` is a number or an array. ``id`` and ``id2`` are the record's number.
"""

_IR_FORMAT = "IfQQ"
_IR_SIZE = struct.calcsize(_IR_FORMAT)
_HEADER = struct.Struct("<" + _IR_FORMAT)
# Above this, float32 cannot hold every integer.
_EXACT = 1 << 24


def pack(header: tuple[int, Any, int, int], s: Buffer | str) -> bytes:
    """Returns an image record: the header, its labels if there are several, and the payload.

    >>> from anyrec.mxnet import IRHeader, pack, unpack
    >>> unpack(pack(IRHeader(0, [1, 2], 7, 0), "data"))
    (HEADER(flag=2, label=array([1., 2.], dtype=float32), id=7, id2=0), b'data')
    """
    header = IRHeader(*header)
    payload = _bytes_of(s)
    if isinstance(header.label, numbers.Number):
        _warn_if_rounded(header.label)
        return _HEADER.pack(0, header.label, header.id, header.id2) + payload
    label = np.asarray(header.label, dtype=np.float32)
    return _HEADER.pack(label.size, 0, header.id, header.id2) + label.tobytes() + payload


def _warn_if_rounded(label: Any) -> None:
    """Warns if a label is rounded: the header's float32 cannot hold all integers above 2^24."""
    if not isinstance(label, numbers.Integral) or abs(int(label)) <= _EXACT:
        return
    number = int(label)
    stored = struct.unpack("<f", struct.pack("<f", number))[0]
    if int(stored) != number:
        warnings.warn(
            f"the label {number} is stored as {int(stored)}: an image header keeps labels as "
            "float32, which is exact only up to 2^24",
            stacklevel=3,
        )


def unpack(s: _Payload) -> tuple[IRHeader, _Payload]:
    """Returns the header of an image record, and its payload (of the same type as ``s``).

    The header's label is a float, or a read-only float32 array if there are several.
    """
    view: Any = s
    header = IRHeader._make(_HEADER.unpack(view[:_IR_SIZE]))
    payload = view[_IR_SIZE:]
    if header.flag > 0:
        label = np.frombuffer(payload, np.float32, header.flag)
        label.flags.writeable = False
        header = header._replace(label=label)
        payload = payload[header.flag * 4 :]
    return header, payload


def pack_img(
    header: tuple[int, Any, int, int],
    img: npt.NDArray[Any],
    quality: int = 95,
    img_fmt: str = ".jpg",
) -> bytes:
    """Encodes an array as an image record: height x width, or height x width x channels in BGR order.

    Args:
        header: as for :func:`pack`.
        img: the image.
        quality: 1 to 100 for JPEG; for PNG the compression level, 0 to 9. As in the original, a number
            beyond is taken as the nearest of these.
        img_fmt: ``".jpg"``, ``".jpeg"`` or ``".png"``.

    As in the original, other elements than bytes (for PNG, also 16 bits) are rounded to 0 to 255.
    """
    is_png = img_fmt.lower() == ".png"
    least, most = (0, 9) if is_png else (1, 100)
    image = _encodable(np.asarray(img), is_png)
    return pack(header, _anyrec.encode_image(image, img_fmt, min(max(quality, least), most)))


# The types that OpenCV knows besides bytes.
_CONVERTED = ("int8", "uint16", "int16", "int32", "float32", "float64")


def _encodable(image: npt.NDArray[Any], is_png: bool) -> npt.NDArray[Any]:
    """Returns the image with the elements that its format can store, as OpenCV converts them."""
    if image.ndim == 3 and image.shape[2] not in (1, 3, 4):
        raise InvalidArgument(f"an image has 1, 3 or 4 channels, not {image.shape[2]}")
    if image.dtype.name in _CONVERTED and not (is_png and image.dtype == np.uint16):
        # Not a number is 0, as in OpenCV.
        image = np.nan_to_num(np.rint(image), nan=0).clip(0, 255).astype(np.uint8)
    return np.ascontiguousarray(image)


def unpack_img(s: Buffer, iscolor: int = -1) -> tuple[IRHeader, npt.NDArray[Any] | None]:
    """Returns the header of an image record, and its image as an array in BGR order.

    Args:
        s: the record.
        iscolor: -1 as stored (gray stays two-dimensional, alpha and 16 bits are kept), 0 gray,
            1 BGR. Other flags of OpenCV's ``imdecode`` can be added, except those that reduce an image.

    The image is ``None`` if the payload is not an image.
    """
    header, payload = unpack(s)
    try:
        return header, _anyrec.decode_image(payload, iscolor)
    except InvalidArgument:
        # The flag.
        raise
    except (AnyrecError, ValueError):
        return header, None
