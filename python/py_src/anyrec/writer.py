"""Writers: records to a new file of any format."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Any, Self, Unpack

from . import _anyrec
from ._keywords import keywords
from ._options import CreateOptions
from ._paths import Path
from .errors import UnsupportedFormat

__all__ = ["NotStored", "Writer", "create"]


class NotStored(UserWarning):
    """A value could not be stored, such as a key in a format without keys."""


def warn_of(notices: list[str], path: Any, stacklevel: int = 3) -> None:
    """Issues a writer's notices as Python warnings."""
    for notice in notices:
        warnings.warn(f"{path}: {notice}", NotStored, stacklevel=stacklevel)


class Completing:
    """What writers have in common: a ``with`` block completes the file, unless an exception ends it."""

    __slots__ = ()

    def close(self: Any) -> list[str]:
        """Completes and publishes the file. Calling it again does nothing.

        What could not be stored is a :class:`NotStored` warning, and is returned.
        """
        if self.closed:
            return []
        notices: list[str] = super().close()  # type: ignore[misc]
        warn_of(notices, self.path)
        return notices

    def __del__(self: Any) -> None:
        # A forked child has a copy of the writer; the records are in the parent's file.
        if not self._is_anothers and not self.closed and self.count:
            warnings.warn(
                f"unclosed writer: {self.count} records of {self.path!r} are lost; call close(), or use a "
                "with block",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self: Any,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class Writer(Completing, _anyrec.Writer):
    """Writes records. The file is published when the writer is closed. :func:`anyrec.create` returns one.

    As a context manager it closes the file at the end. If an exception ends the block, no file is
    published, and an existing one is unchanged. The same happens if a writer is never closed; if it has
    records, that is a ``ResourceWarning``.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.count} records so far"
        return f"<Writer {self.path!r}: {self.format}, {state}>"


@keywords(CreateOptions)
def create(path: Path, format: str | None = None, **options: Unpack[CreateOptions]) -> Writer:
    """Creates a record file. Use it as a context manager.

    :param path: the file, which is published when the writer is closed.
    :param format: the format's id (``mxnet``, ``ffrecord``, ``grail``, ``idx``); by default, inferred
        from the path's extension.
    :param options: for every format ``overwrite=True`` (replace an existing file) and
        ``durability="process"`` (do not wait for the file to be synced). MXNet: ``index_file``
        (``True``, ``False`` or a path; by default one is written if a record has a key) and
        ``wide_labels``. FFRecord: ``count`` (the number of records, if known beforehand) and
        ``version``. GRAIL: ``header``, ``transformers``, ``max_items``, ``trailer``,
        ``parallelism``, ``keys``, ``version`` (``trailer=True``: there will be one, see
        :meth:`Writer.set_trailer`). IDX: ``dtype``, ``item_shape``, ``gzip``.

    >>> import anyrec
    >>> with anyrec.create("pets.rec") as writer:
    ...     writer.write(b"meow", key=7, label=1.0)
    0
    >>> dataset = anyrec.open("pets.rec")
    >>> dataset.key(0), dataset.metadata["files"]
    (7, ['pets.rec'])

    After an exception there is no file:

    >>> import os
    >>> try:
    ...     with anyrec.create("never.ffr") as writer:
    ...         _ = writer.write(b"something")
    ...         raise KeyError("oh")
    ... except KeyError:
    ...     os.path.exists("never.ffr")
    False
    """
    if format is None:
        format = _anyrec.format_by_name(path)
        if format is None:
            known = ", ".join(one["id"] for one in _anyrec.formats())
            raise UnsupportedFormat(
                f"cannot infer a format from {path!r}",
                path=str(path),
                hint=f"pass format=... ({known})",
            )
    return Writer(path, format, {name: value for name, value in options.items() if value is not None})
