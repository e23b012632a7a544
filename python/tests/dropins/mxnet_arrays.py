"""Calls of ``mxnet.image`` and ``mxnet.nd``, or of what stands in for them.

``python mxnet_arrays.py IMAGE... TARGET`` writes what every call gave to TARGET, as a pickle of plain
values and NumPy arrays. Run by two interpreters, one with the original, the results must be alike.
"""

from __future__ import annotations

import pickle
import sys

import mxnet as mx  # type: ignore[import-not-found,unused-ignore]
import numpy as np
from mxnet import nd


def shown(value):
    if isinstance(value, nd.NDArray):
        return value.asnumpy(), np.dtype(value.dtype).name, value.shape, value.ndim, value.size
    return value


def calls(name, data):
    decode = mx.image.imdecode
    yield "decode", lambda: decode(data)
    yield "gray", lambda: decode(data, 0)
    yield "bgr", lambda: decode(data, to_rgb=0)
    yield "bgr by place", lambda: decode(data, 1, False)
    yield "bytearray", lambda: decode(bytearray(data))
    yield "array", lambda: decode(np.frombuffer(data, np.uint8))
    yield "nd", lambda: decode(nd.array(np.frombuffer(data, np.uint8), dtype="uint8"))
    yield "memoryview", lambda: decode(memoryview(data))
    yield "text", lambda: decode("text")
    yield "flag -1", lambda: decode(data, flag=-1)
    yield "empty", lambda: decode(b"")
    image = decode(data)
    height, width, _ = image.shape
    for interp in range(5):
        for size in ((width // 2, height // 3), (width * 2, height + 7), (width - 5, height * 2)):
            yield f"resize {interp} {size}", lambda i=interp, s=size: mx.image.imresize(image, *s, interp=i)
    yield "resize", lambda: mx.image.imresize(image, 10, 20)
    yield "resize gray", lambda: mx.image.imresize(decode(data, 0), 10, 20)
    yield "resize to nothing", lambda: mx.image.imresize(image, 0, 20)
    yield "resize 9", lambda: mx.image.imresize(image, 10, 20, interp=9)
    for size in (8, 33, 200):
        yield f"short {size}", lambda s=size: mx.image.resize_short(image, s)
        yield f"short {size} 9", lambda s=size: mx.image.resize_short(image, s, 9)
    yield "short 7", lambda: mx.image.resize_short(image, 20, 7)
    yield "short of two dimensions", lambda: mx.image.resize_short(image[:, :, 0], 20)
    out = nd.zeros(image.shape, dtype="uint8")
    yield "out", lambda: [shown(decode(data, out=out)), shown(out)]


def arrays():
    image = nd.array(np.arange(120).reshape(4, 10, 3), dtype="uint8")
    yield "transpose", lambda: nd.transpose(image, axes=(2, 0, 1))
    yield "transpose of all", lambda: nd.transpose(image)
    yield "transpose by method", lambda: image.transpose((2, 0, 1))
    yield "T", lambda: image.T
    yield "flip", lambda: mx.ndarray.flip(data=image, axis=2)
    yield "flip twice", lambda: nd.flip(image, axis=(0, 1))
    for what in ([1, 2], 3, [True], np.zeros(3), np.zeros(3, np.uint8), np.zeros((2, 2), np.int64), image):
        yield f"array of {type(what).__name__} {getattr(what, 'dtype', '')}", lambda w=what: nd.array(w)
    yield "array as", lambda: nd.array([1, 2], dtype="int32")
    for make in (nd.zeros, nd.ones):
        yield make.__name__, lambda m=make: m((2, 3))
        yield f"{make.__name__} as", lambda m=make: m(4, dtype="uint8")
    yield "empty", lambda: nd.empty((2, 3)).shape
    keys = [0, -1, (0, 1), (0, 1, 2), slice(1, 3), (slice(None), slice(None, None, -1)), [1, 2], None, 99]
    for key in [*keys, np.array([1, 2]), nd.array([1, 2]), (slice(None), 1), Ellipsis]:
        yield f"index {key if not hasattr(key, 'shape') else type(key).__name__}", lambda k=key: image[k]
    yield "length", lambda: len(image)
    yield "iteration", lambda: [shown(part) for part in image]
    yield "scalar", lambda: nd.array([3]).asscalar()
    yield "no scalar", lambda: image.asscalar()
    yield "truth", lambda: [bool(nd.array([3])), bool(nd.array([0]))]
    yield "truth of many", lambda: bool(image)
    yield "astype", lambda: image.astype("float32")
    yield "reshape", lambda: image.reshape((-1, 3))
    yield "reshape by numbers", lambda: image.reshape(-1, 3)
    yield "copy", lambda: image.copy()
    yield "waits", lambda: image.wait_to_read()
    yield "pickle", lambda: pickle.loads(pickle.dumps(image))

    def changed(key, value):
        array = image.copy()
        array[key] = value
        return array

    for value in (7, np.zeros((4, 10, 3)), image, np.full((10, 3), 2)):
        yield f"assigned {type(value).__name__}", lambda v=value: changed(slice(None), v)
    yield "assigned one", lambda: changed((0, 0), 5)
    for part in (slice(0, 2), (0, 1), (slice(None), slice(1, 3)), 1):

        def through(part=part):
            array = image.copy()
            piece = array[part]
            piece[:] = 7
            return array

        yield f"changed through {part}", through


def main(images, target):
    results = {}
    for name in images:
        with open(name, "rb") as file:
            data = file.read()
        for what, work in calls(name, data):
            results[name, what] = outcome(work)
    for what, work in arrays():
        results["arrays", what] = outcome(work)
    with open(target, "wb") as file:
        pickle.dump(results, file)


def outcome(work):
    try:
        return shown(work())
    except (mx.MXNetError, ValueError, TypeError, IndexError, AssertionError) as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        names = ("MXNetError", "IndexError", "ValueError", "TypeError", "AssertionError")
        return next(name for name in names if name in kinds)


if __name__ == "__main__":
    main(sys.argv[1:-1], sys.argv[-1])
