"""Images and arrays are what MXNet's are."""

from __future__ import annotations

import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
from anyrec.mxnet import NDArray, pack_img, unpack

from .test_compat import run_script

ORIGINAL = os.environ.get("ANYREC_MXNET_PYTHON")
SCRIPT = Path(__file__).with_name("mxnet_arrays.py")


@pytest.fixture
def images():
    """Encoded images: smooth, so that a difference in a filter shows and noise does not."""
    rows, columns = np.mgrid[0:48, 0:70]
    color = np.stack([rows * 5, columns * 3, 128 + 100 * np.sin(rows / 7) * np.cos(columns / 5)], axis=2)
    made = {"color.jpg": color, "color.png": color, "gray.jpg": color[:, :, 2], "gray.png": color[:, :, 2]}
    alpha = np.concatenate([color, color[:, :, :1]], axis=2)
    made |= {"alpha.png": alpha, "deep.png": (color * 256).astype(np.uint16)}
    for name, image in made.items():
        _, data = unpack(pack_img((0, 0, 0, 0), image, img_fmt=Path(name).suffix))
        Path(name).write_bytes(data)
    return list(made)


def test_every_call_gives_what_the_original_gives(images):
    if ORIGINAL is None:
        pytest.skip("MXNET'S ARRAYS NOT COMPARED: ANYREC_MXNET_PYTHON names no Python that has mxnet 1.9.1")
    run_script(SCRIPT, *images, "ours.pickle")
    command = [ORIGINAL, "-W", "ignore", SCRIPT, *images, "theirs.pickle"]
    subprocess.run(command, check=True, capture_output=True)
    ours, theirs = (pickle.loads(Path(f"{name}.pickle").read_bytes()) for name in ("ours", "theirs"))
    assert list(ours) == list(theirs) and len(ours) > 250
    for (name, what), expected in theirs.items():
        assert_alike(ours[name, what], expected, tolerance(name, what), f"{name}: {what}")


def tolerance(name, what):
    """Only JPEGs and filters may be computed a little differently; most of all area, to enlarge."""
    if what.startswith("resize 3"):
        return 8
    return 3 if name.endswith(".jpg") or what.startswith(("resize", "short")) else 0


def assert_alike(found, expected, tolerance, where):
    if isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray) and found.dtype == expected.dtype, where
        assert found.shape == expected.shape, where
        if found.size:
            assert np.abs(found.astype(float) - expected).max() <= tolerance, where
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), where
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other, tolerance, where)
    elif hasattr(expected, "asnumpy"):
        raise AssertionError(f"{where}: not shown")
    else:
        assert found == expected, where


def test_asnumpy_copies_and_asarray_does_not():
    array = NDArray(np.zeros((2, 3), np.uint8))
    copy, memory = array.asnumpy(), np.asarray(array)
    array[0] = 7
    assert copy.max() == 0 and memory.tolist() == [[7] * 3, [0] * 3]
    assert np.asarray(array, np.float32).dtype == np.float32


def test_arithmetic_is_refused_instead_of_wrong():
    array = NDArray(np.zeros(3, np.uint8))
    for work in (
        lambda: array + 1,
        lambda: 1 + array,
        lambda: array / array,
        lambda: np.zeros(3) * array,
        lambda: array == array,
        lambda: array < 1,
        lambda: -array,
    ):
        with pytest.raises(TypeError):
            work()
    with pytest.raises(AttributeError, match=r"no mxnet\.nd\.NDArray\.mean: asnumpy"):
        array.mean()
    with pytest.raises(TypeError):
        hash(array)


def test_garbage_is_the_originals_error(run_python):
    run_python(
        """
import anyrec.compat
anyrec.compat.install()
import mxnet as mx
for data in (b"garbage", b"\\xff\\xd8\\xff\\xe0", b"\\x89PNG\\r\\n\\x1a\\n" + bytes(20)):
    try:
        mx.image.imdecode(data)
    except mx.MXNetError as error:
        assert str(error), data
    else:
        raise AssertionError(data)
"""
    )
