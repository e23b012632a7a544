"""Record files in PyTorch: loaders that can start at any step, and a map-style dataset.

:class:`Loader` reads batches on threads and yields tensors over their memory. :class:`ImageLoader` yields
finished images. :class:`Dataset` and :class:`DataLoader` work like torch's own, with worker processes.

>>> import anyrec, anyrec.torch
>>> with anyrec.create("numbers.ffr") as writer:
...     for i in range(10):
...         _ = writer.write(str(i))
>>> dataset = anyrec.torch.Dataset("numbers.ffr", decode=lambda record: int(bytes(record)))
>>> loader = anyrec.torch.DataLoader(dataset, batch_size=4)
>>> loader.set_step(1)
>>> len(loader), [batch.tolist() for batch in loader]
(2, [[4, 5, 6, 7], [8, 9]])

The dataset works in torch's own ``DataLoader`` too, with any number of workers and any start
method, and with its distributed sampler.
"""

from __future__ import annotations

import operator
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, overload

import numpy as np

try:
    import torch
    import torch.utils.data
    from torch.utils.data._utils.pin_memory import pin_memory
    from torch.utils.data.dataloader import default_collate, default_convert
except ImportError as error:
    raise ImportError("anyrec.torch needs PyTorch: pip install torch") from error

import anyrec

from . import image as _image
from . import loader as _loader
from ._keywords import keywords
from ._options import OpenOptions
from ._paths import Paths
from ._steps import Order, StepSampler
from ._trainers import Stepping
from .loader import AsDict, BatchT_co, OnError, OrderOptions, field_names, named
from .view import opened, unlabelled

if TYPE_CHECKING:
    from typing import Self

    from .insightface import FaceDataset

__all__ = ["Batch", "DataLoader", "Dataset", "ImageLoader", "Loader"]


class Dataset(torch.utils.data.Dataset[Any]):
    """The records of one or more files, by number.

    Args:
        paths: what :func:`anyrec.open` accepts (a file, a list, a directory, a pattern), a dataset, or a
            view of one.
        decode: converts a record (:class:`anyrec.Record`) to a sample; without it, samples are ``bytes``, or
            arrays if the file declares their shape (IDX).
        payload: make samples from payloads, without the headers that hold labels (MXNet image records).
        labels: return pairs of sample and label (``None`` for a record without a label).
        **options: further options of :func:`anyrec.open`. By default one thread reads a batch
            (``threads=1``), because a loader's workers already run in parallel.

    It is pickled as its paths and opened again on unpickling. If workers are spawned, ``decode`` must be
    picklable (a function of a module).
    """

    @keywords(OpenOptions)
    def __init__(
        self,
        paths: Paths | anyrec.Dataset | anyrec.View,
        decode: Callable[[Any], Any] | None = None,
        *,
        payload: bool = True,
        labels: bool = False,
        **options: Unpack[OpenOptions],
    ) -> None:
        self.decode = decode
        self.payload = payload
        """Whether samples are made from payloads."""
        self.labels = labels
        """Whether labels are returned too."""
        if options and isinstance(paths, anyrec.Dataset | anyrec.View):
            raise TypeError(f"an open dataset takes no options: {', '.join(options)}")
        if not isinstance(paths, anyrec.Dataset | anyrec.View):
            options.setdefault("threads", 1)
        self.records = opened(paths, **options)
        """The dataset, with keys, labels and metadata."""
        whole = self.records.dataset if isinstance(self.records, anyrec.View) else self.records
        self.paths = list(whole.paths)
        """The files."""
        self._arrays = whole.metadata["shape"] is not None

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: Any) -> Any:
        """Returns one sample; a list of samples for a slice or a list of numbers."""
        if isinstance(index, slice) or hasattr(index, "__len__"):
            return [self._sample(record) for record in self.records[index]]
        return self._sample(self.records[operator.index(index)])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Returns the samples of a batch, in this order, repeats kept, read all at once."""
        if type(self).__getitem__ is not Dataset.__getitem__:
            # A subclass with its own ``__getitem__`` makes samples one by one.
            return [self[index] for index in indices]
        return [self._sample(record) for record in self.records[list(indices)]]

    def _sample(self, record: anyrec.Record) -> Any:
        data = record.payload if self.payload else record
        if self.decode is not None:
            sample = self.decode(data)
        else:
            # A copy, because torch warns of arrays that cannot be written to.
            sample = np.array(data.numpy()) if self._arrays else bytes(data)
        return (sample, record.label) if self.labels else sample

    def __repr__(self) -> str:
        what = repr(self.paths[0]) if len(self.paths) == 1 else f"{len(self.paths)} files"
        return f"<{type(self).__name__} {what}: {len(self)} records>"


class _TorchOptions(TypedDict, total=False):
    """Arguments of torch's loader that not every supported version has."""

    pin_memory_device: str
    in_order: bool


