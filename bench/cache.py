"""The page cache: loads files into it, drops them from it, and checks what is in it."""

import ctypes
import mmap
import os
from pathlib import Path

PAGE = mmap.PAGESIZE


def files_of(path: Path) -> list[Path]:
    """Returns the file, or the files in the folder."""
    return [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())


def warm(path: Path) -> None:
    """Reads every byte, so that the next measurement finds it in memory."""
    buffer = bytearray(1 << 20)
    for each in files_of(path):
        with open(each, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def drop(path: Path) -> float:
    """Drops a file's pages from the cache; returns the fraction that stayed."""
    for each in files_of(path):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    return resident(path)


def make_room(folder: Path, size: int) -> None:
    """Frees enough memory that writing a new file of that size need not reclaim old pages."""
    path = folder / "room"
    chunk = bytes(1 << 20)
    with open(path, "wb", buffering=0) as file:
        for _ in range(size // len(chunk) + 1):
            file.write(chunk)
    path.unlink()


def resident(path: Path) -> float:
    """Returns the fraction of a file's pages that is in the cache."""
    inside = pages = 0
    for each in files_of(path):
        size = each.stat().st_size
        if size == 0:
            continue
        with open(each, "rb") as file, mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE) as mapping:
            flags = _mincore(mapping, size)
        inside += sum(flag & 1 for flag in flags)
        pages += len(flags)
    return inside / max(pages, 1)


def _mincore(mapping: mmap.mmap, size: int) -> bytes:
    libc = ctypes.CDLL(None, use_errno=True)
    flags = (ctypes.c_ubyte * (-(-size // PAGE)))()
    anchor = ctypes.c_char.from_buffer(mapping)
    try:
        if libc.mincore(ctypes.c_void_p(ctypes.addressof(anchor)), ctypes.c_size_t(size), flags) != 0:
            raise OSError(ctypes.get_errno(), "mincore failed")
    finally:
        del anchor
    return bytes(flags)
