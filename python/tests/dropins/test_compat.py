"""Scripts written for the originals run unchanged."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import anyrec
import numpy as np
import pytest
from anyrec.ffrecord import FileReader
from anyrec.mxnet import MXIndexedRecordIO, MXRecordIO, pack_img, unpack, unpack_img

ORIGINAL = os.environ.get("ANYREC_MXNET_PYTHON")
PACKAGE = str(Path(anyrec.__file__).parents[1])


def run_script(*arguments, check=True, python=sys.executable, module=("-m", "anyrec.compat")):
    environment = {**os.environ, "PYTHONPATH": PACKAGE}
    if not module:
        environment.pop("PYTHONPATH")
    done = subprocess.run(
        [python, *module, *map(str, arguments)], capture_output=True, text=True, timeout=120, env=environment
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def test_installed_names_mean_our_modules(run_python):
    run_python(
        """
import anyrec.compat
anyrec.compat.install()
anyrec.compat.install()
import mxnet as mx
from mxnet import recordio
import mxnet.recordio
import ffrecord, ffrecord.utils, ffrecord.fileio, ffrecord.package
from ffrecord import FileReader, FileWriter, PackedFolder, pack_folder, checkFsAlign
from ffrecord.utils import dump
from mxnet.base import MXNetError
import anyrec.mxnet, anyrec.ffrecord.utils
assert mx.recordio is recordio is mxnet.recordio is anyrec.mxnet
assert ffrecord is anyrec.ffrecord and ffrecord.utils is anyrec.ffrecord.utils
assert MXNetError is mx.MXNetError is anyrec.mxnet.MXNetError
assert mx.__version__ == "1.9.1" and ffrecord.__version__ == "1.4.0"
assert anyrec.ffrecord.__spec__.name == "anyrec.ffrecord"
import sys
assert "torch" not in sys.modules, "nothing needs PyTorch until it is asked for"
import mxnet.base, mxnet.nd, mxnet.ndarray, mxnet.image
assert mx.nd is mx.ndarray is mxnet.nd and mx.image is mx.img
assert mx.base.MXNetError is MXNetError and mx.nd.NDArray is anyrec.mxnet.NDArray
assert mx.io.ImageRecordIter is anyrec.mxnet.ImageRecordIter
from mxnet.io import ImageRecordIter, DataBatch
"""
    )


def test_torch_part_is_ours(run_python):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    run_python(
        """
import anyrec.compat
anyrec.compat.install()
import ffrecord
import ffrecord.torch
from ffrecord.torch import ConcatDataset, DataLoader, Dataset, ReaderRegistry, Subset
import anyrec.ffrecord.torch
assert ffrecord.torch is anyrec.ffrecord.torch and Dataset is anyrec.ffrecord.torch.Dataset
import torch
assert torch.utils.data.DataLoader in DataLoader.__mro__
"""
    )


def test_original_that_is_imported_already_stays(run_python, tmp_path):
    (tmp_path / "mxnet").mkdir()
    (tmp_path / "mxnet" / "__init__.py").write_text("__version__ = 'the real one'\n")
    (tmp_path / "mxnet" / "recordio.py").write_text("")
    run_python(
        """
import mxnet
import anyrec.compat
anyrec.compat.install()
import mxnet.recordio, ffrecord, anyrec.mxnet
assert mxnet.__version__ == "the real one" and mxnet.recordio is not anyrec.mxnet
assert ffrecord is anyrec.ffrecord
"""
    )


def test_script_runs_with_its_arguments_and_folder(tmp_path):
    (tmp_path / "helper.py").write_text("VALUE = 7\n")
    (tmp_path / "script.py").write_text(
        "import sys, helper\n"
        "import mxnet as mx\n"
        "assert __name__ == '__main__' and __file__.endswith('script.py')\n"
        "record = mx.recordio.MXRecordIO(sys.argv[1], 'w')\n"
        "record.write('%d %s' % (helper.VALUE, sys.argv[0]))\n"
    )
    run_script("script.py", "a.rec")
    assert MXRecordIO("a.rec", "r").read() == b"7 script.py"


def test_exit_status_and_failures_are_the_scripts(tmp_path):
    Path("fails.py").write_text("import sys\nsys.exit(3)\n")
    assert run_script("fails.py", check=False).returncode == 3
    Path("raises.py").write_text("import ffrecord\nraise KeyError('from the script')\n")
    done = run_script("raises.py", check=False)
    assert done.returncode == 1 and "from the script" in done.stderr
    assert run_script(check=False).returncode == 2
    done = run_script("missing.py", check=False)
    assert done.returncode == 2 and "missing.py" in done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_script_find_the_modules_too(tmp_path, method):
    Path("script.py").write_text(
        f"""
import multiprocessing
import ffrecord

def read(index):
    return bytes(ffrecord.FileReader("a.ffr").read_one(index))

