"""What trainers expect of a loader besides iterating it.

Accelerate and the Hugging Face Trainer resume an epoch with ``skip_first_batches(loader, k)``. It makes
torch's ``DataLoader`` of the loader's ``dataset``, ``batch_sampler`` and ``collate_fn``, and drops the first
``k`` items of the sampler. Here the sampler's items are steps, and the dataset returns the loader's batch of
a step, so the skipped batches are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.utils.data

from .errors import InvalidArgument
from .loader import Loader

__all__ = ["Samples", "Steps", "Stepping"]


class Steps:
    """The steps of a loader's next iteration, as torch's ``batch_sampler``.

    Each item is the number of the iteration, and the step.
    """

    def __init__(self, loader: Loader[Any]) -> None:
        self._loader = loader

    @property
    def batch_size(self) -> int:
        """Records per batch and rank."""
        return self._loader.batch_size

    @property
    def drop_last(self) -> bool:
        """Whether samples that do not fill a batch are left out."""
        return self._loader.drop_last

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start with this epoch: the Trainer calls this instead of the loader's."""
        self._loader.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        number = self._loader._begin()
        for step in range(self._loader.step, len(self._loader)):
            yield number, step


class Samples(torch.utils.data.Dataset[Any]):
    """The samples of a loader, as the ``dataset`` of torch's ``DataLoader``. It returns whole batches."""

    def __init__(self, loader: Loader[Any]) -> None:
        self._loader = loader

    def __len__(self) -> int:
        """Returns the number of samples in an epoch, over all ranks."""
        return len(self._loader.data)

    def __getitems__(self, item: tuple[int, int]) -> Any:
        """Returns the batch of an item of :class:`Steps`."""
        number, step = item
        if self._loader._iterations != number:
            raise InvalidArgument("this iterator is stale: a newer iteration began or the position was set")
        self._loader._native.skip(step - self._loader.step)
        return self._loader._take()


class Stepping:
    """Adds to a loader of tensors the attributes that trainers look for."""

    prefetch_factor = None
    """For torch's ``DataLoader``, which refuses a number without workers."""

    @property
    def sampler(self) -> Any:
        """The loader itself, because trainers such as Lightning call ``set_epoch`` on the sampler."""
        return self

    @property
    def batch_sampler(self: Any) -> Steps:
        """The steps of the next iteration, for ``accelerate.skip_first_batches``."""
        return Steps(self)

    @property
    def dataset(self: Any) -> Samples:
        """The samples: their number is ``len(loader.dataset)``. Records are in :attr:`data`."""
        return Samples(self)

    @property
    def generator(self) -> torch.Generator:
        """A generator for the seed that torch's ``DataLoader`` draws: it must not draw from the global one,
        or a resumed run would continue with other random numbers."""
        return torch.Generator()

    @staticmethod
    def collate_fn(batch: Any) -> Any:
        """Returns the batch, which is complete."""
        return batch
