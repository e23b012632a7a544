"""`anyrec.mxnet` gives what the original gave for the files it wrote, and writes the same files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from anyrec.mxnet import MXIndexedRecordIO, MXNetError, MXRecordIO, pack, unpack, unpack_img

from .conftest import digest, golden

FOLDER, MANIFEST = golden("mxnet")
RECORDS = [file for file in MANIFEST["files"] if file["path"].endswith(".rec")]
INDEXED = [file for file in RECORDS if "read_idx" in file]
KEY_TYPES = {"int": int, "str": str}


def by_path(file):
    return file["path"]


@pytest.mark.parametrize("file", RECORDS, ids=by_path)
def test_records_are_those_the_original_reads(file):
    assert [digest(data) for data in MXRecordIO(FOLDER / file["path"], "r")] == file["records"]


@pytest.mark.parametrize("file", RECORDS, ids=by_path)
def test_writing_the_records_again_gives_the_same_file(file):
    with MXRecordIO("again.rec", "w") as record:
        for data in MXRecordIO(FOLDER / file["path"], "r"):
            record.write(data)
    assert Path("again.rec").read_bytes() == (FOLDER / file["path"]).read_bytes()


@pytest.mark.parametrize("file", INDEXED, ids=by_path)
def test_index_is_read_and_written_as_by_the_original(file):
    key_type = KEY_TYPES[file["key_type"]]
    original = FOLDER / file["idx_file"]["path"]
    record = MXIndexedRecordIO(original, FOLDER / file["path"], "r", key_type)
    assert [str(key) for key in record.keys] == [str(key) for key in file["keys"]]
    assert [[str(key), at] for key, at in record.idx.items()] == [[str(key), at] for key, at in file["idx"]]
    for key, *expected in file["read_idx"]:
        assert digest(record.read_idx(key_type(key))) == expected


def test_keyed_records_written_again_give_the_same_two_files():
    source = MXIndexedRecordIO(FOLDER / "indexed_unordered.idx", FOLDER / "indexed_unordered.rec", "r")
    with MXIndexedRecordIO("again.idx", "again.rec", "w") as copy:
        for key, data in zip(source.keys, source, strict=True):
            copy.write_idx(key, data)
    for suffix in ("idx", "rec"):
        assert Path(f"again.{suffix}").read_bytes() == (FOLDER / f"indexed_unordered.{suffix}").read_bytes()


@pytest.mark.parametrize("case", MANIFEST["malformed"], ids=lambda case: case["name"])
def test_malformed_file_reads_as_by_the_original(case):
    Path("bad.rec").write_bytes(bytes.fromhex(case["bytes_hex"]))
    record = MXRecordIO("bad.rec", "r")
    for expected in case["reads"]:
        if isinstance(expected, dict):
            with pytest.raises(MXNetError) as caught:
                record.read()
            sentence = expected["MXNetError"].rpartition(": ")[2]
            assert sentence in str(caught.value)
        else:
            data = record.read()
            assert (None if data is None else data.hex()) == expected


PACKED = [
    (file["path"], number, case)
    for file in RECORDS
    if "pack" in file
    for number, case in enumerate(file["pack"])
]


@pytest.mark.parametrize(("path", "number", "case"), PACKED, ids=lambda value: str(value)[:24])
def test_header_is_unpacked_and_packed_as_by_the_original(path, number, case):
    data = list(MXRecordIO(FOLDER / path, "r"))[number]
    header, payload = unpack(data)
    expected = case["out"]
    assert (header.flag, str(header.id), str(header.id2)) == (
        expected["flag"],
        expected["id"],
        expected["id2"],
    )
    assert np.asarray(header.label, "<f4").tobytes().hex() == expected["label_f32le_hex"]
    assert digest(payload) == case["payload"]
    assert pack(header, payload) == data


IMAGES = [
    (file["path"], number, case)
    for file in RECORDS
    if "images" in file
    for number, case in enumerate(file["images"])
]


@pytest.mark.parametrize("iscolor", [-1, 0, 1])
@pytest.mark.parametrize(("path", "number", "case"), IMAGES, ids=lambda value: str(value)[:24])
def test_image_is_decoded_as_by_opencv(path, number, case, iscolor):
    expected = case["decoded"][str(iscolor)]
    header, image = unpack_img(list(MXRecordIO(FOLDER / path, "r"))[number], iscolor)
    assert np.asarray(header.label, "<f4").tobytes().hex() == case["label_f32le_hex"]
    assert list(image.shape) == expected["shape"] and image.dtype == expected["dtype"]
    if expected.get("exact"):
        assert digest(image.tobytes())[1] == expected["sha256"]
    else:
        means = image.reshape(-1, image.shape[2] if image.ndim == 3 else 1).mean(axis=0)
        assert np.allclose(means, expected["channel_mean"], atol=1.0)
        assert abs(image.std() - expected["std"]) < 1.5
