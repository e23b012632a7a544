"""The part of ``mxnet.ndarray`` that scripts use to handle images: arrays in NumPy's memory."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing import Self

__all__ = ["NDArray", "array", "empty", "flip", "ones", "transpose", "zeros"]


class NDArray:
    """An array as in MXNet, for what scripts do with images and batches.

    :meth:`asnumpy` returns a copy, as in the original; ``numpy.asarray(array)`` returns the memory itself.
    There is no arithmetic, because its rules differ from NumPy's: do it on :meth:`asnumpy`.

    >>> from anyrec.mxnet import NDArray
    >>> import numpy as np
    >>> image = NDArray(np.zeros((4, 6, 3), np.uint8))
    >>> image.transpose((2, 0, 1)).shape, image[0], image[0, 0, 0].asscalar().item()
    ((3, 4, 6), <NDArray 6x3 uint8>, 0)
    """

    __slots__ = ("_values",)
    # Otherwise NumPy would do arithmetic with it element by element, and return an array of objects.
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return self._values.shape

    @property
    def dtype(self) -> type[np.generic]:
        """The element type: a NumPy class such as ``numpy.uint8``, as in the original."""
        return self._values.dtype.type

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._values.size

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._values.ndim

    @property
    def T(self) -> NDArray:
        """A copy with the dimensions reversed."""
        return self.transpose()

    def asnumpy(self) -> npt.NDArray[Any]:
        """Returns a copy as a NumPy array."""
        return self._values.copy()

    def asscalar(self) -> Any:
        """Returns the only element."""
        if self.size != 1:
            raise ValueError("The current array is not a scalar")
        return self._values.reshape(1)[0]

    def astype(self, dtype: npt.DTypeLike, copy: bool = True) -> NDArray:
        """Returns the elements as another type; with ``copy=False`` this array if it has that type."""
        if not copy and self._values.dtype == np.dtype(dtype):
            return self
        return NDArray(self._values.astype(dtype))

    def copy(self) -> NDArray:
        """Returns a copy."""
        return NDArray(self._values.copy())

    def reshape(self, *shape: Any) -> NDArray:
        """Returns the same elements in another shape, where -1 stands for what remains."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        if any(length < -1 or length == 0 for length in map(operator.index, wanted)):
            raise ValueError(f"anyrec.compat: mxnet.nd.NDArray.reshape takes lengths and -1, not {wanted}")
        return NDArray(self._values.reshape(tuple(wanted)))

    def transpose(self, axes: Sequence[int] | None = None) -> NDArray:
        """Returns a copy with its dimensions in this order; reversed by default."""
        return NDArray(self._values.transpose(axes).copy())

    def flip(self, axis: int | Sequence[int]) -> NDArray:
        """Returns a copy in reverse order along these dimensions."""
        chosen = axis if isinstance(axis, int) else tuple(axis)
        return NDArray(np.flip(self._values, chosen).copy())

    def wait_to_read(self) -> None:
        """Does nothing: the elements are always there."""

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[NDArray]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key: Any) -> NDArray:
        # As in the original: a contiguous part shares its memory, any other part is a copy, and a single
        # element has one dimension.
        part = np.asarray(self._values[_index(key)])
        if part.ndim == 0:
            part = part.reshape(1)
        return NDArray(part if part.flags.c_contiguous else part.copy())

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[_index(key)] = value._values if isinstance(value, NDArray) else value

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")
        return bool(self.size) and bool(self.asscalar())

    def __array__(self, dtype: npt.DTypeLike = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self._values if dtype is None else self._values.astype(dtype, copy=False)
        return values.copy() if copy else values

    def __reduce__(self) -> tuple[type[Self], tuple[npt.NDArray[Any]]]:
        return type(self), (self._values,)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"<NDArray {shape} {self._values.dtype}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"anyrec.compat has no mxnet.nd.NDArray.{name}: asnumpy() returns a NumPy array")


def _refuse(name: str) -> Any:
    def refused(self: NDArray, *_: object) -> NoReturn:
        raise TypeError(f"anyrec.compat has no mxnet.nd.NDArray.{name}: compute with asnumpy()")

    return refused


# Without these, Python would compare identities, or say nothing about what to do instead.
for _operator in ("add", "sub", "mul", "truediv", "mod", "pow"):
    for _name in (f"__{_operator}__", f"__r{_operator}__", f"__i{_operator}__"):
        setattr(NDArray, _name, _refuse(_name))
for _operator in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "abs", "matmul"):
    setattr(NDArray, f"__{_operator}__", _refuse(f"__{_operator}__"))


def _index(key: Any) -> Any:
    """Returns an index that NumPy understands. The original's arrays are float32, even those of numbers."""
    if isinstance(key, tuple):
        return tuple(map(_index, key))
    return key._values.astype(np.int64) if isinstance(key, NDArray) else key


def _on_cpu(name: str, ctx: Any) -> None:
    if ctx is not None:
        raise TypeError(f"anyrec.compat: mxnet.nd.{name} has no ctx: arrays are in the CPU's memory")


def array(source_array: Any, ctx: Any = None, dtype: npt.DTypeLike = None) -> NDArray:
    """Returns a copy: float32 unless ``dtype`` or an :class:`NDArray` says otherwise."""
    _on_cpu("array", ctx)
    if dtype is None:
        dtype = source_array.dtype if isinstance(source_array, NDArray) else np.float32
    return NDArray(np.array(source_array, dtype=dtype, order="C"))


def zeros(shape: int | Sequence[int], ctx: Any = None, dtype: npt.DTypeLike = None) -> NDArray:
    """Returns an array of zeros; float32 by default."""
    _on_cpu("zeros", ctx)
    return NDArray(np.zeros(shape, np.float32 if dtype is None else dtype))


def ones(shape: int | Sequence[int], ctx: Any = None, dtype: npt.DTypeLike = None) -> NDArray:
    """Returns an array of ones; float32 by default."""
    _on_cpu("ones", ctx)
    return NDArray(np.ones(shape, np.float32 if dtype is None else dtype))


def empty(shape: int | Sequence[int], ctx: Any = None, dtype: npt.DTypeLike = None) -> NDArray:
    """Returns an array whose elements can be anything; float32 by default."""
    _on_cpu("empty", ctx)
    return NDArray(np.empty(shape, np.float32 if dtype is None else dtype))


def transpose(data: NDArray, axes: Sequence[int] | None = None) -> NDArray:
    """Returns a copy with its dimensions in this order; reversed by default."""
    return checked("transpose", data).transpose(axes)


def flip(data: NDArray, axis: int | Sequence[int]) -> NDArray:
    """Returns a copy in reverse order along these dimensions."""
    return checked("flip", data).flip(axis)


def checked(name: str, data: Any) -> NDArray:
    """Returns the argument of a function; the original accepts only its own arrays."""
    if not isinstance(data, NDArray):
        raise TypeError(f"mxnet: {name} takes an NDArray, not {type(data).__name__}: use mxnet.nd.array()")
    return data
