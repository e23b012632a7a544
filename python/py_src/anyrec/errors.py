"""What can go wrong.

Every failure of the package is an :class:`AnyrecError`, and also what a Python user would catch
without knowing the package: a ``ValueError``, an ``OSError``, an ``IndexError``.

>>> import anyrec
>>> try:
...     anyrec.open("no such file.rec")
... except FileNotFoundError as error:
...     print(isinstance(error, anyrec.AnyrecError), error.path)
True no such file.rec
"""

from __future__ import annotations

import errno as _errno
from typing import Any

__all__ = [
    "AnyrecError",
    "ClosedError",
    "CorruptRecord",
    "FileExists",
    "FileMissing",
    "FileRefused",
    "InternalError",
    "InvalidArgument",
    "LimitExceeded",
    "OutOfMemory",
    "RecordNotFound",
    "StaleCompanion",
    "SystemFailure",
    "UnsupportedFormat",
]


class AnyrecError(Exception):
    """A failure: one sentence, and as much of the place as is known.

    ``str(error)`` is what the command line prints; ``reason`` is the sentence without the place.
    """

    reason: str
    """The sentence alone."""
    path: str | None
    """The file, as it was named."""
    offset: int | None
    """The byte offset in the file."""
    record: int | None
    """The number of the record."""
    expected: str | None
    """What the file promised, where the failure is a mismatch."""
    found: str | None
    """What was found instead."""
    hint: str | None
    """What to do next."""
    original: str | None
    """The message of the format's original implementation, where it is part of its interface."""

    def __init__(
        self,
        message: str = "",
        *,
        reason: str | None = None,
        path: str | None = None,
        offset: int | None = None,
        record: int | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
        original: str | None = None,
        errno: int | None = None,
    ) -> None:
        super().__init__(message)
        self._message = message
        self.reason = message if reason is None else reason
        self.path = path
        self.offset = offset
        self.record = record
        self.expected = expected
        self.found = found
        self.hint = hint
        self.original = original
        if isinstance(self, OSError):
            for name, value in (("errno", errno), ("strerror", self.reason), ("filename", path)):
                setattr(self, name, value)
        if hint:
            self.add_note(f"hint: {hint}")

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process borders (DataLoader workers): keep every attribute.
        return (_rebuild, (type(self), self.__dict__.copy(), getattr(self, "errno", None)))


def _rebuild(kind: type[AnyrecError], attributes: dict[str, Any], errno: int | None) -> AnyrecError:
    names = ("reason", "path", "offset", "record", "expected", "found", "hint", "original")
    kept = {name: attributes.get(name) for name in names}
    return kind(attributes.get("_message", ""), errno=errno, **kept)


class CorruptRecord(AnyrecError, ValueError):
    """The bytes are not what the format promises."""


class UnsupportedFormat(AnyrecError, ValueError):
    """The bytes are fine, but nothing here reads or writes such a thing."""


class LimitExceeded(AnyrecError, ValueError):
    """A size taken from a file, or a record given to a writer, is over the limit."""


class RecordNotFound(AnyrecError, IndexError):
    """A record number, key or position that the file does not have."""


class InvalidArgument(AnyrecError, ValueError):
    """The arguments make no sense together."""


class StaleCompanion(AnyrecError, ValueError):
    """A companion file (index file, table) belongs to other data."""


class OutOfMemory(AnyrecError, MemoryError):
    """There is not enough memory. The file may be sound: no setting that skips damage skips this."""


class ClosedError(AnyrecError, ValueError):
    """The dataset, reader or writer was closed before."""


class InternalError(AnyrecError, RuntimeError):
    """A mistake in anyrec itself, whatever the caller did. Please report it."""


class SystemFailure(AnyrecError, OSError):
    """The operating system said no."""


class FileMissing(SystemFailure, FileNotFoundError):
    """There is no such file."""


class FileRefused(SystemFailure, PermissionError):
    """The file may not be read or written by this user."""


class FileExists(AnyrecError, FileExistsError):
    """The output exists already and overwriting was not asked for."""

    def __init__(self, message: str = "", *, errno: int | None = None, **place: Any) -> None:
        super().__init__(message, errno=_errno.EEXIST if errno is None else errno, **place)
