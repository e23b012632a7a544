"""Which batch comes when: the order of an epoch, starting at any step.

torch iterates its samplers from the start. To resume at step ``k`` without drawing the ``k`` batches
before it, this module knows how torch's own samplers make their order:

* an iterator over a list or range (sequential, distributed, a plain list) can be set to any position;
* the random sampler draws whole permutations; they are drawn here in the same way, with the same use of
  the generator, and sliced;
* any other sampler is iterated from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch.utils.data import BatchSampler, RandomSampler
from torch.utils.data.distributed import DistributedSampler

# Iterators that can be set to a position.
_SETTABLE: tuple[type[Any], ...] = (type(iter([])), type(iter(range(0))))
# torch draws random numbers with replacement this many at a time.
_DRAW = 32
# Skipped draws are made and dropped in chunks of this many numbers.
_PIECE = _DRAW << 15


@dataclass
class Order:
    """What determines the order of one epoch, so that it can be repeated."""

    step: int = 0
    """The first batch to yield."""
    seed: int | None = None
    """The seed that the random sampler drew, if it has no generator of its own."""
    generator: torch.Tensor | None = None
    """The state of the random sampler's own generator before the epoch's first draw."""
    epoch: int | None = None
    """The epoch that was set on the distributed sampler."""
    given: int = 0
    """How many batches were yielded."""
    running: bool = False
    """Whether the epoch has started and not ended."""


class StepSampler:
    """The batches (or, without batching, the indices) of a loader, starting at a step."""

    def __init__(self, source: Any, as_lists: bool) -> None:
        self.source = source
        self.as_lists = as_lists
        """Whether a single index is yielded as a list of one."""
        self.step = 0
        """The step at which every epoch starts."""
        self.resumed: Order | None = None
        """The epoch to resume, until it ends."""
        self.order = Order()
        """The epoch that started last."""

    def __len__(self) -> int:
        # A resumed epoch counts in full, as in torch's own stateful loader: trainers read the length
        # once, for all epochs.
        return max(0, len(self.source) - self.step)

    def __iter__(self) -> Iterator[Any]:
        # The generator below draws nothing until torch takes the first batch: torch draws the workers'
        # seed in between, and both may use one generator.
        self.order = Order(self.step) if self.resumed is None else self.resumed
        self.order.running = True
        return self._draw(self.order)

    def has_given_all(self, order: Order) -> bool:
        """Returns whether the last batch of an epoch was yielded."""
        try:
            return order.running and order.step + order.given >= len(self.source)
        except TypeError:
            # A custom sampler need not have a length.
            return False

    def finish(self, order: Order) -> None:
        """Marks an epoch as ended."""
        order.running = False
        if self.resumed is order:
            self.resumed = None

    def _draw(self, order: Order) -> Iterator[Any]:
        source = self.source
        if type(source).__iter__ is BatchSampler.__iter__:
            indices = _from(source.sampler, order.step * source.batch_size, order)
            yield from _batches(indices, source.batch_size, source.drop_last)
        elif self.as_lists:
            for index in _from(source, order.step, order):
                yield [index]
        else:
            yield from _from(source, order.step, order)


def _batches(indices: Iterator[Any], size: int, drop_last: bool) -> Iterator[list[Any]]:
    while batch := list(islice(indices, size)):
        if len(batch) < size and drop_last:
            return
        yield batch


def _from(sampler: Iterable[Any], skip: int, order: Order) -> Iterator[Any]:
    """Yields what a sampler yields, starting at a position."""
    if isinstance(sampler, DistributedSampler):
        if order.epoch is not None:
            sampler.set_epoch(order.epoch)
        order.epoch = sampler.epoch
    if isinstance(sampler, RandomSampler) and type(sampler).__iter__ is RandomSampler.__iter__:
        return _random(sampler, skip, order)
    iterator: Any = iter(sampler)
    if isinstance(iterator, _SETTABLE):
        iterator.__setstate__(skip)
    else:
        next(islice(iterator, skip, skip), None)
    given: Iterator[Any] = iterator
    return given


def _random(sampler: RandomSampler, skip: int, order: Order) -> Iterator[int]:
    """Yields what torch's random sampler yields, starting at a position.

    The sampler's generator ends in the same state.
    """
    count, total = len(sampler.data_source), sampler.num_samples
    generator = _generator(sampler, order)
    if sampler.replacement:
        yield from _with_replacement(count, total, skip, generator)
        return
    whole, rest = divmod(total, count)
    for taken in [count] * whole + [rest]:
        permutation = torch.randperm(count, generator=generator)
        yield from permutation[min(skip, taken) : taken].tolist()
        skip = max(0, skip - taken)


def _generator(sampler: RandomSampler, order: Order) -> torch.Generator:
    if sampler.generator is None:
        # A resumed epoch has drawn its seed before the state was saved.
        if order.seed is None:
            order.seed = int(torch.empty((), dtype=torch.int64).random_().item())
        generator = torch.Generator()
        generator.manual_seed(order.seed)
        return generator
    if order.generator is not None:
        sampler.generator.set_state(order.generator)
    order.generator = sampler.generator.get_state()
    own: torch.Generator = sampler.generator
    return own


def _with_replacement(count: int, total: int, skip: int, generator: torch.Generator) -> Iterator[int]:
    def draw(size: int) -> torch.Tensor:
        return torch.randint(high=count, size=(size,), dtype=torch.int64, generator=generator)

    before = min(skip, total) // _DRAW * _DRAW
    for at in range(0, before, _PIECE):
        draw(min(_PIECE, before - at))
    skip -= before
    for at in range(before, total, _DRAW):
        yield from draw(min(_DRAW, total - at))[skip:].tolist()
        skip = 0
    if total % _DRAW == 0:
        draw(0)
