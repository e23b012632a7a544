"""The records that every contestant stores: made from a seed, the same on every machine.

A record is a slice of one long run of noise (or of text), so that any record can be made directly and
none has to be kept. Only integer arithmetic is used: NumPy's generators may change between versions, and
contestants run with different ones.
"""

import functools
import random
from dataclasses import dataclass

import numpy as np

BATCH = 256
SOURCE_BYTES = 32 << 20

IMAGE_BATCH = 64
IMAGE_SIZE = 224
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
"""What images are normalised with, for values up to 255."""
TIMES_OVER = 4
"""How often the image rows' photos are stored, so that an epoch is long enough."""


@dataclass(frozen=True)
class Set:
    """A description of one set of records."""

    name: str
    count: int
    smallest: int
    largest: int
    text: bool = False


def sets(quick: bool) -> dict[str, Set]:
    """A: large records. B: many small ones. T: text, in 100 GRAIL blocks, for compression."""
    blocks, items = 100, 1024 if quick else 4096
    return {
        "A": Set("A", 2_000 if quick else 8_000, 90_000, 110_000),
        "B": Set("B", 200_000 if quick else 2_000_000, 200, 1_000),
        "T": Set("T", blocks * items, 200, 1_000, text=True),
    }


class Records:
    """The records of a set, by number."""

    def __init__(self, which: Set):
        self.set = which
        numbers = np.arange(which.count, dtype=np.uint64)
        spread = np.uint64(which.largest - which.smallest + 1)
        self.sizes = (which.smallest + (mixed(numbers, 1) % spread)).astype(np.int64)
        self.starts = (mixed(numbers, 2) % np.uint64(SOURCE_BYTES - which.largest)).astype(np.int64)

    @functools.cached_property
    def _source(self) -> bytes:
        """Made when a record is first accessed, so that a scan need not wait for it."""
        return text() if self.set.text else noise()

    def __len__(self) -> int:
        return self.set.count

    def __getitem__(self, number: int) -> bytes:
        start = int(self.starts[number])
        return self._source[start : start + int(self.sizes[number])]

    def __iter__(self):
        source = self._source
        for start, size in zip(self.starts.tolist(), self.sizes.tolist()):
            yield source[start : start + size]

    @functools.cached_property
    def total(self) -> int:
        """Total bytes of all records."""
        return int(self.sizes.sum())

    def batches(self, seed: int) -> np.ndarray:
        """Returns all records in a random order, divided into batches: one row per batch."""
        order = np.argsort(mixed(np.arange(self.set.count, dtype=np.uint64), 100 + seed), kind="stable")
        whole = self.set.count // BATCH * BATCH
        return order[:whole].reshape(-1, BATCH)

    def pool(self) -> list[bytes]:
        """Returns some of the records, kept in memory, which writers write repeatedly."""
        some = 1_000 if self.set.largest > 10_000 else 20_000
        return [self[number] for number in range(min(some, len(self)))]


def mixed(numbers: np.ndarray, seed: int) -> np.ndarray:
    """SplitMix64 of every number: looks random and never changes."""
    with np.errstate(over="ignore"):
        value = (numbers + np.uint64(seed * 0x1_0000_0000 + 1)) * np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@functools.cache
def noise() -> bytes:
    """Incompressible bytes."""
    return random.Random(20261).randbytes(SOURCE_BYTES)


@functools.cache
def text() -> bytes:
    """Frequent and rare words that compress about as well as prose."""
    generator = random.Random(20262)
    words = [generator.randbytes(generator.randrange(1, 6)).hex().encode() for _ in range(8192)]
    picked = [words[int(len(words) * generator.random() ** 3)] for _ in range(SOURCE_BYTES // 6)]
    return b" ".join(picked)[:SOURCE_BYTES]
