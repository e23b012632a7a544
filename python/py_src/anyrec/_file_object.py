"""Reads from file objects: anything with ``read`` and ``seek``."""

from __future__ import annotations

import io
import os
import threading
from typing import Any, Protocol, TypeGuard


class BinaryFile(Protocol):
    """A binary file that can be positioned: ``io.BytesIO``, ``open(path, "rb")``, a file of fsspec."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...


def is_file_object(data: Any) -> TypeGuard[BinaryFile]:
    """Whether this is a file object and not a path."""
    return hasattr(data, "read") and not isinstance(data, str | bytes | os.PathLike)


class FileObject:
    """A file object for the native code."""

    def __init__(self, file: Any) -> None:
        kind = type(file).__name__
        if isinstance(file, io.TextIOBase):
            raise TypeError(f"a record file is binary: open it with mode 'rb', not as text ({kind})")
        if not hasattr(file, "seek") or (hasattr(file, "seekable") and not file.seekable()):
            raise TypeError(f"a file object must be seekable to be read as records, and this {kind} is not")
        name = getattr(file, "name", None)
        self.name = name if isinstance(name, str) else f"<{kind}>"
        self.length = int(file.seek(0, os.SEEK_END))
        self._file = file
        self._lock = threading.Lock()
        self._process = os.getpid()

    def read_at(self, offset: int, size: int) -> bytes:
        """Returns these bytes, or fewer if the file ends before."""
        if os.getpid() != self._process:
            # Both processes would move one position, and a thread of the other may hold the lock.
            raise RuntimeError(
                f"{self.name} was opened as a file object in another process: pass its path, or open it here"
            )
        parts = []
        with self._lock:
            self._file.seek(offset)
            while size > 0:
                part = self._file.read(size)
                if not part:
                    break
                parts.append(part)
                size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
