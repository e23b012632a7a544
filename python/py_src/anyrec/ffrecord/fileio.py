"""Reading and writing FFRecord files, with the names and messages of the original."""

from __future__ import annotations

import fcntl
import operator
import os
import struct
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _anyrec
from ..errors import AnyrecError, ClosedError, CorruptRecord, RecordNotFound, translated

if TYPE_CHECKING:
    from typing_extensions import Buffer
    from typing import Self

_Path: TypeAlias = str | os.PathLike[str]
_Indices: TypeAlias = Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]

# The ioctl with which the original asks a file system whether it aligns direct requests.
_ALIGNMENT_REQUEST = 0x80046664
_NATIVE_INT = struct.Struct("i")


class FFRecordError(AnyrecError, RuntimeError):
    """What the original raises for an invalid file or invalid use."""


class SampleIndexError(FFRecordError, IndexError):
    """There is no sample with that number."""


def _renamed(error: AnyrecError, message: str) -> FFRecordError:
    """Converts an error to the original's, with its message; the location is kept."""
    return translated(error, FFRecordError, message, message)


def checkFsAlign(fd: int) -> bool:
    """Returns whether the file system of an open file aligns direct requests itself.

    Nothing here depends on this. It is part of the original's interface.
    """
    answer = bytearray(_NATIVE_INT.size)
    try:
        fcntl.ioctl(fd, _ALIGNMENT_REQUEST, answer)
    except OSError:
        return False
    (aligned,) = _NATIVE_INT.unpack(answer)
    return bool(aligned == 1)


def checked_files(fname: _Path | Sequence[_Path]) -> list[str]:
    """Returns the files of a path, a directory or a list; each must be an ``.ffr`` file."""
    if isinstance(fname, str | os.PathLike):
        path = Path(fname)
        files = _anyrec.directory_files(path) if path.is_dir() else [os.fspath(fname)]
    elif isinstance(fname, list | tuple):
        files = [os.fspath(name) for name in fname]
    else:
        raise TypeError("fname must be str, os.PathLike, list or tuple")
    assert files, "At least one .ffr file as input"
    for name in files:
        path = Path(name)
        assert path.exists(), f"{path} does not exist"
        assert path.is_file(), f"{path} is not a file"
        assert path.suffix == ".ffr", f"{path} does not end with .ffr"
    return files


