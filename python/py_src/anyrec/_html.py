"""How datasets, records and batches look in a notebook.

Everything that comes from a file is escaped, or decoded and encoded anew as a small PNG. Number and size of
what is shown are bounded, whatever the records hold.
"""

from __future__ import annotations

import base64
import codecs
import os
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _anyrec
from .errors import AnyrecError

__all__ = ["batch", "dataset", "image_batch", "record"]

_LARGE, _SMALL = 256, 96
"""The longest side of an image that is shown alone, and of one among others."""
_RECORDS, _IMAGES = 12, 32
"""How many records and images of a batch are shown."""
_TEXT, _HEX, _FILES = 2000, 256, 8
"""How many characters, bytes and file names are shown."""

_CELL = "display:inline-block;vertical-align:top;margin:4px;max-width:320px;overflow:hidden"


def dataset(data: Any) -> str:
    """A table of facts. It reads no records and scans no file."""
    if data.closed:
        return "<p>Dataset, closed</p>"
    known = next(format for format in _anyrec.formats() if format["id"] == data.format)
    rows = [("format", known["name"])]
    paths = [os.fsdecode(path) for path in data.paths]
    rows.append(("paths", "\n".join(paths[:_FILES] + _more(len(paths) - _FILES))))
    if data._of_file_object:
        return _table("Dataset over a file object", rows)
    try:
        files = _anyrec.expand(data.paths)
        rows.append(("files", f"{len(files):,} ({sum(os.stat(file).st_size for file in files):,} bytes)"))
        counted = f"{len(data):,}" if known["random_access"] else "counted when first needed"
        rows.append(("records", counted))
        if known["fixed_size"]:
            metadata = data.metadata
            rows.append(("array", f"{metadata['dtype']} {metadata['shape']}"))
    except (AnyrecError, OSError) as error:
        # An open dataset stays usable when its files are gone, but nothing more is known about them.
        rows.append(("problem", str(error)))
    rows += [(name, repr(value)) for name, value in data.options.items() if name != "keys"]
    return _table("Dataset", rows)


def record(data: Any) -> str:
    """One record: a picture, text or bytes, and what was written with it."""
    return f"<div>{_caption(data)}{_content(data, _LARGE)}</div>"


def batch(data: Any) -> str:
    """The first records of a batch."""
    shown = [data[at] for at in range(min(len(data), _RECORDS))]
    cells = [f'<div style="{_CELL}">{_caption(one)}{_content(one, _SMALL)}</div>' for one in shown]
    title = f"Batch of {len(data):,} records, {data.nbytes:,} bytes"
    return _titled(title, cells, len(data) - len(shown))


def image_batch(data: Any) -> str:
    """The first images of a batch as a grid. Floats are scaled from their least to their greatest value."""
    images = _pixels(data.data)
    labels = [None] * len(images) if data.labels is None else list(data.labels)
    cells = []
    for image, label in zip(images, labels, strict=False):
        text = "" if label is None else _small(f"label {_label_text(label)}")
        cells.append(f'<div style="{_CELL}">{_picture(_png(image, _SMALL))}{text}</div>')
    shape = " x ".join(map(str, data.data.shape))
    return _titled(f"ImageBatch, {shape} {data.data.dtype}", cells, len(data.data) - len(cells))


def _caption(data: Any) -> str:
    parts = [f"{len(data):,} bytes"]
    try:
        found = {"label": data.label, "key": data.key}
    except AnyrecError:
        found = {}
    parts += [f"{name} {_label_text(value)}" for name, value in found.items() if value is not None]
    return _small(", ".join(parts))


def _content(data: Any, side: int) -> str:
    image = _array_image(data)
    if image is not None:
        return _picture(_png(image, side))
    try:
        payload = data.payload
    except AnyrecError:
        payload = data
    kind, png, problem = _anyrec.thumbnail(payload, side)
    if png is not None:
        return _picture(png) + _small(kind)
    if problem is not None:
        return _small(f"{kind}: {problem}") + _pre(_hex(payload))
    return _pre(_text(payload) or _hex(payload))


