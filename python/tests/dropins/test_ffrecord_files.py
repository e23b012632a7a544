"""`anyrec.ffrecord` reads and writes as `ffrecord` does, without its bugs."""

from __future__ import annotations

import gc
import os
import pickle
import struct
import threading
import zlib
from pathlib import Path

import anyrec
import numpy as np
import pytest
from anyrec.ffrecord import FFRecordError, FileReader, FileWriter, SampleIndexError, checkFsAlign
from anyrec.ffrecord.utils import dump

from .conftest import digest, golden

FOLDER, MANIFEST = golden("ffrecord")


def write(name, samples):
    with FileWriter(name, len(samples)) as writer:
        for sample in samples:
            writer.write_one(sample)
    return name


@pytest.fixture
def reader():
    return FileReader(write("a.ffr", [str(i).encode() * i for i in range(10)]))


# Writing


def test_file_of_no_samples_is_twelve_bytes():
    write("a.ffr", [])
    assert Path("a.ffr").read_bytes() == bytes.fromhex("69df2265") + bytes(8)
    assert FileReader("a.ffr").n == 0 and FileReader("a.ffr").read([]) == []


def test_layout_is_checksum_count_checksums_offsets_samples():
    write("a.ffr", [b"abc", b""])
    table = struct.pack("<qIIqq", 2, zlib.crc32(b"abc"), 0, 36, 39)
    assert Path("a.ffr").read_bytes() == struct.pack("<I", zlib.crc32(table)) + table + b"abc"


def test_counts_are_told_while_writing():
    writer = FileWriter("a.ffr", 2)
    assert (writer.n, writer.count) == (2, 0)
    writer.write_one(b"x")
    assert (writer.n, writer.count) == (2, 1)
    writer.write_one(bytearray(b"y"))
    writer.close()
    writer.close()
    assert FileReader("a.ffr").n == 2


def test_one_sample_too_many_is_refused():
    writer = FileWriter("a.ffr", 1)
    writer.write_one(b"x")
    with pytest.raises(RuntimeError, match="Exceed total number of samples: 1"):
        writer.write_one(b"y")
    writer.close()
    assert FileReader("a.ffr").n == 1


def test_closing_with_too_few_fails_and_more_may_follow():
    writer = FileWriter("a.ffr", 2)
    writer.write_one(b"x")
    with pytest.raises(RuntimeError, match="Number of samples mismatched! Wrote 1 samples but expected 2"):
        writer.close()
    writer.write_one(b"y")
    writer.close()
    assert [bytes(sample) for sample in FileReader("a.ffr").read([0, 1])] == [b"x", b"y"]


def test_count_need_not_be_known():
    with FileWriter("a.ffr") as writer:
        for i in range(3):
            writer.write_one(bytes([i]))
    assert FileReader("a.ffr").n == 3


def test_writing_after_close_is_an_error():
    writer = FileWriter("a.ffr", 0)
    writer.close()
    with pytest.raises(RuntimeError, match=r"FileWriter has been closed\."):
        writer.write_one(b"x")


def test_dropping_an_unfinished_writer_warns_and_leaves_the_old_file():
    write("a.ffr", [b"old"])
    writer = FileWriter("a.ffr", 2)
    writer.write_one(b"new")
    with pytest.warns(ResourceWarning, match="1 of 2 samples"):
        del writer
        gc.collect()
    assert bytes(FileReader("a.ffr").read_one(0)) == b"old"


def test_dropping_a_complete_writer_finishes_the_file():
    writer = FileWriter("a.ffr", 1)
    writer.write_one(b"x")
    del writer
    gc.collect()
    assert FileReader("a.ffr").n == 1


def test_exception_inside_with_leaves_no_file():
    with pytest.raises(ZeroDivisionError), FileWriter("a.ffr", 2) as writer:
        writer.write_one(b"x")
        raise ZeroDivisionError
    assert os.listdir() == []


@pytest.mark.parametrize(
    "array",
    [
        np.arange(5, dtype=np.int32),
        np.arange(12, dtype=np.uint8).reshape(3, 4),
        np.arange(20, dtype=np.uint8)[::3],
        np.arange(12, dtype=np.uint16).reshape(3, 4).T,
    ],
    ids=["wide", "matrix", "strided", "transposed"],
)
def test_any_array_is_written_as_its_bytes(array):
    assert bytes(FileReader(write("a.ffr", [array])).read_one(0)) == array.tobytes()


