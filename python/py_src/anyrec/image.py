"""Images for training: the steps from an encoded image to a sample, and the loader that runs them.

Records hold images (JPEG, PNG, WebP), alone or as MXNet's image records. Threads decode them, apply a
list of steps, and produce finished batches.

>>> import anyrec, numpy as np
>>> from anyrec.image import CentreCrop, Flip, Normalise, Resize
>>> from anyrec.mxnet import IRHeader, pack_img
>>> gray = np.full((40, 60, 3), 128, np.uint8)
>>> with anyrec.create("photos.rec", index_file=True) as writer:
...     for i in range(10):
...         _ = writer.write(pack_img(IRHeader(0, i % 2, i, 0), gray, 3, ".png"), key=i)
>>> steps = [Resize(32), CentreCrop(28), Flip(), Normalise(mean=128, std=64)]
>>> with anyrec.ImageLoader("photos.rec", 4, 28, steps=steps, shuffle=True) as loader:
...     batch = next(iter(loader))
>>> batch.data.shape, batch.data.dtype.name, float(batch.data.max()), batch.labels.shape
((4, 3, 28, 28), 'float32', 0.0, (4,))

Where a step takes a range, a pair is the range itself. A single number ``x`` means ``1 - x`` to ``1 + x``
for brightness, contrast and saturation, and ``-x`` to ``x`` for hue and degrees. Filters are
``bilinear``, ``bicubic`` and ``lanczos`` (antialiased, as in Pillow and torchvision) and
OpenCV's: ``cv-nearest``, ``cv-linear``, ``cv-cubic``, ``cv-area``, ``cv-lanczos4`` and
``cv-auto`` (cubic to enlarge, area to shrink).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, overload

import numpy as np
import numpy.typing as npt

from . import _html
from ._image_sources import images_of
from ._keywords import keywords
from ._paths import Paths
from .errors import InvalidArgument
from .loader import AsDict, BatchT_co, Loader, OnError, OrderOptions, field_names, named
from .view import Mix, View, unlabelled

if TYPE_CHECKING:
    from .dataset import Dataset
    from .insightface import FaceDataset

__all__ = [
    "Brightness",
    "CenterCrop",
    "CentreCrop",
    "Contrast",
    "Flip",
    "Hsl",
    "Hue",
    "ImageBatch",
    "ImageLoader",
    "Jitter",
    "Normalise",
    "Normalize",
    "Pad",
    "PcaNoise",
    "RandomCrop",
    "RandomResizedCrop",
    "Resize",
    "ResizeTo",
    "Rotate",
    "Saturation",
    "Step",
    "evaluation_steps",
    "training_steps",
]

Size = int | tuple[int, int]
"""The side of a square, or (height, width)."""
Range = float | tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Step:
    """One step from a decoded image to a sample."""

    def _plain(self) -> tuple[str, dict[str, Any]]:
        """Returns its name and values for the native code."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return type(self).__name__, values


@dataclasses.dataclass(frozen=True)
class Resize(Step):
    """Resizes the shorter side to this length; the longer one is rounded down."""

    shorter: int
    filter: str = "bilinear"


@dataclasses.dataclass(frozen=True)
class ResizeTo(Step):
    """Resizes to exactly this size."""

    width: int
    height: int
    filter: str = "bilinear"


@dataclasses.dataclass(frozen=True)
class CentreCrop(Step):
    """Crops the centre. Smaller images are an error, unless ``enlarge`` names a filter to enlarge them
    with."""

    size: Size
    enlarge: str | None = None


@dataclasses.dataclass(frozen=True)
class RandomCrop(Step):
    """Crops a part of this size, anywhere; ``enlarge`` as for :class:`CentreCrop`."""

    size: Size
    enlarge: str | None = None


@dataclasses.dataclass(frozen=True)
class RandomResizedCrop(Step):
    """Crops a part of random area and aspect ratio, anywhere, and resizes it.

    ``law`` is the distribution: that of ``torchvision`` (the logarithm of the aspect ratio is uniform) or
    of ``mxnet`` (the aspect ratio is uniform, and inverted half of the time).
    """

    size: Size
    area: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)
    filter: str = "bilinear"
    law: Literal["torchvision", "mxnet"] = "torchvision"


