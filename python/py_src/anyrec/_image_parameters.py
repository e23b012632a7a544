"""The parameters of MXNet's ``ImageRecordIter``, and the steps they translate to.

:func:`read_parameters` checks the caller's parameters, and :func:`steps_of` translates them to steps of
:mod:`anyrec.image`. Neither touches a file.
"""

from __future__ import annotations

import difflib
import operator
import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from . import image
from ._mxnet.errors import MXNetInvalid

__all__ = ["Parameters", "of_channels", "read_parameters", "steps_of"]


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """MXNet's parameters, with its defaults."""

    path_imgrec: str
    """The ``.rec`` file, several files separated by ``;``, or a directory."""
    data_shape: tuple[int, int, int]
    """Channels (1, 3 or 4), height and width of a finished image."""
    batch_size: int
    """Images in a batch."""
    path_imgidx: str = ""
    """The index file. It makes opening faster, and parts have equal numbers of records."""
    path_imglist: str = ""
    """A list file whose labels replace the records' own, by id."""
    label_width: int = 1
    """Labels per image."""
    preprocess_threads: int = 4
    """Decoding threads, at most one per core."""
    num_parts: int = 1
    """The number of parts the file is divided into."""
    part_index: int = 0
    """The part to read."""
    shuffle: bool = False
    """Shuffle the whole part in each epoch."""
    seed: int = 0
    """The seed of the order."""
    seed_aug: int | None = None
    """The seed of the random options; ``seed`` if ``None``."""
    round_batch: bool = True
    """Fill the last batch with the records that come next. The next epoch continues after them."""
    prefetch_buffer: int = 4
    """Batches prepared ahead."""
    dtype: str = "float32"
    """``float32``, ``float16``, ``uint8`` (neither mean, std nor scale) or ``int8`` (mean only)."""
    data_name: str = "data"
    """The name in ``provide_data``."""
    label_name: str = "softmax_label"
    """The name in ``provide_label``."""
    resize: int = -1
    """Resize the shorter edge to this first."""
    rotate: int = -1
    """Rotate by this many degrees, instead of ``max_rotate_angle``."""
    max_rotate_angle: int = 0
    """Rotate by a random number of whole degrees, in either direction."""
    pad: int = 0
    """Add this many pixels on every side."""
    fill_value: int = 255
    """The value of pixels added by ``pad``, and by rotation at the corners."""
    rand_crop: bool = False
    """Crop at random instead of from the centre."""
    random_resized_crop: bool = False
    """Crop a random part and resize it to the shape."""
    min_random_area: float = 1.0
    """The smallest area of the part, as a fraction of the image."""
    max_random_area: float = 1.0
    """The largest area."""
    min_aspect_ratio: float | None = None
    """The smallest aspect ratio of the part; 1 - ``max_aspect_ratio`` if ``None``."""
    max_aspect_ratio: float = 0.0
    """The largest aspect ratio; without a smallest one, the largest deviation from 1."""
    brightness: float = 0.0
    """Multiply by 1 - x to 1 + x."""
    contrast: float = 0.0
    """Move away from the mean gray, or towards it, by the same factors."""
    saturation: float = 0.0
    """Move away from each pixel's gray, or towards it, by the same factors."""
    random_h: int = 0
    """Add up to this much to the hue (0 to 180)."""
    random_s: int = 0
    """Add up to this much to the saturation (0 to 255)."""
    random_l: int = 0
    """Add up to this much to the lightness (0 to 255)."""
    pca_noise: float = 0.0
    """Standard deviation of the noise along the colours' principal components."""
    inter_method: int = 1
    """Filter: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos, 9 cubic to enlarge and area to shrink."""
    mirror: bool = False
    """Flip every image."""
    rand_mirror: bool = False
    """Flip half of the images, at random."""
    mean_r: float = 0.0
    mean_g: float = 0.0
    mean_b: float = 0.0
    mean_a: float = 0.0
    """Subtracted from red, green, blue and alpha (from a gray image: ``mean_r``)."""
    std_r: float = 1.0
    std_g: float = 1.0
    std_b: float = 1.0
    std_a: float = 1.0
    """The values are then divided by this."""
    scale: float = 1.0
    """The values are then multiplied by this."""


# MXNet parameters that change nothing here, whatever their value.
_WITHOUT_EFFECT = frozenset({"verbose", "ctx", "device_id", "shuffle_chunk_seed"})

# MXNet parameters that are accepted only with values that do nothing.
_DEFAULT_ONLY: dict[str, Any] = {
    "aug_seq": "aug_default",
    "max_crop_size": -1,
    "max_img_size": 1e10,
    "max_random_contrast": 0.0,
    "max_random_illumination": 0.0,
    "max_random_scale": 1.0,
    "max_shear_ratio": 0.0,
    "mean_img": "",
    "min_crop_size": -1,
    "min_img_size": 0.0,
    "min_random_scale": 1.0,
    "rotate_list": "",
    "shuffle_chunk_size": 0,
}