def test_name_must_end_in_ffr():
    with pytest.raises(AssertionError):
        FileWriter("a.rec", 1)


# Reading


def test_order_and_repeats_are_kept(reader):
    samples = reader.read([3, 6, 0, 3])
    assert [bytes(sample) for sample in samples] == [b"333", b"666666", b"", b"333"]


@pytest.mark.parametrize(
    "indices", [[1, 2], (1, 2), range(1, 3), np.array([1, 2]), np.array([1, 2], np.uint8), [np.int64(1), 2]]
)
def test_lists_tuples_ranges_and_arrays_are_taken(reader, indices):
    assert [bytes(sample) for sample in reader.read(indices)] == [b"1", b"22"]


@pytest.mark.parametrize("indices", [[1.0], ["1"], "12", np.array([1.0]), [None], np.array([[1]])])
def test_floats_and_strings_are_refused(reader, indices):
    with pytest.raises(TypeError):
        reader.read(indices)


def test_no_indices_give_no_samples(reader):
    assert reader.read([]) == [] and reader.read(np.array([])) == []


def test_samples_are_flat_writable_bytes_of_their_own(reader):
    sample = reader.read_one(3)
    assert sample.dtype == np.uint8 and sample.ndim == 1
    sample[:] = 0
    assert bytes(reader.read_one(3)) == b"333"


def test_samples_outlive_the_reader(reader):
    samples = reader.read(range(10))
    reader.close()
    del reader
    os.unlink("a.ffr")
    gc.collect()
    assert bytes(samples[9]) == b"9" * 9


@pytest.mark.parametrize("read", [lambda reader: reader.read([0, 10]), lambda reader: reader.read_one(10)])
def test_index_past_the_end_gives_the_originals_message(reader, read):
    with pytest.raises(RuntimeError, match=r"index >= number of samples \(10 >= 10\)") as caught:
        read(reader)
    assert isinstance(caught.value, SampleIndexError | IndexError)


def test_negative_index_is_refused(reader):
    with pytest.raises(IndexError, match="-1"):
        reader.read([-1])
    with pytest.raises(RuntimeError):
        reader.read_one(-1)


def test_batch_of_more_than_4096_is_read(reader):
    assert len(reader.read([5] * 10_000)) == 10_000


def test_closed_reader_says_so(reader):
    reader.close()
    reader.close()
    for call in (
        lambda: reader.read([0]),
        lambda: reader.read_one(0),
        reader.validate,
        lambda: reader.get_offsets(0),
        lambda: reader.get_checksums(0),
    ):
        with pytest.raises(RuntimeError, match=r"FileReader has been closed\."):
            call()


def test_offsets_have_the_file_size_last_and_checksums_one_for_each(reader):
    offsets = reader.get_offsets(0)
    assert len(offsets) == 11 and offsets[0] == 12 + 12 * 10
    assert offsets[-1] == os.path.getsize("a.ffr")
    checksums = reader.get_checksums(0)
    assert checksums.tolist() == [zlib.crc32(str(i).encode() * i) for i in range(10)]
    # As in the original. Both are the caller's.
    assert offsets.dtype == np.int64 and checksums.dtype == np.uint32
    assert offsets.flags.writeable and checksums.flags.writeable


def test_list_is_numbered_through_and_directory_sorted(reader):
    write("b.ffr", [b"b0", b"b1"])
    both = FileReader(["b.ffr", Path("a.ffr")])
    assert both.n == 12 and both.fnames == ["b.ffr", "a.ffr"]
    assert [bytes(sample) for sample in both.read([11, 1, 3])] == [b"9" * 9, b"b1", b"1"]
    assert both.get_offsets(0)[-1] == os.path.getsize("b.ffr")
    Path("c.txt").write_text("not one of them")
    assert FileReader(".").n == 12 and [Path(name).name for name in FileReader(".").fnames] == [
        "a.ffr",
        "b.ffr",
    ]


