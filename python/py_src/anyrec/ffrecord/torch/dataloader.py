"""The loader of ``ffrecord.torch``."""

from __future__ import annotations

from ... import torch as anyrec_torch


class DataLoader(anyrec_torch.DataLoader):
    """torch's loader, with its arguments, which also accepts datasets that read a whole batch at once.

    Workers are forked, as in the original, unless ``multiprocessing_context`` is given.
    ``skippable=False`` forbids :meth:`set_step`.
    """

    start_method = "fork"
