"""Batches for training: in order or shuffled, read ahead by threads, resumable at any step."""

from __future__ import annotations

import dataclasses
import logging
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar, Unpack, overload

import numpy as np

from . import _anyrec
from ._keywords import keywords
from ._paths import Paths
from .errors import InvalidArgument
from .view import MissingLabel, Mix, View, opened

if TYPE_CHECKING:
    from typing import Self

    from .dataset import Dataset

__all__ = ["Counts", "Loader", "Stats"]

logger = logging.getLogger("anyrec")
_LOGGED_FAILURES = 100
"""Failures that are logged, of those of one loader: as many as it keeps."""
_DONE = {"skip": "skipped", "replace": "replaced", "blank": "blanked"}

OnError = Literal["raise", "skip", "replace", "blank"]
BatchT_co = TypeVar("BatchT_co", covariant=True)
SampleT = TypeVar("SampleT")


class OrderOptions(TypedDict, total=False):
    """Options of :class:`Loader` that other loaders take too."""

    shuffle: bool
    seed: int
    epoch: int
    drop_last: bool
    threads: int
    num_workers: int | None
    prefetch: int
    block: int | None
    window: int


class LoaderOptions(OrderOptions, total=False):
    """Options of :class:`Loader` besides ``decode``."""

    rank: int
    world: int
    max_bytes: int
    on_error: OnError
    labels: bool


@dataclasses.dataclass(frozen=True)
class Counts:
    """What a loader did, in one epoch or in all; see :meth:`Loader.stats`. Times are in seconds."""

    batches: int
    """Batches that were yielded."""
    records: int
    """Records in them."""
    bytes: int
    """Size of the batches, after decoding."""
    failed: int
    """Records that were skipped, replaced or blanked."""
    waited: float
    """How long the caller waited for batches."""
    loading: float
    """How long the threads worked on the batches, in total over the threads."""
    decoding: float
    """How much of ``loading`` was spent decoding images. Images of a mapped file are read while they are
    decoded."""
    queue_depth: float
    """How many batches were ready when one was requested, on average."""

    @classmethod
    def _of(cls, counted: dict[str, Any]) -> Self:
        depth = counted.pop("ready") / max(1, counted["batches"])
        return cls(**counted, queue_depth=depth)


@dataclasses.dataclass(frozen=True)
class Stats:
    """What a loader did; see :meth:`Loader.stats`."""

    in_epoch: Counts
    """The current epoch; between two epochs, the one that ended."""
    total: Counts
    """All epochs."""
    queued: int
    """Batches that are ready now."""


