"""Batches for training: in order or shuffled, read ahead by threads, resumed anywhere."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _anyrec
from ._paths import Paths
from .errors import InvalidArgument
from .view import Mix, View, opened

if TYPE_CHECKING:
    from typing import Self

    from .dataset import Dataset

__all__ = ["Loader"]


class Loader:
    """Gives the records of a dataset in batches, epoch after epoch.

    Iterating gives one epoch of :class:`anyrec.Batch`, which know their records' numbers
    (``batch.indices``). The order depends on ``seed`` and the epoch alone: not on threads, and not on
    ``rank`` and ``world``, which only say which part of every step this process takes.

    >>> import anyrec
    >>> with anyrec.create("words.ffr") as writer:
    ...     for i in range(10):
    ...         _ = writer.write(f"word {i}")
    >>> with anyrec.Loader("words.ffr", 4, shuffle=True, seed=1) as loader:
    ...     epochs = [[batch.indices.tolist() for batch in loader] for _ in range(2)]
    >>> epochs[0] != epochs[1], [len(batch) for batch in epochs[0]], sorted(sum(epochs[0], []))
    (True, [4, 4, 2], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])

    :param data: a path, several, a directory, a pattern; a dataset; a view of one
        (:meth:`Dataset.select <anyrec.Dataset.select>`, :meth:`Dataset.filter
        <anyrec.Dataset.filter>`); a :class:`anyrec.Mix`.
    :param batch_size: records in a batch of one rank.
    :param shuffle: shuffle each epoch. No list of numbers is made for it, however many there are.
    :param seed: chooses the order.
    :param epoch: the epoch to begin with.
    :param rank: this process among those that train together.
    :param world: how many train together. All have the same number of batches, of the same sizes.
    :param drop_last: leave out the samples at the end that do not fill a batch on every rank.
        Otherwise the last batches are smaller; where the samples cannot be divided evenly among the
        ranks, the epoch's first ones fill the batches up (``batch.padding`` says how many).
    :param threads: threads that read; 0 for as many as there are cores.
    :param prefetch: batches read ahead at most; 0 for two a thread.
    :param max_bytes: bytes of the batches read ahead, at most.
    :param block: shuffle blocks of so many neighbouring records, then the records of ``window``
        blocks at a time: for disks and stores that read neighbours much faster.
    :param window: blocks that are shuffled together.
    :param on_error: what happens with a record that cannot be read: ``raise`` it, and stay before its
        batch; ``skip`` it; or ``replace`` it by the next good record of the same batch. A batch
        without a good record is raised in any case. :attr:`errors` has what was skipped and replaced.
    :param labels: batches come with labels (``batch.labels``).
    :param decode: applied to every record (a bytes-like object) when its batch is handed out; then a
        batch is the list of what it returned.

    Threads start with the first batch and end with the epoch, with the iteration that was left
    early, with :meth:`close`, with Ctrl-C, and with the loader. A loader may be pickled and used in
    forked and spawned processes: it goes on there where it was.
    """

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
        prefetch: int = 0,
        max_bytes: int = 1 << 30,
        block: int | None = None,
        window: int = 64,
        on_error: Literal["raise", "skip", "replace", "blank"] = "raise",
        labels: bool = False,
        decode: Callable[[Any], Any] | None = None,
    ) -> None:
        self.data = data if isinstance(data, Mix) else opened(data)
        """The dataset, view or mix."""
        self.batch_size = batch_size
        """Records in a batch of one rank."""
        self.rank, self.world = rank, world
        self.decode = decode
        """Makes samples of records."""
        self._options = {
            "batch_size": batch_size,
            "shuffle": shuffle,
            "seed": seed,
            "rank": rank,
            "world": world,
            "drop_last": drop_last,
            "threads": threads,
            "prefetch": prefetch,
            "max_bytes": max_bytes,
            "block": block,
            "window": window,
            "on_error": on_error,
            "labels": labels,
        }
        if block is not None and not shuffle:
            raise InvalidArgument("a block is for shuffling: say shuffle=True too")
        self._make()
        self.set_epoch(epoch)

    def _native_options(self) -> dict[str, Any]:
        return self._options

    def _make(self) -> None:
        mix = self.data if isinstance(self.data, Mix) else None
        parts = [self.data] if mix is None else mix.parts
        self._native = _anyrec.Loader(
            [_part(part) for part in parts],
            self._native_options(),
            None if mix is None else mix.weights,
            None if mix is None else mix.samples,
        )
        self._iterations = 0

    def __len__(self) -> int:
        """How many batches a whole epoch has, wherever in it the loader is: trainers count on it."""
        return len(self._native)

    def __iter__(self) -> Iterator[Any]:
        """The batches of an epoch.

        They begin at the place that was loaded or set. If this epoch has given a batch before, whether
        it was the last or not, they are those of the next one.
        """
        return _Epoch(self)

    def _next(self) -> Any:
        """The next batch as the caller wants it; ``None`` at the end."""
        batch = self._native.next()
        if batch is None or self.decode is None:
            return batch
        return [self.decode(record) for record in batch]

    @property
    def epoch(self) -> int:
        """The epoch that is under way, or comes next."""
        return self._native.epoch

    @property
    def step(self) -> int:
        """How many batches of the epoch lie behind."""
        return self._native.step

    @property
    def left(self) -> int:
        """How many batches of the epoch are still to come."""
        return self._native.left

    def set_epoch(self, epoch: int) -> None:
        """Lets the next iteration begin with this epoch.

        If that is the epoch that was loaded with :meth:`load_state_dict`, its place in it is kept, so
        that this may be called before every epoch.
        """
        self._iterations += 1
        self._native.set_epoch(operator.index(epoch))

    def set_step(self, step: int) -> None:
        """Lets the next iteration begin at this batch of the epoch."""
        self._iterations += 1
        self._native.set_step(operator.index(step))

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is, after the last batch it gave: small and plain, also as JSON.

        After the last batch of an epoch, that is the beginning of the next.
        It counts the samples that all ranks together have consumed, so that it is the same on every
        rank and may be loaded with another number of ranks or another batch size.
        """
        seed, epoch, consumed, order = self._native.state()
        return {"version": 1, "seed": seed, "epoch": epoch, "consumed": consumed, "order": order}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Lets the next iteration go on where a state was saved; the state's seed is taken over.

        Data and shuffling must be the same; ranks, batch size and threads need not be.
        """
        if state.get("version") != 1:
            raise InvalidArgument(f"not a state of a loader: its version is {state.get('version')!r}, not 1")
        self._iterations += 1
        self._native.resume(state["seed"], state["epoch"], state["consumed"], state["order"])

    @property
    def failed(self) -> int:
        """How many records were skipped or replaced."""
        return self._native.failed

    @property
    def errors(self) -> list[tuple[int, int, Exception]]:
        """The first hundred records that were skipped or replaced: (epoch, record, why)."""
        return self._native.errors

    def close(self) -> None:
        """Ends the threads and forgets what was read ahead. The place stays."""
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


def _part(data: Any) -> tuple[_anyrec.Dataset, Any]:
    """What the native loader wants to know of a dataset or view."""
    if isinstance(data, View):
        return data.dataset, data.indices.astype(np.uint64)
    return data, None


class _Epoch:
    """The batches of one iteration. It ends the loader's threads when it is left early.

    It begins with its first batch: trainers make iterators before they say which epoch it is.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader: Loader | None = loader
        self._number: int | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        loader = self._loader
        if loader is None:
            raise StopIteration
        if self._number is None:
            loader._native.begin()
            loader._iterations += 1
            self._number = loader._iterations
        if loader._iterations != self._number:
            raise InvalidArgument("the loader was sent elsewhere, or began another iteration, after this one")
        batch = loader._next()
        if batch is None:
            self._loader = None
            raise StopIteration
        return batch

    def __del__(self) -> None:
        loader = self._loader
        if loader is not None and loader._iterations == self._number:
            loader.close()