def test_names_that_cannot_be_read_are_assertions():
    Path("a.rec").touch()
    Path("folder.ffr").mkdir()
    Path("empty").mkdir()
    for name, sentence in [
        ("missing.ffr", "missing.ffr does not exist"),
        (["folder.ffr"], "folder.ffr is not a file"),
        ("a.rec", "a.rec does not end with .ffr"),
        ("empty", "At least one .ffr file as input"),
        ([], "At least one .ffr file as input"),
    ]:
        with pytest.raises(AssertionError, match=sentence):
            FileReader(name)
    with pytest.raises(TypeError):
        FileReader(7)


def test_pickling_reopens(reader):
    reader.close()
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.check_data and copy.fnames == ["a.ffr"] and bytes(copy.read_one(3)) == b"333"


def test_context_manager_closes():
    write("a.ffr", [b"x"])
    with FileReader("a.ffr", check_data=False) as reader:
        assert not reader.check_data
    with pytest.raises(RuntimeError, match="closed"):
        reader.read([0])


def test_sixteen_threads_read_right_data(reader):
    failures = []

    def work(seed):
        indices = np.random.default_rng(seed).integers(0, 10, 500)
        for index, sample in zip(indices, reader.read(indices), strict=True):
            if bytes(sample) != str(index).encode() * index:
                failures.append(index)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_child_forked_after_a_batch_read_reads(reader):
    reader.read(range(10))
    child = os.fork()
    if child == 0:
        os._exit(0 if bytes(reader.read([9, 1])[0]) == b"9" * 9 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_bytes_after_the_last_sample_join_it():
    write("a.ffr", [b"abc"])
    with open("a.ffr", "ab") as file:
        file.write(b"more")
    assert bytes(FileReader("a.ffr", check_data=False).read_one(0)) == b"abcmore"


def test_file_with_a_gap_before_the_first_sample_is_read():
    table = struct.pack("<qIq", 1, zlib.crc32(b"abc"), 30)
    gap = bytes(30 - 4 - len(table))
    Path("a.ffr").write_bytes(struct.pack("<I", zlib.crc32(table)) + table + gap + b"abc")
    assert bytes(FileReader("a.ffr").read_one(0)) == b"abc"


def test_damaged_sample_of_a_second_file_is_named_by_the_callers_number():
    write("a.ffr", [b"a", b"b"])
    write("b.ffr", [b"c", b"d"])
    data = bytearray(Path("b.ffr").read_bytes())
    data[-1] ^= 1
    Path("b.ffr").write_bytes(data)
    reader = FileReader(["a.ffr", "b.ffr"])
    with pytest.raises(RuntimeError, match="Sample 3: checksum mismached!") as caught:
        reader.read([0, 3, 1])
    assert caught.value.path == "b.ffr" and isinstance(caught.value, anyrec.AnyrecError)


def test_file_system_is_asked_for_its_alignment(reader):
    with open("a.ffr", "rb") as file:
        assert checkFsAlign(file.fileno()) is False


# What the original wrote, and how it read damaged files


@pytest.mark.parametrize("file", MANIFEST["files"], ids=lambda file: file["path"])
@pytest.mark.filterwarnings("ignore:you are using an old version")
def test_file_of_the_original_is_read_and_written_again(file):
    reader = FileReader(FOLDER / file["path"])
    samples = reader.read(range(file["n"]))
    assert [digest(sample) for sample in samples] == file["records"]
    assert reader.get_offsets(0).tolist() == file["offsets"]
    assert reader.get_checksums(0).tolist() == file["checksums"]
    if file["checksum_meta"]:
        write("again.ffr", samples)
        assert Path("again.ffr").read_bytes() == (FOLDER / file["path"]).read_bytes()


def test_old_version_is_warned_about():
    with pytest.warns(
        UserWarning, match="you are using an old version ffrecord file, please update the file"
    ):
        FileReader(FOLDER / "old_version.ffr")


@pytest.mark.parametrize("case", MANIFEST["multi"], ids=lambda case: case["dir"])
def test_directory_and_list_are_read_as_by_the_original(case):
    reader = FileReader(FOLDER / case["dir"])
    assert [os.path.relpath(name, FOLDER) for name in reader.fnames] == case["dir_file_order"]
    assert [digest(sample) for sample in reader.read(range(reader.n))] == case["records"]
    reader = FileReader([FOLDER / name for name in case["list_order"]])
    assert [digest(sample) for sample in reader.read(range(reader.n))] == case["list_records"]


def mutated(case):
    data = bytearray((FOLDER / case["base"]).read_bytes())
    for kind, *arguments in case["edits"]:
        if kind == "xor":
            data[arguments[0]] ^= arguments[1]
        elif kind == "set":
            new = bytes.fromhex(arguments[1])
            data[arguments[0] : arguments[0] + len(new)] = new
        elif kind == "append":
            data += bytes.fromhex(arguments[0])
        elif kind == "truncate":
            del data[arguments[0] :]
        else:
            assert kind == "fixmeta"
            (count,) = struct.unpack_from("<q", data, 4)
            data[:4] = struct.pack("<I", zlib.crc32(data[4 : 12 + 12 * count]))
    return bytes(data)


def sentence(outcome):
    """What the original says, without its check in front and without the file's name."""
    return outcome["msg"].partition("failed. ")[2].removeprefix("FILE: ")


CASES = [(case, result) for case in MANIFEST["mutations"] for result in case["result"]]


@pytest.mark.parametrize(
    ("case", "result"), CASES, ids=lambda value: str(value.get("name", value.get("check_data")))
)
@pytest.mark.filterwarnings("ignore:you are using an old version")
def test_damaged_file_is_read_as_by_the_original(case, result):
    Path("bad.ffr").write_bytes(mutated(case))
    if "exc" in result["open"]:
        with pytest.raises(FFRecordError, match="checksum of metadata mismached!"):
            FileReader("bad.ffr", result["check_data"])
        return
    try:
        reader = FileReader("bad.ffr", result["check_data"])
    except FFRecordError:
        # The original opens what it can never read from: a table that makes no sense.
        assert result["reads"] == [] and "exc" in result["validate"]
        return
    assert reader.n == result["open"]["ok"]
    for index, expected in result["reads"]:
        read = reader.read if isinstance(index, list) else reader.read_one
        if "exc" in expected:
            with pytest.raises(RuntimeError) as caught:
                read(index)
            assert sentence(expected) in str(caught.value)
        elif isinstance(index, list):
            assert [digest(sample) for sample in read(index)] == expected["ok"]
        else:
            assert digest(read(index)) == expected["ok"]
    if "exc" in result["validate"]:
        with pytest.raises(RuntimeError, match="checksum of metadata mismached!"):
            reader.validate()
    else:
        reader.validate()


# dump


def test_dump_writes_one_file():
    dump([b"a", b"bc"], "a.ffr", 1)
    assert [bytes(sample) for sample in FileReader("a.ffr").read([0, 1])] == [b"a", b"bc"]


def test_dump_splits_evenly_rounded_up():
    dump([bytes([i]) for i in range(23)], "parts", nfiles=5)
    reader = FileReader("parts")
    assert [Path(name).name for name in reader.fnames] == [f"PART_{i:05d}.ffr" for i in range(5)]
    assert [len(reader.get_checksums(i)) for i in range(5)] == [5, 5, 5, 5, 3]
    assert [bytes(sample)[0] for sample in reader.read(range(23))] == list(range(23))


def test_dump_into_more_files_than_samples_warns():
    with pytest.warns(UserWarning, match="Split into 10 files rather than 16 files"):
        dump([b"x"] * 10, "parts", nfiles=16)
    assert FileReader("parts").n == 10


def test_dump_writes_several_files_in_processes_of_their_own():
    class Samples(list):
        # A class of a function cannot be pickled.
        def __getitem__(self, index):
            return str(os.getpid()).encode()

    dump(Samples(range(8)), "parts", nfiles=4, serializer=lambda sample: sample)
    reader = FileReader("parts")
    processes = {bytes(sample) for sample in reader.read(range(8))}
    assert reader.n == 8 and str(os.getpid()).encode() not in processes


def test_dump_raises_what_a_process_raises():
    class Samples(list):
        def __getitem__(self, index):
            return [b"a", b"b", b"c"][index]

    with pytest.raises(IndexError, match="out of range"):
        dump(Samples(range(4)), "parts", nfiles=2)
    assert not Path("parts/PART_00001.ffr").exists()


def test_dump_takes_a_serializer_and_shows_progress(capsys):
    dump([1, "two"], "a.ffr", 1, verbose=True, serializer=pickle.dumps)
    assert [pickle.loads(sample) for sample in FileReader("a.ffr").read([0, 1])] == [1, "two"]
    assert "a.ffr" in capsys.readouterr().err
