"""A drop-in replacement for the ``ffrecord`` package: FFRecord files and packed folders.

>>> from anyrec.ffrecord import FileReader, FileWriter
>>> with FileWriter("words.ffr", 3) as writer:
...     for word in (b"zero", b"one", b"two"):
...         writer.write_one(word)
>>> reader = FileReader("words.ffr", check_data=True)
>>> reader.n, [bytes(sample) for sample in reader.read([2, 0])]
(3, [b'two', b'zero'])

The PyTorch parts are in :mod:`anyrec.ffrecord.torch`, which imports torch. With :mod:`anyrec.compat` a
script can keep its ``import ffrecord``.
"""

from __future__ import annotations

from .fileio import FFRecordError, FileReader, FileWriter, SampleIndexError, checkFsAlign
from .package import NotPackedError, PackedFolder, pack_folder

__version__ = "1.4.0"
"""The version of the original that this replaces."""

__all__ = [
    "FFRecordError",
    "FileReader",
    "FileWriter",
    "NotPackedError",
    "PackedFolder",
    "SampleIndexError",
    "checkFsAlign",
    "pack_folder",
]
