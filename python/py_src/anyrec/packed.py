"""Packed folders: a directory tree in one FFRecord file."""

from __future__ import annotations

from . import _anyrec

__all__ = ["PackedFolder"]


class PackedFolder(_anyrec.PackedFolder):
    """A folder packed into an FFRecord file, read without unpacking it.

    Paths are relative, with ``/`` between the names. Contents are writable ``uint8`` arrays, which
    ``io.BytesIO``, ``pickle.loads`` and similar functions accept.

    >>> import anyrec, pathlib
    >>> pathlib.Path("photos/2024").mkdir(parents=True)
    >>> _ = pathlib.Path("photos/2024/sea.txt").write_text("blue")
    >>> anyrec.pack_folder("photos", "photos.ffr")
    1
    >>> folder = anyrec.PackedFolder("photos.ffr")
    >>> folder
    <PackedFolder 'photos.ffr': 1 file>
    >>> folder.list(), folder.list("2024"), folder.is_dir("2024")
    (['2024'], ['sea.txt'], True)
    >>> bytes(folder.read("2024/sea.txt")), len(folder.read(["2024/sea.txt"]))
    (b'blue', 1)
    """

    __slots__ = ()
