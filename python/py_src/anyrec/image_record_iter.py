"""MXNet's ``ImageRecordIter``: its parameters, translated to an :class:`anyrec.ImageLoader`.

:class:`anyrec.mxnet.ImageRecordIter` is the way in. :func:`read_parameters` checks what was given,
:func:`steps_of` says which steps it means (both without touching a file), :func:`part_of` which
records, and the iterator cuts the epochs as MXNet does.
"""

from __future__ import annotations

import difflib
import inspect
import operator
import os
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import image
from .dataset import Dataset
from .dataset import open as open_dataset
from .errors import InvalidArgument
from .image import ImageLoader
from .view import Mix, View

if TYPE_CHECKING:
    from typing import Self

__all__ = ["DataBatch", "DataDesc", "ImageRecordIter"]


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """MXNet's parameters, with its defaults."""

    path_imgrec: str
    """The ``.rec`` file; several with ``;`` between them; or a directory."""
    data_shape: tuple[int, int, int]
    """Channels (1, 3 or 4), height and width of a finished picture."""
    batch_size: int
    """Pictures in a batch."""
    path_imgidx: str = ""
    """The index file. Opening is quicker with it, and parts then have equal numbers of records."""
    path_imglist: str = ""
    """A list file whose labels are taken instead of the records' own, by their ids."""
    label_width: int = 1
    """Labels of a picture."""
    preprocess_threads: int = 4
    """Threads that decode; not more than there are cores."""
    num_parts: int = 1
    """How many share the file."""
    part_index: int = 0
    """Which share is read here."""
    shuffle: bool = False
    """Shuffle each epoch, the whole part."""
    seed: int = 0
    """Chooses the order."""
    seed_aug: int | None = None
    """Chooses what the random options do; as ``seed`` if none."""
    round_batch: bool = True
    """Fill the last batch with the records that come next; the next epoch goes on behind them."""
    prefetch_buffer: int = 4
    """Batches made ahead."""
    dtype: str = "float32"
    """``float32``, ``float16``, ``uint8`` (neither mean, std nor scale) or ``int8`` (mean only)."""
    data_name: str = "data"
    """The name in ``provide_data``."""
    label_name: str = "softmax_label"
    """The name in ``provide_label``."""
    resize: int = -1
    """Resize the shorter edge to this first."""
    rotate: int = -1
    """Turn by so many degrees; in place of ``max_rotate_angle``."""
    max_rotate_angle: int = 0
    """Turn by a random number of whole degrees, to either side."""
    pad: int = 0
    """Add so many pixels on every side."""
    fill_value: int = 255
    """What is added by ``pad``, and at the corners by turning."""
    rand_crop: bool = False
    """Crop at random rather than from the middle."""
    random_resized_crop: bool = False
    """Crop a random part and resize it to the shape."""
    min_random_area: float = 1.0
    """The smallest part, as a share of the picture."""
    max_random_area: float = 1.0
    """The largest."""
    min_aspect_ratio: float | None = None
    """The smallest ratio of the part's edges; 1 - ``max_aspect_ratio`` if none."""
    max_aspect_ratio: float = 0.0
    """The largest ratio; if there is no smallest, what it may be more or less than 1."""
    brightness: float = 0.0
    """Multiply with 1 - x to 1 + x."""
    contrast: float = 0.0
    """Draw away from the mean gray, or to it, by as much."""
    saturation: float = 0.0
    """Draw away from gray, or to it, by as much."""
    random_h: int = 0
    """Add up to so much to the hue (0 to 180)."""
    random_s: int = 0
    """Add up to so much to the saturation (0 to 255)."""
    random_l: int = 0
    """Add up to so much to the lightness (0 to 255)."""
    pca_noise: float = 0.0
    """Deviation of the noise along the colours' principal components."""
    inter_method: int = 1
    """Resize by: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos, 9 cubic or area as it fits."""
    mirror: bool = False
    """Mirror every picture."""
    rand_mirror: bool = False
    """Mirror every other picture, at random."""
    mean_r: float = 0.0
    mean_g: float = 0.0
    mean_b: float = 0.0
    mean_a: float = 0.0
    """What is subtracted from red, green, blue and alpha (of a gray picture: ``mean_r``)."""
    std_r: float = 1.0
    std_g: float = 1.0
    std_b: float = 1.0
    std_a: float = 1.0
    """What they are then divided by."""
    scale: float = 1.0
    """What they are then multiplied with."""


# Parameters of MXNet that change nothing here, whatever they say.
_WITHOUT_EFFECT = frozenset({"verbose", "ctx", "device_id", "shuffle_chunk_seed"})

