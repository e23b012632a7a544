"""MXNet's ``im2rec.py``: the command ``anyrec im2rec``, which has its options."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .. import _anyrec

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code. Like the original, it replaces existing files."""
    given = sys.argv[1:] if arguments is None else arguments
    return _anyrec.command(["anyrec", "im2rec", "--force", *given])
