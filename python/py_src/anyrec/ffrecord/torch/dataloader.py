"""The loader of ``ffrecord.torch``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Unpack

import torch

from ... import torch as anyrec_torch
from ..._keywords import keywords


class DataLoader(anyrec_torch.DataLoader):
    """torch's loader, which also accepts datasets that read a whole batch at once.

    The arguments are in the original's order, which is not torch's: ``generator`` is the twelfth. Workers
    are forked, as in the original, unless ``multiprocessing_context`` is given. ``skippable=False`` forbids
    :meth:`set_step`.
    """

    start_method = "fork"

    @keywords(anyrec_torch._TorchOptions)
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        generator: torch.Generator | None = None,
        *,
        multiprocessing_context: Any = None,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        skippable: bool = True,
        **more: Unpack[anyrec_torch._TorchOptions],
    ) -> None:
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            skippable=skippable,
            **more,
        )

    def set_step(self, step: int) -> None:
        """Starts every epoch at this batch until it is set again. As in the original, it must exist."""
        if self.skippable:
            steps = len(self._stepping().source)
            assert 0 <= operator.index(step) < steps, f"there is no step {step}: an epoch has {steps}"
        super().set_step(step)