if __name__ == "__main__":
    with ffrecord.FileWriter("a.ffr", 3) as writer:
        for i in range(3):
            writer.write_one(b"%d" % i)
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        print(pool.map(read, [2, 0, 1]))
"""
    )
    assert run_script("script.py").stdout == "[b'2', b'0', b'1']\n"


def test_snippet_for_ffrecord_runs_as_it_stands(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    Path("script.py").write_text(
        """
import pickle
import ffrecord.torch
from ffrecord import FileReader, FileWriter

writer = FileWriter("train.ffr", 100)
for i in range(100):
    writer.write_one(pickle.dumps(i))
writer.close()

class Numbers(ffrecord.torch.Dataset):
    def __init__(self, fname, check_data=True):
        self.reader = FileReader(fname, check_data)

    def __len__(self):
        return self.reader.n

    def __getitem__(self, indices):
        return [pickle.loads(data) for data in self.reader.read(indices)]

loader = ffrecord.torch.DataLoader(Numbers("train.ffr"), batch_size=16, shuffle=True, num_workers=2)
loader.set_step(4)
print(sum(len(batch) for batch in loader))
"""
    )
    assert run_script("script.py").stdout == "36\n"
    assert FileReader("train.ffr").n == 100


# MXNet's own tool


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Folders of pictures, one for each label."""
    root = tmp_path_factory.mktemp("pictures")
    for label, folder in enumerate(["cat", "dog"]):
        (root / folder).mkdir()
        for number in range(4):
            image = np.zeros((40 + number, 50, 3), np.uint8)
            image[:, :, label] = np.arange(50) * 5
            image[:, :, 2] = number * 60
            _, data = unpack(pack_img((0, 0, 0, 0), image, 95, ".jpg"))
            (root / folder / f"{number}.jpg").write_bytes(data)
    return root


@pytest.fixture(scope="module")
def im2rec():
    if ORIGINAL is None:
        pytest.skip("IM2REC NOT RUN: ANYREC_MXNET_PYTHON names no Python that has mxnet 1.9.1")
    if importlib.util.find_spec("cv2") is None:
        pytest.skip("IM2REC NOT RUN: it needs cv2 (opencv-python-headless)")
    where = "import importlib.util; print(importlib.util.find_spec('mxnet').origin)"
    found = subprocess.run([ORIGINAL, "-c", where], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip()).parent / "tools" / "im2rec.py"


def both(im2rec, *options):
    """Runs the tool on ours and on the original, each in a folder of its own."""
    for folder, python, module in [
        ("ours", sys.executable, ("-m", "anyrec.compat")),
        ("theirs", ORIGINAL, ()),
    ]:
        Path(folder).mkdir(exist_ok=True)
        arguments = [Path(folder).resolve() / option if option == "data" else option for option in options]
        run_script(im2rec, *arguments, python=python, module=module)


@pytest.mark.parametrize("threads", [1, 2])
def test_im2rec_lists_and_packs_as_on_the_original(im2rec, pictures, threads):
    both(im2rec, "--list", "--recursive", "data", pictures)
    both(im2rec, "--pass-through", "--num-thread", threads, "data", pictures)
    for suffix in ("lst", "idx", "rec"):
        ours, theirs = (Path(folder, f"data.{suffix}").read_bytes() for folder in ("ours", "theirs"))
        assert ours == theirs and ours


def test_im2rec_encodes_pictures_close_to_the_original(im2rec, pictures):
    both(im2rec, "--list", "--recursive", "data", pictures)
    both(im2rec, "--resize", "24", "--quality", "90", "--center-crop", "data", pictures)
    ours, theirs = (
        MXIndexedRecordIO(f"{name}/data.idx", f"{name}/data.rec", "r") for name in ("ours", "theirs")
    )
    assert ours.keys == theirs.keys and len(ours) == 8
    for mine, original in zip(ours, theirs, strict=True):
        (header, image), (expected, picture) = unpack_img(mine), unpack_img(original)
        assert header == expected and image.shape == picture.shape
        assert np.abs(image.astype(int) - picture).mean() < 6


def test_im2rec_packs_several_labels_and_png_exactly(im2rec, pictures):
    for folder in ("ours", "theirs"):
        Path(folder).mkdir()
        Path(folder, "data.lst").write_text("0\t1.5\t2.5\tcat/0.jpg\n7\t3.0\t4.0\tdog/1.jpg\n")
    both(im2rec, "--pack-label", "--encoding", ".png", "--quality", "3", "data", pictures)
    ours, theirs = (
        MXIndexedRecordIO(f"{name}/data.idx", f"{name}/data.rec", "r") for name in ("ours", "theirs")
    )
    assert ours.keys == theirs.keys == [0, 7]
    for mine, original in zip(ours, theirs, strict=True):
        (header, image), (expected, picture) = unpack_img(mine), unpack_img(original)
        assert header.label.tolist() == expected.label.tolist() and header.id == expected.id
        assert np.array_equal(image, picture)
