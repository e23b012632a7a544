"""Programs like InsightFace's, which import mxnet, run unchanged under ``python -m anyrec.compat``.

Each does what the file of the same name in deepinsight/insightface does, in its own words.
"""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from anyrec.mxnet import IRHeader, MXIndexedRecordIO, pack, pack_img, unpack, unpack_img

from .test_compat import run_script

SIDE = 112
PERSONS = (3, 2, 4)


def picture(person: int, number: int) -> npt.NDArray[np.uint8]:
    """A smooth picture in BGR that says whose it is, so that JPEG keeps it."""
    image = np.zeros((SIDE, SIDE, 3), np.uint8)
    image[:, :, 0] = np.linspace(0, 200, SIDE)
    image[:, :, 1] = 40 + 50 * person
    image[:, :, 2] = 40 + 40 * number
    return image


@pytest.fixture
def faces() -> Path:
    """A folder with a header record, the images, and a record for each person."""
    folder = Path("faces")
    folder.mkdir()
    with MXIndexedRecordIO(folder / "train.idx", folder / "train.rec", "w") as record:
        key, ranges = 1, []
        for person, count in enumerate(PERSONS):
            ranges.append((key, key + count))
            for number in range(count):
                header = IRHeader(0, float(person), key, 0)
                record.write_idx(key, pack_img(header, picture(person, number), quality=100))
                key += 1
        for at, span in enumerate(ranges):
            record.write_idx(key + at, pack(IRHeader(0, span, key + at, 0), b""))
        record.write_idx(0, pack(IRHeader(0, (key, key + len(PERSONS)), 0, 0), b""))
    (folder / "property").write_text(f"{len(PERSONS)},{SIDE},{SIDE}")
    return folder


DATASET = """
import numbers
import os
import sys

import mxnet as mx
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Faces(Dataset):
    def __init__(self, folder):
        files = [os.path.join(folder, "train" + ending) for ending in (".idx", ".rec")]
        self.record = mx.recordio.MXIndexedRecordIO(*files, "r")
        first, _ = mx.recordio.unpack(self.record.read_idx(0))
        if first.flag > 0:
            self.numbers = np.arange(1, int(first.label[0]))
        else:
            self.numbers = np.array(list(self.record.keys))

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, at):
        header, encoded = mx.recordio.unpack(self.record.read_idx(self.numbers[at]))
        person = header.label if isinstance(header.label, numbers.Number) else header.label[0]
        image = mx.image.imdecode(encoded).asnumpy()
        return torch.from_numpy(image).permute(2, 0, 1), torch.tensor(person, dtype=torch.long)


if __name__ == "__main__":
    workers, method = int(sys.argv[2]), sys.argv[3] or None
    loader = DataLoader(
        Faces(sys.argv[1]), batch_size=4, num_workers=workers, multiprocessing_context=method
    )
    for images, persons in loader:
        for image, person in zip(images, persons):
            print(person.item(), *(int(channel.float().mean().round()) for channel in image))
"""


@pytest.mark.parametrize("workers, method", [(0, ""), (2, "fork"), (2, "spawn")])
def test_dataset_of_faces_under_a_loader_with_workers(faces, workers, method):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    Path("dataset.py").write_text(DATASET)
    printed = run_script("dataset.py", faces, workers, method).stdout.splitlines()
    found = [tuple(map(int, line.split())) for line in printed]
    expected = [(person, number) for person, count in enumerate(PERSONS) for number in range(count)]
    assert [line[0] for line in found] == [person for person, _ in expected]
    for (_, red, green, blue), (person, number) in zip(found, expected, strict=True):
        # Red comes first: what was BGR in the record is RGB in the sample.
        assert abs(red - (40 + 40 * number)) <= 2 and abs(green - (40 + 50 * person)) <= 2
        assert abs(blue - 100) <= 2


VERIFICATION = """
import pickle
import sys

import mxnet as mx
import numpy as np
from mxnet import ndarray as nd


def load(path, size):
    with open(path, "rb") as file:
        encoded, same = pickle.load(file)
    both = [nd.empty((len(same) * 2, 3, *size)), nd.zeros((len(same) * 2, 3, *size), dtype="uint8")]
    for number in range(len(same) * 2):
        image = mx.image.imdecode(encoded[number])
        if image.shape[1] != size[0]:
            image = mx.image.resize_short(image, size[0])
        image = nd.transpose(image, axes=(2, 0, 1))
        for flipped, data in enumerate(both):
            if flipped:
                image = mx.ndarray.flip(data=image, axis=2)
            data[number][:] = image
    return both, same


both, same = load(sys.argv[1], (112, 112))
np.savez(sys.argv[2], plain=both[0].asnumpy(), flipped=both[1].asnumpy(), same=same)
"""


