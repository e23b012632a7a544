"""Datasets over file objects."""

from __future__ import annotations

import gzip
import io
import os
import pathlib
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from conftest import golden

import anyrec

FILES = [
    ("mxnet", "indexed_int.rec"),
    ("ffrecord", "n1.ffr"),
    ("grail", "v2_flush.grail-rio"),
    ("idx", "train-images-idx3-ubyte"),
    ("idx", "train-images-idx3-ubyte.gz"),
]


class Counting(io.BytesIO):
    """Counts its reads, and remembers whether two of them overlapped."""

    reads = 0
    inside = 0
    overlapped = False

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        self.inside += 1
        self.overlapped |= self.inside > 1
        data = super().read(size)
        self.inside -= 1
        return data


class Short(io.BytesIO):
    """Returns less than was requested, as a socket does."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(None if size is None or size < 0 else min(size, 1000))


@pytest.mark.parametrize(("format", "name"), FILES)
def test_every_format_reads_as_from_a_path(format: str, name: str) -> None:
    path = golden(format, name)
    expected = [bytes(record) for record in anyrec.open(path, index_file=False)]
    with open(path, "rb") as ordinary:
        for file in (io.BytesIO(path.read_bytes()), Short(path.read_bytes()), ordinary):
            dataset = anyrec.open(file)
            assert dataset.format == format and len(dataset) == len(expected)
            assert [bytes(record) for record in dataset] == expected
            assert [bytes(dataset[number]) for number in range(len(expected))] == expected
            assert dataset.read(range(len(expected))).to_list() == expected


def many(count: int, size: int = 500) -> bytes:
    with anyrec.create("many.ffr", overwrite=True) as writer:
        for number in range(count):
            writer.write(f"{number:06}".encode() * (size // 6))
    return pathlib.Path("many.ffr").read_bytes()


def test_reads_are_joined_and_never_overlap() -> None:
    file = Counting(many(8000))
    dataset = anyrec.open(file)
    for number in range(8000):
        assert dataset[number][:6] == f"{number:06}".encode()
    assert file.reads < 100, "about one call per record"
    with anyrec.Loader(dataset, 64, shuffle=True, threads=4) as loader:
        seen = sorted(int(bytes(record[:6])) for batch in loader for record in batch)
    assert seen == list(range(8000)) and not file.overlapped


def test_threads_share_a_file_object() -> None:
    dataset = anyrec.open(Counting(many(3000, 3000)))
    wrong = []

    def work(seed: int) -> None:
        for number in np.random.default_rng(seed).integers(0, 3000, 500).tolist():
            if dataset[number][:6] != f"{number:06}".encode():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_errors_name_the_object() -> None:
    data = many(10)
    damaged = bytearray(data)
    damaged[-1] ^= 1
    for file, name in [(io.BytesIO(damaged), "<BytesIO>"), (named(bytes(damaged), "remote.ffr"), "remote.ffr")]:
        with pytest.raises(anyrec.CorruptRecord, match=name):
            anyrec.open(file)[9]
    with pytest.raises(anyrec.UnsupportedFormat, match="<BytesIO>"):
        anyrec.open(io.BytesIO(b"no record file at all, of any kind"))
    assert repr(anyrec.open(io.BytesIO(data))) == "<Dataset '<BytesIO>': ffrecord>"


def named(data: bytes, name: str) -> io.BytesIO:
    file = Short(data)
    file.name = name
    return file


def test_what_a_file_object_raises_arrives() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise ConnectionError("the network is gone")

    with pytest.raises(ConnectionError, match="the network is gone"):
        anyrec.open(Failing(many(3)))


def test_a_file_object_that_shrinks_is_damage() -> None:
    file = io.BytesIO(many(8000))
    dataset = anyrec.open(file)
    file.truncate(1 << 20)
    with pytest.raises(anyrec.CorruptRecord, match="ends earlier"):
        dataset[7999]


def test_what_cannot_work_is_refused_clearly() -> None:
    data = many(3)
    dataset = anyrec.open(io.BytesIO(data))
    for unpicklable in (dataset, dataset.payloads, anyrec.Loader(dataset, 2)):
        with pytest.raises(TypeError, match="file object cannot be pickled"):
            pickle.dumps(unpicklable)
    with pytest.raises(anyrec.InvalidArgument, match="file object"):
        dataset.verify()
    with pytest.raises(anyrec.InvalidArgument, match="file object"):
        anyrec.open(io.BytesIO(data), split="train")
    assert "file object" in dataset._repr_html_()
    text: Any = io.StringIO("text")
    with pytest.raises(TypeError, match="mode 'rb'"):
        anyrec.open(text)
    read, write = os.pipe()
    os.close(write)
    with os.fdopen(read, "rb") as pipe, pytest.raises(TypeError, match="seekable"):
        anyrec.open(pipe)


def test_a_forked_process_does_not_share_the_position() -> None:
    many(3000, 3000)
    with open("many.ffr", "rb") as file:
        dataset = anyrec.open(file)
        child = os.fork()
        if child == 0:
            try:
                dataset[2999]
            except RuntimeError as error:
                os._exit(0 if "another process" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert dataset[2999][:6] == b"002999"


def test_a_gzipped_file_object_is_decompressed_by_whoever_opened_it() -> None:
    pathlib.Path("x.ffr.gz").write_bytes(gzip.compress(many(100)))
    with gzip.open("x.ffr.gz") as file:
        assert len(anyrec.open(file)) == 100
