"""`anyrec.mxnet` behaves as `mxnet.recordio`, and is friendlier where that is rude."""

from __future__ import annotations

import os
import pickle
import struct
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import anyrec
import numpy as np
import pytest
from anyrec import mxnet as recordio
from anyrec.mxnet import IRHeader, MXIndexedRecordIO, MXNetError, MXRecordIO, pack, unpack

MAGIC = struct.pack("<I", 0xCED7230A)


def write(name, records):
    with MXRecordIO(name, "w") as record:
        for data in records:
            record.write(data)


def write_indexed(records, key_type=int):
    with MXIndexedRecordIO("a.idx", "a.rec", "w", key_type) as record:
        for key, data in records:
            record.write_idx(key, data)


def in_child(work):
    """What a forked child says."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            answer = repr(work())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        answer = pipe.read()
    os.wait()
    return answer


# Sequential files


def test_records_come_back_in_order_then_none_again_and_again():
    write("a.rec", [b"one", b"", b"three"])
    record = MXRecordIO("a.rec", "r")
    assert [record.read() for _ in range(5)] == [b"one", b"", b"three", None, None]


def test_record_with_aligned_magic_is_split_and_put_together():
    data = MAGIC + b"abcd" + MAGIC + b"xyz"
    write("a.rec", [data])
    assert Path("a.rec").read_bytes().count(MAGIC) == 3
    assert MXRecordIO("a.rec", "r").read() == data


@pytest.mark.parametrize("flag", ["a", "rb", "", "rw"])
def test_flag_other_than_r_and_w_is_refused(flag):
    with pytest.raises(ValueError, match=f"Invalid flag {flag}"):
        MXRecordIO("a.rec", flag)


def test_reading_a_writer_and_writing_a_reader_fail():
    write("a.rec", [b"x"])
    with pytest.raises(AssertionError):
        MXRecordIO("a.rec", "r").write(b"x")
    writer = MXRecordIO("b.rec", "w")
    with pytest.raises(AssertionError):
        writer.read()


def test_reset_of_a_reader_starts_again():
    write("a.rec", [b"one", b"two"])
    record = MXRecordIO("a.rec", "r")
    record.read()
    record.reset()
    assert record.read() == b"one"


def test_reset_of_a_reader_sees_a_file_that_was_replaced():
    write("a.rec", [b"one"])
    record = MXRecordIO("a.rec", "r")
    write("a.rec", [b"new"])
    record.reset()
    assert record.read() == b"new"


def test_reset_of_a_writer_truncates():
    record = MXRecordIO("a.rec", "w")
    record.write(b"old")
    record.reset()
    record.write(b"new")
    record.close()
    assert list(MXRecordIO("a.rec", "r")) == [b"new"]


def test_closing_twice_is_fine_and_reading_then_is_an_error():
    write("a.rec", [b"x"])
    record = MXRecordIO("a.rec", "r")
    record.close()
    record.close()
    assert not record.is_open
    with pytest.raises(RuntimeError, match="Forbidden operation in multiple processes"):
        record.read()


def test_dropped_writer_completes_its_file():
    record = MXRecordIO("a.rec", "w")
    record.write(b"x")
    del record
    assert list(MXRecordIO("a.rec", "r")) == [b"x"]


def test_writer_left_open_is_completed_when_the_interpreter_ends(run_python, tmp_path):
    run_python(
        "import anyrec.mxnet as m, sys\n"
        "record = m.MXIndexedRecordIO('a.idx', 'a.rec', 'w')\n"
        "record.write_idx(3, b'x')\n"
        "sys.modules['kept'] = record\n"
    )
    assert MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "r").read_idx(3) == b"x"


def test_pickling_closes_and_whoever_unpickles_reads_from_the_start():
    write("a.rec", [b"one", b"two"])
    record = MXRecordIO("a.rec", "r")
    record.read()
    copy = pickle.loads(pickle.dumps(record))
    assert not record.is_open and copy.is_open
    assert copy.read() == b"one"


def test_closed_record_is_unpickled_closed():
    write("a.rec", [b"one"])
    record = MXRecordIO("a.rec", "r")
    record.close()
    assert not pickle.loads(pickle.dumps(record)).is_open


def test_reading_and_writing_in_a_forked_child_are_forbidden():
    write("a.rec", [b"one"])
    reader, writer = MXRecordIO("a.rec", "r"), MXRecordIO("b.rec", "w")
    forbidden = "RuntimeError: Forbidden operation in multiple processes"
    assert in_child(reader.read) == forbidden
    assert in_child(lambda: writer.write(b"x")) == forbidden


def test_seeking_in_a_forked_child_reopens():
    write_indexed([(0, b"zero"), (1, b"one"), (2, b"two")])
    record = MXIndexedRecordIO("a.idx", "a.rec", "r")
    assert record.read_idx(1) == b"one"
    assert in_child(lambda: (record.read_idx(0), record.read())) == "(b'zero', b'one')"
    assert record.read() == b"two"


def test_child_that_drops_the_parents_writer_does_not_touch_its_file():
    record = MXIndexedRecordIO("a.idx", "a.rec", "w")
    record.write_idx(0, b"x" * 100)
    in_child(record.close)
    assert not os.path.exists("a.rec") and not os.path.exists("a.idx")
    record.write_idx(1, b"y")
    record.close()
    assert list(MXRecordIO("a.rec", "r")) == [b"x" * 100, b"y"]


def test_missing_file_is_the_originals_error_and_pythons():
    for kind in (MXNetError, FileNotFoundError, anyrec.AnyrecError, RuntimeError):
        with pytest.raises(kind, match=r"missing\.rec"):
            MXRecordIO("missing.rec", "r")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"garbage!", "Invalid RecordIO File"),
        (MAGIC, "Inavlid RecordIO File"),
        (MAGIC + struct.pack("<I", 4), "Invalid RecordIO File upper_align=4"),
    ],
)
def test_malformed_file_gives_the_originals_message_then_none(data, message):
    Path("a.rec").write_bytes(data)
    record = MXRecordIO("a.rec", "r")
    with pytest.raises(MXNetError, match=message) as caught:
        record.read()
    assert caught.value.path == "a.rec" and caught.value.original.endswith(message)
    assert record.read() is None


def test_file_that_ends_inside_a_split_record_ends_there():
    Path("a.rec").write_bytes(MAGIC + struct.pack("<I", 1 << 29 | 4) + b"abcd")
    assert MXRecordIO("a.rec", "r").read() is None


def test_record_of_half_a_gigabyte_is_refused():
    with MXRecordIO("a.rec", "w") as record:
        with pytest.raises(MXNetError, match=r"RecordIO only accept record less than 2\^29 bytes"):
            record.write(np.broadcast_to(np.uint8(0), 1 << 29))
        record.write(b"small")
    assert list(MXRecordIO("a.rec", "r")) == [b"small"]


# Friendlier


def test_paths_text_and_buffers_are_taken():
    array = np.arange(6, dtype="<u2").reshape(2, 3)
    write(Path("a.rec"), ["é", bytearray(b"ab"), memoryview(b"cd"), array.T])
    expected = ["é".encode(), b"ab", b"cd", array.T.tobytes()]
    assert list(MXRecordIO(Path("a.rec"), "r")) == expected


def test_length_is_known_and_an_empty_file_is_not_false():
    write("a.rec", [b"a", b"b"])
    record = MXRecordIO("a.rec", "r")
    record.read()
    assert len(record) == 2 and record.read() == b"b"
    write("b.rec", [])
    assert len(MXRecordIO("b.rec", "r")) == 0 and MXRecordIO("b.rec", "r")
    writer = MXRecordIO("c.rec", "w")
    writer.write(b"a")
    assert len(writer) == 1


def test_exception_inside_with_leaves_the_old_files():
    write_indexed([(0, b"old")])
    with pytest.raises(ZeroDivisionError), MXIndexedRecordIO("a.idx", "a.rec", "w") as record:
        record.write_idx(0, b"new")
        raise ZeroDivisionError
    assert MXIndexedRecordIO("a.idx", "a.rec", "r").read_idx(0) == b"old"
    assert sorted(os.listdir()) == ["a.idx", "a.rec"]


# Index files


def test_index_file_has_key_tab_offset_in_writing_order():
    with MXIndexedRecordIO("a.idx", "a.rec", "w") as record:
        assert record.tell() == 0
        record.write_idx(7, b"abc")
        assert record.tell() == 12
        record.write(b"not indexed")
        record.write_idx("-3", b"")
    assert Path("a.idx").read_text() == "7\t0\n-3\t32\n"
    record = MXIndexedRecordIO("a.idx", "a.rec", "r")
    assert record.keys == [7, -3] and record.idx == {7: 0, -3: 32} and len(record) == 2


def test_reading_goes_on_behind_read_idx():
    write_indexed([(i, str(i)) for i in range(5)])
    record = MXIndexedRecordIO("a.idx", "a.rec", "r")
    assert record.read_idx(3) == b"3" and record.read() == b"4" and record.read() is None
    record.seek(1)
    assert record.read() == b"1"


def test_repeated_keys_stay_in_keys_and_the_last_one_counts():
    write_indexed([(1, b"a"), (2, b"b"), (1, b"c")])
    record = MXIndexedRecordIO("a.idx", "a.rec", "r")
    assert record.keys == [1, 2, 1] and record.read_idx(1) == b"c"


@pytest.mark.parametrize("key", [-5, 2**70, 0])
def test_negative_and_huge_keys_work(key):
    write_indexed([(key, b"x")])
    assert MXIndexedRecordIO("a.idx", "a.rec", "r").read_idx(key) == b"x"


def test_key_type_is_applied_when_writing_and_reading():
    write_indexed([(1.5, b"x"), ("a b", b"y")], key_type=str)
    record = MXIndexedRecordIO("a.idx", "a.rec", "r", key_type=str)
    assert record.keys == ["1.5", "a b"] and record.read_idx("a b") == b"y"


def test_missing_key_is_a_key_error():
    write_indexed([(1, b"x")])
    with pytest.raises(KeyError):
        MXIndexedRecordIO("a.idx", "a.rec", "r").read_idx(2)


def test_missing_index_file_is_not_found():
    write("a.rec", [b"x"])
    with pytest.raises(FileNotFoundError, match=r"a\.idx"):
        MXIndexedRecordIO("a.idx", "a.rec", "r")


@pytest.mark.parametrize(
    "text", ["0\t0\r\n1\t12\r\n", "0\t0\n1\t12", " 0 \t 0 \n 1\t12 \n", "0\t0\tx\ty\n1\t12\tz\n"]
)
def test_index_file_may_have_crlf_spaces_columns_and_no_last_newline(text):
    write("a.rec", [b"zer", b"one"])
    Path("a.idx").write_bytes(text.encode())
    record = MXIndexedRecordIO("a.idx", "a.rec", "r")
    assert record.keys == [0, 1] and record.read_idx(1) == b"one"


def test_line_that_is_none_is_named():
    write("a.rec", [b"x"])
    Path("a.idx").write_text("0\t0\nnonsense\n")
    with pytest.raises(ValueError, match=r"a\.idx: line 2"):
        MXIndexedRecordIO("a.idx", "a.rec", "r")


def test_stale_offset_is_an_error():
    write("a.rec", [b"long enough"])
    Path("a.idx").write_text("0\t4\n")
    with pytest.raises(MXNetError):
        MXIndexedRecordIO("a.idx", "a.rec", "r").read_idx(0)


@pytest.mark.parametrize("key", ["a\tb", "a\nb"])
def test_key_that_would_break_the_index_file_is_refused(key):
    with pytest.raises(ValueError, match="tab or a line break"):
        write_indexed([(key, b"x")], key_type=str)


def test_tell_is_the_writers_and_seek_the_readers():
    write_indexed([(0, b"x")])
    with pytest.raises(AssertionError):
        MXIndexedRecordIO("a.idx", "a.rec", "r").tell()
    writer = MXIndexedRecordIO("b.idx", "b.rec", "w")
    with pytest.raises(AssertionError):
        writer.seek(0)


def test_pickled_index_reads_by_key():
    write_indexed([(0, b"zero"), (1, b"one")])
    record = pickle.loads(pickle.dumps(MXIndexedRecordIO("a.idx", "a.rec", "r")))
    assert record.read_idx(1) == b"one"


# Image headers


@pytest.mark.parametrize(
    "label", [3, 2.5, True, np.float64(2.5), np.int8(-3), Decimal("0.5"), Fraction(1, 4)]
)
def test_number_is_a_scalar_label_whatever_the_flag_given(label):
    packed = pack(IRHeader(9, label, 1, 2), b"data")
    assert packed == struct.pack("<IfQQ", 0, float(label), 1, 2) + b"data"
    header, data = unpack(packed)
    assert header == (0, float(label), 1, 2) and type(header.label) is float and data == b"data"


@pytest.mark.parametrize("label", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3], np.int64)])
def test_array_label_sets_the_flag_and_comes_back_read_only(label):
    packed = pack((0, label, 7, 0), b"data")
    assert packed[:8] == struct.pack("<If", 3, 0)
    header, data = unpack(packed)
    assert header.flag == 3 and data == b"data" and header.label.dtype == np.float32
    assert header.label.tolist() == [1, 2, 3] and not header.label.flags.writeable


def test_label_matrix_is_flattened_in_c_order():
    header, _ = unpack(pack((0, np.array([[1, 2], [3, 4]]).T, 0, 0), b""))
    assert header.label.tolist() == [1, 3, 2, 4]


def test_empty_label_list_reads_back_as_zero():
    header, data = unpack(pack((5, [], 0, 0), b"x"))
    assert header == (0, 0.0, 0, 0) and data == b"x"


@pytest.mark.parametrize("identity", [-1, 2**64])
def test_id_outside_64_bits_is_an_error(identity):
    with pytest.raises((struct.error, OverflowError)):
        pack(IRHeader(0, 1.0, identity, 0), b"")


def test_payload_text_is_utf8_and_any_four_tuple_is_a_header():
    assert unpack(pack((0, 1, 2, 3), "é")) == ((0, 1.0, 2, 3), "é".encode())


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_payload_keeps_the_type_of_the_input(kind):
    _, data = unpack(kind(pack((0, [1, 2], 0, 0), b"data")))
    assert isinstance(data, kind) and bytes(data) == b"data"


@pytest.mark.parametrize("data", [b"", b"x" * 23, struct.pack("<IfQQ", 3, 0, 0, 0) + b"x" * 11])
def test_record_too_short_for_its_header_is_an_error(data):
    with pytest.raises((struct.error, ValueError)):
        unpack(data)


def test_header_is_named_as_the_original_shows_it():
    assert repr(IRHeader(0, 1.0, 2, 3)) == "HEADER(flag=0, label=1.0, id=2, id2=3)"


def test_label_that_float32_cannot_hold_is_warned_about():
    with pytest.warns(UserWarning, match="16777217 is stored as 16777216"):
        pack((0, 16777217, 0, 0), b"")


# Images


@pytest.fixture
def picture():
    rows, columns = np.mgrid[0:40, 0:60]
    return np.stack([rows * 5, columns * 4, rows + columns], axis=2).astype(np.uint8)


def test_png_is_exact_and_bgr(picture):
    header, image = recordio.unpack_img(recordio.pack_img((0, 2, 1, 0), picture, quality=3, img_fmt=".png"))
    assert header.label == 2 and np.array_equal(image, picture)


@pytest.mark.parametrize("img_fmt", [".jpg", ".jpeg", ".JPG"])
def test_jpeg_is_close(picture, img_fmt):
    _, image = recordio.unpack_img(recordio.pack_img((0, 0, 0, 0), picture, quality=95, img_fmt=img_fmt))
    assert image.shape == picture.shape
    assert np.abs(image.astype(int) - picture).mean() < 3


@pytest.mark.parametrize("shape", [(40, 60), (40, 60, 1)])
def test_gray_stays_two_dimensional_unless_colour_is_asked_for(picture, shape):
    packed = recordio.pack_img((0, 0, 0, 0), picture[:, :, 0].reshape(shape), 3, ".png")
    assert recordio.unpack_img(packed)[1].shape == (40, 60)
    assert recordio.unpack_img(packed, 0)[1].shape == (40, 60)
    colour = recordio.unpack_img(packed, 1)[1]
    assert colour.shape == (40, 60, 3) and np.array_equal(colour[:, :, 2], picture[:, :, 0])


def test_alpha_and_16_bits_survive_as_stored(picture):
    alpha = np.concatenate([picture, picture[:, :, :1]], axis=2)
    deep = picture.astype(np.uint16) * 257
    for image in (alpha, deep):
        packed = recordio.pack_img((0, 0, 0, 0), image, 3, ".png")
        back = recordio.unpack_img(packed)[1]
        assert back.dtype == image.dtype and np.array_equal(back, image)
        assert recordio.unpack_img(packed, 1)[1].shape == (40, 60, 3)


@pytest.mark.parametrize("payload", [b"", b"garbage that is no image at all"])
def test_garbage_gives_none(payload):
    header, image = recordio.unpack_img(pack((0, 4, 0, 0), payload))
    assert header.label == 4 and image is None


def test_view_that_is_not_contiguous_is_packed_as_it_looks(picture):
    view = picture[::2, ::-1]
    assert np.array_equal(recordio.unpack_img(recordio.pack_img((0, 0, 0, 0), view, 3, ".png"))[1], view)


def test_unknown_image_format_is_an_error(picture):
    with pytest.raises(ValueError, match="image format"):
        recordio.pack_img((0, 0, 0, 0), picture, img_fmt=".tiff")
