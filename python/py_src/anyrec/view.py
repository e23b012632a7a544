"""Selections of a dataset's records, and mixtures of datasets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ._anyrec import Batch, Record
from ._anyrec import Dataset as NativeDataset
from ._label_counts import counted
from .errors import InvalidArgument

if TYPE_CHECKING:
    from .dataset import Dataset

__all__ = ["MissingLabel", "Mix", "View"]

_Labels: TypeAlias = float | Collection[float] | Callable[[Any], bool]
_Numbers: TypeAlias = npt.NDArray[np.int64]


class MissingLabel(UserWarning):
    """A record has no label although labels were requested."""


def unlabelled(labels: Any) -> npt.NDArray[np.bool_]:
    """Returns which of many labels are missing."""
    if isinstance(labels, np.ndarray):
        return np.isnan(labels).reshape(len(labels), -1).all(axis=1) if len(labels) else np.zeros(0, np.bool_)
    missing = [label is None or (isinstance(label, float) and np.isnan(label)) for label in labels]
    return np.array(missing, dtype=np.bool_)


class Selecting:
    """What datasets and views have in common: selecting records by number, label and key."""

    __slots__ = ()

    def select(self, indices: slice | Iterable[int]) -> View:
        """Returns a view of these records, in the order given, repeats kept.

        >>> import anyrec
        >>> with anyrec.create("words.ffr") as writer:
        ...     for word in ["zero", "one", "two", "three"]:
        ...         _ = writer.write(word)
        >>> view = anyrec.open("words.ffr").select([3, 1])
        >>> len(view), bytes(view[0]), view.select(slice(1, None)).read([0]).to_list()
        (2, b'three', [b'one'])
        """
        dataset, own = _origin(self)
        count = len(dataset) if own is None else len(own)
        if isinstance(indices, slice):
            chosen = dataset._slice_numbers(indices) if own is None else np.arange(count)[indices]
        else:
            if isinstance(indices, range) and len(indices[:1]):
                # Its ends show that it is too long before all of it is listed.
                _checked(np.array([indices[0], indices[-1]]), count)
            if not isinstance(indices, np.ndarray):
                indices = np.fromiter(indices, dtype=np.int64)
            chosen = _checked(indices, count)
        return View(dataset, chosen if own is None else own[chosen])

    def filter(self, *, labels: _Labels | None = None, keys: Collection[Any] | None = None) -> View:
        """Returns a view of the records with these labels and keys, in their order.

        :param labels: a label, several, or a function that takes a label (``None`` if a record has none)
            and returns whether to keep the record. If a record has several labels, the first one counts;
            a function receives all.
        :param keys: keys of the records to keep.

        This reads all labels once.

        >>> import anyrec
        >>> with anyrec.create("pets.rec") as writer:
        ...     for key, name in enumerate(["cat", "dog", "cow", "hen"]):
        ...         _ = writer.write(name, key=key, label=key % 2)
        >>> pets = anyrec.open("pets.rec")
        >>> len(pets.filter(labels=1)), len(pets.filter(labels=[0, 1], keys=[3, 0, 7]))
        (2, 2)
        >>> [pets.filter(labels=lambda label: label > 0).key(i) for i in range(2)]
        [1, 3]
        """
        dataset, own = _origin(self)
        numbers: _Numbers = dataset._slice_numbers(slice(None)) if own is None else own
        if keys is not None:
            found = [dataset.find(key) for key in keys]
            wanted = np.array([number for number in found if number is not None], dtype=np.int64)
            numbers = numbers[np.isin(numbers, wanted)]
        if labels is not None:
            numbers = numbers[_with_labels(NativeDataset.labels(dataset, numbers), labels)]
        return View(dataset, numbers)


    def label_counts(self) -> dict[float | tuple[float, ...] | None, int]:
        """Returns how many records have each label, in the order of the labels.

        Whole numbers are ``int``. Of a record with several labels, all of them together are the label. Records
        without a label are counted under ``None``. This reads all labels once.

        >>> import anyrec
        >>> with anyrec.create("pets.rec") as writer:
        ...     for name, kind in [("cat", 1), ("dog", 0), ("lion", 1)]:
        ...         _ = writer.write(name, label=kind)
        >>> anyrec.open("pets.rec").label_counts()
        {0: 1, 1: 2}
        """
        dataset, own = _origin(self)
        # The package's own `labels` warns of missing labels, which the counts show.
        return counted(NativeDataset.labels(dataset, own))


def _origin(data: Any) -> tuple[Dataset, _Numbers | None]:
    """Returns the dataset, and the numbers of its records (``None`` for all)."""
    return (data.dataset, data.indices) if isinstance(data, View) else (data, None)


def _checked(indices: npt.NDArray[Any], count: int) -> _Numbers:
    if indices.dtype == np.bool_:
        if indices.shape != (count,):
            raise InvalidArgument(f"a mask needs one entry per record: {count}, not {indices.shape}")
        return np.flatnonzero(indices)
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"indices must be one row of integers, not {indices.dtype} of shape {indices.shape}")
    chosen = indices.astype(np.int64)
    chosen = np.where(chosen < 0, chosen + count, chosen)
    outside = (chosen < 0) | (chosen >= count)
    if outside.any():
        raise IndexError(f"there is no record {indices[outside][0]}: the dataset has {count} records")
    return chosen


def _with_labels(found: Any, wanted: _Labels) -> npt.NDArray[np.bool_]:
    if callable(wanted):
        told = (None if isinstance(label, float) and np.isnan(label) else label for label in found)
        return np.fromiter((bool(wanted(label)) for label in told), dtype=np.bool_, count=len(found))
    first = [np.ravel(label)[0] if label is not None and np.size(label) else np.nan for label in found]
    return np.isin(np.array(first, dtype=np.float64), np.ravel(np.asarray(_listed(wanted), dtype=np.float64)))


def _listed(wanted: Any) -> Any:
    return list(wanted) if isinstance(wanted, Iterable) else [wanted]


class View(Selecting, Sequence[Record]):
    """Some of the records of a dataset, in their own order.

    :meth:`Dataset.select` and :meth:`Dataset.filter` return one.

    Use it like a dataset. Record numbers count within the view. Pickling includes the record numbers.
    """

    __slots__ = ("dataset", "indices")

    def __init__(self, dataset: Dataset, indices: _Numbers) -> None:
        self.dataset = dataset
        """The dataset that holds the records."""
        self.indices = indices
        """Their numbers in that dataset."""

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | npt.NDArray[Any]) -> list[Record]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) or hasattr(index, "__len__"):
            return self.dataset[self.select(index).indices]
        return self.dataset[self._number(index)]

    def __iter__(self) -> Iterator[Record]:
        return (self.dataset[number] for number in self.indices.tolist())

    def __repr__(self) -> str:
        return f"<View of {len(self)} records of {self.dataset!r}>"

    def _number(self, index: Any) -> int:
        return int(self.indices[_checked(np.array([index]), len(self))[0]])

    def read(self, indices: slice | Sequence[int] | npt.NDArray[Any]) -> Batch:
        """Records as one batch, see :meth:`Dataset.read`."""
        return self.dataset.read(self.select(indices).indices)

    def label(self, index: int) -> Any:
        """The label of a record, see :meth:`Dataset.label`."""
        return self.dataset.label(self._number(index))

    def labels(self) -> Any:
        """The labels of all records, see :meth:`Dataset.labels`."""
        return self.dataset.labels(self.indices)

    def key(self, index: int) -> Any:
        """The key of a record, see :meth:`Dataset.key`."""
        return self.dataset.key(self._number(index))

    def position(self, index: int) -> tuple[int, int]:
        """Where a record is in its file, see :meth:`Dataset.position`."""
        return self.dataset.position(self._number(index))

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the dataset's first file."""
        return self.dataset.metadata

    @property
    def payload(self) -> bool:
        """Whether records are returned as payloads."""
        return self.dataset.payload

    @property
    def payloads(self) -> View:
        """The same records as payloads, see :attr:`Dataset.payloads`."""
        return View(self.dataset.payloads, self.indices)

    def __reduce__(self) -> tuple[Any, ...]:
        return (View, (self.dataset, self.indices))


