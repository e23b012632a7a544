"""Which batch comes when: the order of an epoch, from any step on.

torch's samplers are walked from the front. To go on at step ``k`` without drawing the ``k`` batches
before it, this module knows how torch's own samplers make their order:

* a sampler whose iterator is that of a list or range (sequential, distributed, a plain list) can be
  set to any place;
* the random sampler draws whole permutations: they are drawn here in the same way, with the same
  use of the generator, and cut;
* any other sampler, which only its author knows, is walked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch.utils.data import BatchSampler, RandomSampler
from torch.utils.data.distributed import DistributedSampler

# Iterators that can be set to a place.
_SETTABLE: tuple[type[Any], ...] = (type(iter([])), type(iter(range(0))))
# torch draws random numbers with replacement this many at a time.
_DRAW = 32
# Skipped draws are made and dropped in pieces of this many numbers.
_PIECE = _DRAW << 15


@dataclass
class Order:
    """What fixes the order of one epoch, so that it can be repeated."""

    step: int = 0
    """The first batch to give."""
    seed: int | None = None
    """The seed that the random sampler drew, where it has no generator of its own."""
    generator: torch.Tensor | None = None
    """The state of the random sampler's own generator before the epoch's first draw."""
    epoch: int | None = None
    """The epoch that the distributed sampler was told."""
    given: int = 0
    """How many batches were handed out."""
    running: bool = False
    """Whether it was begun and has not come to its end."""


class StepSampler:
    """The batches (or, without batching, the indices) of a loader, from a step on."""

    def __init__(self, source: Any, as_lists: bool) -> None:
        self.source = source
        self.as_lists = as_lists
        """Whether an index that comes alone is given as a list of one."""
        self.step = 0
        """Where every epoch begins."""
        self.resumed: Order | None = None
        """The epoch to go on with, until it comes to its end."""
        self.order = Order()
        """The epoch that was begun last."""

    def __len__(self) -> int:
        # An epoch that is gone on with counts in full, as torch's own stateful loader has it:
        # trainers take the length once, for all epochs.
        return max(0, len(self.source) - self.step)

    def __iter__(self) -> Iterator[Any]:
        # The generator below draws nothing until torch asks for the first batch, as torch draws the
        # workers' seed in between and both may use one generator.
        self.order = Order(self.step) if self.resumed is None else self.resumed
        self.order.running = True
        return self._draw(self.order)

    def has_given_all(self, order: Order) -> bool:
        """Whether the last batch of an epoch was handed out."""
        try:
            return order.running and order.step + order.given >= len(self.source)
        except TypeError:
            # A sampler of the user's own need not have a length.
            return False

    def finish(self, order: Order) -> None:
        """Says that an epoch has come to its end."""
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
    """What a sampler gives, from a place on."""
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
    """What torch's random sampler gives, from a place on; its generator ends up in the same state."""
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
        # Drawn in any case, so that the global generator goes on as without a resumed epoch.
        drawn = int(torch.empty((), dtype=torch.int64).random_().item())
        order.seed = drawn if order.seed is None else order.seed
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
