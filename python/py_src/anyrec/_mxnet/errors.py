"""MXNet's error, in a class for each kind of failure here."""

from __future__ import annotations

from ..errors import AnyrecError, FileMissing, FileRefused, InvalidArgument, SystemFailure, translated


class MXNetError(AnyrecError, RuntimeError):
    """What the original raises for an invalid file."""


class MXNetInvalid(MXNetError, InvalidArgument):
    """An argument that cannot be used; the original reports this in the same way."""


class MXNetFileError(MXNetError, SystemFailure):
    """A file cannot be opened or written; the original reports this in the same way."""


class MXNetFileMissing(MXNetFileError, FileMissing):
    """The file does not exist."""


class MXNetFileRefused(MXNetFileError, FileRefused):
    """Permission denied."""


# The first match replaces the library's own exception.
_KINDS: tuple[tuple[type[AnyrecError], type[MXNetError]], ...] = (
    (FileMissing, MXNetFileMissing),
    (FileRefused, MXNetFileRefused),
    (SystemFailure, MXNetFileError),
    (InvalidArgument, MXNetInvalid),
    (AnyrecError, MXNetError),
)


def as_original(error: AnyrecError) -> MXNetError:
    """Converts one of the library's errors to the original's: its sentence, the location, the hint."""
    kind = next(kind for own, kind in _KINDS if isinstance(error, own))
    message = f"{error.original}: {error}" if error.original else str(error)
    return translated(error, kind, message, error.original)
