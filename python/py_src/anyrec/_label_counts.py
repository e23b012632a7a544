"""Counts labels."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

import numpy as np

Counted: TypeAlias = float | tuple[float, ...] | None


def counted(labels: Any) -> dict[Counted, int]:
    """Returns how often each label occurs, in the order of the labels, those that are missing last."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        # A fast way for what nearly all files have: one number per record.
        values, counts = np.unique(labels, return_counts=True)
        found = {_plain(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}
    else:
        found = dict(Counter(_plain(label) for label in labels))
    return dict(sorted(found.items(), key=_rank))


def _plain(label: Any) -> Counted:
    if label is None or np.size(label) == 0:
        return None
    if np.ndim(label) > 0:
        return tuple(_number(value) for value in np.ravel(label).tolist())
    return None if np.isnan(label) else _number(float(label))


def _number(value: float) -> float:
    return int(value) if value.is_integer() else value


def _rank(item: tuple[Counted, int]) -> tuple[bool, tuple[float, ...]]:
    label = item[0]
    if label is None:
        return True, ()
    return False, label if isinstance(label, tuple) else (label,)
