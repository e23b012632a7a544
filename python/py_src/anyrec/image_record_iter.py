"""MXNet's ``ImageRecordIter``, over an :class:`anyrec.ImageLoader`.

Users import it as :class:`anyrec.mxnet.ImageRecordIter`. ``_image_parameters.py`` translates its
parameters to image steps. This module selects the records (:func:`part_of`), finds the labels, and
divides epochs into batches.
"""

from __future__ import annotations

import inspect
import os
from collections import namedtuple
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._image_parameters import Parameters, of_channels, read_parameters, steps_of
from ._mxnet.errors import MXNetError, MXNetInvalid, as_original
from ._mxnet.ndarray import NDArray
from .dataset import Dataset
from .dataset import open as open_dataset
from .errors import AnyrecError
from .image import ImageBatch, ImageLoader
from .view import Mix, View

if TYPE_CHECKING:
    from typing import Self

__all__ = ["DataBatch", "DataDesc", "ImageRecordIter"]


def part_of(p: Parameters) -> Dataset | View:
    """Returns the records of the part, divided as MXNet divides a file.

    With an index file, each part has a share of the records. Without one, it has the records that begin
    in its share of the bytes.
    """
    files: Any = [p.path_imgrec] if os.path.isdir(p.path_imgrec) else p.path_imgrec.split(";")
    if p.path_imgidx and len(files) > 1:
        raise MXNetInvalid("ImageRecordIter: path_imgidx needs a single file in path_imgrec")
    # Like MXNet, do not look for an index file, so that a stale one does no harm.
    index_file: Any = p.path_imgidx or False
    dataset = open_dataset(files if len(files) > 1 else files[0], format="mxnet", index_file=index_file)
    if p.num_parts == 1:
        numbers = range(len(dataset))
    elif p.path_imgidx:
        numbers = _share(len(dataset), p, 1)
    else:
        numbers = _records_in(dataset, p)
    if not numbers:
        raise MXNetInvalid(
            f"ImageRecordIter: {p.path_imgrec} has no record for part {p.part_index} of {p.num_parts}"
        )
    return dataset if len(numbers) == len(dataset) else dataset.select(np.arange(numbers.start, numbers.stop))


