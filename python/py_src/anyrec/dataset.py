"""Reading: many files as one sequence of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from . import _anyrec
from ._paths import Path, Paths, many, size_of, telling
from .results import Report, report_of
from .view import Selecting

__all__ = ["Dataset", "open"]


class Dataset(Selecting, _anyrec.Dataset):
    """One or more record files of one format, numbered through. :func:`anyrec.open` makes one.

    A dataset is a sequence of records: ``len``, indices (negative too), slices, lists and NumPy
    arrays of indices, iteration. Any number of threads may use it at once, and so may processes
    forked from this one; pickling takes paths and options along and opens the files anew.

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
    """

    __slots__ = ()

    def verify(self, *, progress: bool = False) -> Report:
        """Reads every byte of the files and reports all damage.

        >>> import anyrec
        >>> with anyrec.create("one.ffr") as writer:
        ...     _ = writer.write(b"a record")
        >>> report = anyrec.open("one.ffr").verify()
        >>> report.sound, report.records, report.verified
        (True, 1, 1)
        """
        options = self.options
        options.pop("copy", None)
        return verified(self.metadata["files"], options, progress)


def verified(files: list[Any], options: Mapping[str, Any], progress: bool) -> Report:
    """Verifies files, with one bar for all."""
    reports = []
    before = 0
    with telling(progress, "verify", size_of(files)) as tell:
        for file in files:
            shifted = None if tell is None else lambda at, tell=tell, before=before: tell(before + at)
            reports.append(_anyrec.verify(file, dict(options), shifted))
            before += size_of([file])
    return report_of(reports)


def open(
    paths: Paths,
    *,
    format: str | None = None,
    verify: bool = True,
    skip_damage: bool = False,
    copy: bool = True,
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
    """Opens a record file, several, a directory or a glob pattern.

    The format is found from the content. Nothing is read that is not asked for.

    :param paths: a path, a list of paths, a directory (every record file directly in it, by name)
        or a glob pattern. All files have one format.
    :param format: the format's id, where detection is not wanted.
    :param verify: check the checksums of what is read.
    :param skip_damage: leave damaged stretches out instead of raising.
    :param copy: give records memory of their own. With ``False``, records of a mapped file are
        slices of it: no copy is made, but they change if another program writes into the file, and
        reading them ends the process if it is cut short.
    :param access: how files are read: ``mapped`` into memory, at positions (``positional``), or past
        the system's page cache (``direct``); ``auto`` maps them on local file systems.
    :param threads: threads that work on one batch or scan; 0 for as many as there are cores. For a scan
        one more reads the file ahead.
    :param index_file: MXNet: the index file; ``False`` for none.
    :param legacy_transform: GRAIL version 1 packed files: the transformer, as the file does not say.
    :param keys: GRAIL: keys for ``aes-256-gcm``, by id.
    :param max_record: largest record, in bytes (4 GiB unless said otherwise).
    :param max_frame: largest decompressed GRAIL block (4 GiB).
    :param max_decompressed: largest decompressed IDX file (64 GiB).
    :param max_memory: most bytes of data in memory at once: a record, a block, an array, a batch (no
        such bound unless said otherwise).

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
    return Dataset(many(paths), options)
