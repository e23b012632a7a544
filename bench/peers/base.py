"""What a contestant implements. It does not take part in what it leaves out."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


class Peer:
    """A library that stores records.

    `options` come from the row (`rows.py`).
    """

    ending = ""
    """The extension of its files. A peer may also keep a folder."""

    shares_files = False
    """Whether it reads what anyrec wrote instead of its own files."""

    batched = False
    """Whether :meth:`scan` yields many records at a time (with a `len`) instead of one."""

    def path(self, folder: Path, data: str, **options: Any) -> Path:
        """Returns where it keeps a set of records."""
        return folder / f"{data}{self.ending}"

    def write(self, path: Path, records: Iterable[bytes], count: int, **options: Any) -> None:
        """Stores records as fast as it can, without a sync. There are at most `count`."""
        raise NotImplementedError

    def open(self, path: Path, **options: Any) -> Any:
        """Opens what was stored."""
        raise NotImplementedError

    def keys(self, indices: Any) -> Any:
        """Converts a batch of record numbers (an array) to the fastest form for :meth:`read`; not
        timed."""
        return indices.tolist()

    def read(self, file: Any, keys: Any) -> Any:
        """Returns the records of a batch, in this order, as memory that the caller may keep."""
        raise NotImplementedError

    def scan(self, file: Any, **options: Any) -> Iterator[Any]:
        """Iterates over all records in order."""
        raise NotImplementedError

    def epoch(self, path: Path, **options: Any) -> Iterable[Any]:
        """Returns an iterable that yields a shuffled epoch in batches every time."""
        raise NotImplementedError

    def touch(self, batch: Any) -> int:
        """Touches every page of an epoch's batch; returns the bytes it holds."""
        raise NotImplementedError

    def images(self, **options: Any) -> Iterator[Any]:
        """Yields photos endlessly, in finished batches: shuffled, randomly cropped, flipped,
        normalised."""
        raise NotImplementedError

    def as_array(self, batch: Any) -> Any:
        """Converts a batch of :meth:`images` to a NumPy array, to check it outside the timed part."""
        return batch

    def array(self, path: Path, **options: Any) -> Any:
        """Returns an IDX file of bytes as an array."""
        raise NotImplementedError

    def as_bytes(self, delivered: Any) -> list[bytes]:
        """Converts what :meth:`read` returned to a list, to check it outside the timed part."""
        return [bytes(record) for record in delivered]

    def close(self, file: Any) -> None:
        """Releases what :meth:`open` opened."""
