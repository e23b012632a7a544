"""Path arguments: one path or several, and progress bars over files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths: TypeAlias = Path | Iterable[Path]


def many(paths: Paths) -> list[Path]:
    """Returns a list of paths, whether one was given or several."""
    if isinstance(paths, str | bytes | os.PathLike):
        return [paths]
    return list(paths)


def size_of(paths: Iterable[Path]) -> int:
    """Returns the total size of the files in bytes."""
    return sum(os.stat(path).st_size for path in paths)


@contextmanager
def telling(progress: bool, what: str, total: int) -> Iterator[Callable[[int], object] | None]:
    """Yields a function that moves a tqdm progress bar, or ``None`` without ``progress``."""
    if not progress:
        yield None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=what, unit="B", unit_scale=True) as bar:
        yield lambda reached: bar.update(reached - bar.n)
