"""The loader of ``ffrecord.torch``."""

from __future__ import annotations

from ... import torch as anyrec_torch


class DataLoader(anyrec_torch.DataLoader):
    """torch's loader, with its arguments, which also takes datasets that read a whole batch at once.

    Workers are forked, as in the original, unless ``multiprocessing_context`` says otherwise;
    ``skippable=False`` forbids :meth:`set_step`.
    """

    start_method = "fork"
