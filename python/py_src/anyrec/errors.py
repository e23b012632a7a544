"""Exceptions.

Every failure is an :class:`AnyrecError`. It is also the built-in exception that you would expect: a
``ValueError``, an ``OSError`` or an ``IndexError``.

>>> import anyrec
>>> try:
...     anyrec.open("no such file.rec")
... except FileNotFoundError as error:
...     print(isinstance(error, anyrec.AnyrecError), error.path)
True no such file.rec
"""

from __future__ import annotations

import errno as _errno
from typing import Any, TypeVar

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


ErrorT = TypeVar("ErrorT", bound="AnyrecError")


class AnyrecError(Exception):
    """A failure: one sentence, and as much of the location as is known.

    ``str(error)`` is what the command line prints. ``reason`` is the sentence without the location.
    """

    reason: str
    """The sentence without the location."""
    path: str | None
    """The file, as the caller named it."""
    offset: int | None
    """The byte offset in the file."""
    record: int | None
    """The record number."""
    expected: str | None
    """The stored value, if the failure is a mismatch."""
    found: str | None
    """The value that was found instead."""
    hint: str | None
    """What to do next."""
    original: str | None
    """The message of the format's original implementation, if it is part of that interface."""

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
        # Exceptions are pickled between processes (DataLoader workers): keep every attribute.
        return (_rebuild, (type(self), self.__dict__.copy(), getattr(self, "errno", None)))


_KEPT = ("reason", "path", "offset", "record", "expected", "found", "hint", "original")


def _rebuild(kind: type[AnyrecError], attributes: dict[str, Any], errno: int | None) -> AnyrecError:
    kept = {name: attributes.get(name) for name in _KEPT}
    return kind(attributes.get("_message", ""), errno=errno, **kept)


def translated(error: AnyrecError, kind: type[ErrorT], message: str, original: str | None) -> ErrorT:
    """Returns an error as one of another class, with the message that an original has for it."""
    kept = {name: getattr(error, name) for name in _KEPT}
    return kind(message, errno=getattr(error, "errno", None), **{**kept, "original": original})


class CorruptRecord(AnyrecError, ValueError):
    """The bytes violate the format."""


class UnsupportedFormat(AnyrecError, ValueError):
    """The format, version or feature is not supported."""


class LimitExceeded(AnyrecError, ValueError):
    """A size from a file, or a record given to a writer, exceeds a limit."""


class RecordNotFound(AnyrecError, IndexError):
    """The file has no record with that number, key or position."""


class InvalidArgument(AnyrecError, ValueError):
    """An argument is invalid, or arguments contradict each other."""


class StaleCompanion(AnyrecError, ValueError):
    """A companion file (index file, table) does not match the data file."""


class OutOfMemory(AnyrecError, MemoryError):
    """There is not enough memory. The file may be sound, so options that skip damage do not skip this."""


class ClosedError(AnyrecError, ValueError):
    """The dataset, reader or writer is closed."""


class InternalError(AnyrecError, RuntimeError):
    """A bug in anyrec itself. Please report it."""


class SystemFailure(AnyrecError, OSError):
    """The operating system reported an error."""


class FileMissing(SystemFailure, FileNotFoundError):
    """The file does not exist."""


class FileRefused(SystemFailure, PermissionError):
    """Permission denied."""


class FileExists(AnyrecError, FileExistsError):
    """The output exists, and overwriting was not requested."""

    def __init__(self, message: str = "", *, errno: int | None = None, **place: Any) -> None:
        super().__init__(message, errno=_errno.EEXIST if errno is None else errno, **place)