# Parameters of MXNet that are taken as long as they do nothing.
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
# Those by which turning is linear: area means so there, and so does what fits a picture that stays as large.
_TURNED_LINEARLY = (1, 3, 9)

_DTYPES = ("float32", "float16", "uint8", "int8")


def read_parameters(given: Mapping[str, Any]) -> Parameters:
    """Parameters as a caller gave them, checked.

    >>> from anyrec.image_record_iter import read_parameters
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
            raise InvalidArgument(
                f"ImageRecordIter has no parameter {name}",
                hint=f"is it {near[0]} that was meant?" if near else None,
            )
    for name, field in known.items():
        if field.default is MISSING and name not in values:
            raise InvalidArgument(f"ImageRecordIter needs {name}")
    parameters = Parameters(**values)
    _check(parameters)
    return parameters


def _refuse_other_than(name: str, value: Any, default: Any) -> None:
    try:
        same = type(default)(value) == default
    except (TypeError, ValueError):
        same = False
    if not same:
        raise InvalidArgument(
            f"ImageRecordIter does not support {name}={value!r}: only {default!r}, its default, is taken"
        )


def _converted(name: str, kind: str, value: Any) -> Any:
    """A value as its parameter has it. MXNet itself takes everything as text, so text is fine."""
    wanted = {"int": "a whole number", "float": "a number", "bool": "True or False", "str": "text"}
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
        raise InvalidArgument(f"ImageRecordIter: {name}={value!r} is not {expected}") from error


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
    """Refuses values that mean nothing, or that nothing here does."""

    def refuse(name: str, why: str, hint: str | None = None) -> None:
        raise InvalidArgument(f"ImageRecordIter: {name}={getattr(p, name)!r}: {why}", hint=hint)

    if p.data_shape[0] not in (1, 3, 4) or min(p.data_shape) < 1:
        refuse("data_shape", "it is channels (1, 3 or 4), height and width")
    if not p.path_imgrec:
        raise InvalidArgument("ImageRecordIter needs path_imgrec")
    for name in ("batch_size", "label_width", "preprocess_threads", "num_parts", "prefetch_buffer"):
        if getattr(p, name) < 1:
            refuse(name, "it is 1 or more")
    if not 0 <= p.part_index < p.num_parts:
        refuse("part_index", f"parts are numbered from 0 to {p.num_parts - 1}")
    if p.dtype not in _DTYPES:
        refuse("dtype", f"it is one of {', '.join(_DTYPES)}")
    if p.resize < 1 and p.resize != -1:
        refuse("resize", "it is the shorter edge, or -1")
    if p.inter_method not in _FILTERS:
        refuse("inter_method", f"it is one of {', '.join(map(str, _FILTERS))}")
    if p.rotate < -1:
        refuse("rotate", "MXNet does not turn by less than 0", f"turn by {p.rotate % 360}")
    if (p.rotate > 0 or p.max_rotate_angle > 0) and p.inter_method not in _TURNED_LINEARLY:
        refuse("inter_method", f"with rotate or max_rotate_angle it is one of {_TURNED_LINEARLY}")
    for name in ("max_rotate_angle", "pad", "brightness", "contrast", "saturation", "pca_noise"):
        if getattr(p, name) < 0:
            refuse(name, "it is 0 or more")
    if not 0 <= p.fill_value <= 255:
        refuse("fill_value", "it is 0 to 255")
    for name in ("std_r", "std_g", "std_b", "std_a"):
        if getattr(p, name) == 0:
            refuse(name, "nothing can be divided by it")
    if p.random_resized_crop and p.rand_crop:
        refuse("rand_crop", "it cannot be had together with random_resized_crop")
    if p.random_resized_crop and not 0 < p.min_random_area <= p.max_random_area:
        refuse("min_random_area", f"it is above 0, and not above max_random_area={p.max_random_area!r}")
    if p.random_resized_crop and p.max_random_area > 1:
        refuse("max_random_area", "a part is not larger than the picture")
    low, high = _aspect(p)
    if p.random_resized_crop and not 0 < low <= high:
        refuse("max_aspect_ratio", f"the ratios {low} to {high} are no range above 0")
    if not p.random_resized_crop and (low, high) != (1.0, 1.0):
        refuse("max_aspect_ratio", "not supported without random_resized_crop")


def _aspect(p: Parameters) -> tuple[float, float]:
    if p.min_aspect_ratio is not None:
        return p.min_aspect_ratio, p.max_aspect_ratio
    return 1 - p.max_aspect_ratio, 1 + p.max_aspect_ratio


def steps_of(p: Parameters) -> list[Any]:
    """The steps that parameters mean, in MXNet's order.

    >>> from anyrec.image_record_iter import read_parameters, steps_of
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
        # MXNet multiplies with the scale what the mean was subtracted from before.
        mean = tuple(p.scale * value for value in _of_channels(p, "mean", channels))
        steps.append(image.Normalise(mean, _of_channels(p, "std", channels), scale=p.scale))
    return steps