@dataclasses.dataclass(frozen=True)
class Flip(Step):
    """Flips left and right, with this probability."""

    probability: float = 0.5


@dataclasses.dataclass(frozen=True)
class Jitter(Step):
    """Changes those of brightness, contrast, saturation and hue that are given, in random order.

    With ``law="mxnet"``, gray uses red's weight for blue and blue's for red.
    """

    brightness: Range | None = None
    contrast: Range | None = None
    saturation: Range | None = None
    hue: Range | None = None
    law: Literal["torchvision", "mxnet"] = "torchvision"


@dataclasses.dataclass(frozen=True)
class _Single(Step):
    amount: Range

    def _plain(self) -> tuple[str, dict[str, Any]]:
        given: dict[str, Any] = {type(self).__name__.lower(): self.amount}
        return Jitter(**given)._plain()


class Brightness(_Single):
    """Multiplies all values by a factor."""


class Contrast(_Single):
    """Moves all values away from the image's mean gray (factors above 1) or towards it."""


class Saturation(_Single):
    """Moves all values away from the pixel's gray (factors above 1) or towards it."""


class Hue(_Single):
    """Shifts the hue by a fraction of a turn, at most half a turn."""


@dataclasses.dataclass(frozen=True)
class Hsl(Step):
    """Shifts hue, saturation and lightness by at most this much, in OpenCV's units (180 and 255)."""

    h: int = 0
    s: int = 0
    l: int = 0  # noqa: E741 (MXNet's letter)


@dataclasses.dataclass(frozen=True)
class PcaNoise(Step):
    """Adds AlexNet's noise along the principal components of natural images' colours (0.1 is usual)."""

    std: float


@dataclasses.dataclass(frozen=True)
class Rotate(Step):
    """Rotates about the centre, counterclockwise. Pixels from outside have the value ``fill``.

    With ``law="mxnet"``, rotates by whole degrees, about a point half a pixel below and right of the
    centre.
    """

    degrees: Range
    fill: int = 0
    law: Literal["torchvision", "mxnet"] = "torchvision"


@dataclasses.dataclass(frozen=True)
class Pad(Step):
    """Adds a border of this many pixels on every side."""

    pixels: int
    fill: int = 0


@dataclasses.dataclass(frozen=True)
class Normalise(Step):
    """Computes ``(value * scale - mean) / std``, with one number per channel or one for all; always the
    last step."""

    mean: float | Sequence[float]
    std: float | Sequence[float]
    scale: float = 1.0


CenterCrop = CentreCrop
Normalize = Normalise

IMAGENET = Normalise(mean=(123.675, 116.28, 103.53), std=(58.395, 57.12, 57.375))
"""ImageNet's mean and standard deviation of red, green and blue."""


def training_steps(size: Size) -> list[Step]:
    """Returns the usual steps for training on ImageNet: a random part, resized, flipped half of the
    time."""
    return [RandomResizedCrop(size), Flip(), IMAGENET]