class FileReader:
    """Reads the samples of one or more FFRecord files, numbered as one sequence.

    Args:
        fname: a file, a list of files, or a directory (all its ``*.ffr``, sorted by name).
        check_data: whether to verify the table now, and each sample when it is read.

    Threads, and processes forked after it was opened, may share a reader. It is pickled as its paths.
    """

    fnames: list[str]
    """The files."""
    check_data: bool
    """Whether checksums are verified."""
    n: int
    """Number of samples."""

    def __init__(self, fname: _Path | Sequence[_Path], check_data: bool = True) -> None:
        self.fnames = checked_files(fname)
        self.check_data = bool(check_data)
        try:
            self._reader = _anyrec.FfReader(self.fnames, self.check_data)
        except CorruptRecord as error:
            raise _renamed(
                error, f"{error.path}: checksum of metadata mismached! ({error.reason})"
            ) from error
        except AnyrecError as error:
            raise _renamed(error, str(error)) from error
        self.n = self._reader.n
        for notice in self._reader.notices:
            if "old version" in notice:
                warnings.warn(
                    f"you are using an old version ffrecord file, please update the file ({notice})",
                    stacklevel=2,
                )

    def read(self, indices: _Indices) -> list[npt.NDArray[np.uint8]]:
        """Returns the samples with these numbers, in this order, repeats kept, as writable arrays."""
        wanted = self._checked(indices)
        try:
            return self._reader.read(wanted)
        except CorruptRecord as error:
            raise self._first_damaged(wanted, error) from error
        except ClosedError as error:
            raise _renamed(error, "FileReader has been closed.") from error
        except AnyrecError as error:
            raise _renamed(error, str(error)) from error

    def read_one(self, index: SupportsIndex) -> npt.NDArray[np.uint8]:
        """Returns one sample as a writable array."""
        number: Any = index
        try:
            if number >= 0:
                return self._reader.read_one(number)
        except CorruptRecord as error:
            raise self._first_damaged([operator.index(index)], error) from error
        except RecordNotFound:
            # Below, with the original's message.
            pass
        except ClosedError as error:
            raise _renamed(error, "FileReader has been closed.") from error
        except AnyrecError as error:
            raise _renamed(error, str(error)) from error
        return self.read([index])[0]

    def _checked(self, indices: _Indices) -> list[int]:
        """Returns the numbers as a list, each checked."""
        if isinstance(indices, np.ndarray):
            if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
                raise TypeError(
                    f"indices must be a one-dimensional array of integers, not {indices.ndim} dimensions "
                    f"of {indices.dtype}"
                )
            given: Iterable[Any] = indices.tolist()
        elif isinstance(indices, str | bytes | bytearray):
            raise TypeError(f"indices must be a list of integers, not {type(indices).__name__}")
        else:
            given = indices
        wanted = []
        # Each is checked before the next one is taken, because there may be very many.
        # (A loop, because Python 3.11's `map` crashes over a released memoryview.)
        for one in given:
            index = operator.index(one)
            if index >= self.n:
                raise SampleIndexError(f"index >= number of samples ({index} >= {self.n})", record=index)
            if index < 0:
                raise SampleIndexError(f"index < 0 ({index}): samples are numbered 0 to {self.n - 1}")
            wanted.append(index)
        return wanted

    def _first_damaged(self, indices: list[int], error: CorruptRecord) -> FFRecordError:
        """Returns the error for the first damaged sample in the caller's order and numbering."""
        for index in indices:
            try:
                self._reader.read_one(index)
            except CorruptRecord as damage:
                found = _renamed(damage, f"Sample {index}: checksum mismached! ({damage})")
                found.record = index
                return found
        return _renamed(error, str(error))

    def validate(self) -> None:
        """Verifies the table of every file against its checksum."""
        try:
            self._reader.validate()
        except CorruptRecord as error:
            raise _renamed(
                error, f"{error.path}: checksum of metadata mismached! ({error.reason})"
            ) from error
        except ClosedError as error:
            raise _renamed(error, "FileReader has been closed.") from error

    def get_offsets(self, file_index: int) -> npt.NDArray[np.int64]:
        """Returns the offset of each sample of a file, and at the end the file's length."""
        try:
            return self._reader.offsets(file_index)
        except ClosedError as error:
            raise _renamed(error, "FileReader has been closed.") from error

    def get_checksums(self, file_index: int) -> npt.NDArray[np.uint32]:
        """Returns the checksums that a file stores for its samples."""
        try:
            return self._reader.checksums(file_index)
        except ClosedError as error:
            raise _renamed(error, "FileReader has been closed.") from error

    def close(self) -> None:
        """Closes the files. Calling it again does nothing. Arrays read from them stay valid."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Self], tuple[list[str], bool]]:
        return type(self), (self.fnames, self.check_data)

    def __repr__(self) -> str:
        what = repr(self.fnames[0]) if len(self.fnames) == 1 else f"{len(self.fnames)} files"
        return f"<FileReader {what}: {self.n} samples>"


class FileWriter:
    """Writes an FFRecord file, which is published when the writer is closed.

    Args:
        fname: the file, whose name ends in ``.ffr``. An existing one is replaced when this one is
            complete.
        n: how many samples there will be. The original requires it; here it is optional, and checked if
            given.
        durability: what the file survives once it is closed: ``"process"`` the end of the process,
            ``"machine"`` a power failure too. The original has no such choice.

    An exception inside ``with``, or dropping a writer before it has its ``n`` samples, leaves the old
    file or none.
    """

    def __init__(
        self, fname: _Path, n: int | None = None, *, durability: Literal["process", "machine"] = "process"
    ) -> None:
        assert isinstance(fname, str | os.PathLike), "fname must be str or os.PathLike"
        assert Path(fname).suffix == ".ffr", f"{fname} does not end with .ffr"
        self.fname = os.fspath(fname)
        self._promised = None if n is None else operator.index(n)
        self._process = os.getpid()
        self._closed = True
        try:
            self._writer = _anyrec.FfWriter(self.fname, self._promised, durability=durability)
        except AnyrecError as error:
            raise _renamed(error, str(error)) from error
        self._closed = False

    @property
    def n(self) -> int:
        """How many samples were declared; if none were, how many were written."""
        return self.count if self._promised is None else self._promised

    @property
    def count(self) -> int:
        """How many samples have been written."""
        return self._writer.count

    def write_one(self, buffer: Buffer) -> None:
        """Adds a sample: the bytes of any buffer, in C order."""
        try:
            self._writer.write_one(buffer)
        except ClosedError as error:
            raise _renamed(error, "FileWriter has been closed.") from error
        except AnyrecError as error:
            raise _renamed(error, error.reason) from error

    def close(self) -> None:
        """Completes and publishes the file. Calling it again does nothing.

        With fewer samples than declared this fails. You can then write more and close the file again.
        """
        if self._closed:
            return
        try:
            self._writer.close()
        except AnyrecError as error:
            raise _renamed(error, error.reason) from error
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._closed = True
            self._writer.abort()

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or self._process != os.getpid():
            return
        if self.count == self.n:
            self.close()
            return
        self._closed = True
        self._writer.abort()
        warnings.warn(
            f"{self.fname} was not written: {self.count} of {self.n} samples were written when the "
            "writer was dropped",
            ResourceWarning,
            stacklevel=2,
        )

    def __repr__(self) -> str:
        return f"<FileWriter {self.fname!r}: {self.count} of {self.n} samples>"
