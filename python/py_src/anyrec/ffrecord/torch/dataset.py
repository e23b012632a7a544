"""Datasets whose ``__getitem__`` takes the list of a batch's indices."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import torch.utils.data
except ImportError as error:
    raise ImportError("anyrec.ffrecord.torch needs PyTorch: pip install torch") from error

from ..fileio import FileReader


class ReaderRegistry:
    """Finds the readers among its attributes, including those of nested registries."""

    def ffreaders(self) -> list[FileReader]:
        """Returns all readers, each once."""
        readers: list[FileReader] = []
        waiting: list[ReaderRegistry] = [self]
        seen = {id(self)}
        for registry in waiting:
            for value in vars(registry).values():
                if id(value) in seen:
                    continue
                if isinstance(value, FileReader):
                    readers.append(value)
                elif isinstance(value, ReaderRegistry):
                    waiting.append(value)
                else:
                    continue
                seen.add(id(value))
        return readers


class Dataset(torch.utils.data.Dataset[Any], ReaderRegistry):
    """Samples of FFRecord files, read a batch at a time.

    Args:
        fnames: a file, a list of files, or a directory.
        check_data: whether to verify checksums.

    A subclass defines :meth:`process`, or its own ``__getitem__`` (and ``__len__``), which takes the list
    of a batch's indices and returns the list of its samples.
    """

    takes_lists = True
    """Tells the loader to pass whole batches of indices."""

    def __init__(
        self, fnames: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], check_data: bool = True
    ) -> None:
        self.fnames = fnames
        self.reader = FileReader(fnames, check_data)

    def __len__(self) -> int:
        return self.reader.n

    def __getitem__(self, indices: Sequence[int]) -> list[Any]:
        """Returns the samples with these numbers."""
        if not isinstance(indices, list | tuple):
            raise TypeError("indices must be a list of index")
        return self.process(indices, self.reader.read(indices))

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """The same, under the name that torch's own loader (since 2.0) calls for a batch."""
        return self[indices]

    def __add__(self, other: torch.utils.data.Dataset[Any]) -> ConcatDataset:  # type: ignore[override]
        """Returns this dataset followed by another one of this kind."""
        if not isinstance(other, Dataset):
            raise TypeError(
                "an ffrecord.torch.Dataset takes lists of indices and cannot be followed by a "
                f"{type(other).__name__}"
            )
        return ConcatDataset([self, other])

    def process(self, indices: Sequence[int], data: list[npt.NDArray[np.uint8]]) -> list[Any]:
        """Converts the bytes of a batch to samples; a subclass must define this."""
        raise NotImplementedError(f"{type(self).__name__} must define process(indices, data) or __getitem__")


class Subset(Dataset):
    """Some samples of a dataset.

    Args:
        dataset: the whole dataset.
        indices: the samples to keep.
    """

    def __init__(self, dataset: Dataset, indices: Sequence[int] | npt.NDArray[Any]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, indices: Sequence[int]) -> list[Any]:
        """Returns the samples with these numbers, counted in the subset."""
        return self.dataset[[self.indices[index] for index in indices]]


class ConcatDataset(Dataset):
    """Several datasets in sequence.

    Args:
        datasets: at least one.
    """

    datasets: list[Dataset]
    """The datasets."""
    cumulative_sizes: list[int]
    """The number of samples up to the end of each dataset."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        assert self.datasets, "datasets should not be an empty iterable"
        for dataset in self.datasets:
            assert isinstance(dataset, Dataset), f"{dataset!r} is not an ffrecord.torch.Dataset"
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def ffreaders(self) -> list[FileReader]:
        """Returns the readers of all datasets."""
        return [reader for dataset in self.datasets for reader in dataset.ffreaders()]

    def __getitem__(self, indices: Sequence[int]) -> list[Any]:
        """Returns the samples with these numbers, in this order, repeats kept, with one read per
        dataset."""
        wanted: dict[int, list[int]] = {}
        places: dict[int, list[int]] = {}
        for place, index in enumerate(indices):
            number, inside = self._locate(index)
            wanted.setdefault(number, []).append(inside)
            places.setdefault(number, []).append(place)
        samples: list[Any] = [None] * len(indices)
        for number, inside_indices in wanted.items():
            read = self.datasets[number][inside_indices]
            for place, sample in zip(places[number], read, strict=True):
                samples[place] = sample
        return samples

    def _locate(self, index: int) -> tuple[int, int]:
        """Returns the number of the dataset, and the index in it."""
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        if index >= len(self):
            raise IndexError(f"index >= number of samples ({index} >= {len(self)})")
        number = bisect.bisect_right(self.cumulative_sizes, index)
        return number, index - (self.cumulative_sizes[number - 1] if number else 0)