class Loader(Generic[BatchT_co]):
    """Yields the records of a dataset in batches, epoch after epoch.

    Iterating yields one epoch of :class:`anyrec.Batch`, each with its record numbers (``batch.indices``).
    The order depends only on ``seed`` and the epoch. It does not depend on the threads, nor on ``rank``
    and ``world``, which only select the part of every step that this process takes.

    >>> import anyrec
    >>> with anyrec.create("words.ffr") as writer:
    ...     for i in range(10):
    ...         _ = writer.write(f"word {i}")
    >>> with anyrec.Loader("words.ffr", 4, shuffle=True, seed=1) as loader:
    ...     epochs = [[batch.indices.tolist() for batch in loader] for _ in range(2)]
    >>> epochs[0] != epochs[1], [len(batch) for batch in epochs[0]], sorted(sum(epochs[0], []))
    (True, [4, 4, 2], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])

    :param data: a path, several paths, a directory or a pattern; a dataset; a view of one
        (:meth:`Dataset.select <anyrec.Dataset.select>`, :meth:`Dataset.filter
        <anyrec.Dataset.filter>`); a :class:`anyrec.Mix`.
    :param batch_size: records per batch and rank.
    :param shuffle: shuffle each epoch. This needs no list of indices, however many records there are.
    :param seed: the seed of the order.
    :param epoch: the epoch to start with.
    :param rank: the rank of this process among those that train together.
    :param world: the number of processes that train together. All have the same number of batches, of the
        same sizes.
    :param drop_last: leave out the samples at the end that do not fill a batch on every rank. Otherwise
        the last batches are smaller. If the samples cannot be divided evenly among the ranks, the epoch's
        first samples fill up the batches (``batch.padding`` is their number).
    :param threads: number of reading threads; 0 for one per core.
    :param prefetch: most batches to read ahead; 0 for two per thread.
    :param max_bytes: most bytes of batches to read ahead.
    :param block: shuffle blocks of this many neighbouring records, then the records of ``window`` blocks
        at a time; for disks and stores that read neighbouring records much faster.
    :param window: number of blocks that are shuffled together.
    :param on_error: what to do with a record that cannot be read: ``raise`` the error, and stay before
        its batch; ``skip`` the record; or ``replace`` it by the next good record of the same batch. A
        batch without a good record always raises. :attr:`errors` lists what was skipped and replaced.
    :param labels: read labels too (``batch.labels``). Records are then payloads, without the headers that
        hold the labels. A record without a label is a :class:`anyrec.MissingLabel` warning.
    :param num_workers: torch's name for ``threads``; there are no worker processes. 0 is one thread.
    :param decode: a function applied to every record (:class:`anyrec.Record`) when its batch is yielded; a
        batch is then the list of its results.

    Threads start with the first batch. They stop at the end of the epoch, when an iteration is left
    early, on :meth:`close`, on Ctrl-C, and with the loader. A loader can be pickled and used in forked
    and spawned processes, where it continues from the same position.
    """

    @overload
    def __init__(
        self: Loader[_anyrec.Batch],
        data: Paths | Dataset | View | Mix,
        batch_size: int,
        *,
        decode: None = None,
        **options: Unpack[LoaderOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Loader[list[SampleT]],
        data: Paths | Dataset | View | Mix,
        batch_size: int,
        *,
        decode: Callable[[Any], SampleT],
        **options: Unpack[LoaderOptions],
    ) -> None: ...
    @keywords()
    def __init__(
        self,
        data: Paths | Dataset | View | Mix,
        batch_size: int,
        *,
        shuffle: bool = False,
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        world: int = 1,
        drop_last: bool = False,
        threads: int = 0,
        num_workers: int | None = None,
        prefetch: int = 0,
        max_bytes: int = 1 << 30,
        block: int | None = None,
        window: int = 64,
        on_error: OnError = "raise",
        labels: bool = False,
        decode: Callable[[Any], Any] | None = None,
    ) -> None:
        self.data = data if isinstance(data, Mix) else opened(data)
        """The dataset, view or mix."""
        self.batch_size = batch_size
        """Records per batch and rank."""
        self.rank, self.world = rank, world
        self.decode = decode
        """Converts a record to a sample."""
        self._options = {
            "batch_size": batch_size,
            "shuffle": shuffle,
            "seed": seed,
            "rank": rank,
            "world": world,
            "drop_last": drop_last,
            "threads": _threads(threads, num_workers),
            "prefetch": prefetch,
            "max_bytes": max_bytes,
            "block": block,
            "window": window,
            "on_error": on_error,
            "labels": labels,
            "payloads": labels or _gives_payloads(self.data),
        }
        if block is not None and not shuffle:
            raise InvalidArgument("block needs shuffle=True")
        self._make()
        self.set_epoch(epoch)

    def _native_options(self) -> dict[str, Any]:
        return self._options

    def _make(self) -> None:
        mix = self.data if isinstance(self.data, Mix) else None
        self._native = _anyrec.Loader(
            [_part(part) for part in _parts(self.data)],
            self._native_options(),
            None if mix is None else mix.weights,
            None if mix is None else mix.samples,
        )
        self._iterations = 0
        self._warned = False
        self._iterated = 0
        self._logged = 0

    def __len__(self) -> int:
        """Returns the number of batches in a whole epoch, wherever the loader is: trainers rely on it."""
        return len(self._native)

    @property
    def drop_last(self) -> bool:
        """Whether samples at the end that do not fill a batch on every rank are left out."""
        return bool(self._options["drop_last"])

    def __iter__(self) -> Iterator[BatchT_co]:
        """Iterates over the batches of an epoch.

        It starts at the position that was loaded or set. If this epoch has yielded a batch before, it starts
        the next epoch.
        """
        return _Epoch(self)

    def _begin(self) -> int:
        """Begins an iteration, and returns its number."""
        self._native.begin()
        self._iterated = self._native.epoch
        self._iterations += 1
        return self._iterations

    def _take(self) -> BatchT_co | None:
        """Returns the next batch; ``None`` at the end. Logs what happened."""
        batch: BatchT_co | None = self._next()
        if batch is None:
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug("%s", _line(self._iterated, self.stats().in_epoch))
            return None
        if self._options["on_error"] != "raise":
            self._log_failures()
        return batch

    def _log_failures(self) -> None:
        failed = self._native.failed
        if failed == self._logged:
            return
        if self._logged < _LOGGED_FAILURES:
            done = _DONE[str(self._options["on_error"])]
            for epoch, record, error in self._native.errors[self._logged :]:
                logger.warning("%s record %d in epoch %d: %s", done, record, epoch, error)
            if failed >= _LOGGED_FAILURES:
                logger.warning("further records that cannot be read are only counted (loader.failed)")
        self._logged = failed

    def stats(self) -> Stats:
        """Returns what the loader did and how long it took, in this epoch and in all.

        If ``waited`` is a large part of an epoch's time, training waits for data.

        >>> import anyrec
        >>> with anyrec.create("words.ffr") as writer:
        ...     for i in range(10):
        ...         _ = writer.write(f"word {i}")
        >>> loader = anyrec.Loader("words.ffr", 4)
        >>> for _ in range(2):
        ...     for batch in loader:
        ...         pass
        >>> stats = loader.stats()
        >>> stats.in_epoch.batches, stats.in_epoch.records, stats.total.records, stats.total.bytes
        (3, 10, 20, 120)
        """
        total, in_epoch, queued = self._native.stats()
        return Stats(Counts._of(in_epoch), Counts._of(total), queued)

    def _next(self) -> Any:
        """Returns the next batch in the form the caller wants; ``None`` at the end."""
        batch = self._next_records()
        if batch is None or self.decode is None:
            return batch
        return [self.decode(record) for record in batch]

    def _next_records(self) -> _anyrec.Batch | None:
        batch = self._native.next()
        if batch is not None:
            self._tell_unlabelled(batch._unlabelled)
        return batch

    def _tell_unlabelled(self, number: int | None) -> None:
        """Tells once that labels are missing."""
        if number is not None and not self._warned:
            self._warned = True
            message = f"record {number} has no label (a loader warns of the first such record only)"
            warnings.warn(message, MissingLabel, stacklevel=6)

    @property
    def epoch(self) -> int:
        """The current epoch, or the one that comes next."""
        return self._native.epoch

    @property
    def step(self) -> int:
        """How many batches of the epoch were yielded."""
        return self._native.step

    @property
    def left(self) -> int:
        """How many batches of the epoch are left."""
        return self._native.left

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start with this epoch.

        If this is the epoch that :meth:`load_state_dict` loaded, the position in it is kept, so you can
        call this before every epoch.
        """
        self._iterations += 1
        self._native.set_epoch(operator.index(epoch))

    def set_step(self, step: int) -> None:
        """Makes the next iteration start at this batch of the epoch."""
        self._iterations += 1
        self._native.set_step(operator.index(step))

    def state_dict(self) -> dict[str, Any]:
        """Returns the position after the last batch that was yielded: a small dictionary, also for JSON.

        After the last batch of an epoch, this is the start of the next. The state counts the samples that
        all ranks together have consumed. It is the same on every rank, and can be loaded with another
        number of ranks or another batch size.
        """
        seed, epoch, consumed, order = self._native.state()
        return {"version": 1, "seed": seed, "epoch": epoch, "consumed": consumed, "order": order}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration resume where a state was saved, with the state's seed.

        Data and shuffling must be the same; ranks, batch size and threads need not be.
        """
        if state.get("version") != 1:
            raise InvalidArgument(f"not a loader state: its version is {state.get('version')!r}, not 1")
        self._iterations += 1
        self._native.resume(state["seed"], state["epoch"], state["consumed"], state["order"])

    @property
    def failed(self) -> int:
        """The number of records that were skipped or replaced."""
        return self._native.failed

    @property
    def errors(self) -> list[tuple[int, int, Exception]]:
        """The first hundred records that were skipped or replaced: (epoch, record, exception)."""
        return self._native.errors

    def close(self) -> None:
        """Stops the threads and drops what was read ahead. The position stays."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_native"}
        return {"kept": kept, "state": self.state_dict()}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        self.__dict__.update(pickled["kept"])
        self._make()
        self.load_state_dict(pickled["state"])

    def __repr__(self) -> str:
        place = f"epoch {self.epoch}, step {self.step}"
        return f"<{type(self).__name__} of {self.data!r}: batches of {self.batch_size}, {place}>"


def _parts(data: Dataset | View | Mix) -> list[Dataset | View]:
    """Returns the datasets and views that a loader reads from."""
    return data.parts if isinstance(data, Mix) else [data]


def _gives_payloads(data: Dataset | View | Mix) -> bool:
    kinds = {part.payload for part in _parts(data)}
    if len(kinds) > 1:
        raise InvalidArgument("some parts of the mix give payloads and some whole records: choose one for all")
    return kinds == {True}


def _part(data: Any) -> tuple[_anyrec.Dataset, Any]:
    """Returns the native form of a dataset or view."""
    if isinstance(data, View):
        return data.dataset, data.indices.astype(np.uint64)
    return data, None


def _threads(threads: int, num_workers: int | None) -> int:
    """Returns the number of threads. torch's 0 means no worker besides the caller: one thread reads."""
    if num_workers is None:
        return threads
    if threads != 0:
        raise InvalidArgument("threads and num_workers are the same option: pass one of them")
    return max(1, num_workers) if num_workers >= 0 else num_workers


def _line(epoch: int, counts: Counts) -> str:
    return (
        f"epoch {epoch}: {counts.batches} batches, {counts.records} records, {counts.bytes} bytes, "
        f"{counts.failed} failed; waited {counts.waited:.3f} s, loading {counts.loading:.3f} s of threads, "
        f"decoding {counts.decoding:.3f} s of them, queue depth {counts.queue_depth:.1f}"
    )


AsDict = bool | Mapping[str, str]
"""Whether batches are dictionaries: with the names of the fields, or with other names for some of them."""


def field_names(as_dict: AsDict, batch: type[NamedTuple]) -> dict[str, str] | None:
    """Returns the names of the fields of a dictionary batch; ``None`` for batches that are no dictionaries."""
    if isinstance(as_dict, Mapping):
        for name in as_dict:
            if name not in batch._fields:
                known = ", ".join(batch._fields)
                raise InvalidArgument(f"as_dict: a batch has no field {name!r}, only {known}")
        return dict(as_dict)
    return {name: name for name in batch._fields} if as_dict else None


def named(batch: Any, names: dict[str, str], strict: bool) -> dict[str, Any]:
    """Returns a batch as a dictionary. Fields without a value are left out, or an error if ``strict``."""
    made = {}
    for field, name in names.items():
        value = getattr(batch, field)
        if value is not None:
            made[name] = value
        elif strict:
            raise InvalidArgument(f"as_dict: this batch has no {field}")
    return made


class _Epoch:
    """The batches of one iteration. Leaving it early stops the loader's threads.

    It starts with its first batch, because trainers create iterators before they set the epoch.
    """

    def __init__(self, loader: Loader[Any]) -> None:
        self._loader: Loader[Any] | None = loader
        self._number: int | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        loader = self._loader
        if loader is None:
            raise StopIteration
        if self._number is None:
            self._number = loader._begin()
        if loader._iterations != self._number:
            raise InvalidArgument("this iterator is stale: a newer iteration began or the position was set")
        batch = loader._take()
        if batch is None:
            self._loader = None
            raise StopIteration
        return batch

    def __del__(self) -> None:
        loader = self._loader
        if loader is not None and loader._iterations == self._number:
            loader.close()
