"""Work on whole files: verify, repair, convert, index, pack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _anyrec
from ._paths import Path, Paths, many, size_of, telling
from .dataset import verified
from .errors import UnsupportedFormat
from .results import Conversion, Indexed, Repair, Report, output_of, report_of
from .writer import warn_of

__all__ = ["convert", "formats", "index", "pack_folder", "repair", "verify"]


def formats() -> list[dict[str, Any]]:
    """The formats there are, and what each can do.

    >>> import anyrec
    >>> [format["id"] for format in anyrec.formats()]
    ['mxnet', 'grail', 'idx', 'ffrecord']
    """
    return _anyrec.formats()


def verify(paths: Paths, *, progress: bool = False, **options: Any) -> Report:
    """Reads every byte of files and reports all damage. Damage is not an exception.

    :param paths: as for :func:`anyrec.open`.
    :param progress: show a bar (needs tqdm).
    :param options: of :func:`anyrec.open`: ``format``, ``access``, ``index_file``, ``keys``, ...

    >>> import anyrec
    >>> with anyrec.create("words.ffr") as writer:
    ...     for word in ["zero", "one", "two"]:
    ...         _ = writer.write(word)
    >>> data = bytearray(open("words.ffr", "rb").read()); data[-1] ^= 1
    >>> _ = open("damaged.ffr", "wb").write(data)
    >>> report = anyrec.verify("damaged.ffr")
    >>> report.sound, report.records, report.damage[0].begin, report.damage[0].reason[:29]
    (False, 2, 55, 'Sample 2: checksum mismatched')
    """
    return verified(_anyrec.expand(many(paths)), options, progress)


def repair(
    input: Path,
    output: Path,
    *,
    overwrite: bool = False,
    rebuild_tree: bool = False,
    progress: bool = False,
    **options: Any,
) -> Repair:
    """Writes every intact record of a damaged file to a new file of the same format.

    :param input: the damaged file, which is only read.
    :param output: the file to write.
    :param overwrite: replace the output if it exists.
    :param rebuild_tree: of a packed folder that lost files, rewrite the tree for those left.
    :param progress: show a bar (needs tqdm).
    :param options: of :func:`anyrec.open`.

    >>> import anyrec
    >>> with anyrec.create("words.rec") as writer:
    ...     for word in ["zero", "one", "two"]:
    ...         _ = writer.write(word)
    >>> data = open("words.rec", "rb").read()
    >>> _ = open("cut.rec", "wb").write(data[:-4])
    >>> done = anyrec.repair("cut.rec", "mended.rec")
    >>> done.report.sound, done.output.records, anyrec.verify("mended.rec").sound
    (False, 2, True)
    """
    with telling(progress, "repair", size_of([input])) as tell:
        done = _anyrec.repair(input, output, options, overwrite, rebuild_tree, tell)
    return Repair(report_of([done]), output_of(_text(output), done["written"]))


def convert(
    inputs: Paths,
    output: Path,
    format: str | None = None,
    *,
    strip_header: bool = False,
    shards: int | None = None,
    shard_bytes: int | None = None,
    labels: Path | None = None,
    label_output: Path | None = None,
    label_dtype: Any = None,
    skip_damage: bool = False,
    open_options: Mapping[str, Any] | None = None,
    progress: bool = False,
    **options: Any,
) -> Conversion:
    """Writes the records of files, in order, to a file of any format.

    :param inputs: as for :func:`anyrec.open`.
    :param output: the file to write.
    :param format: its format's id; without it, the output's ending says.
    :param strip_header: MXNet image records: write the payload alone.
    :param shards: cut the output into so many files.
    :param shard_bytes: cut the output into files of at most so many bytes of records.
    :param labels: an IDX file of labels that belong to the records.
    :param label_output: write the labels to this IDX file.
    :param label_dtype: its element type (``uint8``).
    :param skip_damage: leave damaged stretches out instead of raising.
    :param open_options: further options of :func:`anyrec.open`.
    :param progress: show a bar (needs tqdm).
    :param options: of :func:`anyrec.create`.

    What cannot be carried over is a :class:`NotStored` warning, and in the result.

    >>> import anyrec
    >>> with anyrec.create("words.rec") as writer:
    ...     for word in ["zero", "one", "two"]:
    ...         _ = writer.write(word)
    >>> anyrec.convert("words.rec", "words.grail-rio", transformers=["zstd 3"]).records
    3
    >>> [bytes(word) for word in anyrec.open("words.grail-rio")]
    [b'zero', b'one', b'two']
    """
    if format is None:
        format = _anyrec.format_by_name(output)
        if format is None:
            raise UnsupportedFormat(f"{output!r}: no format has names that end like this; say format=...")
    how = {
        "strip_header": strip_header or None,
        "shards": shards,
        "shard_bytes": shard_bytes,
        "labels": labels,
        "label_output": label_output,
        "label_dtype": label_dtype,
    }
    opening = {"skip_damage": skip_damage, **(open_options or {})}
    files = _anyrec.expand(many(inputs))
    with telling(progress, "convert", size_of(files)) as tell:
        done = _anyrec.convert(
            files,
            output,
            format,
            opening,
            options,
            {name: value for name, value in how.items() if value is not None},
            tell,
        )
    warn_of(done["notices"], _text(output))
    return Conversion(
        outputs=tuple(output_of(path, written) for path, written in done["outputs"]),
        records=done["records"],
        skipped=tuple(done["skipped"]),
        notices=tuple(done["notices"]),
    )


def index(
    path: Path,
    output: Path | None = None,
    *,
    table: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    **options: Any,
) -> Indexed:
    """Writes a file's index, so that records are found without a scan.

    MXNet: the ``.idx`` file, keyed by the ids of the image headers where every record has one and
    all differ, by record number otherwise. Other formats, or with ``table``: a table of positions
    beside the file.

    :param path: the data file.
    :param output: MXNet: the index file (the ``.idx`` beside the data file).
    :param table: write a table for an MXNet file too.
    :param overwrite: replace the index file if it exists.
    :param progress: show a bar (needs tqdm).
    :param options: of :func:`anyrec.open`.

    >>> import anyrec
    >>> with anyrec.create("words.rec") as writer:
    ...     for word in ["zero", "one"]:
    ...         _ = writer.write(word)
    >>> done = anyrec.index("words.rec")
    >>> done.path, done.records, open("words.idx").read()
    ('words.idx', 2, '0\\t0\\n1\\t12\\n')
    """
    with telling(progress, "index", size_of([path])) as tell:
        return Indexed(**_anyrec.index(path, output, table, overwrite, options, tell))


def pack_folder(folder: Path, file: Path, *, overwrite: bool = False, progress: bool = False) -> int:
    """Packs a folder into an FFRecord file, and says how many files are in it.

    :class:`anyrec.PackedFolder` reads it without unpacking.

    :param folder: the folder; links in it are followed.
    :param file: the file to write.
    :param overwrite: replace the file if it exists.
    :param progress: show a bar (needs tqdm).
    """
    total = _anyrec.folder_size(folder) if progress else 0
    with telling(progress, "pack", total) as tell:
        return _anyrec.pack_folder(folder, file, overwrite, tell)


def _text(path: Path) -> str:
    import os

    return os.fsdecode(path)