_FILTERS = {
    0: "cv-nearest",
    1: "cv-linear",
    2: "cv-cubic",
    3: "cv-area",
    4: "cv-lanczos4",
    9: "cv-auto",
}
# Filters with which rotation is linear. In OpenCV, area is linear here, and so is 9 for an image that
# keeps its size.
_TURNED_LINEARLY = (1, 3, 9)

_DTYPES = ("float32", "float16", "uint8", "int8")


def read_parameters(given: Mapping[str, Any]) -> Parameters:
    """Checks the caller's parameters.

    >>> from anyrec._image_parameters import read_parameters
    >>> p = read_parameters({"path_imgrec": "a.rec", "data_shape": [3, 8, 8], "batch_size": 2, "mirror": 1})
    >>> p.data_shape, p.mirror, p.rand_crop
    ((3, 8, 8), True, False)
    """
    known = {field.name: field for field in fields(Parameters)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in known:
            values[name] = _converted(name, str(known[name].type), value)
        elif name in _DEFAULT_ONLY:
            _refuse_other_than(name, value, _DEFAULT_ONLY[name])
        elif name not in _WITHOUT_EFFECT:
            names = [*known, *_DEFAULT_ONLY, *_WITHOUT_EFFECT]
            near = difflib.get_close_matches(name, names, 1)
            raise MXNetInvalid(
                f"ImageRecordIter has no parameter {name}",
                hint=f"did you mean {near[0]}?" if near else None,
            )
    for name, field in known.items():
        if field.default is MISSING and name not in values:
            raise MXNetInvalid(f"ImageRecordIter needs {name}")
    parameters = Parameters(**values)
    _check(parameters)
    return parameters


def _refuse_other_than(name: str, value: Any, default: Any) -> None:
    try:
        same = type(default)(value) == default
    except (TypeError, ValueError):
        same = False
    if not same:
        raise MXNetInvalid(
            f"ImageRecordIter does not support {name}={value!r}: only the default, {default!r}, is supported"
        )


def _converted(name: str, kind: str, value: Any) -> Any:
    """Converts a value to its parameter's type. MXNet itself takes everything as text, so text is
    accepted."""
    wanted = {"int": "an integer", "float": "a number", "bool": "True or False", "str": "text"}
    base = kind.removesuffix(" | None")
    try:
        if value is None and base != kind:
            return None
        if base == "bool":
            return _flag(value)
        if base == "int":
            return int(value) if isinstance(value, str) else operator.index(value)
        if base == "float":
            return float(value)
        if base == "str":
            return _text(name, value)
        return _shape(value)
    except (TypeError, ValueError) as error:
        expected = wanted.get(base, "three numbers: channels, height and width")
        raise MXNetInvalid(f"ImageRecordIter: {name}={value!r} is not {expected}") from error


def _flag(value: Any) -> bool:
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, str):
        value = int({"false": "0", "true": "1"}.get(value.lower(), value))
    number = operator.index(value)
    if number not in (0, 1):
        raise ValueError
    return number == 1


def _text(name: str, value: Any) -> str:
    if name == "dtype":
        return "float32" if value is None else np.dtype(value).name
    if name.startswith("path_"):
        return os.fsdecode(value) if value is not None else ""
    if not isinstance(value, str):
        raise TypeError
    return value


def _shape(value: Any) -> tuple[int, int, int]:
    if isinstance(value, str):
        value = [int(number) for number in value.strip("()[] ").split(",") if number.strip()]
    channels, height, width = (operator.index(number) for number in value)
    return channels, height, width


