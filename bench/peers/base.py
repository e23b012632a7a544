"""What a contestant implements. What it leaves out, it does not take part in."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


class Peer:
    """A library that stores records.

    `options` are those a row gives it (`rows.py`).
    """

    ending = ""
    """What its files end in. A peer may also keep a folder."""

    shares_files = False
    """Whether it reads what anyrec wrote, instead of files of its own."""

    batched = False
    """Whether :meth:`scan` gives many records at a time (with a `len`) instead of one."""

    def path(self, folder: Path, data: str, **options: Any) -> Path:
        """Where it keeps a set of records."""
        return folder / f"{data}{self.ending}"

    def write(self, path: Path, records: Iterable[bytes], count: int, **options: Any) -> None:
        """Stores records, as fast as it can, without a sync. `count` is how many come at most."""
        raise NotImplementedError

    def open(self, path: Path, **options: Any) -> Any:
        """Opens what was stored."""
        raise NotImplementedError

    def keys(self, indices: Any) -> Any:
        """A batch of record numbers (an array) as :meth:`read` likes it best; not timed."""
        return indices.tolist()

    def read(self, file: Any, keys: Any) -> Any:
        """The records of a batch, in this order, as memory the caller may keep."""
        raise NotImplementedError

    def scan(self, file: Any, **options: Any) -> Iterator[Any]:
        """All records, front to back."""
        raise NotImplementedError

    def epoch(self, path: Path, **options: Any) -> Iterable[Any]:
        """What gives a shuffled epoch in batches, every time it is iterated over."""
        raise NotImplementedError

    def touch(self, batch: Any) -> int:
        """Looks at every page of an epoch's batch; gives the bytes it holds."""
        raise NotImplementedError

    def images(self, **options: Any) -> Iterator[Any]:
        """Photos without end, in finished batches: shuffled, cut at random, flipped, normalised."""
        raise NotImplementedError

    def as_array(self, batch: Any) -> Any:
        """A batch of :meth:`images` as a NumPy array: to check it, outside the timed part."""
        return batch

    def array(self, path: Path, **options: Any) -> Any:
        """An IDX file of bytes as an array."""
        raise NotImplementedError

    def as_bytes(self, delivered: Any) -> list[bytes]:
        """What :meth:`read` gave, as a list: to check it, outside the timed part."""
        return [bytes(record) for record in delivered]

    def close(self, file: Any) -> None:
        """Lets go of what :meth:`open` gave."""