class DataLoader(torch.utils.data.DataLoader[Any]):
    """torch's loader, with its arguments, that can start an epoch at any batch.

    :meth:`set_step` skips batches without reading them. :meth:`state_dict` and :meth:`load_state_dict`
    resume in the middle of a shuffled epoch in another process. The batches are those that an unskipped
    run would yield.

    ``prefetch_factor`` may be given with any number of workers; without workers it has no effect. With
    ``skippable=False``, :meth:`set_step` is refused.
    """

    start_method: str | None = None
    """How workers are started without ``multiprocessing_context``; torch's default if ``None``."""

    @keywords(_TorchOptions)
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        skippable: bool = True,
        **more: Unpack[_TorchOptions],
    ) -> None:
        options: dict[str, Any] = {**more}
        self.skippable = skippable
        if multiprocessing_context is None and num_workers > 0:
            multiprocessing_context = self.start_method
        # torch >= 2 refuses a prefetch factor without workers; torch < 2 does not accept None.
        if num_workers > 0 and prefetch_factor is not None:
            options["prefetch_factor"] = prefetch_factor
        batched = batch_size is not None or batch_sampler is not None
        self._gives_lists = bool(getattr(dataset, "takes_lists", False))
        if collate_fn is None:
            collate_fn = default_collate if batched else default_convert
        super().__init__(
            dataset,
            batch_size=batch_size,
            shuffle=shuffle,
            sampler=sampler,
            batch_sampler=batch_sampler,
            num_workers=num_workers,
            collate_fn=collate_fn,
            pin_memory=pin_memory,
            drop_last=drop_last,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
            multiprocessing_context=multiprocessing_context,
            generator=generator,
            persistent_workers=persistent_workers,
            **options,
        )
        self._steps: StepSampler | None = None
        self._epoch: weakref.ref[_Epoch] | None = None
        if not isinstance(dataset, torch.utils.data.IterableDataset):
            source = self.sampler if self.batch_sampler is None else self.batch_sampler
            self._steps = StepSampler(source, self._gives_lists and not batched)

    @property
    def _auto_collation(self) -> bool:
        # With False, torch passes the whole list of a batch's indices to the dataset, and the returned
        # list of samples to collate_fn.
        return self.batch_sampler is not None and not self._gives_lists

    @property
    def _index_sampler(self) -> Any:
        steps = getattr(self, "_steps", None)
        return super()._index_sampler if steps is None else steps

    def _stepping(self) -> StepSampler:
        if self._steps is None:
            raise TypeError("cannot skip steps of an IterableDataset: it has no order of its own")
        return self._steps

    def set_step(self, step: int) -> None:
        """Starts every epoch at this batch until it is set again; ``len`` shrinks accordingly."""
        if not self.skippable:
            raise RuntimeError("set_step() needs a DataLoader with skippable=True")
        step = operator.index(step)
        if step < 0:
            raise ValueError(f"a step cannot be negative: {step}")
        steps = self._stepping()
        steps.step = step
        steps.resumed = None

    def state_dict(self) -> dict[str, Any]:
        """Returns the position in the epoch, for :meth:`load_state_dict` to resume.

        It counts the batches that were yielded, not those that workers have read ahead. After the last
        batch it is the state before the next epoch.
        """
        steps = self._stepping()
        epoch = None if self._epoch is None else self._epoch()
        if epoch is not None:
            epoch.settle()
        before = None
        if steps.order.running:
            order, step = steps.order, steps.order.step + steps.order.given
        else:
            order = Order(steps.step) if steps.resumed is None else steps.resumed
            step = order.step
            own = getattr(self.sampler, "generator", None)
            if order.generator is None and own is not None:
                before = own.get_state()
        return {
            "step": step,
            "seed": order.seed,
            "generator": order.generator,
            "generator_before": before,
            "epoch": order.epoch,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next epoch the rest of the one in which :meth:`state_dict` was called.

        ``len`` stays that of a whole epoch, as trainers expect of a stateful loader. Later epochs start
        at their first batch, or at the one set by :meth:`set_step`.
        """
        steps = self._stepping()
        own = getattr(self.sampler, "generator", None)
        if state["generator_before"] is not None and own is not None:
            own.set_state(state["generator_before"])
        steps.resumed = Order(state["step"], state["seed"], state["generator"], state["epoch"])
        steps.order = Order()

    def __iter__(self) -> Any:
        steps = self._steps
        if steps is None:
            return super().__iter__()
        if steps.resumed is not None and steps.resumed.running:
            # It was resumed and left before its end: this is another epoch.
            steps.resumed = None
        # torch draws a seed for the workers when an epoch begins; a resumed one has begun before.
        resumed = steps.resumed is not None and steps.resumed.step > 0
        with torch.random.fork_rng([], enabled=resumed):
            epoch = _Epoch(steps, super().__iter__())
        self._epoch = weakref.ref(epoch)
        return epoch

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_epoch": None}


class _Epoch:
    """The batches of one epoch, counted as they are yielded."""

    def __init__(self, steps: StepSampler, batches: Any) -> None:
        self._steps = steps
        self._order = steps.order
        self._batches = batches
        self._ahead: list[Any] = []
        """A batch that came although none was expected."""

    def __iter__(self) -> Self:
        return self

    def __len__(self) -> int:
        return len(self._batches)

    def __next__(self) -> Any:
        try:
            batch = self._ahead.pop() if self._ahead else next(self._batches)
        except StopIteration:
            self._steps.finish(self._order)
            raise
        self._order.given += 1
        return batch

    def settle(self) -> None:
        """Ends the epoch if all its batches were yielded but the caller has not tried to take another one.

        Only then has the sampler drawn all its random numbers.
        """
        if not self._ahead and self._steps.has_given_all(self._order):
            try:
                self._ahead.append(next(self._batches))
            except StopIteration:
                self._steps.finish(self._order)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)


class Batch(NamedTuple):
    """A batch of :class:`Loader`, as tensors."""

    data: Any
    """The records: stacked into one tensor if their shape is known; the collated results of ``decode``;
    otherwise all bytes back to back."""
    offsets: torch.Tensor
    """Where each record begins in the bytes, and at the end where the last one ends."""
    indices: torch.Tensor
    """The record numbers."""
    labels: Any
    """Their labels, if requested."""
    padding: int
    """How many samples at the end only fill up the last batch of an epoch."""

    def records(self) -> list[torch.Tensor]:
        """Returns one tensor per record, over the batch's memory."""
        is_flat = self.data.dim() == 1 and len(self.data) == int(self.offsets[-1])
        return list(self.data.split(self.offsets.diff().tolist()) if is_flat else self.data.unbind(0))


class TensorOptions(OrderOptions, total=False):
    """Options of :class:`Loader` that have no default of their own here."""

    max_bytes: int
    on_error: OnError
    labels: bool


class _WholeOptions(TensorOptions, total=False):
    shape: Sequence[int] | None
    dtype: torch.dtype | str | None
    label_dtype: torch.dtype | str | None
    pin_memory: bool
    device: Any
    rank: int | None
    world: int | None
    decode: Callable[[Any], Any] | None


class _Options(_image.ImageOptions, total=False):
    pin_memory: bool
    device: Any
    rank: int | None
    world: int | None
    apply: Callable[[Any], Any] | None


class Loader(Stepping, _loader.Loader[BatchT_co]):
    """:class:`anyrec.Loader`, with its arguments, that yields tensors (:class:`Batch`).

    The tensors share the memory that the threads read into. Nothing is copied, and you may modify a
    tensor in place.

    :param shape: the shape of a record, if all have the same; each batch is then one tensor. IDX files
        store theirs.
    :param dtype: the element type (default ``torch.uint8``).
    :param label_dtype: the element type of the labels, such as ``torch.int64`` for class numbers.
    :param as_dict: ``True`` for batches that are dictionaries with the fields of :class:`Batch`. A mapping
        selects and renames fields: ``{"data": "pixel_values", "labels": "labels"}``.
    :param pin_memory: copy batches to pinned memory, which a GPU reads faster. Without a GPU
        this only warns.
    :param device: move batches to this device.
    :param decode: converts a record (:class:`anyrec.Record`) to a tensor, or anything that torch can collate.

    ``rank`` and ``world`` default to those of ``torch.distributed`` if that is initialised.

    >>> import anyrec, anyrec.torch, numpy as np
    >>> _ = anyrec.idx.write("images-idx3-ubyte", np.arange(40, dtype=np.uint8).reshape(10, 2, 2))
    >>> loader = anyrec.torch.Loader("images-idx3-ubyte", 4)
    >>> [tuple(batch.data.shape) for batch in loader]
    [(4, 2, 2), (4, 2, 2), (2, 2, 2)]
    """

    @overload
    def __init__(
        self: Loader[Batch],
        data: Paths | anyrec.Dataset | anyrec.View | anyrec.Mix,
        batch_size: int,
        *,
        as_dict: Literal[False] = False,
        **options: Unpack[_WholeOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Loader[dict[str, Any]],
        data: Paths | anyrec.Dataset | anyrec.View | anyrec.Mix,
        batch_size: int,
        *,
        as_dict: AsDict,
        **options: Unpack[_WholeOptions],
    ) -> None: ...
    @keywords(TensorOptions)
    def __init__(
        self,
        data: Paths | anyrec.Dataset | anyrec.View | anyrec.Mix,
        batch_size: int,
        *,
        shape: Sequence[int] | None = None,
        dtype: torch.dtype | str | None = None,
        label_dtype: torch.dtype | str | None = None,
        as_dict: AsDict = False,
        pin_memory: bool = False,
        device: Any = None,
        rank: int | None = None,
        world: int | None = None,
        decode: Callable[[Any], Any] | None = None,
        **options: Unpack[TensorOptions],
    ) -> None:
        rank, world = _ranks(rank, world)
        plain: Any = super()
        plain.__init__(data, batch_size, rank=rank, world=world, decode=decode, **options)
        dtype = None if dtype is None else _dtype(dtype)
        self.label_dtype = None if label_dtype is None else _dtype(label_dtype)
        """The element type of the labels, if it was chosen."""
        self.as_dict = as_dict
        """Whether batches are dictionaries."""
        self._names = field_names(as_dict, Batch)
        self._big_endian: str | None = None
        if shape is None and dtype is None and self.decode is None:
            shape, dtype = self._stored_shape()
        self.shape = None if shape is None and dtype is None else tuple(shape or ())
        """The shape of a record, if each batch is one tensor."""
        self.dtype = torch.uint8 if dtype is None else dtype
        """The element type."""
        self.device = device
        """The device that batches are moved to."""
        self.pinned = _can_pin(pin_memory)
        """Whether batches are copied to pinned memory."""

    def _stored_shape(self) -> tuple[tuple[int, ...] | None, torch.dtype | None]:
        """Returns the shape that the files store (IDX), if all store the same."""
        parts = self.data.parts if isinstance(self.data, anyrec.Mix) else [self.data]
        found = [(part.metadata["shape"], part.metadata["dtype"]) for part in parts]
        shapes = {(None if shape is None else tuple(shape[1:]), dtype) for shape, dtype in found}
        shape, name = shapes.pop()
        if shapes or shape is None:
            return None, None
        if np.dtype(name).itemsize > 1:
            # IDX files are big-endian.
            self._big_endian = np.dtype(name).newbyteorder(">").str
        return shape, getattr(torch, name)

    def _take(self) -> Any:
        batch = super()._take()
        if batch is None or self._names is None:
            return batch
        return named(batch, self._names, strict=self.as_dict is not True)

    def _next(self) -> Batch | None:
        if self.decode is not None:
            return self._next_decoded(self.decode)
        loaded = self._native.next_memory()
        if loaded is None:
            return None
        memory, offsets, indices, labels, padding = loaded
        if labels is not None and (missing := unlabelled(labels)).any():
            self._tell_unlabelled(int(indices[missing.argmax()]))
        if self._big_endian is not None:
            np.frombuffer(memoryview(memory), dtype=self._big_endian).byteswap(inplace=True)
        # torch cannot make a tensor over an empty buffer.
        data: Any = torch.frombuffer(memory, dtype=torch.uint8) if len(memory) else torch.ByteTensor()
        if self.pinned:
            data = data.pin_memory()
        if self.shape is not None:
            data = self._stacked(data, len(indices))
        return self._finished(data, offsets, indices, labels, padding)

    def _next_decoded(self, decode: Callable[[Any], Any]) -> Batch | None:
        batch = self._next_records()
        if batch is None:
            return None
        data = default_collate([decode(record) for record in batch])
        if self.pinned:
            data = pin_memory(data)  # type: ignore[no-untyped-call]
        return self._finished(data, batch.offsets, batch.indices, batch.labels, batch.padding)

    def _finished(self, data: Any, offsets: Any, indices: Any, labels: Any, padding: int) -> Batch:
        if isinstance(labels, np.ndarray):
            labels = torch.from_numpy(labels)
        if labels is not None and self.label_dtype is not None:
            labels = _labels_of_type(labels, self.label_dtype, indices)
        batch = Batch(data, torch.from_numpy(offsets), torch.from_numpy(indices), labels, padding)
        return batch if self.device is None else Batch(*_moved(batch, self.device, self.pinned))

    def _stacked(self, flat: Any, count: int) -> Any:
        shape = self.shape or ()
        size = int(np.prod(shape)) * torch.empty(0, dtype=self.dtype).element_size()
        if len(flat) != size * count:
            raise anyrec.InvalidArgument(
                f"{count} records of shape {shape} and {self.dtype} need {size * count} bytes, "
                f"but this batch has {len(flat)}"
            )
        return flat.view(self.dtype).view(count, *shape)


class ImageLoader(Stepping, _image.ImageLoader[BatchT_co]):
    """:class:`anyrec.ImageLoader`, with its arguments, that yields tensors (:class:`anyrec.ImageBatch`).

    The tensors share the memory that the threads write to. Nothing is copied, and you may modify a tensor
    in place.

    :param pin_memory: copy batches to pinned memory, which a GPU reads faster. Without a GPU
        this only warns.
    :param device: move batches to this device.

    ``rank`` and ``world`` default to those of ``torch.distributed`` if that is initialised.
    ``apply`` takes and returns tensors.
    """

    @overload
    def __init__(
        self: ImageLoader[_image.ImageBatch],
        data: Paths | anyrec.Dataset | anyrec.View | anyrec.Mix | FaceDataset,
        batch_size: int,
        size: _image.Size | None = None,
        *,
        as_dict: Literal[False] = False,
        **options: Unpack[_Options],
    ) -> None: ...
    @overload
    def __init__(
        self: ImageLoader[dict[str, Any]],
        data: Paths | anyrec.Dataset | anyrec.View | anyrec.Mix | FaceDataset,
        batch_size: int,
        size: _image.Size | None = None,
        *,
        as_dict: AsDict,
        **options: Unpack[_Options],
    ) -> None: ...
    @keywords(_image.ImageOptions)
    def __init__(
        self,
        data: Paths | anyrec.Dataset | anyrec.View | anyrec.Mix | FaceDataset,
        batch_size: int,
        size: _image.Size | None = None,
        *,
        as_dict: AsDict = False,
        pin_memory: bool = False,
        device: Any = None,
        rank: int | None = None,
        world: int | None = None,
        apply: Callable[[Any], Any] | None = None,
        **options: Unpack[_image.ImageOptions],
    ) -> None:
        rank, world = _ranks(rank, world)
        plain: Any = super()
        plain.__init__(data, batch_size, size, as_dict=as_dict, rank=rank, world=world, **options)
        self._apply = apply
        self.device = device
        """The device that batches are moved to."""
        self.pinned = _can_pin(pin_memory)
        """Whether batches are copied to pinned memory."""

    def _next(self) -> _image.ImageBatch | None:
        batch = super()._next()
        if batch is None:
            return None
        data: Any
        if self._images["dtype"] == "bfloat16":
            data = torch.from_numpy(batch.data.view(np.int16)).view(torch.bfloat16)
        else:
            data = torch.from_numpy(batch.data)
        if self._apply is not None:
            data = torch.stack([self._apply(sample) for sample in data])
        if self.pinned:
            data = data.pin_memory()
        labels = None if batch.labels is None else torch.from_numpy(batch.labels)
        # torch has no unsigned 64-bit integers, so ids of 2^63 and more become negative.
        ids = torch.from_numpy(batch.ids.view(np.int64))
        made = _image.ImageBatch(data, labels, torch.from_numpy(batch.indices), ids, batch.padding)
        return made if self.device is None else _image.ImageBatch(*_moved(made, self.device, self.pinned))


def _labels_of_type(labels: Any, dtype: torch.dtype, indices: Any) -> torch.Tensor:
    """Converts labels. One that a type of whole numbers cannot hold is an error."""
    if not isinstance(labels, torch.Tensor):
        raise anyrec.InvalidArgument("label_dtype: the records of this batch have different numbers of labels")
    made: torch.Tensor = labels.to(dtype)
    differing = torch.ne(made, labels).nonzero()
    if len(differing) and not dtype.is_floating_point:
        first = tuple(differing[0].tolist())
        raise anyrec.InvalidArgument(
            f"label_dtype: the label of record {indices[first[0]]} is {labels[first].item()}, not one of {dtype}"
        )
    return made


def _ranks(rank: int | None, world: int | None) -> tuple[int, int]:
    """Returns rank and world size; by default those of ``torch.distributed``."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    if rank is None:
        rank = torch.distributed.get_rank() if distributed else 0
    if world is None:
        world = torch.distributed.get_world_size() if distributed else 1
    return rank, world


def _dtype(given: torch.dtype | str) -> torch.dtype:
    """Returns an element type, which may be given by its name."""
    found = getattr(torch, given, None) if isinstance(given, str) else given
    if not isinstance(found, torch.dtype):
        raise anyrec.InvalidArgument(f"there is no element type {given!r} in torch")
    return found


def _can_pin(wanted: bool) -> bool:
    if wanted and not torch.cuda.is_available():
        warnings.warn("pin_memory: torch sees no GPU here, so batches are not pinned", stacklevel=3)
        return False
    return wanted


def _moved(values: Iterable[Any], device: Any, pinned: bool) -> list[Any]:
    """Moves the tensors among these values to a device; returns the rest unchanged."""
    return [
        value.to(device, non_blocking=pinned) if isinstance(value, torch.Tensor) else value
        for value in values
    ]
