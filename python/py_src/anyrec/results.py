"""The results of verify, repair, convert and index."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Conversion", "Damage", "Indexed", "Notice", "Output", "Repair", "Report"]


@dataclass(frozen=True)
class Damage:
    """A byte range that violates the format."""

    path: str
    begin: int
    """First byte."""
    end: int
    """One past the last byte."""
    record: int
    """Intact records before it."""
    reason: str


@dataclass(frozen=True)
class Notice:
    """Something unusual that loses no data."""

    path: str
    offset: int | None
    message: str


@dataclass(frozen=True)
class Report:
    """What a full read of one or several files found.

    ``record_bytes + metadata_bytes + damage_bytes`` is ``bytes``.
    """

    paths: tuple[str, ...]
    """The files."""
    format: str
    """The format's id; ``mixed`` for files of several formats."""
    version: str
    """The format's version (of the first file); empty if the format has only one."""
    sound: bool
    """Whether nothing is wrong."""
    records: int
    """Intact records."""
    verified: int
    """Records whose checksum was computed and matches."""
    bytes: int
    """Bytes read."""
    record_bytes: int
    """Bytes of intact records, including framing."""
    metadata_bytes: int
    """Bytes of headers, tables, trailers and legal gaps."""
    damage_bytes: int
    """Bytes that violate the format."""
    damage: tuple[Damage, ...]
    """All damage, in file order."""
    unlisted_damage: int
    """Number of damaged ranges beyond those listed."""
    notices: tuple[Notice, ...]
    """Unusual things that lose no data."""
    header: tuple[tuple[str | builtins.bytes, Any], ...]
    """Pairs of the first file's header (GRAIL)."""
    trailer: builtins.bytes | None
    """The first file's trailer (GRAIL)."""
    shape: tuple[int, ...] | None
    """The first file's shape (IDX)."""
    dtype: str | None
    """The first file's element type (IDX)."""

    def __bool__(self) -> bool:
        return self.sound


def report_of(reports: Iterable[dict[str, Any]]) -> Report:
    """Combines the native reports of several files."""
    all_of = list(reports)
    first = all_of[0]
    formats = {report["format"] for report in all_of}

    def total(name: str) -> int:
        return sum(report[name] for report in all_of)

    return Report(
        paths=tuple(report["path"] for report in all_of),
        format=formats.pop() if len(formats) == 1 else "mixed",
        version=first["version"],
        sound=all(report["sound"] for report in all_of),
        records=total("records"),
        verified=total("verified"),
        bytes=total("bytes"),
        record_bytes=total("record_bytes"),
        metadata_bytes=total("metadata_bytes"),
        damage_bytes=total("damage_bytes"),
        damage=tuple(Damage(report["path"], *one) for report in all_of for one in report["damage"]),
        unlisted_damage=total("unlisted_damage"),
        notices=tuple(Notice(report["path"], *one) for report in all_of for one in report["notices"]),
        header=tuple(first["header"]),
        trailer=first["trailer"],
        shape=first["shape"],
        dtype=first["dtype"],
    )


@dataclass(frozen=True)
class Output:
    """A file that was written."""

    path: str
    records: int
    bytes: int
    notices: tuple[str, ...]
    """What could not be stored, and other remarks."""


def output_of(path: str, written: dict[str, Any]) -> Output:
    """Makes an output from the native dict."""
    return Output(path, written["records"], written["bytes"], tuple(written["notices"]))


@dataclass(frozen=True)
class Repair:
    """What a repair kept and what it lost."""

    report: Report
    """What was found in the damaged file."""
    output: Output
    """What was written."""


@dataclass(frozen=True)
class Conversion:
    """What a conversion did."""

    outputs: tuple[Output, ...]
    """The files written, in order."""
    records: int
    skipped: tuple[str, ...]
    """Skipped damage, each with its location."""
    notices: tuple[str, ...]
    """What could not be converted, and other remarks."""


@dataclass(frozen=True)
class Indexed:
    """An index file or table that was written."""

    path: str
    records: int
    reason: str
    """Where the keys come from, or what the table is for."""
