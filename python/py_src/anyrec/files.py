"""Operations on whole files: verify, repair, convert, index, pack."""

from __future__ import annotations

from typing import Any, Unpack

from . import _anyrec
from ._keywords import keywords
from ._options import CreateOptions, OpenOptions
from ._paths import Path, Paths, many, size_of, telling
from .dataset import verified
from .errors import UnsupportedFormat
from .results import Conversion, Indexed, Repair, Report, output_of, report_of
from .writer import warn_of

__all__ = ["convert", "formats", "index", "pack_folder", "repair", "verify"]


def formats() -> list[dict[str, Any]]:
    """Lists the formats and their capabilities.

    >>> import anyrec
    >>> [format["id"] for format in anyrec.formats()]
    ['mxnet', 'grail', 'idx', 'ffrecord']
    """
    return _anyrec.formats()


@keywords(OpenOptions)
def verify(paths: Paths, *, progress: bool = False, **options: Unpack[OpenOptions]) -> Report:
    """Reads every byte of the files and reports all damage. Damage does not raise an exception.

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


@keywords(OpenOptions)
def repair(
    input: Path,
    output: Path,
    *,
    overwrite: bool = False,
    rebuild_tree: bool = False,
    progress: bool = False,
    **options: Unpack[OpenOptions],
) -> Repair:
    """Writes every intact record of a damaged file to a new file of the same format.

    :param input: the damaged file, which is only read.
    :param output: the file to write.
    :param overwrite: replace the output if it exists.
    :param rebuild_tree: rewrite the tree of a packed folder that lost files, for the files that are left.
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
        done = _anyrec.repair(input, output, {**options}, overwrite, rebuild_tree, tell)
    return Repair(report_of([done]), output_of(_text(output), done["written"]))


@keywords(CreateOptions)
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
    open_options: OpenOptions | None = None,
    progress: bool = False,
    **options: Unpack[CreateOptions],
) -> Conversion:
    """Writes the records of the files, in order, to a file of any format.

    :param inputs: as for :func:`anyrec.open`.
    :param output: the file to write.
    :param format: the output's format id; by default, inferred from its extension.
    :param strip_header: MXNet image records: write only the payload.
    :param shards: split the output into this many files.
    :param shard_bytes: split the output into files of at most this many bytes of records.
    :param labels: an IDX file with the labels of the records.
    :param label_output: write the labels to this IDX file.
    :param label_dtype: its element type (``uint8``).
    :param skip_damage: skip damaged byte ranges instead of raising.
    :param open_options: further options of :func:`anyrec.open`.
    :param progress: show a bar (needs tqdm).
    :param options: of :func:`anyrec.create`.

    What cannot be converted is a :class:`NotStored` warning, and is listed in the result.

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
            raise UnsupportedFormat(f"cannot infer a format from {output!r}; pass format=...")
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
            {**options},
            {name: value for name, value in how.items() if value is not None},
            tell,
        )
    warn_of(done["notices"], _text(output), stacklevel=4)
    return Conversion(
        outputs=tuple(output_of(path, written) for path, written in done["outputs"]),
        records=done["records"],
        skipped=tuple(done["skipped"]),
        notices=tuple(done["notices"]),
    )


@keywords(OpenOptions)
def index(
    path: Path,
    output: Path | None = None,
    *,
    table: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    **options: Unpack[OpenOptions],
) -> Indexed:
    """Writes a file's index, which locates records without a scan.

    For MXNet this is the ``.idx`` file. Its keys are the ids of the image headers if every record has one
    and all differ, otherwise the record numbers. For other formats, or with ``table``, it is a table of
    positions in the same folder.

    :param path: the data file.
    :param output: MXNet: the index file (default: the data file's name with ``.idx``).
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
        return Indexed(**_anyrec.index(path, output, table, overwrite, {**options}, tell))


@keywords()
def pack_folder(folder: Path, file: Path, *, overwrite: bool = False, progress: bool = False) -> int:
    """Packs a folder into an FFRecord file, and returns the number of packed files.

    :class:`anyrec.PackedFolder` reads it without unpacking.

    :param folder: the folder. Links in it are followed.
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
