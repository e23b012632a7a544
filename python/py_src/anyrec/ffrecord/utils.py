"""Writing many samples at once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .. import _anyrec
from .fileio import FileWriter

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["dump"]


class _Samples(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


def dump(
    dataset: _Samples,
    fname: str | os.PathLike[str],
    nfiles: int = 1,
    verbose: bool = False,
    *,
    serializer: Callable[[Any], Buffer] | None = None,
) -> None:
    """Writes the samples of an indexable object to one or more FFRecord files.

    Args:
        dataset: has a length, and gives sample ``i`` as ``dataset[i]``.
        fname: the file; with several files the folder, which is made if need be.
        nfiles: how many files: each gets ``ceil(n / nfiles)`` samples, so it can be fewer.
        verbose: show a progress bar (needs tqdm).
        serializer: makes bytes of a sample; without it the samples are bytes already.

    >>> from anyrec.ffrecord import FileReader
    >>> from anyrec.ffrecord.utils import dump
    >>> dump([b"a", b"bc", b"def"], "parts", nfiles=2)
    >>> FileReader("parts").fnames, FileReader("parts").n
    (['parts/PART_00000.ffr', 'parts/PART_00001.ffr'], 3)
    """
    count = len(dataset)
    if nfiles < 1:
        raise ValueError(f"nfiles must be at least 1, not {nfiles}")
    if nfiles == 1:
        _write(dataset, Path(fname), range(count), verbose, serializer)
        return
    folder = Path(fname)
    folder.mkdir(parents=True, exist_ok=True)
    # Without samples there is one file without samples, so that the folder can be opened.
    parts = _anyrec.part_files(count, nfiles) or [("PART_00000.ffr", range(0))]
    if len(parts) != nfiles:
        warnings.warn(f"Split into {len(parts)} files rather than {nfiles} files", stacklevel=2)
    for name, samples in parts:
        _write(dataset, folder / name, samples, verbose, serializer)


def _write(
    dataset: _Samples,
    path: Path,
    samples: range,
    verbose: bool,
    serializer: Callable[[Any], Buffer] | None,
) -> None:
    with FileWriter(path, len(samples)) as writer:
        for index in _shown(samples, path.name) if verbose else samples:
            sample = dataset[index]
            writer.write_one(sample if serializer is None else serializer(sample))


def _shown(samples: range, name: str) -> Iterable[int]:
    from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]

    shown: Iterable[int] = tqdm(samples, desc=name)
    return shown
