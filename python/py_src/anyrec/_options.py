"""Keyword arguments that several functions take, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from ._paths import Path

__all__ = ["CreateOptions", "OpenOptions"]


class OpenOptions(TypedDict, total=False):
    """The options of :func:`anyrec.open`, which describes them."""

    format: str | None
    verify: bool
    skip_damage: bool
    copy: bool
    access: Literal["auto", "mapped", "positional", "direct"]
    threads: int
    index_file: bool | Path
    legacy_transform: str | None
    keys: Mapping[str, bytes] | None
    max_record: int | None
    max_frame: int | None
    max_decompressed: int | None
    max_memory: int | None


class CreateOptions(TypedDict, total=False):
    """The options of :func:`anyrec.create`, which describes them."""

    overwrite: bool
    durability: Literal["machine", "process"]
    index_file: bool | Path | None
    wide_labels: bool | None
    count: int | None
    version: int | str | None
    header: Mapping[str, Any] | Sequence[tuple[str, Any]] | None
    transformers: Sequence[str] | None
    max_items: int | None
    trailer: bool | None
    parallelism: int | None
    keys: Mapping[str, bytes] | None
    dtype: Any
    item_shape: Sequence[int] | None
    gzip: bool | None
