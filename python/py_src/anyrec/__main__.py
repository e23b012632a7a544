"""The command ``anyrec``, also as ``python -m anyrec``."""

from __future__ import annotations

import signal
import sys

from ._anyrec import command

__all__ = ["main"]


def main() -> int:
    """Runs the command with the arguments of this process and returns its exit code."""
    # Until the command handles Ctrl-C itself, Python would answer it with a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command(["anyrec", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