def _of_channels(p: Parameters, name: str, channels: int) -> tuple[float, ...]:
    return tuple(getattr(p, f"{name}_{colour}") for colour in "rgba"[:channels])


def part_of(p: Parameters) -> Dataset | View:
    """The records of the part, as MXNet shares a file out.

    With an index file, records are counted; without, a part has those that begin in its share of the
    bytes.
    """
    files: Any = [p.path_imgrec] if os.path.isdir(p.path_imgrec) else p.path_imgrec.split(";")
    if p.path_imgidx and len(files) > 1:
        raise InvalidArgument("ImageRecordIter: path_imgidx is the index file of one file, not of several")
    # As MXNet, which looks for no index file by itself: one that is out of date does no harm.
    index_file: Any = p.path_imgidx or False
    dataset = open_dataset(files if len(files) > 1 else files[0], format="mxnet", index_file=index_file)
    if p.num_parts == 1:
        numbers = range(len(dataset))
    elif p.path_imgidx:
        numbers = _share(len(dataset), p, 1)
    else:
        numbers = _records_in(dataset, p)
    if not numbers:
        raise InvalidArgument(
            f"ImageRecordIter: {p.path_imgrec} has no record for part {p.part_index} of {p.num_parts}"
        )
    return dataset if len(numbers) == len(dataset) else dataset.select(np.arange(numbers.start, numbers.stop))


