"""GRAIL recordio files.

>>> from anyrec import grail
>>> places = {}
>>> with grail.Writer("words.grail-rio", transformers=["zstd 3"], header={"made": "here"},
...                   index=lambda location, item: places.update({item: location})) as writer:
...     writer.append(b"zero")
...     writer.append(b"one")
...     writer.flush()
...     writer.append(b"two")
...     writer.set_trailer(b"the index")
>>> scanner = grail.Scanner("words.grail-rio")
>>> scanner.header["made"], scanner.trailer
('here', b'the index')
>>> places[b"two"]
(65536, 0)
>>> scanner.seek(places[b"one"])
>>> [bytes(item) for item in scanner]
[b'one', b'two']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from . import _anyrec
from ._paths import Path
from .writer import Completing

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Location", "Scanner", "Writer", "register_transformer", "required_space"]

Location: TypeAlias = tuple[int, int]
"""The address of an item: (byte offset of its block, number within the block)."""

Header: TypeAlias = Mapping[str, Any] | Mapping[bytes, Any] | Iterable[tuple[str | bytes, Any]]
Coder: TypeAlias = "Callable[[bytes], Buffer]"


class Writer(Completing, _anyrec.GrailWriter):
    """Writes a file of version 2, which is published when the writer is closed.

    :param path: the file.
    :param transformers: in order of application, ``"name"`` or ``"name config"``: ``zstd``,
        ``flate``, ``aes-256-gcm``, or your own (:func:`register_transformer`).
    :param header: pairs for the file's header; use a list of pairs if keys repeat. Values are bool, int,
        str or bytes.
    :param max_items: a block ends after this many items plus one, as in the original (default 16384).
    :param index: called with (location, item) for every item, in order, once its block is written.
        Blocks are written when they are full, at :meth:`wait` and when the file is closed.
    :param trailer: ``True`` declares a trailer, ``False`` declares that there is none. By default a
        trailer is optional.
    :param parallelism: number of blocks compressed at once (default 8).
    :param keys: 32-byte keys for ``aes-256-gcm``, by id.
    :param skip_header: leave out the header, for output that is appended to another file.
    :param overwrite: replace the file if it exists.
    """

    __slots__ = ()

    def __new__(
        cls,
        path: Path,
        *,
        transformers: Sequence[str] = (),
        header: Header = (),
        max_items: int | None = None,
        index: Callable[[Location, Any], object] | None = None,
        trailer: bool | None = None,
        parallelism: int | None = None,
        keys: Mapping[str, bytes] | None = None,
        skip_header: bool = False,
        overwrite: bool = False,
    ) -> Self:
        if isinstance(transformers, str):
            raise TypeError("transformers must be a list of strings, not a string")
        given: dict[str, Any] = {
            "transformers": list(transformers),
            "header": header,
            "max_items": max_items,
            "trailer": trailer,
            "parallelism": parallelism,
            "keys": None if keys is None else dict(keys),
            "overwrite": overwrite,
        }
        options = {name: value for name, value in given.items() if value is not None}
        return super().__new__(cls, path, options, index, skip_header)


class Scanner(_anyrec.GrailScanner):
    """Iterates over the items of a file of either version.

    :param path: the file.
    :param shard: (start, limit, of): read only parts [start, limit) of ``of`` equal parts. Together, the
        shards (0, 1, n), (1, 2, n), ... (n - 1, n, n) have every item once.
    :param options: of :func:`anyrec.open`: ``skip_damage``, ``verify``, ``legacy_transform``,
        ``keys``, ...

    >>> from anyrec import grail
    >>> with grail.Writer("numbers.grail-rio", max_items=9) as writer:
    ...     for number in range(100):
    ...         writer.append(str(number).encode())
    >>> shards = [len(list(grail.Scanner("numbers.grail-rio", shard=(n, n + 1, 4)))) for n in range(4)]
    >>> shards, sum(shards)
    ([20, 30, 20, 30], 100)
    """

    __slots__ = ()

    def __new__(
        cls,
        path: Path,
        *,
        shard: tuple[int, int, int] | None = None,
        **options: Any,
    ) -> Self:
        return super().__new__(cls, path, shard, options)

    @property
    def header(self) -> dict[str | bytes, Any]:  # type: ignore[override]
        """The header's pairs. If a key repeats, its first value counts."""
        pairs: dict[str | bytes, Any] = {}
        for key, value in super().header:
            pairs.setdefault(key, value)
        return pairs

    @property
    def header_pairs(self) -> list[tuple[str | bytes, Any]]:
        """The header's pairs in order, including repeated keys."""
        return list(super().header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def register_transformer(
    name: str,
    encoder: Callable[[str], Coder] | None = None,
    decoder: Callable[[str], Coder] | None = None,
) -> None:
    """Registers a custom transformer by name, for all files opened or created afterwards.

    Both callables receive the config (the text after the name, or ``""``) and return a function from a
    block's bytes to other bytes. These functions run in several threads at once. Spawned processes must
    register the transformer again; forked ones need not.

    >>> from anyrec import grail
    >>> def rotate(distance):
    ...     return lambda block: bytes((byte + distance) % 256 for byte in block)
    >>> grail.register_transformer("rotate", lambda n: rotate(int(n)), lambda n: rotate(-int(n)))
    >>> with grail.Writer("rotated.grail-rio", transformers=["rotate 13"]) as writer:
    ...     writer.append(b"hello")
    >>> [bytes(item) for item in grail.Scanner("rotated.grail-rio")]
    [b'hello']
    """
    _anyrec.register_transformer(name, encoder, decoder)


def required_space(sizes: Sequence[int], record_bytes: int) -> int:
    """Returns an upper bound on the length of a file that holds items of these sizes.

    >>> from anyrec import grail
    >>> grail.required_space([1024, 1024, 1024], 2048)
    131072
    """
    return _anyrec.required_space(sizes, record_bytes)
