"""The part of ``mxnet.image`` that scripts use to decode and resize images."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _anyrec
from ..errors import AnyrecError
from .errors import MXNetError, MXNetInvalid, as_original
from .ndarray import NDArray, checked

__all__ = ["imdecode", "imresize", "resize_short"]

_GRAY, _COLOR = 0, 1
# The numbers for "chosen by the sizes" and "chosen at random".
_AUTOMATIC, _RANDOM = 9, 10


def imdecode(
    buf: bytes | bytearray | npt.NDArray[Any] | NDArray,
    flag: int = 1,
    to_rgb: bool | int = True,
    out: NDArray | None = None,
) -> NDArray:
    """Decodes an image to an array of height x width x channels.

    Args:
        buf: the encoded image.
        flag: 1 for three channels, 0 for one.
        to_rgb: whether the order is RGB (the default) or BGR.
        out: the array that receives the image.
    """
    if isinstance(buf, NDArray):
        buf = buf.asnumpy()
    if not isinstance(buf, bytes | bytearray | np.ndarray):
        raise ValueError(
            "buf must be of type bytes, bytearray or numpy.ndarray, "
            f"if you would like to input type str, please convert to bytes (it is {type(buf).__name__})"
        )
    if flag not in (_GRAY, _COLOR):
        raise MXNetInvalid(f"mxnet.image.imdecode: flag is 0 (gray) or 1 (color), not {flag}")
    if len(buf) == 0:
        raise MXNetError("Input cannot be an empty buffer")
    try:
        image = _anyrec.decode_image(buf, flag, rgb=bool(to_rgb))
    except AnyrecError as error:
        raise as_original(error) from error
    return _given(image if flag == _COLOR else image[:, :, np.newaxis], out)


def imresize(src: NDArray, w: int, h: int, interp: int = 1, out: NDArray | None = None) -> NDArray:
    """Resizes an image of height x width x channels to a width and a height.

    Args:
        src: the image, with up to four channels of 8 or 16 bits.
        w: the new width.
        h: the new height.
        interp: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos.
        out: the array that receives the image.
    """
    image: npt.NDArray[Any] = np.asarray(checked("imresize", src))
    if image.ndim != 3:
        raise MXNetInvalid(f"mxnet.image.imresize: the image has 3 dimensions, not {image.ndim}")
    if w < 1 or h < 1:
        raise MXNetInvalid(f"mxnet.image.imresize: w and h are at least 1, not {w} and {h}")
    if interp not in range(5):
        raise MXNetInvalid(f"mxnet.image.imresize: interp is 0 to 4, not {interp}")
    try:
        resized = _anyrec.resize_image(image, w, h, interp)
    except AnyrecError as error:
        raise as_original(error) from error
    return _given(resized, out)


def resize_short(src: NDArray, size: int, interp: int = 2) -> NDArray:
    """Resizes the shorter edge to a length, and the other one in proportion, rounded down.

    Args:
        src: the image, as for :func:`imresize`.
        size: the new length.
        interp: as for :func:`imresize`; 9 takes cubic to enlarge and area to shrink, 10 any at random.
    """
    height, width, _ = src.shape
    if height > width:
        new_width, new_height = size, size * height // width
    else:
        new_width, new_height = size * width // height, size
    if interp == _RANDOM:
        interp = random.randint(0, 4)
    elif interp == _AUTOMATIC:
        if new_height > height and new_width > width:
            interp = 2
        else:
            interp = 3 if new_height < height and new_width < width else 1
    elif interp not in range(5):
        raise ValueError(f"Unknown interp method {interp}")
    return imresize(src, new_width, new_height, interp)


def _given(image: npt.NDArray[Any], out: NDArray | None) -> NDArray:
    """Returns the result, in the caller's array if there is one."""
    if out is None:
        return NDArray(image)
    if checked("out", out).shape != image.shape:
        raise MXNetInvalid(f"out has shape {out.shape}, the image {image.shape}")
    out[:] = image
    return out