def _array_image(data: Any) -> npt.NDArray[np.uint8] | None:
    """The image in a record whose file declares a shape of images."""
    array = data.numpy()
    is_image = array.dtype == np.uint8 and array.ndim in (2, 3) and array.size > 0
    return array if is_image and (array.ndim == 2 or array.shape[2] in (1, 3, 4)) else None


def _pixels(data: Any) -> list[npt.NDArray[np.uint8]]:
    """The first images of a batch as height x width x channels of bytes."""
    shown = data[:_IMAGES]
    if hasattr(shown, "detach"):
        # A tensor, of a type that NumPy may not have.
        shown = shown.detach().cpu()
        shown = shown.float().numpy() if shown.is_floating_point() else shown.numpy()
    array = np.asarray(shown)
    if array.ndim != 4 or array.size == 0:
        return []
    if array.dtype == np.uint16:
        # bfloat16, which NumPy does not have, is the upper half of a float32.
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if array.shape[1] in (1, 3, 4):
        array = array.transpose(0, 2, 3, 1)
    if array.shape[3] not in (1, 3, 4):
        return []
    if array.dtype != np.uint8:
        values = np.nan_to_num(array.astype(np.float64), posinf=0.0, neginf=0.0)
        low, high = values.min(), values.max()
        array = ((values - low) * (255.0 / (high - low if high > low else 1.0))).round().astype(np.uint8)
    return list(array)


def _png(image: npt.NDArray[np.uint8], side: int) -> bytes:
    step = max(1, -(-max(image.shape[:2]) // side))
    small = image[::step, ::step]
    if small.ndim == 3 and small.shape[2] == 1:
        small = small[:, :, 0]
    if small.ndim == 3:
        # The encoder takes OpenCV's order: blue, green, red.
        small = small[:, :, [2, 1, 0, 3][: small.shape[2]]]
    return _anyrec.encode_image(np.ascontiguousarray(small), ".png", 6)


def _picture(png: bytes) -> str:
    # Small images, such as digits, are enlarged without blurring them.
    style = "min-width:56px;image-rendering:pixelated"
    return f'<img style="{style}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def _text(data: Any) -> str | None:
    """The beginning of a record that is text; ``None`` for any other."""
    head = bytes(data[: 4 * _TEXT])
    try:
        # A character that is cut at the end is left out.
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) == len(data))
    except UnicodeDecodeError:
        return None
    if any(ord(character) < 32 and character not in "\t\n\r" for character in text):
        return None
    rest = "…" if len(text) > _TEXT or len(head) < len(data) else ""
    return text[:_TEXT] + rest


def _hex(data: Any) -> str:
    head = bytes(data[:_HEX])
    lines = [head[at : at + 16].hex(" ") for at in range(0, len(head), 16)]
    return "\n".join(lines + _more(len(data) - len(head), "bytes"))


def _more(count: int, what: str = "") -> list[str]:
    return [f"… and {count:,} more {what}".rstrip()] if count > 0 else []


def _label_text(label: Any) -> str:
    if isinstance(label, str | bytes):
        return repr(label)[:100]
    values = np.ravel(np.asarray(label)).tolist()
    text = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values[:8])
    return text if np.ndim(label) == 0 else f"[{text}{', …' if len(values) > 8 else ''}]"


def _visible(text: str) -> str:
    """Escapes markup, and characters that cannot be seen or that change the direction of reading."""
    shown = (
        character if character.isprintable() or character in "\t\n" else ascii(character)[1:-1]
        for character in text
    )
    return escape("".join(shown))


def _small(text: str) -> str:
    return f'<div style="font-size:smaller;opacity:0.7">{_visible(text)}</div>'


def _pre(text: str) -> str:
    return f'<pre style="white-space:pre-wrap;overflow-wrap:anywhere;margin:0">{_visible(text)}</pre>'


def _titled(title: str, cells: Iterable[str], left: int) -> str:
    more = "".join(_small(text) for text in _more(left))
    return f"<div><b>{_visible(title)}</b><div>{''.join(cells)}</div>{more}</div>"


def _table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    def lines() -> Iterator[str]:
        for name, value in rows:
            yield f'<tr><th style="text-align:left">{_visible(name)}</th><td>{_pre(value[:_TEXT])}</td></tr>'

    return f"<table><caption><b>{_visible(title)}</b></caption>{''.join(lines())}</table>"
