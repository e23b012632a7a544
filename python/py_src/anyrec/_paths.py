"""Path arguments: one path or several, and progress bars over files."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from . import _anyrec
from .errors import FileMissing, InvalidArgument

Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths: TypeAlias = Path | Iterable[Path]


def many(paths: Paths) -> list[Path]:
    """Returns a list of paths, whether one was given or several."""
    if isinstance(paths, bytes):
        return [os.fsdecode(paths)]
    if isinstance(paths, str | os.PathLike):
        return [paths]
    return [os.fsdecode(path) if isinstance(path, bytes) else path for path in paths]


def of_split(paths: Paths, split: str | None) -> Paths:
    """Returns the file of images of one split, if ``paths`` is a folder of files of images and labels.

    Any other paths are returned unchanged. They have no splits.
    """
    if isinstance(paths, bytes):
        paths = os.fsdecode(paths)
    folder = isinstance(paths, str | os.PathLike) and os.path.isdir(paths)
    splits = _anyrec.idx_splits(_anyrec.expand(many(paths))) if folder else None
    if not splits:
        if split is not None and isinstance(paths, str | os.PathLike) and not os.path.exists(paths):
            name = os.fsdecode(paths)
            raise FileMissing(f"{name!r} does not exist", path=name, errno=errno.ENOENT)
        if split is not None:
            raise InvalidArgument(
                f"{paths!r} has no splits: split= is for a folder of IDX files with images and labels"
            )
        return paths
    named = dict(splits)
    known = ", ".join(map(repr, named))
    if split is None:
        if len(named) > 1:
            raise InvalidArgument(
                f"the folder {os.fsdecode(paths)!r} holds several splits: {known}",  # type: ignore[arg-type]
                hint="open one with anyrec.open(folder, split=...), for example split='train'",
            )
        return splits[0][1]
    found = [name for name in named if name == split] or [name for name in named if _means(split, name)]
    if len(found) != 1:
        what = "is ambiguous" if found else "does not exist"
        raise InvalidArgument(f"the split {split!r} {what}: the folder has {known}")
    return named[found[0]]


def _means(split: str, name: str) -> bool:
    """Whether ``split`` is the end of a split's name: ``train`` of ``emnist-letters-train``.

    MNIST's files call the test split ``t10k``.
    """
    given, parts = (
        ["test" if part == "t10k" else part for part in re.split(r"[-_.]", text.lower())]
        for text in (split, name)
    )
    return parts[-len(given) :] == given


def size_of(paths: Iterable[Path]) -> int:
    """Returns the total size of the files in bytes."""
    return sum(os.stat(path).st_size for path in paths)


@contextmanager
def telling(progress: bool, what: str, total: int) -> Iterator[Callable[[int], object] | None]:
    """Yields a function that moves a tqdm progress bar, or ``None`` without ``progress``."""
    if not progress:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install tqdm, or pip install 'anyrec[progress]'") from error

    with tqdm(total=total, desc=what, unit="B", unit_scale=True) as bar:
        yield lambda reached: bar.update(reached - bar.n)
