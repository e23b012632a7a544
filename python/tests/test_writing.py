"""`anyrec.create`: files appear whole, or not at all."""

from __future__ import annotations

import gc
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

import anyrec


def test_a_file_appears_when_the_writer_is_closed(own_folder: pathlib.Path) -> None:
    writer = anyrec.create("x.ffr", overwrite=True)
    writer.write(b"one")
    assert list(own_folder.iterdir()) == []
    assert repr(writer) == "<Writer 'x.ffr': ffrecord, 1 records so far>"
    writer.close()
    assert writer.close() == [] and writer.closed and writer.count == 1
    assert (own_folder / "x.ffr").exists()
    with pytest.raises(anyrec.ClosedError):
        writer.write(b"two")


@pytest.mark.parametrize("name", ["x.rec", "x.ffr", "x.grail-rio", "x-idx1-ubyte"])
def test_an_exception_leaves_no_file_and_keeps_the_old_one(own_folder: pathlib.Path, name: str) -> None:
    for content in [None, b"old"]:
        if content:
            (own_folder / name).write_bytes(content)
        with pytest.raises(ZeroDivisionError), anyrec.create(name, overwrite=True) as writer:
            writer.write(b"x")
            _ = 1 / 0
        assert [path.read_bytes() for path in own_folder.iterdir()] == ([content] if content else [])


FULL_DISK = """
import resource, signal, sys, anyrec
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
writer = anyrec.create(sys.argv[1], overwrite=True)
try:
    for number in range(10_000):
        writer.write(bytes(600))
except OSError as error:
    assert "File too large" in str(error), error
else:
    raise AssertionError("6 MB in a file of 1 MB")
# Going on as if nothing had happened does not make a file with a gap.
try:
    writer.write(b"more")
    writer.close()
except anyrec.AnyrecError:
    pass
else:
    raise AssertionError("closed")
"""


@pytest.mark.parametrize("name", ["x.rec", "x.ffr", "x.grail-rio"])
def test_a_full_disk_is_an_error_and_the_old_file_stays(own_folder: pathlib.Path, name: str) -> None:
    (own_folder / name).write_bytes(b"old")
    subprocess.run([sys.executable, "-c", FULL_DISK, name], check=True, cwd=own_folder)
    assert [path.read_bytes() for path in own_folder.iterdir()] == [b"old"]


def test_a_forgotten_writer_leaves_no_file(own_folder: pathlib.Path) -> None:
    anyrec.create("x.grail-rio", transformers=["zstd"]).write(b"x")
    gc.collect()
    assert list(own_folder.iterdir()) == []


def test_an_existing_file_is_refused_unless_overwriting_is_asked_for() -> None:
    for word in ["first", "second"]:
        with anyrec.create("x.ffr", overwrite=word == "second") as writer:
            writer.write(word)
    assert anyrec.open("x.ffr")[0] == b"second"
    with pytest.raises(FileExistsError) as caught:
        anyrec.create("x.ffr")
    assert isinstance(caught.value, anyrec.AnyrecError) and caught.value.path == "x.ffr"


def test_what_is_not_stored_is_a_warning() -> None:
    with pytest.warns(anyrec.NotStored, match="1 key not stored: FFRecord files have no keys"):
        with anyrec.create("x.ffr") as writer:
            writer.write(b"x", key=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with anyrec.create("x.rec") as writer:
            writer.write(b"x", key=1)


def test_text_paths_and_options_of_every_format() -> None:
    with anyrec.create(pathlib.Path("a.rec"), index_file="other.idx", wide_labels=True) as writer:
        writer.write("grün", key="k", label=np.float32(2.5))
    assert pathlib.Path("other.idx").read_text() == "k\t0\n"
    with anyrec.create("b.ffr", count=1, durability="process") as writer:
        writer.write("x")
        with pytest.raises(ValueError, match="Exceed total number of samples: 1"):
            writer.write("y")
    with anyrec.create("c", "grail", transformers=["flate 9"], header={"n": 2**64 - 1}) as writer:
        writer.write("x")
    assert anyrec.open("c").metadata["header"][-1] == ("n", 2**64 - 1)
    with anyrec.create("d-idx2-short.gz", dtype=np.int16, item_shape=[2]) as writer:
        writer.write(np.array([1, -2], dtype=">i2"))
    assert anyrec.idx.read("d-idx2-short.gz").tolist() == [[1, -2]]


def test_wrong_options_are_told() -> None:
    with pytest.raises(TypeError, match=r"^create\(\) got an unexpected keyword argument 'colour'$"):
        anyrec.create("x.ffr", colour="red")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="FFRecord files have no setting `gzip`"):
        anyrec.create("x.ffr", gzip=True)
    with pytest.raises(anyrec.UnsupportedFormat, match="cannot infer a format from"):
        anyrec.create("x.zip")
    with pytest.raises(anyrec.UnsupportedFormat, match="there is no format"):
        anyrec.create("x.zip", "zip")
    with pytest.raises(TypeError):
        anyrec.create("x.rec").write(b"", key=1.5)  # type: ignore[arg-type]