def _share(total: int, p: Parameters, unit: int) -> range:
    step = -(-total // p.num_parts)
    step = -(-step // unit) * unit
    return range(min(step * p.part_index, total), min(step * (p.part_index + 1), total))


def _records_in(dataset: Dataset, p: Parameters) -> range:
    """Returns the records that begin in the part's bytes; the files count as one."""
    paths = [os.fspath(path) for path in dataset.metadata["files"]]
    sizes = [os.stat(path).st_size for path in paths]
    counts = [len(dataset)]
    if len(paths) > 1:
        counts = [len(open_dataset(path, format="mxnet", index_file=False)) for path in paths]
    span = _share(sum(sizes), p, 4)

    def before(limit: int) -> int:
        """Returns how many records begin before an offset."""
        passed = 0
        for size, count in zip(sizes, counts, strict=True):
            if limit < size:
                return passed + _first_at(dataset, passed, count, limit)
            limit, passed = limit - size, passed + count
        return passed

    return range(before(span.start), before(span.stop))


def _first_at(dataset: Dataset, first: int, count: int, limit: int) -> int:
    """Returns how many of a file's records, which are in file order, begin before an offset."""
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
                    raise MXNetInvalid(
                        f"{path}: line {number} is not an id and {wanted}: {line.rstrip()!r}", path=path
                    ) from error
        order = np.argsort(np.array(ids, dtype=np.uint64), kind="stable")
        self.ids = np.array(ids, dtype=np.uint64)[order]
        self.labels = np.array(labels, dtype=np.float32).reshape(len(ids), width)[order]

    def of(self, ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
        # If an id is listed more than once, the last line counts, as in MXNet.
        places = np.searchsorted(self.ids, ids, side="right") - 1
        found = (places >= 0) & (self.ids[places] == ids) if len(self.ids) else np.zeros(len(ids), bool)
        if not found.all():
            raise MXNetInvalid(f"{self.path}: there is no label for id {ids[~found][0]}", path=self.path)
        labels: npt.NDArray[np.float32] = self.labels[places]
        return labels[:, 0] if labels.shape[1] == 1 else labels


class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """Describes an array of a batch: name and shape, and ``dtype`` and ``layout`` as attributes."""

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
    """A batch, as in MXNet. Ignore the last :attr:`pad` images."""

    data: list[NDArray]
    """One array: images, channels, height, width."""
    label: list[NDArray]
    """One array: one label per image, or ``label_width`` of them."""
    pad: int
    """How many images at the end only fill up the batch."""
    index: npt.NDArray[np.uint64]
    """The ids of the images."""

    def __str__(self) -> str:
        shapes = [[array.shape for array in arrays] for arrays in (self.data, self.label)]
        return f"DataBatch: data shapes: {shapes[0]} label shapes: {shapes[1]}"


class ImageRecordIter:
    """Batches of images from ``.rec`` files, with MXNet's parameters (keyword only).

    >>> import numpy as np
    >>> from anyrec import mxnet
    >>> with mxnet.MXRecordIO("images.rec", "w") as record:
    ...     for i in range(5):
    ...         image = np.full((40, 50, 3), i, np.uint8)
    ...         header = mxnet.IRHeader(flag=0, label=i / 2, id=100 + i, id2=0)
    ...         record.write(mxnet.pack_img(header, image, img_fmt=".png", quality=3))
    >>> batches = mxnet.ImageRecordIter(
    ...     path_imgrec="images.rec", data_shape=(3, 32, 32), batch_size=2, mean_r=1, scale=10
    ... )
    >>> for batch in batches:
    ...     print(batch.data[0].asnumpy()[:, 0, 0, 0], batch.label[0].asnumpy(), batch.index, batch.pad)
    [-10.   0.] [0.  0.5] [100 101] 0
    [10. 20.] [1.  1.5] [102 103] 0
    [ 30. -10.] [2. 0.] [104 100] 1
    >>> batches.reset()
    >>> batches.next().index
    array([101, 102], dtype=uint64)

    As in MXNet, :meth:`reset` starts the next epoch. With ``round_batch`` (the default), that epoch
    continues after the images that filled up the last batch. Arrays are :class:`NDArray`. ``docs/images.md``
    describes each parameter and the differences from the original. An unknown parameter, or one that
    requests something unsupported, is an :class:`MXNetError` that names it, and also an
    :class:`anyrec.InvalidArgument`.
    """

    def __init__(self, **parameters: Any) -> None:
        p = self._parameters = read_parameters(parameters)
        self.batch_size = p.batch_size
        """Images in a batch."""
        listed = _ListedLabels(p.path_imglist, p.label_width) if p.path_imglist else None
        self._listed = listed
        try:
            data = part_of(p)
        except MXNetError:
            raise
        except AnyrecError as error:
            raise as_original(error) from error
        if p.round_batch and p.batch_size > 2 * len(data):
            raise MXNetInvalid(
                f"ImageRecordIter: batch_size={p.batch_size}: number of input images must be bigger than "
                f"the batch size, and there are {len(data)}",
                hint="round_batch=False repeats the images of a batch to fill it up",
            )
        self._epochs: _Rounds | _Epochs = (_Rounds if p.round_batch else _Epochs)(p, data)
        self._batch: DataBatch | None = None

    @property
    def loader(self) -> ImageLoader[ImageBatch]:
        """The loader that reads and decodes."""
        return self._epochs.loader

    @property
    def provide_data(self) -> list[DataDesc]:
        """Name, shape and type of a batch's images."""
        p = self._parameters
        return [DataDesc(p.data_name, (p.batch_size, *p.data_shape), np.dtype(p.dtype).type)]

    @property
    def provide_label(self) -> list[DataDesc]:
        """Name, shape and type of a batch's labels."""
        p = self._parameters
        width = () if p.label_width == 1 else (p.label_width,)
        return [DataDesc(p.label_name, (p.batch_size, *width))]

    def reset(self) -> None:
        """Starts the next epoch. If the current one has yielded no batch yet, it stays."""
        self._batch = None
        self._epochs.reset()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def next(self) -> DataBatch:
        """Returns the next batch; raises ``StopIteration`` at the end of the epoch, until
        :meth:`reset`."""
        if not self.iter_next():
            raise StopIteration
        assert self._batch is not None
        return self._batch

    def iter_next(self) -> bool:
        """Moves to the next batch, and returns whether there is one."""
        try:
            given = self._epochs.next()
        except AnyrecError as error:
            raise as_original(error) from error
        self._batch = None if given is None else self._finished(*given)
        return self._batch is not None

    def getdata(self) -> NDArray:
        """Returns the images of the batch that :meth:`iter_next` moved to."""
        return self._current().data[0]

    def getlabel(self) -> NDArray:
        """Returns its labels."""
        return self._current().label[0]

    def getindex(self) -> npt.NDArray[np.uint64]:
        """Returns its ids."""
        return self._current().index

    def getpad(self) -> int:
        """Returns how many images at its end only fill it up."""
        return self._current().pad

    def close(self) -> None:
        """Stops the threads. The next batch starts them again."""
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
            raise MXNetInvalid("there is no current batch: call iter_next() or next() first")
        return self._batch

    def _finished(self, batch: Any, pad: int) -> DataBatch:
        p = self._parameters
        data = batch.data
        if p.dtype == "int8":
            data = _less_mean(data, of_channels(p, "mean", p.data_shape[0]))
        labels = batch.labels if self._listed is None else self._listed.of(batch.ids)
        ids = batch.ids
        if len(data) < p.batch_size:
            rows = np.arange(p.batch_size) % len(data)
            data, labels, ids = data[rows], labels[rows], ids[rows]
        return DataBatch([NDArray(data)], [NDArray(labels)], pad, ids)


# For ``help``.
ImageRecordIter.__signature__ = inspect.signature(Parameters)  # type: ignore[attr-defined]


def _less_mean(data: npt.NDArray[np.uint8], mean: Sequence[float]) -> npt.NDArray[np.int8]:
    """Converts images to MXNet's ``int8``: subtracts the rounded mean and clips."""
    # Halves are rounded away from 0, as in C.
    rounded = np.copysign(np.floor(np.abs(mean) + 0.5), mean).astype(np.int16)
    values = data.astype(np.int16) - rounded.reshape(-1, 1, 1)
    return np.clip(values, -128, 127).astype(np.int8)


def _loader(p: Parameters, data: Any) -> ImageLoader[ImageBatch]:
    height, width = p.data_shape[1:]
    dtype: Any = "uint8" if p.dtype == "int8" else p.dtype
    return ImageLoader(
        data,
        p.batch_size,
        (height, width),
        steps=steps_of(p),
        channels=p.data_shape[0],
        dtype=dtype,
        # The labels of a list file replace the records' own, whatever those are.
        label_width=p.label_width if not p.path_imglist else 0,
        exif=True,
        lenient=True,
        shuffle=p.shuffle,
        seed=p.seed % (1 << 64),
        augment_seed=None if p.seed_aug is None else p.seed_aug % (1 << 64),
        threads=min(p.preprocess_threads, os.cpu_count() or 1),
        prefetch=p.prefetch_buffer,
    )


# Practically endless: 2^48 images.
_ENDLESS = 1 << 48


class _Rounds:
    """``round_batch``: batches are taken from one endless sequence of all epochs.

    The next epoch fills up the batch in which an epoch ends, and continues from there.
    """

    def __init__(self, p: Parameters, data: Dataset | View) -> None:
        self._count = len(data)
        self.loader = _loader(p, Mix([data], samples=_ENDLESS // p.batch_size * p.batch_size))
        self._size = p.batch_size
        self._at = 0
        """Images yielded since the start."""
        self._end = self._count
        """How many images there are up to the end of this epoch."""
        self._given = False
        """Whether this epoch has yielded a batch."""
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
            # Left early: the next epoch starts with its first image.
            self._at = self._end
            self.loader.load_state_dict({**self.loader.state_dict(), "consumed": self._at})
            self._batches = iter(self.loader)
        while self._end <= self._at:
            self._end += self._count


class _Epochs:
    """Without ``round_batch``: every epoch starts with its first image."""

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
