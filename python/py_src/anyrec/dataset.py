"""Datasets: one or more files as one sequence of records."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, cast, Literal

import numpy as np
import numpy.typing as npt

from . import _anyrec, _html
from ._file_object import BinaryFile, FileObject, is_file_object
from ._keywords import keywords
from ._paths import Path, Paths, many, of_split, size_of, telling
from .errors import InvalidArgument
from .results import Report, report_of
from .view import MissingLabel, Selecting, unlabelled

__all__ = ["Dataset", "open"]


class Dataset(Selecting, _anyrec.Dataset):
    """One or more record files of one format, numbered as one sequence. :func:`anyrec.open` returns one.

    A dataset is a sequence of records. It supports ``len``, indices (also negative), slices, lists and
    NumPy arrays of indices, and iteration. Any number of threads and forked processes may use it at once.
    Pickling stores paths and options, and unpickling opens the files again.

    >>> import anyrec
    >>> with anyrec.create("words.rec") as writer:
    ...     for key, word in enumerate(["zero", "one", "two"]):
    ...         _ = writer.write(word, key=key)
    >>> dataset = anyrec.open("words.rec")
    >>> dataset
    <Dataset 'words.rec': mxnet>
    >>> len(dataset), bytes(dataset[-1]), [bytes(word) for word in dataset[[2, 0]]]
    (3, b'two', [b'two', b'zero'])
    >>> dataset.key(1), dataset.find(2)
    (1, 2)
    >>> dataset.close()
    >>> dataset
    <Dataset, closed>

    Where records begin with a header that holds their label (MXNet image records), a record is all of it.
    :attr:`payloads` is the same dataset without the headers:

    >>> with anyrec.create("pets.rec") as writer:
    ...     _ = writer.write(b"meow", label=1.0)
    >>> pets = anyrec.open("pets.rec")
    >>> len(pets[0]), bytes(pets[0].payload), bytes(pets.payloads[0]), pets[0].label
    (28, b'meow', b'meow', 1.0)
    """

    __slots__ = ()

    @property
    def payloads(self) -> Dataset:
        """The same files, with records as payloads: without the headers that hold their labels.

        Nothing is guessed: if some records have such headers and some have not, reading one raises
        :class:`InvalidArgument`, which names a record of each kind.
        """
        return self if self.payload else Dataset(self.paths, {**self.options, "payload": True}, self)

    def labels(self, indices: Any = None) -> npt.NDArray[np.float64] | list[Any]:
        """Returns the labels of the given records, or of all.

        They are an array with NaN for records without a label, two-dimensional if every record has the
        same number of labels, or a list (with ``None``) if the numbers differ. Records without a label are
        a :class:`MissingLabel` warning.
        """
        if isinstance(indices, slice):
            indices = self._slice_numbers(indices)
        elif indices is not None and not isinstance(indices, np.ndarray):
            indices = list(indices)
        labels = super().labels(indices)
        missing = unlabelled(labels)
        if missing.any():
            first = int(np.flatnonzero(missing)[0])
            number = first if indices is None else int(indices[first])
            number = number + len(self) if number < 0 else number
            warnings.warn(
                f"{self.paths[0]}: {missing.sum()} of {len(labels)} records have no label; "
                f"the first is record {number}",
                MissingLabel,
                stacklevel=2,
            )
        return labels

    def _repr_html_(self) -> str:
        return _html.dataset(self)

    def verify(self, *, progress: bool = False) -> Report:
        """Reads every byte of the files and reports all damage.

        >>> import anyrec
        >>> with anyrec.create("one.ffr") as writer:
        ...     _ = writer.write(b"a record")
        >>> report = anyrec.open("one.ffr").verify()
        >>> report.sound, report.records, report.verified
        (True, 1, 1)
        """
        if self._of_file_object:
            raise InvalidArgument("verify() needs a file with a path, not a file object")
        options = self.options
        for name in ("copy", "payload"):
            options.pop(name, None)
        return verified(self.metadata["files"], options, progress)


def verified(files: list[Any], options: Mapping[str, Any], progress: bool) -> Report:
    """Verifies files, with one progress bar for all."""
    reports = []
    before = 0
    with telling(progress, "verify", size_of(files)) as tell:
        for file in files:
            shifted = None if tell is None else lambda at, tell=tell, before=before: tell(before + at)
            reports.append(_anyrec.verify(file, dict(options), shifted))
            before += size_of([file])
    return report_of(reports)


@keywords()
def open(
    paths: Paths | BinaryFile,
    *,
    split: str | None = None,
    format: str | None = None,
    verify: bool = True,
    skip_damage: bool = False,
    copy: bool = True,
    payload: bool = False,
    access: Literal["auto", "mapped", "positional", "direct"] = "auto",
    threads: int = 0,
    index_file: bool | Path = True,
    legacy_transform: str | None = None,
    keys: Mapping[str, bytes] | None = None,
    max_record: int | None = None,
    max_frame: int | None = None,
    max_decompressed: int | None = None,
    max_memory: int | None = None,
) -> Dataset:
    """Opens a record file, several, a directory, a glob pattern or a file object.

    The format is detected from the content. Only what you request is read.

    :param paths: a path, a list of paths, a directory (every record file directly in it, sorted by name)
        or a glob pattern. All files must have the same format. Or a binary file object with ``read`` and
        ``seek`` (``io.BytesIO``, ``open(path, "rb")``, a file of fsspec). One thread at a time reads from it,
        its position moves, and files beside it are not found. Such a dataset cannot be pickled.
    :param split: for a folder of IDX files with images and labels, as of MNIST, Fashion-MNIST and EMNIST:
        which split to open, ``"train"`` or ``"test"``. The records are the images, with their labels.
    :param format: the format's id, to skip detection.
    :param verify: verify the checksums of what is read.
    :param skip_damage: skip damaged byte ranges instead of raising.
    :param copy: copy records into memory of their own. With ``False``, records of a mapped file are
        slices of it. Nothing is copied, but they change if another program writes into the file, and
        accessing them kills the process if the file is truncated.
    :param payload: return records without the headers that hold their labels, see :attr:`Dataset.payloads`.
    :param access: how files are read: ``mapped`` into memory, by ``positional`` reads, or ``direct``,
        bypassing the page cache. ``auto`` maps files on local file systems.
    :param threads: number of threads for one batch or scan; 0 for one per core. A scan uses one more
        thread to read ahead.
    :param index_file: MXNet: path of the index file; ``False`` to use none.
    :param legacy_transform: GRAIL version 1 packed files: the transformer, which the file does not name.
    :param keys: GRAIL: keys for ``aes-256-gcm``, by id.
    :param max_record: largest record, in bytes (default 4 GiB).
    :param max_frame: largest decompressed GRAIL block, in bytes (default 4 GiB).
    :param max_decompressed: largest decompressed IDX file, in bytes (default 64 GiB).
    :param max_memory: most bytes of data in memory at once: a record, a block, an array, a batch
        (default: no bound).

    >>> import anyrec
    >>> for name in ["a.ffr", "b.ffr"]:
    ...     with anyrec.create(name) as writer:
    ...         _ = writer.write(f"from {name}")
    >>> [bytes(record) for record in anyrec.open(["b.ffr", "a.ffr"])]
    [b'from b.ffr', b'from a.ffr']
    >>> len(anyrec.open("[ab].ffr"))
    2
    """
    options: dict[str, Any] = {}
    given = {
        "format": (format, None),
        "verify": (verify, True),
        "skip_damage": (skip_damage, False),
        "copy": (copy, True),
        "payload": (payload, False),
        "access": (access, "auto"),
        "threads": (threads, 0),
        "index_file": (index_file, True),
        "legacy_transform": (legacy_transform, None),
        "keys": (keys, None),
        "max_record": (max_record, None),
        "max_frame": (max_frame, None),
        "max_decompressed": (max_decompressed, None),
        "max_memory": (max_memory, None),
    }
    for name, (value, default) in given.items():
        if value is not default:
            options[name] = value
    if keys is not None:
        options["keys"] = dict(keys)
    if is_file_object(paths):
        if split is not None:
            raise InvalidArgument("split= is for a folder of files, not for a file object")
        file = FileObject(paths)
        return Dataset([file.name], options, file=file)
    return Dataset(many(of_split(cast("Paths", paths), split)), options)
