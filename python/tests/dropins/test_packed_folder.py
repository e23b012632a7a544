"""Packed folders, as `ffrecord` packs, lists and reads them."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path

import anyrec
import numpy as np
import pytest
from anyrec.ffrecord import FileReader, FileWriter, PackedFolder, pack_folder

from .conftest import digest, golden

FOLDER, MANIFEST = golden("ffrecord")
PACKED = [packed for packed in MANIFEST["packed"] if "entries" in packed and "names_encoding" not in packed]


def kinds(names):
    return [[str(name), "str" if isinstance(name, str) else "Path"] for name in names]


@pytest.mark.parametrize("packed", PACKED, ids=lambda packed: packed["path"])
def test_folder_of_the_original_is_listed_and_read(packed):
    folder = PackedFolder(FOLDER / packed["path"])
    assert folder.num_files() == packed["num_files"]
    for path, names in packed["list"].items():
        assert folder.list(path) == names
        assert folder.is_dir(path) and not folder.is_file(path)
    assert kinds(folder.list(recursive=True)) == packed["list_recursive"]
    assert folder.list(list_dir=False) == packed["list_files_only"]
    assert folder.list(list_file=False) == packed["list_dirs_only"]
    assert kinds(folder.list(list_dir=False, recursive=True)) == packed["list_recursive_files_only"]
    assert kinds(folder.list(list_file=False, recursive=True)) == packed["list_recursive_dirs_only"]
    reader = FileReader(FOLDER / packed["path"])
    for path, index in packed["entries"]:
        assert folder.exists(path) and folder.is_file(path) == (index is not None)
        if index is not None:
            assert bytes(folder.read_one(path)) == bytes(reader.read_one(index))


def test_names_that_are_not_unicode_keep_their_surrogates():
    folder = PackedFolder(FOLDER / "packed_surrogate.ffr")
    bad = os.fsdecode(b"bad\xff\xfename")
    assert folder.list() == [bad, "ok"] and folder.is_file(bad)
    assert bytes(folder.read_one(bad)) == bytes(FileReader(FOLDER / "packed_surrogate.ffr").read_one(0))


@pytest.mark.parametrize(
    "query", MANIFEST["packed_queries"]["queries"], ids=lambda query: query["path"] or "empty"
)
def test_path_is_answered_as_by_the_original(query):
    folder = PackedFolder(FOLDER / MANIFEST["packed_queries"]["file"])
    path = query["path"]

    def outcome(expected, call):
        if "ok" in expected:
            return call() == expected["ok"]
        # Where the original stumbles over a file used as a folder, the path does not exist here.
        message = expected["msg"] if expected["exc"] == "AssertionError" else f"{path} does not exist"
        with pytest.raises(AssertionError) as caught:
            call()
        return str(caught.value) == message

    for question in ("exists", "is_file", "is_dir"):
        expected = query[question]
        assert getattr(folder, question)(path) == expected.get("ok", False)
    assert outcome(query["list"], lambda: folder.list(path))
    assert outcome(query["read_one"], lambda: digest(folder.read_one(path)))
    assert outcome(query["read"], lambda: [digest(data) for data in folder.read([path, "001.txt"])])


@pytest.fixture
def just_a_folder():
    root = Path("just_a_folder")
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "a.txt").write_text("a")
    (root / "Z.txt").write_text("Z")
    (root / "sub" / "deep" / "é.txt").write_text("é")
    (root / "link").symlink_to("sub")
    return root


def test_packing_sorts_by_code_point_follows_links_and_keeps_empty_folders(just_a_folder):
    pack_folder(just_a_folder, "packed.ffr")
    folder = PackedFolder("packed.ffr")
    assert folder.list() == ["Z.txt", "a.txt", "empty", "link", "sub"]
    assert folder.list("empty") == [] and folder.num_files() == 4
    assert bytes(folder.read("link/deep/é.txt")) == "é".encode()


def test_what_is_packed_is_what_the_original_reads(just_a_folder):
    pack_folder(just_a_folder, "packed.ffr")
    reader = FileReader("packed.ffr")
    tree = bytes(reader.read_one(reader.n - 1))
    assert tree.startswith(b"piouhjgbr")
    structure = pickle.loads(tree[9:])
    deep = OrderedDict([("deep", OrderedDict([("é.txt", 2)]))])
    assert structure == OrderedDict(
        [("Z.txt", 0), ("a.txt", 1), ("empty", OrderedDict()), ("link", deep)]
        + [("sub", OrderedDict([("deep", OrderedDict([("é.txt", 3)]))]))]
    )
    assert isinstance(structure, OrderedDict) and isinstance(structure["sub"], OrderedDict)


def test_packing_verbosely_shows_each_file_once_and_nothing_that_steers_the_terminal(just_a_folder, capsys):
    (just_a_folder / "bell\x1b[31m").write_text("x")
    pack_folder(just_a_folder, "packed.ffr", verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and lines[0] == "0/5 just_a_folder/Z.txt"
    assert not any("\x1b" in line for line in lines)


def test_packing_replaces_an_old_file_and_refuses_what_is_no_folder(just_a_folder):
    Path("packed.ffr").touch()
    pack_folder(just_a_folder, "packed.ffr")
    assert PackedFolder("packed.ffr").num_files() == 4
    with pytest.raises(AssertionError, match="'folder' must be a directory"):
        pack_folder("packed.ffr", "other.ffr")


def test_one_path_or_a_list_is_read(just_a_folder):
    pack_folder(just_a_folder, "packed.ffr")
    folder = PackedFolder(Path("packed.ffr"))
    assert bytes(folder.read("a.txt")) == b"a" and bytes(folder.read(Path("a.txt"))) == b"a"
    assert [bytes(data) for data in folder.read(["a.txt", "Z.txt", "a.txt"])] == [b"a", b"Z", b"a"]
    assert [bytes(data) for data in folder.read(("a.txt",))] == [b"a"]
    assert folder.read_one("a.txt").flags.writeable


def test_file_that_is_no_packed_folder_is_a_value_error():
    with FileWriter("a.ffr", 1) as writer:
        writer.write_one(b"just a sample")
    with pytest.raises(ValueError, match="a.ffr is not a packed folder"):
        PackedFolder("a.ffr")
    with FileWriter("b.ffr", 0):
        pass
    with pytest.raises(ValueError, match="b.ffr is not a packed folder"):
        PackedFolder("b.ffr")
    with pytest.raises(AssertionError, match="c.ffr does not exist"):
        PackedFolder("c.ffr")


def test_tree_that_would_run_code_is_refused():
    class Evil:
        def __reduce__(self):
            return os.mkdir, ("owned",)

    with FileWriter("a.ffr", 1) as writer:
        writer.write_one(b"piouhjgbr" + pickle.dumps(Evil()))
    with pytest.raises(ValueError):
        PackedFolder("a.ffr")
    assert not os.path.exists("owned")


def test_damaged_file_in_the_folder_is_an_error(just_a_folder):
    pack_folder(just_a_folder, "packed.ffr")
    at = FileReader("packed.ffr").get_offsets(0)[1]
    data = bytearray(Path("packed.ffr").read_bytes())
    data[at] ^= 1
    Path("packed.ffr").write_bytes(data)
    with pytest.raises(anyrec.AnyrecError, match="checksum"):
        PackedFolder("packed.ffr").read("a.txt")
    assert bytes(PackedFolder("packed.ffr", check_data=False).read("a.txt")) != b"a"


def test_reader_and_structure_are_those_of_the_original(just_a_folder):
    pack_folder(just_a_folder, "a.ffr")
    folder = PackedFolder("a.ffr")
    assert folder.reader.n == folder.num_files() + 1 and isinstance(folder.reader, FileReader)
    # The last sample is the tree, which this test wrote itself and may unpickle.
    tree = bytes(folder.reader.read_one(folder.reader.n - 1)).removeprefix(b"piouhjgbr")
    assert folder.structure == pickle.loads(tree)
    assert type(folder.structure) is OrderedDict

    def kinds_below(node):
        return {type(child) for child in node.values()} | {
            kind for child in node.values() if isinstance(child, dict) for kind in kinds_below(child)
        }

    assert kinds_below(folder.structure) == {int, OrderedDict}


def test_folder_is_pickled_by_its_path(just_a_folder):
    pack_folder(just_a_folder, "packed.ffr")
    assert pickle.loads(pickle.dumps(PackedFolder("packed.ffr"))).list("sub") == ["deep"]


def test_text_json_npy_and_npz_are_read_through_a_buffer():
    root = Path("data")
    root.mkdir()
    array = np.arange(6).reshape(2, 3)
    (root / "a.json").write_text(json.dumps({"a": [1, 2]}))
    np.save(root / "a.npy", array)
    np.savez(root / "a.npz", array)
    pack_folder(root, "data.ffr")
    folder = PackedFolder("data.ffr")
    assert json.loads(io.BytesIO(folder.read_one("a.json")).read().decode()) == {"a": [1, 2]}
    assert np.array_equal(np.load(io.BytesIO(folder.read_one("a.npy"))), array)
    archive = zipfile.ZipFile(io.BytesIO(folder.read_one("a.npz")))
    with archive.open("arr_0.npy") as member:
        assert np.array_equal(np.load(member), array)


def test_picture_is_decoded_by_opencv_as_in_the_originals_recipe():
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
    root = Path("pictures")
    root.mkdir()
    picture = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    cv2.imwrite(str(root / "a.png"), picture)
    pack_folder(root, "pictures.ffr")
    stream = io.BytesIO(PackedFolder("pictures.ffr").read_one("a.png"))
    decoded = cv2.imdecode(np.frombuffer(stream.read(), np.uint8), cv2.IMREAD_COLOR)
    assert np.array_equal(decoded[:, :, ::-1], picture[:, :, ::-1])