class Mix:
    """Several datasets or views for one :class:`anyrec.Loader`, each with a weight.

    :param parts: datasets, views, or what :func:`anyrec.open` accepts.
    :param weights: how often each part is drawn, in proportion (default: its number of records). Weights
        have a precision of 1/16384.
    :param samples: samples in an epoch (default: the number of records).

    The mix cycles through each part, in a new order each time, across epochs. No record of a part repeats
    before all of them have come once.

    >>> import anyrec
    >>> for name, count in [("a.ffr", 4), ("b.ffr", 100)]:
    ...     with anyrec.create(name) as writer:
    ...         for i in range(count):
    ...             _ = writer.write(f"{name[0]}{i}")
    >>> mix = anyrec.Mix(["a.ffr", "b.ffr"], weights=[1, 3], samples=400)
    >>> records = [word for batch in anyrec.Loader(mix, 100) for word in batch.to_list()]
    >>> len(records), records[:5], records.count(b"a3")
    (400, [b'b0', b'a0', b'b1', b'b2', b'b3'], 25)
    """

    def __init__(
        self,
        parts: Iterable[Any],
        weights: Iterable[float] | None = None,
        *,
        samples: int | None = None,
    ) -> None:
        self.parts = [opened(part) for part in parts]
        """The datasets and views. Record numbers in a batch count through all of them."""
        given = [len(part) for part in self.parts] if weights is None else weights
        # One more than expected is enough to see that there are too many.
        self.weights = [float(weight) for weight in islice(given, len(self.parts) + 1)]
        """How often each part is drawn."""
        if len(self.weights) != len(self.parts):
            raise InvalidArgument(f"{len(self.parts)} datasets need as many weights, not {len(self.weights)}")
        self.samples = sum(len(part) for part in self.parts) if samples is None else samples
        """Samples in an epoch."""

    def __len__(self) -> int:
        return self.samples

    def __repr__(self) -> str:
        return f"<Mix of {len(self.parts)} datasets, {self.samples} samples per epoch>"


def opened(data: Any, **options: Any) -> Dataset | View:
    """Returns a dataset or view unchanged; opens anything else."""
    from .dataset import Dataset, open

    return data if isinstance(data, Dataset | View) else open(data, **options)
