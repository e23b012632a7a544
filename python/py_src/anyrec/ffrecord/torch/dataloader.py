"""The loader of ``ffrecord.torch``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import torch as anyrec_torch


class DataLoader(anyrec_torch.DataLoader):
    """torch's loader, which also takes datasets that read a whole batch at once.

    The arguments are torch's, and:

    Args:
        skippable: whether :meth:`set_step` may be used.
        multiprocessing_context: how workers are started; forked, as in the original, unless it is
            given.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        skippable: bool = True,
        multiprocessing_context: Any = None,
        **options: Any,
    ) -> None:
        if multiprocessing_context is None and num_workers > 0:
            multiprocessing_context = "fork"
        self.skippable = skippable
        super().__init__(
            dataset,
            batch_size=batch_size,
            shuffle=shuffle,
            sampler=sampler,
            batch_sampler=batch_sampler,
            num_workers=num_workers,
            collate_fn=collate_fn,
            pin_memory=pin_memory,
            drop_last=drop_last,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
            multiprocessing_context=multiprocessing_context,
            generator=generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            **options,
        )

    def set_step(self, step: int) -> None:
        """Begins every epoch at this batch, until it is set again; ``len`` shrinks by as much."""
        if not self.skippable:
            raise RuntimeError("set_step() needs a DataLoader with skippable=True")
        super().set_step(step)
