"""Datasets, records and batches in a notebook: what the markup holds. A browser looks at it elsewhere."""

from __future__ import annotations

import base64
import os
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from conftest import golden

import anyrec
from anyrec import _anyrec
from anyrec.mxnet import IRHeader, pack_img

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"


class Markup(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.images: list[np.typing.NDArray[Any]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {"b", "caption", "div", "img", "p", "pre", "table", "td", "th", "tr"}
        assert {name for name, _ in attrs} <= {"style", "src"}
        self.tags.append(tag)
        for name, value in attrs:
            if name == "src":
                head, _, data = (value or "").partition(",")
                assert head == "data:image/png;base64"
                self.images.append(_anyrec.decode_image(base64.b64decode(data, validate=True), rgb=True))

    def handle_data(self, data: str) -> None:
        self.text += data


def markup(shown: Any) -> Markup:
    return Markup(shown._repr_html_())


def stored(*records: bytes) -> anyrec.Dataset:
    with anyrec.create("records.ffr", overwrite=True) as writer:
        for record in records:
            writer.write(record)
    return anyrec.open("records.ffr")


def encoded(extension: str, width: int = 40, height: int = 30) -> bytes:
    image = np.full((height, width, 3), (255, 0, 0), np.uint8)
    return _anyrec.encode_image(image, extension, 6 if extension == ".png" else 90)


def test_a_dataset_is_a_table_of_facts() -> None:
    text = markup(stored(b"a", b"b")).text
    assert "FFRecord" in text and "records.ffr" in text and "records2" in text
    images = anyrec.open(golden("idx", "train-images-idx3-ubyte"))
    assert "uint8 (20, 28, 28)" in markup(images).text
    images.close()
    assert "closed" in markup(images).text


def test_a_dataset_whose_records_need_a_scan_is_not_scanned() -> None:
    with anyrec.create("plain.rec") as writer:
        writer.write(b"x")
    dataset = anyrec.open("plain.rec", index_file=False)
    os.truncate("plain.rec", 3)
    assert "counted when first needed" in markup(dataset).text
    os.unlink("plain.rec")
    assert "problem" in markup(dataset).text


@pytest.mark.parametrize("extension", [".jpg", ".png"])
def test_a_picture_is_shown_as_a_picture_of_bounded_size(extension: str) -> None:
    small, large = stored(encoded(extension), encoded(extension, 3000, 1500))
    found = markup(small)
    assert found.images[0].shape == (30, 40, 3) and "40x30" in found.text
    assert np.abs(found.images[0].astype(int) - (0, 0, 255)).max() < 3
    assert markup(large).images[0].shape == (128, 256, 3)


def test_a_picture_with_a_header_is_shown_with_its_label() -> None:
    with anyrec.create("photos.rec") as writer:
        writer.write(pack_img(IRHeader(0, 3, 7, 0), np.zeros((8, 8, 3), np.uint8), 3, ".png"), key=7)
    found = markup(anyrec.open("photos.rec")[0])
    assert found.images[0].shape == (8, 8, 3) and "label 3" in found.text and "key 7" in found.text


def test_a_record_of_an_image_file_is_shown_by_its_shape() -> None:
    dataset = anyrec.open(golden("idx", "train-images-idx3-ubyte"))
    found = markup(dataset[0])
    assert np.array_equal(found.images[0], dataset[0].numpy()) and "label" in found.text
    grid = markup(dataset.read(range(20)))
    assert len(grid.images) == 12 and "8 more" in grid.text


def test_text_is_escaped_and_cut() -> None:
    hostile, german, long = stored(HOSTILE.encode(), "grüße".encode(), b"word " * 100_000)
    assert HOSTILE in markup(hostile).text and "img" not in markup(hostile).tags
    assert "grüße" in markup(german).text
    assert "word word" in markup(long).text and len(long._repr_html_()) < 4000
    # A character that the limit cuts in half, and one that reverses the direction of reading.
    cut, reversing = stored(b"x" + "ü".encode() * 10_000, "a\u202eb".encode())
    assert "xüü" in markup(cut).text
    assert "\u202e" not in reversing._repr_html_() and r"a\u202eb" in markup(reversing).text


def test_other_bytes_are_hexadecimal() -> None:
    with_nul, binary, empty = stored(b"<b>\x00</b>", bytes(range(256)) * 1000, b"")
    assert "3c 62 3e 00" in markup(with_nul).text
    assert "00 01 02" in markup(binary).text and "255,744 more bytes" in markup(binary).text
    assert "0 bytes" in markup(empty).text


@pytest.mark.parametrize("kept", [2, 30, 200])
def test_a_malformed_picture_says_why(kept: int) -> None:
    (record,) = stored(encoded(".jpg", 200, 200)[:kept] + b"\x00")
    found = markup(record)
    assert not found.images and "ff d8" in found.text


def test_a_picture_that_declares_a_huge_size_is_not_decoded() -> None:
    png = bytearray(encoded(".png"))
    png[16:24] = (60_000).to_bytes(4, "big") * 2
    (record,) = stored(bytes(png))
    found = markup(record)
    assert not found.images and "60000x60000" in found.text


def test_a_batch_shows_a_bounded_number_of_records() -> None:
    batch = stored(*[HOSTILE.encode() * 1000] * 500).read(range(500))
    found = markup(batch)
    assert found.tags.count("pre") == 12 and "488 more" in found.text
    assert len(batch._repr_html_()) < 100_000


def test_a_hostile_file_name_is_escaped() -> None:
    name = "<img src=x onerror=alert(1)>.ffr"
    with anyrec.create(name) as writer:
        writer.write(b"x")
    assert name in markup(anyrec.open(name)).text


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_an_image_batch_is_a_grid(dtype: Any, layout: Any) -> None:
    pixels = np.zeros((40, 8, 6, 3), np.uint8)
    pixels[:, :4, :, 0] = 255
    anyrec.idx.write("colour-idx4-ubyte", pixels)
    steps: list[anyrec.image.Step] = [anyrec.image.CentreCrop((8, 6))]
    if dtype != "uint8":
        steps.append(anyrec.image.Normalise(mean=100, std=50))
    with anyrec.ImageLoader("colour-idx4-ubyte", 40, (8, 6), steps=steps, dtype=dtype, layout=layout) as loader:
        batch = next(iter(loader))
    found = markup(batch)
    assert len(found.images) == 32 and "8 more" in found.text
    assert np.array_equal(found.images[0], pixels[0])


def test_an_image_batch_of_odd_values_is_shown() -> None:
    odd = np.array([[np.nan, np.inf], [-np.inf, 1.0]], np.float32)[None, None]
    batch = anyrec.ImageBatch(odd, np.array([[1.0, 2.5]]), np.array([0]), np.array([0]), 0)
    found = markup(batch)
    assert found.images[0].shape == (2, 2) and "label [1, 2.5]" in found.text
    none = anyrec.ImageBatch(np.zeros((0, 3, 2, 2), np.uint8), None, np.zeros(0), np.zeros(0), 0)
    assert not markup(none).images