def test_pairs_of_faces_are_loaded_from_a_bin_file(tmp_path):
    """``lfw.bin`` is a pickle of encoded images and of which pairs are one person's."""
    cv2 = pytest.importorskip("cv2", reason="OpenCV decodes and resizes for comparison")
    images = [picture(0, 0), picture(0, 1), cv2.resize(picture(1, 0), (160, 160)), picture(2, 1)[:, ::-1]]
    encoded = [unpack(pack_img((0, 0, 0, 0), image))[1] for image in images]
    Path("lfw.bin").write_bytes(pickle.dumps((encoded, [True, False])))
    Path("verification.py").write_text(VERIFICATION)
    run_script("verification.py", "lfw.bin", "pairs.npz")
    found = np.load("pairs.npz")
    assert found["plain"].dtype == np.float32 and found["flipped"].dtype == np.uint8
    assert found["plain"].shape == found["flipped"].shape == (4, 3, 112, 112)
    assert found["same"].tolist() == [True, False]
    assert np.array_equal(found["plain"][..., ::-1], found["flipped"])
    for data, image in zip(encoded, found["plain"], strict=True):
        expected = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
        if len(expected) != SIDE:
            expected = cv2.resize(expected, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
        assert np.abs(image.transpose(1, 2, 0) - expected).max() <= 2


REC2IMAGE = """
import argparse
import os

import cv2
import mxnet as mx
from mxnet import ndarray as nd

options = argparse.ArgumentParser()
options.add_argument("--include")
options.add_argument("--output")
options = options.parse_args()
for number, folder in enumerate(options.include.split(",")):
    files = [os.path.join(folder, "train" + ending) for ending in (".idx", ".rec")]
    record = mx.recordio.MXIndexedRecordIO(*files, "r")
    header, _ = mx.recordio.unpack(record.read_idx(0))
    assert header.flag > 0
    print("header0 label", header.label)
    for identity in range(int(header.label[0]), int(header.label[1])):
        target = os.path.join(options.output, "%d_%d" % (number, identity))
        os.makedirs(target)
        header_of_one, _ = mx.recordio.unpack(record.read_idx(identity))
        begin, end = map(int, header_of_one.label)
        for at, key in enumerate(range(begin, end)):
            _, encoded = mx.recordio.unpack(record.read_idx(key))
            bgr = mx.image.imdecode(encoded).asnumpy()[:, :, ::-1]
            cv2.imwrite(os.path.join(target, "%d.jpg" % at), bgr)
"""


def test_records_become_image_files_by_identity(faces):
    cv2 = pytest.importorskip("cv2", reason="the script needs it")
    Path("rec2image.py").write_text(REC2IMAGE)
    done = run_script("rec2image.py", "--include", faces, "--output", "out")
    assert done.stdout == "header0 label [10. 13.]\n"
    assert sorted(path.name for path in Path("out").iterdir()) == ["0_10", "0_11", "0_12"]
    for person, count in enumerate(PERSONS):
        folder = Path(f"out/0_{10 + person}")
        assert sorted(path.name for path in folder.iterdir()) == [f"{at}.jpg" for at in range(count)]
        for number in range(count):
            image = cv2.imread(str(folder / f"{number}.jpg"))
            assert np.abs(image.astype(int) - picture(person, number)).max() <= 12


IM2REC = ("-m", "mxnet.tools.im2rec")


@pytest.fixture
def folders() -> Path:
    for person, count in enumerate(PERSONS):
        Path(f"images/person{person}").mkdir(parents=True)
        for number in range(count):
            _, data = unpack(pack_img((0, 0, 0, 0), picture(person, number)))
            Path(f"images/person{person}/{number}.jpg").write_bytes(data)
    return Path("images")


@pytest.mark.parametrize("encoding", [".jpg", ".png"])
def test_folders_are_listed_and_then_packed(folders, encoding):
    listed = run_script(*IM2REC, "--list", "--recursive", "faces", folders)
    assert listed.stdout.splitlines() == ["person0 0", "person1 1", "person2 2"]
    lines = [line.split("\t") for line in Path("faces.lst").read_text().splitlines()]
    assert sorted(int(line[0]) for line in lines) == list(range(sum(PERSONS)))
    assert all(line[2].startswith(f"person{int(float(line[1]))}/") for line in lines)
    for _ in range(2):
        # As with the original, the second run replaces what the first one wrote.
        run_script(*IM2REC, "--encoding", encoding, "--resize", "56", "--num-thread", "2", "faces", folders)
    record = MXIndexedRecordIO("faces.idx", "faces.rec", "r")
    assert record.keys == [int(line[0]) for line in lines]
    for number, label, path in lines:
        data = record.read_idx(int(number))
        header, image = unpack_img(data)
        assert header.label == float(label) and header.id == int(number) and image.shape == (56, 56, 3)
        assert unpack(data)[1].startswith(b"\x89PNG" if encoding == ".png" else b"\xff\xd8")
        person, at = int(path[6]), int(path[8])
        assert abs(int(image[28, 28, 1]) - (40 + 50 * person)) <= 6
        assert abs(int(image[28, 28, 2]) - (40 + 40 * at)) <= 6


def test_im2rec_that_cannot_run_says_so_and_fails():
    done = run_script(*IM2REC, "--list", "data", "no-such-folder", check=False)
    assert done.returncode != 0 and "no-such-folder" in done.stderr
    assert not Path("data.lst").exists()


def test_module_is_run_like_a_script(tmp_path):
    (tmp_path / "tool.py").write_text(
        "import sys\nimport mxnet as mx\n"
        "assert __name__ == '__main__'\n"
        "print(sys.argv[1:], mx.__version__)\n"
    )
    assert run_script("-m", "tool", "--x", "1").stdout == "['--x', '1'] 1.9.1\n"
    assert run_script("-m", check=False).returncode == 2
    done = run_script("-m", "no_such_tool", check=False)
    assert done.returncode == 1 and "no_such_tool" in done.stderr


REC2IDX = """
import ctypes
import sys

from mxnet import recordio
from mxnet.base import _LIB, check_call


class Creator(recordio.MXRecordIO):
    def __init__(self, path, index):
        self.index_path, self.lines = index, None
        super().__init__(path, "r")

    def open(self):
        super().open()
        self.lines = open(self.index_path, "w")

    def close(self):
        if self.is_open:
            super().close()
            self.lines.close()

    def tell(self):
        position = ctypes.c_size_t()
        check_call(_LIB.MXRecordIOReaderTell(self.handle, ctypes.byref(position)))
        return position.value

    def create(self):
        self.reset()
        key = 0
        while True:
            position = self.tell()
            if self.read() is None:
                break
            self.lines.write("%d\\t%d\\n" % (key, position))
            key += 1


creator = Creator(*sys.argv[1:])
creator.create()
creator.close()
"""


def test_index_is_made_with_the_c_library_of_the_original(tmp_path):
    magic = struct.pack("<I", 0xCED7230A)
    with MXIndexedRecordIO("a.idx", "a.rec", "w") as record:
        for key, data in enumerate([b"", b"abc", magic * 3, b"12345678" + magic]):
            record.write_idx(key, data)
    Path("rec2idx.py").write_text(REC2IDX)
    run_script("rec2idx.py", "a.rec", "made.idx")
    assert Path("made.idx").read_text() == Path("a.idx").read_text()


def test_what_is_not_there_is_named(run_python):
    run_python(
        """
import anyrec.compat
anyrec.compat.install()
import mxnet as mx

def message(kind, work):
    try:
        work()
    except kind as error:
        return str(error)
    raise AssertionError("no error")

def load(statement):
    return lambda: exec(statement, {})

found = message(AttributeError, lambda: mx.gluon)
assert "no mxnet.gluon" in found and "mxnet.recordio" in found and "mxnet.image" in found, found
for statement in ("import mxnet.gluon", "from mxnet import gluon", "import mxnet.gluon.data"):
    found = message(ImportError, load(statement))
    assert "no mxnet.gluon" in found and "mxnet.image" in found, found
found = message(ImportError, load("from mxnet.image import ImageIter"))
assert "ImageIter" in found and "mxnet.image" in found, found
found = message(AttributeError, lambda: mx.image.ImageIter)
assert "no mxnet.image.ImageIter" in found and "mxnet.image.imdecode" in found, found
found = message(AttributeError, lambda: mx.nd.dot)
assert "no mxnet.ndarray.dot" in found and "mxnet.ndarray.zeros" in found, found
found = message(AttributeError, lambda: mx.nd.zeros(3).sum())
assert "no mxnet.nd.NDArray.sum" in found and "asnumpy" in found, found
found = message(AttributeError, lambda: mx.base._LIB.MXNDArrayCreate)
assert "no mxnet.base._LIB.MXNDArrayCreate" in found and "MXRecordIOReaderTell" in found, found
found = message(AttributeError, lambda: mx.io.NDArrayIter)
assert "no mxnet.io.NDArrayIter" in found and "ImageRecordIter" in found, found
for work in (lambda: mx.nd.zeros(3) + 1, lambda: 1 - mx.nd.zeros(3), lambda: mx.nd.zeros(3) == 0):
    assert "asnumpy" in message(TypeError, work)
assert "ctx" in message(TypeError, lambda: mx.nd.zeros(3, "gpu(0)"))
assert not hasattr(mx, "gluon")
"""
    )


@pytest.mark.parametrize("module", ["mxnet.tools.im2rec", "mxnet.tools"])
def test_tool_is_a_module_once_installed(run_python, module):
    code = f"import anyrec.compat; anyrec.compat.install(); import {module} as m; print(m.__name__)"
    assert run_python(code).stdout.strip() == module
