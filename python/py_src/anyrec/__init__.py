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

from collections.abc import Sequence as _Sequence

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
from .loader import Loader
from .packed import PackedFolder
from .results import Conversion, Damage, Indexed, Notice, Output, Repair, Report
from .view import MissingLabel, Mix, View
from .writer import NotStored, Writer, create

_Sequence.register(Batch)
_Sequence.register(Dataset)

__all__ = [
    "AnyrecError",
    "Batch",
    "ClosedError",
    "Conversion",
    "CorruptRecord",
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
