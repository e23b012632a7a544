"""The part of ``mxnet.base`` that scripts use: its error, and the calls of the C library on records.

A script such as MXNet's ``rec2idx.py`` calls ``_LIB`` with ``ctypes``. Here its functions are Python's.
"""

from __future__ import annotations

import ctypes
from typing import Any, NoReturn

import numpy as np

from ..errors import AnyrecError
from .errors import MXNetError, as_original

__all__ = ["MXNetError", "c_str", "check_call", "numeric_types", "py_str", "string_types"]

string_types = (str,)
numeric_types = (float, int, np.generic)


class _Library:
    """Stands for the C library. A function returns 0, or an error that :func:`check_call` raises."""

    def MXRecordIOReaderTell(self, handle: Any, position: Any) -> Any:
        """Sets the number that ``ctypes.byref`` refers to: where the next record begins."""
        return _called(lambda: setattr(position._obj, "value", handle.tell()))

    def MXRecordIOReaderSeek(self, handle: Any, position: Any) -> Any:
        """Goes to the record at an offset."""
        return _called(lambda: handle.seek(getattr(position, "value", position)))

    def MXRecordIOWriterTell(self, handle: Any, position: Any) -> Any:
        """Sets the number that ``ctypes.byref`` refers to: where the next record will be written."""
        return _called(lambda: setattr(position._obj, "value", handle.tell()))

    def __getattr__(self, name: str) -> NoReturn:
        has = ", ".join(name for name in vars(_Library) if name.startswith("MX"))
        raise AttributeError(f"anyrec.compat has no mxnet.base._LIB.{name}: of the C library it has {has}")


def _called(work: Any) -> Any:
    try:
        work()
    except AnyrecError as error:
        return error
    return 0


_LIB = _Library()


def check_call(ret: Any) -> None:
    """Raises the error that a function of the library returned."""
    if isinstance(ret, AnyrecError):
        raise as_original(ret) from ret
    if ret != 0:
        raise MXNetError(f"a call of the library returned {ret}")


def c_str(string: str) -> ctypes.c_char_p:
    """Returns a string for the C library."""
    return ctypes.c_char_p(string.encode("utf-8"))


def py_str(x: bytes) -> str:
    """Returns a string of the C library."""
    return x.decode("utf-8")
