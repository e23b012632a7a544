"""Records are bytes-like: what takes bytes takes them."""

from __future__ import annotations

import hashlib
import io
import pickle

import numpy as np
import pytest

import anyrec
from anyrec import Record


def test_a_record_behaves_like_bytes() -> None:
    data = bytes(range(256))
    record = Record(data)
    assert len(record) == 256 and bytes(record) == data and list(record) == list(data)
    assert record[3] == 3 and record[-1] == 255
    for part in [slice(5, 9), slice(None, None, -3), slice(300, None), slice(-4, None), slice(9, 5)]:
        assert record[part] == data[part]
    assert record == data and record == bytearray(data) and data == record and record != b"" and record != 3
    assert hash(record) == hash(data) and {data: 1}[record] == 1  # type: ignore[index]
    assert 65 in record and b"AB" in record and b"BA" not in record
    assert Record("grün".encode()).decode() == "grün"
    with pytest.raises(IndexError):
        record[256]


def test_records_are_taken_without_a_copy() -> None:
    record = Record(np.arange(1000, dtype=np.uint8))
    array = np.frombuffer(memoryview(record), np.uint8)
    assert np.frombuffer(record, np.uint8).ctypes.data == array.ctypes.data  # type: ignore[call-overload]
    assert array.ctypes.data == record.numpy().ctypes.data == np.asarray(record).ctypes.data
    assert not array.flags.writeable and memoryview(record).readonly
    assert io.BytesIO(record).read() == record == b"".join([record])
    assert hashlib.sha256(record).digest() == hashlib.sha256(bytes(record)).digest()
    torch = pytest.importorskip("torch")
    with pytest.warns(UserWarning, match="not writable"):
        tensor = torch.frombuffer(record, dtype=torch.uint8)
    assert tensor.data_ptr() == array.ctypes.data


def test_pickle_reads_records_and_keeps_them() -> None:
    assert pickle.loads(Record(pickle.dumps({"a": [1, 2]}))) == {"a": [1, 2]}
    assert pickle.loads(pickle.dumps(Record(b"abc"))) == b"abc"


def test_an_image_library_reads_a_record() -> None:
    image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    image.fromarray(np.full((4, 5, 3), 200, np.uint8)).save(buffer, "PNG")
    with anyrec.create("images.ffr") as writer:
        writer.write(buffer.getvalue())
    picture = image.open(io.BytesIO(anyrec.open("images.ffr")[0]))
    assert picture.size == (5, 4)


@pytest.mark.parametrize(
    "data",
    [
        bytearray(b"abc"),
        memoryview(b"abcdef")[::2],
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)[:, :, ::2],
        np.float32(1.5),
        Record(b"record"),
    ],
    ids=lambda data: type(data).__name__,
)
def test_any_buffer_is_written_as_its_bytes_in_c_order(data: object) -> None:
    with anyrec.create("x.ffr") as writer:
        writer.write(data)  # type: ignore[arg-type]
    assert anyrec.open("x.ffr")[0] == np.asarray(data).tobytes()


@pytest.mark.parametrize("data", [3, None, [1, 2], object()])
def test_what_is_no_buffer_is_a_type_error(data: object) -> None:
    with pytest.raises(TypeError), anyrec.create("x.ffr") as writer:
        writer.write(data)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Record(data)  # type: ignore[arg-type]
