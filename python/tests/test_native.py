"""The native readers and writers on which the drop-in replacements stand."""

from __future__ import annotations

import pathlib
import pickle
import struct
from typing import Any

import numpy as np
import pytest

import anyrec
from anyrec import _anyrec


def test_mxnet_offsets_lead_back_to_records() -> None:
    writer = _anyrec.MxWriter("x.rec")
    offsets = []
    for word in [b"zero", b"", b"\x0a\x23\xd7\xce magic"]:
        offsets.append(writer.tell())
        assert writer.write(word) == offsets[-1]
    writer.close()
    writer.close()
    reader = _anyrec.MxReader("x.rec")
    assert reader.read_at(offsets[2]) == b"\x0a\x23\xd7\xce magic"
    assert reader.read() is None and reader.read() is None
    reader.seek(offsets[1])
    assert reader.read() == b"" and reader.tell() == offsets[2]
    reader.reset()
    assert list(reader) == [b"zero", b"", b"\x0a\x23\xd7\xce magic"]
    with pytest.raises(anyrec.RecordNotFound):
        reader.read_at(reader.tell())
    reader.close()
    reader.close()
    with pytest.raises(anyrec.ClosedError):
        reader.read()
    reader.reset()
    assert reader.read() == b"zero"


def test_mxnet_index_lines_and_headers_are_the_originals() -> None:
    assert _anyrec.index_line(7, 12) == b"7\t12\n" and _anyrec.index_line("k", 0) == b"k\t0\n"
    assert _anyrec.parse_index(b"0\t0\r\n -3 \t 12 \tx\n7\t5") == [(0, 0), (-3, 12), (7, 5)]
    assert _anyrec.parse_index(b"a\t1\n") == [("a", 1)]
    assert _anyrec.pack_header(1.5, 3, 4) == struct.pack("<IfQQ", 0, 1.5, 3, 4)
    packed = _anyrec.pack_header(np.array([1, 2], np.float32), 2**64 - 1)
    assert packed == struct.pack("<IfQQ2f", 2, 0, 2**64 - 1, 0, 1, 2)
    flag, label, id, id2, length = _anyrec.unpack_header(packed + b"payload")
    assert (flag, id, id2, length) == (2, 2**64 - 1, 0, 32)
    assert isinstance(label, np.ndarray) and label.dtype == np.float32 and label.tolist() == [1, 2]
    assert not label.flags.writeable
    assert _anyrec.unpack_header(struct.pack("<IfQQ", 0, 0.25, 1, 2))[1] == 0.25
    with pytest.raises(ValueError, match="too short"):
        _anyrec.unpack_header(b"short")
    with pytest.raises(OverflowError):
        _anyrec.pack_header(1.0, 2**64)


def test_images_come_back_in_opencv_order() -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    image[..., 0] = 250
    png = _anyrec.encode_image(image, ".png", 3)
    assert np.array_equal(_anyrec.decode_image(png), image)
    assert _anyrec.decode_image(png, rgb=True)[0, 0].tolist() == [0, 0, 250]
    assert _anyrec.decode_image(png, 0).shape == (4, 6)
    jpeg = _anyrec.decode_image(_anyrec.encode_image(image, ".jpg", 95), 1)
    assert jpeg.shape == image.shape and np.abs(jpeg.astype(int) - image).max() < 8
    gray = np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000
    assert np.array_equal(_anyrec.decode_image(_anyrec.encode_image(gray, "png", 9)), gray)
    assert _anyrec.decode_image(_anyrec.encode_image(gray[:, :, None], "png", 9)).shape == (3, 4)
    wrong: list[Any] = [np.zeros(3, np.uint8), np.zeros((2, 2), np.float32), np.zeros((2, 2, 5), np.uint8)]
    for bad in wrong:
        with pytest.raises((TypeError, ValueError)):
            _anyrec.encode_image(bad, "png", 3)
    with pytest.raises(anyrec.UnsupportedFormat):
        _anyrec.decode_image(b"no image")


def test_ffrecord_arrays_are_writable_and_nobody_elses() -> None:
    writer = _anyrec.FfWriter("x.ffr", 2)
    writer.write_one(b"abc")
    with pytest.raises(ValueError, match="Wrote 1 samples but expected 2"):
        writer.close()
    writer.write_one(np.array([[1, 2], [3, 4]], dtype=np.int16))
    assert (writer.count, writer.n, writer.closed) == (2, 2, False)
    writer.close()
    writer.close()
    reader = pickle.loads(pickle.dumps(_anyrec.FfReader([pathlib.Path("x.ffr"), "x.ffr"])))
    first, again, other = reader.read(np.array([0, 2, 3]))
    first[0] = 0
    assert again.tobytes() == b"abc" and reader.read_one(0).tobytes() == b"abc"
    assert other.dtype == np.uint8 and other.tobytes() == np.array([1, 2, 3, 4], "<i2").tobytes()
    assert reader.n == 4 and reader.read([]) == [] and reader.offsets(1).tolist() == [36, 39, 47]
    reader.close()
    with pytest.raises(anyrec.ClosedError):
        reader.read([0])
    assert first.tobytes() == b"\x00bc"


def test_part_files_split_as_dump_does() -> None:
    assert _anyrec.part_files(23, 5)[-1] == ("PART_00004.ffr", range(20, 23))