def evaluation_steps(size: Size) -> list[Step]:
    """Returns the usual steps for evaluation: resized to 256/224 of the size, then cropped to the
    centre."""
    shorter = min(size) if isinstance(size, tuple) else size
    return [Resize(shorter * 256 // 224), CentreCrop(size), IMAGENET]


_SIZED = (ResizeTo, CentreCrop, RandomCrop, RandomResizedCrop)
"""The steps that give a sample its size."""


class ImageBatch(NamedTuple):
    """A batch of :class:`ImageLoader`."""

    data: Any
    """The images: (batch, channels, height, width), or (batch, height, width, channels)."""
    labels: Any
    """Their labels, in two dimensions if ``label_width`` is above 1; ``None`` if no record has one. They are
    32-bit floats, but those of IDX files and of face data sets are the numbers of classes, as 64-bit
    integers; ``label_dtype`` says otherwise."""
    indices: Any
    """The record numbers."""
    ids: Any
    """The ids from their image headers; their record numbers if they have none."""
    padding: int
    """How many samples at the end only fill up the last batch of an epoch."""

    def _repr_html_(self) -> str:
        return _html.image_batch(self)


class ImageOptions(OrderOptions, total=False):
    """Options of :class:`ImageLoader` that :class:`anyrec.torch.ImageLoader` takes too."""

    train: bool | None
    steps: Sequence[Step] | None
    channels: int
    layout: Literal["NCHW", "NHWC"]
    dtype: Literal["uint8", "float16", "bfloat16", "float32"]
    label_width: int
    label_dtype: Literal["float32", "int64"]
    exif: bool
    lenient: bool
    on_error: OnError
    augment_seed: int | None
    max_bytes: int


class _WholeOptions(ImageOptions, total=False):
    rank: int
    world: int
    apply: Callable[[Any], Any] | None


class ImageLoader(Loader[BatchT_co]):
    """Yields finished batches of images, read, decoded and transformed by threads.

    It is an :class:`anyrec.Loader`, with the same order, ranks, :meth:`state_dict`, resuming and errors.
    What is random in the steps depends only on the seed, the epoch and the sample's position in the
    order. The pixels are the same for any number of threads and ranks, and after any resume.

    Only the part and the scale of a JPEG that the steps need are decoded.

    :param data: as for :class:`anyrec.Loader`; or a face data set of InsightFace, as its folder, its
        ``.rec`` file or a :class:`anyrec.insightface.FaceDataset`. Of a face data set, only the images are
        loaded, not its header and identity records. An IDX file of bytes holds images too, gray or with
        three or four channels.
    :param batch_size: images per batch and rank.
    :param size: height and width of the samples, or one number for both. By default, the size that the
        data itself declares (IDX, face data sets), else 224.
    :param train: ``True`` for the usual ImageNet training steps (:func:`training_steps`), ``False`` for
        the evaluation steps (:func:`evaluation_steps`). Data that declares its size needs no steps.
    :param steps: a list of steps instead; the last crop or :class:`ResizeTo` must produce ``size``.
    :param channels: 1 for gray, 3 for red, green, blue, 4 for these and alpha.
    :param layout: ``NCHW`` or ``NHWC``.
    :param dtype: ``uint8``, ``float16``, ``bfloat16`` (as ``uint16`` in NumPy, which has no such type)
        or ``float32``. Without :class:`Normalise`, values are 0 to 255.
    :param label_width: number of labels per record; 0 for no labels.
    :param label_dtype: ``float32``, or ``int64`` for class numbers. A label that is no whole number is then
        an error.
    :param as_dict: ``True`` for batches that are dictionaries with the fields of :class:`ImageBatch`. A
        mapping selects and renames fields: ``{"data": "pixel_values", "labels": "labels"}``.
    :param exif: turn images upright by their EXIF data.
    :param lenient: use as much as there is of a truncated or damaged JPEG.
    :param on_error: what to do with an image that cannot be decoded: ``raise``, ``skip`` or ``replace``
        as in :class:`anyrec.Loader`, or ``blank``: all zeros, with its label. :attr:`failed` counts such
        images, and :attr:`errors` lists them.
    :param apply: called with every finished sample (an array); its result replaces the sample. It runs in
        Python, one sample after the other, and is not spread over the threads.
    :param augment_seed: seed of what is random in the steps (default: ``seed``).
    :param max_bytes: most bytes of batches prepared ahead. A thread prepares one batch at a time, so this
        also bounds how many threads can work.
    :param options: ``shuffle``, ``seed``, ``rank``, ``world``, ``threads``, ... of :class:`anyrec.Loader`.
    """

    @overload
    def __init__(
        self: ImageLoader[ImageBatch],
        data: Paths | Dataset | View | Mix | FaceDataset,
        batch_size: int,
        size: Size | None = None,
        *,
        as_dict: Literal[False] = False,
        **options: Unpack[_WholeOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: ImageLoader[dict[str, Any]],
        data: Paths | Dataset | View | Mix | FaceDataset,
        batch_size: int,
        size: Size | None = None,
        *,
        as_dict: AsDict,
        **options: Unpack[_WholeOptions],
    ) -> None: ...
    @keywords(OrderOptions)
    def __init__(
        self,
        data: Paths | Dataset | View | Mix | FaceDataset,
        batch_size: int,
        size: Size | None = None,
        *,
        train: bool | None = None,
        steps: Sequence[Step] | None = None,
        channels: int = 3,
        layout: Literal["NCHW", "NHWC"] = "NCHW",
        dtype: Literal["uint8", "float16", "bfloat16", "float32"] = "float32",
        label_width: int = 1,
        label_dtype: Literal["float32", "int64"] | None = None,
        exif: bool = False,
        lenient: bool = False,
        on_error: OnError = "raise",
        apply: Callable[[Any], Any] | None = None,
        augment_seed: int | None = None,
        as_dict: AsDict = False,
        rank: int = 0,
        world: int = 1,
        max_bytes: int = 4 << 30,
        **options: Unpack[OrderOptions],
    ) -> None:
        source = images_of(data)
        if size is None:
            size = source.size or 224
        if train is None and source.size is not None and not any(isinstance(one, _SIZED) for one in steps or ()):
            # The images have one size already.
            steps = [CentreCrop(size), *(steps or ())]
        if (train is None) == (steps is None):
            raise InvalidArgument("pass either train=True or train=False for the usual steps, or steps=[...]")
        if steps is None:
            steps = training_steps(size) if train else evaluation_steps(size)
            if dtype == "uint8":
                # Bytes cannot be normalised; the model does that.
                steps = steps[:-1]
            elif channels != 3:
                raise InvalidArgument("the usual steps need three channels; pass steps=[...]")
        if label_dtype not in (None, "float32", "int64"):
            raise InvalidArgument(f"label_dtype is float32 or int64, not {label_dtype!r}")
        self.steps = list(steps)
        """The steps."""
        self.size = (size, size) if isinstance(size, int) else (size[0], size[1])
        """Height and width of a sample."""
        self.label_width = label_width
        """The number of labels per record."""
        self._classes = source.classes and label_width == 1 and label_dtype != "float32"
        self.label_dtype = label_dtype or ("int64" if self._classes else "float32")
        """The data type of the labels."""
        self.as_dict = as_dict
        """Whether batches are dictionaries."""
        self._names = field_names(as_dict, ImageBatch)
        self.apply = apply
        """Called with every finished sample."""
        height, width = self.size
        self.shape = (channels, height, width) if layout == "NCHW" else (height, width, channels)
        """The shape of a sample."""
        self.dtype: Any = np.dtype("uint16" if dtype == "bfloat16" else dtype)
        """The data type of a sample."""
        self._images = {
            "steps": [step._plain() for step in self.steps],
            "size": self.size,
            "channels": channels,
            "layout": layout,
            "dtype": dtype,
            "exif": exif,
            "lenient": lenient,
            "augment_seed": augment_seed,
            "unencoded": source.unencoded,
        }
        # A loader's type of batch is only declared; the overloads know those of Loader itself.
        plain: Any = super()
        plain.__init__(
            source.records,
            batch_size,
            on_error=on_error,
            labels=True,
            max_bytes=max_bytes,
            rank=rank,
            world=world,
            **options,
        )

    def _native_options(self) -> dict[str, Any]:
        return {**super()._native_options(), "images": self._images}

    def _take(self) -> Any:
        batch = super()._take()
        if batch is None or self._names is None:
            return batch
        return named(batch, self._names, strict=self.as_dict is not True)

    def _next(self) -> ImageBatch | None:
        loaded = self._native.next_images(self.label_width, self._classes, self.label_dtype == "int64")
        if loaded is None:
            return None
        memory, indices, labels, ids, padding = loaded
        values: npt.NDArray[Any] = np.frombuffer(memoryview(memory), self.dtype)
        data = values.reshape(len(indices), *self.shape)
        if self.apply is not None:
            data = np.stack([self.apply(sample) for sample in data])
        if labels is not None and (missing := unlabelled(labels)).any():
            self._tell_unlabelled(int(indices[missing.argmax()]))
        if labels is not None and self.label_dtype == "int64":
            labels = _whole(labels, indices)
        elif labels is not None:
            labels = labels.astype(np.float32, copy=False)
        return ImageBatch(data, labels, indices, ids, padding)


def _whole(labels: npt.NDArray[Any], indices: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Returns labels as whole numbers."""
    made = labels.astype(np.int64, copy=False)
    if not np.array_equal(made, labels):
        first = np.argwhere(made != labels)[0]
        raise InvalidArgument(
            f"label_dtype: the label of record {indices[first[0]]} is {labels[tuple(first)]}, "
            "not a whole number"
        )
    return made
