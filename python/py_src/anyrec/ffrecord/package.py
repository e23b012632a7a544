"""Folders packed into one FFRecord file, with the names and messages of the original."""

from __future__ import annotations

import builtins
import os
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from .. import _anyrec
from ..errors import AnyrecError, CorruptRecord, InvalidArgument
from .fileio import FileReader, _renamed, checked_files

_Path: TypeAlias = str | os.PathLike[str]
_Bytes: TypeAlias = npt.NDArray[np.uint8]


class NotPackedError(AnyrecError, ValueError):
    """The file is not a packed folder."""


class PackedFolder:
    """Reads a packed folder without unpacking it.

    Args:
        ffr_file: the packed folder.
        check_data: whether to verify checksums.

    Paths are relative, with ``/`` between the names. The tree of names is read by a parser that accepts
    only names and numbers, so an untrusted file cannot run code.

    >>> import pathlib
    >>> from anyrec.ffrecord import PackedFolder, pack_folder
    >>> pathlib.Path("notes/old").mkdir(parents=True)
    >>> _ = pathlib.Path("notes/old/one.txt").write_text("hello")
    >>> pack_folder("notes", "notes.ffr")
    >>> folder = PackedFolder("notes.ffr")
    >>> folder.list(), folder.list("old"), bytes(folder.read("old/one.txt"))
    (['old'], ['one.txt'], b'hello')
    """

    def __init__(self, ffr_file: _Path, check_data: bool = True) -> None:
        (self.fname,) = checked_files([ffr_file])
        self.check_data = bool(check_data)
        try:
            self._folder = _anyrec.PackedFolder(self.fname, self.check_data)
        except (InvalidArgument, CorruptRecord) as error:
            if "checksum" in error.reason:
                raise _renamed(error, f"{error}") from error
            message = f"{self.fname} is not a packed folder"
            if error.reason not in message:
                message = f"{message} ({error.reason})"
            raise NotPackedError(message, path=error.path, hint=error.hint) from error

    @cached_property
    def reader(self) -> FileReader:
        """The file as samples: the packed files, and the tree as the last one."""
        return FileReader(self.fname, self.check_data)

    @cached_property
    def structure(self) -> OrderedDict[str, Any]:
        """The tree, by name: a file's sample number, or such a dict for a folder."""
        structure: OrderedDict[str, Any] = OrderedDict()
        folders = {"": structure}
        for path, sample in self._folder.entries():
            parent, _, name = path.rpartition("/")
            if sample is None:
                folders[path] = OrderedDict()
            folders[parent][name] = folders[path] if sample is None else sample
        return structure

    def num_files(self) -> int:
        """Returns the number of files in the folder, at any depth."""
        return self._folder.num_files()

    @overload
    def read(self, fnames: _Path) -> _Bytes: ...  # type: ignore[overload-overlap]
    @overload
    def read(self, fnames: Sequence[_Path]) -> builtins.list[_Bytes]: ...
    def read(self, fnames: _Path | Sequence[_Path]) -> _Bytes | builtins.list[_Bytes]:
        """Returns the content of one file, or of several, as writable ``uint8`` arrays."""
        if isinstance(fnames, str | os.PathLike):
            return self.read_one(fnames)
        paths = [self._file(path) for path in fnames]
        try:
            return self._folder.read(paths)
        except CorruptRecord as error:
            raise _renamed(error, str(error)) from error

    def read_one(self, fname: _Path) -> _Bytes:
        """Returns the content of a file as a writable ``uint8`` array."""
        path = self._file(fname)
        try:
            return self._folder.read_one(path)
        except CorruptRecord as error:
            raise _renamed(error, str(error)) from error

    def list(
        self,
        path: _Path | None = None,
        list_file: bool = True,
        list_dir: bool = True,
        recursive: bool = False,
    ) -> builtins.list[Any]:
        """Lists a folder, by names relative to it.

        With ``recursive``, also lists its folders, at any depth. Those entries are
        :class:`~pathlib.Path`; the first level is ``str``.
        """
        if path is not None:
            assert self.exists(path), f"{path} does not exist"
            assert self.is_dir(path), f"{Path(path)} is not a directory but a file"
        inside = None if path is None else _normalized(path)
        names = self._folder.list(inside, list_file, list_dir, recursive)
        return [Path(name) if "/" in name else name for name in names]

    def exists(self, path: _Path) -> bool:
        """Returns whether there is a file or folder with this path."""
        return self._folder.exists(_normalized(path))

    def is_file(self, path: _Path) -> bool:
        """Returns whether there is a file with this path."""
        return self._folder.is_file(_normalized(path))

    def is_dir(self, path: _Path) -> bool:
        """Returns whether there is a folder with this path."""
        return self._folder.is_dir(_normalized(path))

    def _file(self, fname: _Path) -> str:
        """Returns a file's path in the library's form."""
        assert self.exists(fname), f"{fname} does not exist"
        assert not self.is_dir(fname), f"{fname} is not a file but a directory"
        return _normalized(fname)

    def __reduce__(self) -> tuple[type[PackedFolder], tuple[str, bool]]:
        return type(self), (self.fname, self.check_data)

    def __repr__(self) -> str:
        return f"<PackedFolder {self.fname!r}: {self.num_files()} files>"


def _normalized(path: _Path) -> str:
    """Normalises a path: ``./b``, ``b/`` and ``.//b`` are ``b``."""
    text = str(PurePosixPath(path))
    return "" if text == "." else text


def pack_folder(
    folder: _Path,
    out_file: _Path,
    verbose: bool = False,
    *,
    durability: Literal["process", "machine"] = "process",
) -> None:
    """Packs a folder into a file that :class:`PackedFolder` reads.

    Args:
        folder: the folder. Links in it are followed.
        out_file: the file, whose name ends in ``.ffr``. An existing one is replaced.
        verbose: print the number and path of each file.
        durability: as for :class:`~anyrec.ffrecord.FileWriter`.
    """
    assert Path(folder).is_dir(), "'folder' must be a directory"
    assert Path(out_file).suffix == ".ffr", f"{out_file} does not end with .ffr"
    count = _anyrec.pack_folder(folder, out_file, overwrite=True, durability=durability)
    if verbose:
        width = len(str(count))
        paths = PackedFolder(out_file, check_data=False).list(list_dir=False, recursive=True)
        for number, path in enumerate(paths):
            # Names come from the disk and must not control the terminal.
            print(f"{number:0{width}d}/{count} {_printable(os.path.join(folder, path))}", flush=True)


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
