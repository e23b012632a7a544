"""IDX files (MNIST) as NumPy arrays.

>>> import numpy
>>> from anyrec import idx
>>> idx.write("x-idx2-int", numpy.array([[1, -2], [3, 4]], dtype="int32"))
28
>>> idx.read("x-idx2-int")
array([[ 1, -2],
       [ 3,  4]], dtype=int32)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _anyrec
from ._paths import Path

__all__ = ["read", "write"]


def read(path: Path, *, mapped: bool = False, verify: bool = True, **options: Any) -> npt.NDArray[Any]:
    """Reads a file, plain or gzipped, as an array in this machine's byte order.

    The array owns its memory and is writable.

    :param path: the file.
    :param mapped: with ``True``, the array is the mapped file itself, if the elements are single bytes
        and the file is uncompressed and on a local file system. Such an array is read-only, and nothing
        is read before it is used. The file must not be written in place meanwhile (replacing it is fine).
        Using the array after the file was truncated kills the process.
    :param verify: verify the checksum of a gzipped file.
    :param options: of :func:`anyrec.open`: ``access``, ``max_decompressed``.
    """
    return _anyrec.idx_read(path, {"verify": verify, **options}, mapped)


def write(path: Path, array: npt.ArrayLike, *, gzip: bool | None = None, overwrite: bool = False) -> int:
    """Writes an array of ``uint8``, ``int8``, ``int16``, ``int32``, ``float32`` or ``float64``.

    Any shape, memory order and byte order is accepted. The file is published when it is complete.

    :param path: the file. If the name ends in ``.gz``, the file is gzipped.
    :param array: the array.
    :param gzip: whether to gzip the file, whatever its name.
    :param overwrite: replace the file if it exists.
    :return: the length of the file in bytes.
    """
    options: dict[str, Any] = {"overwrite": overwrite}
    if gzip is not None:
        options["gzip"] = gzip
    return _anyrec.idx_write(path, np.asarray(array), options)