def _check(p: Parameters) -> None:
    """Rejects values that are invalid or not supported."""

    def refuse(name: str, why: str, hint: str | None = None) -> None:
        raise MXNetInvalid(f"ImageRecordIter: {name}={getattr(p, name)!r}: {why}", hint=hint)

    if p.data_shape[0] not in (1, 3, 4) or min(p.data_shape) < 1:
        refuse("data_shape", "it must be channels (1, 3 or 4), height and width")
    if not p.path_imgrec:
        raise MXNetInvalid("ImageRecordIter needs path_imgrec")
    for name in ("batch_size", "label_width", "preprocess_threads", "num_parts", "prefetch_buffer"):
        if getattr(p, name) < 1:
            refuse(name, "it must be 1 or more")
    if not 0 <= p.part_index < p.num_parts:
        refuse("part_index", f"parts are numbered from 0 to {p.num_parts - 1}")
    if p.dtype not in _DTYPES:
        refuse("dtype", f"it must be one of {', '.join(_DTYPES)}")
    if p.resize < 1 and p.resize != -1:
        refuse("resize", "it must be the length of the shorter edge, or -1")
    if p.inter_method not in _FILTERS:
        refuse("inter_method", f"it must be one of {', '.join(map(str, _FILTERS))}")
    if p.rotate < -1:
        refuse("rotate", "MXNet does not rotate by less than 0 degrees", f"rotate by {p.rotate % 360}")
    if (p.rotate > 0 or p.max_rotate_angle > 0) and p.inter_method not in _TURNED_LINEARLY:
        refuse("inter_method", f"with rotate or max_rotate_angle it must be one of {_TURNED_LINEARLY}")
    for name in ("max_rotate_angle", "pad", "brightness", "contrast", "saturation", "pca_noise"):
        if getattr(p, name) < 0:
            refuse(name, "it must be 0 or more")
    if not 0 <= p.fill_value <= 255:
        refuse("fill_value", "it must be 0 to 255")
    for name in ("std_r", "std_g", "std_b", "std_a"):
        if getattr(p, name) == 0:
            refuse(name, "it must not be 0")
    if p.random_resized_crop and p.rand_crop:
        refuse("rand_crop", "it cannot be combined with random_resized_crop")
    if p.random_resized_crop and not 0 < p.min_random_area <= p.max_random_area:
        refuse("min_random_area", f"it must be above 0, and at most max_random_area={p.max_random_area!r}")
    if p.random_resized_crop and p.max_random_area > 1:
        refuse("max_random_area", "a part cannot be larger than the image")
    low, high = _aspect(p)
    if p.random_resized_crop and not 0 < low <= high:
        refuse("max_aspect_ratio", f"the ratios {low} to {high} are not a range above 0")
    if not p.random_resized_crop and (low, high) != (1.0, 1.0):
        refuse("max_aspect_ratio", "not supported without random_resized_crop")


def _aspect(p: Parameters) -> tuple[float, float]:
    if p.min_aspect_ratio is not None:
        return p.min_aspect_ratio, p.max_aspect_ratio
    return 1 - p.max_aspect_ratio, 1 + p.max_aspect_ratio


def steps_of(p: Parameters) -> list[Any]:
    """Translates parameters to steps, in MXNet's order.

    >>> from anyrec._image_parameters import read_parameters, steps_of
    >>> given = {"path_imgrec": "a.rec", "data_shape": (3, 224, 224), "batch_size": 64}
    >>> [type(step).__name__ for step in steps_of(read_parameters({**given, "resize": 256}))]
    ['Resize', 'CentreCrop', 'Normalise']
    """
    channels, height, width = p.data_shape
    size, filter = (height, width), _FILTERS[p.inter_method]
    area, aspect = (p.min_random_area, p.max_random_area), _aspect(p)
    steps: list[Any] = []
    if p.resize != -1:
        steps.append(image.Resize(p.resize, filter=filter))
    if p.rotate > 0:
        steps.append(image.Rotate((p.rotate, p.rotate), fill=p.fill_value, law="mxnet"))
    elif p.max_rotate_angle > 0:
        steps.append(image.Rotate(p.max_rotate_angle, fill=p.fill_value, law="mxnet"))
    if p.pad > 0:
        steps.append(image.Pad(p.pad, fill=p.fill_value))
    if p.random_resized_crop and (area, aspect) != ((1.0, 1.0), (1.0, 1.0)):
        steps.append(image.RandomResizedCrop(size, area=area, aspect=aspect, filter=filter, law="mxnet"))
    elif p.rand_crop:
        steps.append(image.RandomCrop(size, enlarge=filter))
    else:
        steps.append(image.CentreCrop(size, enlarge=filter))
    if p.brightness or p.contrast or p.saturation:
        steps.append(image.Jitter(p.brightness, p.contrast, p.saturation, law="mxnet"))
    if p.random_h or p.random_s or p.random_l:
        steps.append(image.Hsl(p.random_h, p.random_s, p.random_l))
    if p.pca_noise:
        steps.append(image.PcaNoise(p.pca_noise))
    if p.mirror:
        steps.append(image.Flip(1.0))
    elif p.rand_mirror:
        steps.append(image.Flip(0.5))
    if p.dtype.startswith("float"):
        # MXNet subtracts the mean before it multiplies by the scale.
        mean = tuple(p.scale * value for value in of_channels(p, "mean", channels))
        steps.append(image.Normalise(mean, of_channels(p, "std", channels), scale=p.scale))
    return steps


def of_channels(p: Parameters, name: str, channels: int) -> tuple[float, ...]:
    """Returns ``mean`` or ``std`` of each channel."""
    return tuple(getattr(p, f"{name}_{colour}") for colour in "rgba"[:channels])
