"""One engine for record files: MXNet RecordIO, FFRecord, GRAIL recordio and IDX.

>>> import anyrec
>>> with anyrec.create("words.ffr") as writer:
...     for word in ["zero", "one", "two"]:
...         _ = writer.write(word)
>>> dataset = anyrec.open("words.ffr")
>>> len(dataset), bytes(dataset[1]), dataset.read([2, 0]).to_list()
(3, b'one', [b'two', b'zero'])
>>> dataset.verify().sound
True

Interfaces of single formats are in :mod:`anyrec.mxnet`, :mod:`anyrec.ffrecord`, :mod:`anyrec.grail` and
:mod:`anyrec.idx`. Exceptions are in :mod:`anyrec.errors`.
"""

from __future__ import annotations

import logging as _logging
from collections.abc import Sequence as _Sequence
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import grail, idx, image
from ._anyrec import Batch, Record, __version__
from .dataset import Dataset, open
from .errors import (
    AnyrecError,
    ClosedError,
    CorruptRecord,
    FileExists,
    FileMissing,
    FileRefused,
    InternalError,
    InvalidArgument,
    LimitExceeded,
    OutOfMemory,
    RecordNotFound,
    StaleCompanion,
    SystemFailure,
    UnsupportedFormat,
)
from .files import convert, formats, index, pack_folder, repair, verify
from .image import ImageBatch, ImageLoader
from .loader import Counts, Loader, Stats
from .packed import PackedFolder
from .results import Conversion, Damage, Indexed, Notice, Output, Repair, Report
from .view import MissingLabel, Mix, View
from .writer import NotStored, Writer, create

if _TYPE_CHECKING:
    from . import torch as torch

_Sequence.register(Batch)
_Sequence.register(Dataset)

# Nothing is logged unless the program configures logging.
_logging.getLogger("anyrec").addHandler(_logging.NullHandler())


def __getattr__(name: str) -> _Any:
    """Imports :mod:`anyrec.torch` when it is first used, because it imports PyTorch."""
    if name == "torch":
        import importlib

        return importlib.import_module("anyrec.torch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AnyrecError",
    "Batch",
    "ClosedError",
    "Conversion",
    "CorruptRecord",
    "Counts",
    "Damage",
    "Dataset",
    "FileExists",
    "FileMissing",
    "FileRefused",
    "ImageBatch",
    "ImageLoader",
    "Indexed",
    "InternalError",
    "InvalidArgument",
    "LimitExceeded",
    "OutOfMemory",
    "Loader",
    "MissingLabel",
    "Mix",
    "NotStored",
    "Notice",
    "Output",
    "PackedFolder",
    "Record",
    "RecordNotFound",
    "Repair",
    "Report",
    "StaleCompanion",
    "Stats",
    "SystemFailure",
    "UnsupportedFormat",
    "View",
    "Writer",
    "__version__",
    "convert",
    "create",
    "formats",
    "grail",
    "idx",
    "image",
    "index",
    "open",
    "pack_folder",
    "repair",
    "verify",
]