def _share(total: int, p: Parameters, unit: int) -> range:
    step = -(-total // p.num_parts)
    step = -(-step // unit) * unit
    return range(min(step * p.part_index, total), min(step * (p.part_index + 1), total))


def _records_in(dataset: Dataset, p: Parameters) -> range:
    """The records that begin in the part's bytes, the files counted as one."""
    paths = [os.fspath(path) for path in dataset.metadata["files"]]
    sizes = [os.stat(path).st_size for path in paths]
    counts = [len(dataset)]
    if len(paths) > 1:
        counts = [len(open_dataset(path, format="mxnet", index_file=False)) for path in paths]
    span = _share(sum(sizes), p, 4)

    def before(limit: int) -> int:
        """How many records begin before an offset."""
        passed = 0
        for size, count in zip(sizes, counts, strict=True):
            if limit < size:
                return passed + _first_at(dataset, passed, count, limit)
            limit, passed = limit - size, passed + count
        return passed

    return range(before(span.start), before(span.stop))


def _first_at(dataset: Dataset, first: int, count: int, limit: int) -> int:
    """How many of a file's records begin before an offset; they are in the order of the file."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if dataset.position(first + middle)[0] < limit:
            low = middle + 1
        else:
            high = middle
    return low


class _ListedLabels:
    """The labels of a list file, by id."""

    def __init__(self, path: str, width: int) -> None:
        self.path = path
        ids, labels = [], []
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:
            for number, line in enumerate(lines, start=1):
                columns = line.split(None, width + 1)
                if not columns:
                    continue
                try:
                    ids.append(int(columns[0]))
                    labels.append([float(column) for column in columns[1 : width + 1]])
                    if len(labels[-1]) < width:
                        raise ValueError
                except ValueError as error:
                    wanted = "a label" if width == 1 else f"{width} labels"
                    raise InvalidArgument(
                        f"{path}: line {number} is no id and {wanted}: {line.rstrip()!r}", path=path
                    ) from error
        order = np.argsort(np.array(ids, dtype=np.uint64), kind="stable")
        self.ids = np.array(ids, dtype=np.uint64)[order]
        self.labels = np.array(labels, dtype=np.float32).reshape(len(ids), width)[order]

    def of(self, ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
        # Of an id that is listed more than once, the last line counts, as with MXNet.
        places = np.searchsorted(self.ids, ids, side="right") - 1
        found = (places >= 0) & (self.ids[places] == ids) if len(self.ids) else np.zeros(len(ids), bool)
        if not found.all():
            raise InvalidArgument(f"{self.path}: there is no label for id {ids[~found][0]}", path=self.path)
        labels: npt.NDArray[np.float32] = self.labels[places]
        return labels[:, 0] if labels.shape[1] == 1 else labels


class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """What a batch has: name and shape, and ``dtype`` and ``layout`` as attributes."""

    dtype: Any
    layout: str

    def __new__(
        cls, name: str, shape: tuple[int, ...], dtype: Any = np.float32, layout: str = "NCHW"
    ) -> Self:
        made = super().__new__(cls, name, shape)
        made.dtype = dtype
        made.layout = layout
        return made

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"


@dataclass(eq=False)
class DataBatch:
    """A batch, as MXNet's: of :attr:`pad` pictures at its end no account should be taken."""

    data: list[npt.NDArray[Any]]
    """One array: pictures, channels, height, width."""
    label: list[npt.NDArray[np.float32]]
    """One array: a label for each picture, or ``label_width`` of them."""
    pad: int
    """How many at the end only fill the batch up."""
    index: npt.NDArray[np.uint64]
    """The pictures' ids."""

    def __str__(self) -> str:
        shapes = [[array.shape for array in arrays] for arrays in (self.data, self.label)]
        return f"DataBatch: data shapes: {shapes[0]} label shapes: {shapes[1]}"


class ImageRecordIter:
    """Batches of pictures from ``.rec`` files, by MXNet's parameters (all of them by name).

    >>> import numpy as np
    >>> from anyrec import mxnet
    >>> with mxnet.MXRecordIO("pictures.rec", "w") as record:
    ...     for i in range(5):
    ...         picture = np.full((40, 50, 3), i, np.uint8)
    ...         header = mxnet.IRHeader(flag=0, label=i / 2, id=100 + i, id2=0)
    ...         record.write(mxnet.pack_img(header, picture, img_fmt=".png", quality=3))
    >>> batches = mxnet.ImageRecordIter(
    ...     path_imgrec="pictures.rec", data_shape=(3, 32, 32), batch_size=2, mean_r=1, scale=10
    ... )
    >>> for batch in batches:
    ...     print(batch.data[0][:, 0, 0, 0], batch.label[0], batch.index, batch.pad)
    [-10. 0.] [0. 0.5] [100 101] 0
    [10. 20.] [1. 1.5] [102 103] 0
    [30. -10.] [2. 0.] [104 100] 1
    >>> batches.reset()
    >>> batches.next().index
    array([101, 102], dtype=uint64)

    As in MXNet, :meth:`reset` begins the next epoch, and with ``round_batch`` (the default) that goes
    on behind the pictures that filled the last batch up. Arrays are NumPy's. What each parameter does,
    and where this differs from the original, is in ``docs/images.md``. A parameter that is not known,
    or that asks for something that is not supported, is an :class:`anyrec.InvalidArgument` which names
    it.
    """

    def __init__(self, **parameters: Any) -> None:
        p = self._parameters = read_parameters(parameters)
        self.batch_size = p.batch_size
        """Pictures in a batch."""
        listed = _ListedLabels(p.path_imglist, p.label_width) if p.path_imglist else None
        self._listed = listed
        data = part_of(p)
        if p.round_batch and p.batch_size > 2 * len(data):
            raise InvalidArgument(
                f"ImageRecordIter: batch_size={p.batch_size}: number of input images must be bigger than "
                f"the batch size, and there are {len(data)}",
                hint="round_batch=False fills a batch up with the pictures that are in it",
            )
        self._epochs: _Rounds | _Epochs = (_Rounds if p.round_batch else _Epochs)(p, data)
        self._batch: DataBatch | None = None

    @property
    def loader(self) -> ImageLoader:
        """What reads and decodes."""
        return self._epochs.loader

    @property
    def provide_data(self) -> list[DataDesc]:
        """Name, shape and type of a batch's pictures."""
        p = self._parameters
        return [DataDesc(p.data_name, (p.batch_size, *p.data_shape), np.dtype(p.dtype).type)]

    @property
    def provide_label(self) -> list[DataDesc]:
        """Name, shape and type of a batch's labels."""
        p = self._parameters
        width = () if p.label_width == 1 else (p.label_width,)
        return [DataDesc(p.label_name, (p.batch_size, *width))]

    def reset(self) -> None:
        """Begins the next epoch; one that has given no batch yet is not left."""
        self._batch = None
        self._epochs.reset()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def next(self) -> DataBatch:
        """The next batch; raises ``StopIteration`` at the end of the epoch, until :meth:`reset`."""
        if not self.iter_next():
            raise StopIteration
        assert self._batch is not None
        return self._batch

    def iter_next(self) -> bool:
        """Goes to the next batch, and says whether there is one."""
        given = self._epochs.next()
        self._batch = None if given is None else self._finished(*given)
        return self._batch is not None

    def getdata(self) -> npt.NDArray[Any]:
        """The pictures of the batch that :meth:`iter_next` went to."""
        return self._current().data[0]

    def getlabel(self) -> npt.NDArray[np.float32]:
        """Its labels."""
        return self._current().label[0]

    def getindex(self) -> npt.NDArray[np.uint64]:
        """Its ids."""
        return self._current().index

    def getpad(self) -> int:
        """How many pictures at its end only fill it up."""
        return self._current().pad

    def close(self) -> None:
        """Ends the threads. The next batch starts them again."""
        self.loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        p = self._parameters
        return f"<ImageRecordIter {p.path_imgrec!r}: batches of {p.batch_size}>"

    def _current(self) -> DataBatch:
        if self._batch is None:
            raise InvalidArgument("there is no batch now: call iter_next() or next() first")
        return self._batch

    def _finished(self, batch: Any, pad: int) -> DataBatch:
        p = self._parameters
        data = batch.data
        if p.dtype == "int8":
            data = _less_mean(data, _of_channels(p, "mean", p.data_shape[0]))
        labels = batch.labels if self._listed is None else self._listed.of(batch.ids)
        ids = batch.ids
        if len(data) < p.batch_size:
            rows = np.arange(p.batch_size) % len(data)
            data, labels, ids = data[rows], labels[rows], ids[rows]
        return DataBatch([data], [labels], pad, ids)


# What ``help`` shows.
ImageRecordIter.__signature__ = inspect.signature(Parameters)  # type: ignore[attr-defined]


def _less_mean(data: npt.NDArray[np.uint8], mean: Sequence[float]) -> npt.NDArray[np.int8]:
    """Pictures as MXNet's ``int8``: less the mean, which is rounded first, as far as a byte goes."""
    # Halves are rounded away from 0, as by C.
    rounded = np.copysign(np.floor(np.abs(mean) + 0.5), mean).astype(np.int16)
    values = data.astype(np.int16) - rounded.reshape(-1, 1, 1)
    return np.clip(values, -128, 127).astype(np.int8)


def _loader(p: Parameters, data: Any) -> ImageLoader:
    height, width = p.data_shape[1:]
    return ImageLoader(
        data,
        p.batch_size,
        (height, width),
        steps=steps_of(p),
        channels=p.data_shape[0],
        dtype="uint8" if p.dtype == "int8" else p.dtype,
        # The labels of a list file take the place of the records' own, whatever those are.
        label_width=p.label_width if not p.path_imglist else 0,
        exif=True,
        lenient=True,
        shuffle=p.shuffle,
        seed=p.seed % (1 << 64),
        augment_seed=None if p.seed_aug is None else p.seed_aug % (1 << 64),
        threads=min(p.preprocess_threads, os.cpu_count() or 1),
        prefetch=p.prefetch_buffer,
    )


# As good as endless: 2^48 pictures.
_ENDLESS = 1 << 48


class _Rounds:
    """``round_batch``: batches are cut from one endless run of all epochs.

    The batch in which an epoch ends is filled by the next one, which then goes on from there.
    """

    def __init__(self, p: Parameters, data: Dataset | View) -> None:
        self._count = len(data)
        self.loader = _loader(p, Mix([data], samples=_ENDLESS // p.batch_size * p.batch_size))
        self._size = p.batch_size
        self._at = 0
        """Pictures given since the beginning."""
        self._end = self._count
        """How many there are up to the end of this epoch."""
        self._given = False
        """Whether this epoch has given a batch."""
        self._batches: Iterator[Any] = iter(self.loader)

    def next(self) -> tuple[Any, int] | None:
        if self._at >= self._end:
            return None
        batch = next(self._batches)
        self._at += self._size
        self._given = True
        return batch, max(0, self._at - self._end)

    def reset(self) -> None:
        if not self._given:
            return
        self._given = False
        if self._at < self._end:
            # Left early: the next epoch begins with its first picture.
            self._at = self._end
            self.loader.load_state_dict({**self.loader.state_dict(), "consumed": self._at})
            self._batches = iter(self.loader)
        while self._end <= self._at:
            self._end += self._count


class _Epochs:
    """Without ``round_batch``: every epoch begins with its first picture."""

    def __init__(self, p: Parameters, data: Dataset | View) -> None:
        self.loader = _loader(p, data)
        self._size = p.batch_size
        self._given = False
        self._batches: Iterator[Any] = iter(self.loader)

    def next(self) -> tuple[Any, int] | None:
        batch = next(self._batches, None)
        if batch is None:
            return None
        self._given = True
        return batch, self._size - len(batch.data)

    def reset(self) -> None:
        if self._given:
            self._given = False
            self._batches = iter(self.loader)
