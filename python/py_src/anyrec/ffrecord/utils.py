"""Writing many samples at once."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .. import _anyrec
from .fileio import FileWriter

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["dump"]

# This many files are written at once, each by its own process.
_PROCESSES = 16


class _Samples(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


_Serializer = Callable[[Any], "Buffer"]


def dump(
    dataset: _Samples,
    fname: str | os.PathLike[str],
    nfiles: int = 1,
    verbose: bool = False,
    *,
    serializer: _Serializer | None = None,
) -> None:
    """Writes the samples of an indexable object to one or more FFRecord files.

    Args:
        dataset: has a length, and returns sample ``i`` as ``dataset[i]``.
        fname: the file; with several files the folder, which is created if needed.
        nfiles: how many files. Each gets ``ceil(n / nfiles)`` samples, so there can be fewer files.
        verbose: show a progress bar (needs tqdm).
        serializer: converts a sample to bytes; without it, samples must be bytes.

    Up to 16 forked processes write several files, so ``dataset`` and ``serializer`` need not be
    picklable. An exception in one of them is raised here.

    >>> from anyrec.ffrecord import FileReader
    >>> from anyrec.ffrecord.utils import dump
    >>> dump([b"a", b"bc", b"def"], "parts", nfiles=2)
    >>> FileReader("parts").fnames, FileReader("parts").n
    (['parts/PART_00000.ffr', 'parts/PART_00001.ffr'], 3)
    """
    count = len(dataset)
    if nfiles < 1:
        raise ValueError(f"nfiles must be at least 1, not {nfiles}")
    task = _Task(dataset, verbose, serializer)
    if nfiles == 1:
        task.write(Path(fname), range(count))
        return
    folder = Path(fname)
    folder.mkdir(parents=True, exist_ok=True)
    # Without samples, write one empty file, so that the folder can be opened.
    parts = _anyrec.part_files(count, nfiles) or [("PART_00000.ffr", range(0))]
    if len(parts) != nfiles:
        warnings.warn(f"Split into {len(parts)} files rather than {nfiles} files", stacklevel=2)
    with ProcessPoolExecutor(
        min(_PROCESSES, len(parts)), multiprocessing.get_context("fork"), _begin, (task,)
    ) as pool:
        written = [pool.submit(_write, folder / name, samples) for name, samples in parts]
        try:
            for file in written:
                file.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


class _Task:
    """What to write, independent of the output file."""

    def __init__(self, dataset: _Samples, verbose: bool, serializer: _Serializer | None) -> None:
        self.dataset = dataset
        self.verbose = verbose
        self.serializer = serializer

    def write(self, path: Path, samples: range) -> None:
        """Writes these samples to a file."""
        with FileWriter(path, len(samples)) as writer:
            for index in _shown(samples, path.name) if self.verbose else samples:
                sample = self.dataset[index]
                writer.write_one(sample if self.serializer is None else self.serializer(sample))


# The task of a worker process, which inherits it instead of receiving the dataset through a pipe.
_task: _Task | None = None


def _begin(task: _Task) -> None:
    global _task
    _task = task


def _write(path: Path, samples: range) -> None:
    assert _task is not None
    _task.write(path, samples)


def _shown(samples: range, name: str) -> Iterable[int]:
    from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]

    shown: Iterable[int] = tqdm(samples, desc=name)
    return shown
