"""What is measured: the rows, who takes part in each, and what anyrec must reach.

A row is one line of the result. Rows of one id are measured together: every contestant that any of them
names runs once per repetition, one after the other.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MEGABYTE = 1_000_000
FASHION_MNIST = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz"

STORES = ("array_record", "datasets", "lance", "lmdb", "streaming")
"""Peers that have both random access and scans."""


@dataclass(frozen=True)
class Contestant:
    """A contestant that does a row's work, and its options."""

    peer: str
    options: tuple[tuple[str, Any], ...] = ()
    name: str = ""

    @property
    def shown(self) -> str:
        return self.name or self.peer


def by(peer: str, name: str = "", **options: Any) -> Contestant:
    return Contestant(peer, tuple(options.items()), name)


@dataclass(frozen=True)
class Target:
    """A bound on one of a row's figures; `met` returns None if it could not be measured."""

    text: str
    met: Callable[[dict, list[dict]], bool | None]


@dataclass(frozen=True)
class Row:
    id: str
    work: str
    kind: str
    data: str
    unit: str
    ours: Contestant
    limit: Contestant | None = None
    peers: tuple[Contestant, ...] = ()
    variants: tuple[Contestant, ...] = ()
    """Further figures of anyrec or of the limit, for comparison."""
    targets: tuple[Target, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    """Further fields of the task."""
    fresh: bool = False
    """Whether each repetition runs in a new process."""

    def everyone(self) -> list[Contestant]:
        first = [self.limit] if self.limit else []
        return [*first, self.ours, *self.variants, *self.peers]


# Targets


def over_limit(bound: float) -> Target:
    return at_least(bound, "the limit", lambda row, rows: row["limit_rate"])


def over_peer(bound: float, name: str) -> Target:
    return at_least(bound, name, lambda row, rows: row["peers"].get(name))


def over_best_peer(bound: float) -> Target:
    return at_least(bound, "the best peer", lambda row, rows: max(rates(row), default=None))


def over_row(bound: float, id: str, work: str) -> Target:
    def rate(row, rows):
        return next((each["rate"] for each in rows if (each["id"], each["work"]) == (id, work)), None)

    return at_least(bound, f"{id}, {work}", rate)


def at_least(bound: float, what: str, rate_of: Callable[[dict, list[dict]], float | None]) -> Target:
    def met(row, rows):
        rate = rate_of(row, rows)
        return None if rate is None or row["rate"] is None else row["rate"] >= bound * rate

    return Target(f">= {bound:g} x {what}", met)


def rate_over(bound: float) -> Target:
    return Target(f">= {bound:,.0f} a second", lambda row, rows: None if row["rate"] is None else row["rate"] >= bound)


def memory_under(megabytes: float) -> Target:
    def met(row, rows):
        return None if row.get("memory") is None else row["memory"] < megabytes * MEGABYTE

    return Target(f"< {megabytes:g} MB of memory", met)


def rates(row: dict) -> list[float]:
    return [rate for rate in row["peers"].values() if rate is not None]


# Rows


def rows(quick: bool, arrays: dict[str, str], photos: dict[str, Any]) -> list[Row]:
    """Returns all rows, in order.

    `arrays` has the paths of the IDX files. `photos` has the `.rec` file of the photos, the folder of the
    files themselves, and how many of these count.
    """
    stores = tuple(by(name) for name in STORES)
    views = by("lmdb", "lmdb views", views=True)
    arrow_views = by("datasets", "datasets views", views=True)
    ahead = tuple(by(name, ahead=True) if name == "array_record" else by(name) for name in STORES)
    block_items = 1024 if quick else 4096
    blocks = {"block_items": block_items}
    cold_large, cold_small = {"batches": 3 if quick else 8}, {"batches": 12 if quick else 40}

    def pread(format, **options):
        return by("limit", do="pread", format=format, **options)

    def read(format):
        return by("limit", do="read", format=format)

    small_buffer = by("limit", "limit_small_buffer", do="pread", format="ffr", buffer="record")
    memcpy = by("limit", "memcpy", do="memcpy")
    files = {"folder": photos["folder"], "count": photos["count"]}
    record_file = {"path": photos["path"], "threads": 2}
    return [
        Row("A1", ".ffr, random batches, 1 thread", "random", "A", "bytes/s",
            ours=by("anyrec", format="ffr", threads=1), limit=pread("ffr"), peers=stores,
            variants=(small_buffer, memcpy), targets=(over_limit(0.9),)),
        Row("A1", ".ffr, random batches, 2 threads", "random", "A", "bytes/s",
            ours=by("anyrec", format="ffr", threads=2), limit=pread("ffr"), peers=stores,
            targets=(over_limit(1.1),)),
        Row("A2", ".rec, random batches, 1 thread", "random", "A", "bytes/s",
            ours=by("anyrec", format="rec", threads=1), limit=pread("rec"), peers=(by("mxnet"),),
            targets=(over_limit(0.9),)),
        *(Row("A3", f"{shown}, scan", "scan", "A", "bytes/s",
              ours=by("anyrec", format=format, threads=1), limit=read(format),
              variants=(by("anyrec", f"{shown} in Batches of 64", format=format, threads=1, batches=64),
                        by("anyrec", f"{shown} lent, not copied", format=format, threads=1, lent=True)),
              peers=(by("mxnet"), by("webdataset"), *ahead), targets=(over_limit(bound),))
          for format, shown, bound in (("rec", ".rec", 0.9), ("ffr", ".ffr", 0.9), ("grail", "GRAIL", 0.5))),
        *(Row("A4", f".{format}, views of random records", "random", "A", "records/s",
              ours=by("anyrec", format=format, views=True), peers=(views, arrow_views),
              targets=(over_peer(2, "lmdb views"),))
          for format in ("rec", "ffr")),
        *(Row("B1", f".{format}, random batches, 1 thread", "random", "B", "records/s",
              ours=by("anyrec", format=format, threads=1), limit=pread(format),
              peers=(by("mxnet"), *stores, views), targets=(over_best_peer(3), over_peer(20, "mxnet")))
          for format in ("ffr", "rec")),
        *(Row("B2", f".{format}, scan, one object a record", "scan", "B", "records/s",
              # Lance has no scan of single records.
              ours=by("anyrec", format=format, threads=1),
              peers=(by("mxnet"), *(peer for peer in ahead if peer.peer != "lance"), views),
              targets=(over_best_peer(2),))
          for format in ("ffr", "rec")),
        *(Row("B2", f".{format}, scan in Batches of 256", "scan", "B", "bytes/s",
              ours=by("anyrec", format=format, threads=1, batches=256), limit=read(format),
              peers=(by("lance"), by("datasets", batches=256)), targets=(over_limit(0.6),))
          for format in ("ffr", "rec")),
        *(Row("B3", f".{format}, opening and one record", "open_one", "B", "1/s",
              ours=by("anyrec", format=format, threads=1), peers=(by("mxnet"), by("lmdb")), fresh=True,
              targets=(over_peer(10, "mxnet"), memory_under(64)))
          for format in ("rec", "ffr")),
        *(Row("B4", f"GRAIL zstd, scan in Batches of 256, {shown}", "scan", "T", "bytes/s",
              ours=by("anyrec", format="zstd", threads=threads, batches=256), limit=by("limit", do="zstd"),
              variants=(by("anyrec", f"one object a record, {shown}", format="zstd", threads=threads),),
              extra=blocks, targets=(target,))
          for threads, shown, target in (
              (1, "1 thread", over_limit(0.8)),
              # The gain from a second core varies between runs: 1.2 to 1.65 were seen.
              (2, "2 threads", over_row(1.3, "B4", "GRAIL zstd, scan in Batches of 256, 1 thread")))),
        Row("B4", "GRAIL zstd, random items of 100 blocks, 1 thread", "random", "T", "blocks/s",
            ours=by("anyrec", format="zstd", threads=1), limit=by("limit", do="zstd"), extra=blocks,
            targets=(over_limit(0.8),)),
        Row("C1", "idx3 as an array", "array", "", "bytes/s",
            ours=by("anyrec", path=arrays["large"]),
            limit=by("numpy", "numpy.fromfile", path=arrays["large"]), targets=(over_limit(0.9),)),
        Row("C1", "idx3, mapped", "array", "", "1/s",
            ours=by("anyrec", path=arrays["large"], mapped=True),
            # The file is up to a thousand times as large; work that grows with the size would be far
            # below this bound.
            limit=by("anyrec", "mapped, 1 MB", path=arrays["small"], mapped=True), targets=(over_limit(0.5),)),
        Row("C1", "Fashion-MNIST, gzip", "array", "", "bytes/s",
            ours=by("anyrec", path=FASHION_MNIST),
            limit=by("numpy", "gzip and frombuffer", path=FASHION_MNIST), targets=(over_limit(1.5),)),
        *(Row("W1", f"{shown}, writing", "write", "A", "bytes/s",
              ours=by("anyrec", format=format), limit=by("limit", do="write"),
              peers=(by("mxnet"), by("webdataset"), *stores), targets=(over_limit(0.6),))
          for format, shown in (("rec", ".rec"), ("ffr", ".ffr"), ("grail", "GRAIL"))),
        *(Row("W1", f"GRAIL zstd, writing, {threads} at once", "write", "T", "bytes/s",
              ours=by("anyrec", format="zstd", parallelism=threads, max_items=block_items - 1),
              targets=(over_row(1.7, "W1", "GRAIL zstd, writing, 1 at once"),) if threads == 2 else ())
          for threads in (1, 2)),
        *(Row("W2", f".{format}, writing", "write", "B", "records/s",
              ours=by("anyrec", format=format), limit=by("limit", do="write"),
              # Lance has no call for a single record.
              peers=(by("mxnet"), *(peer for peer in stores if peer.peer != "lance")),
              targets=(over_best_peer(2),))
          for format in ("ffr", "rec")),
        *(Row("D1", f".{format}, cold, {shown}", "cold", data, "records/s",
              ours=by("anyrec", format=format, threads=2, indexed=True), limit=pread(format),
              variants=(by("limit", f"limit_direct .{format}", do="pread", format=format, direct="yes"),),
              peers=(by("mxnet"), by("lmdb")), extra=extra, targets=(over_limit(bound),))
          for data, shown, extra, bound in (
              ("A", "~100 KB", cold_large, 1.6), ("B", "200-1000 bytes", cold_small, 4))
          for format in ("ffr", "rec")),
        Row("L1", ".ffr, shuffled epoch, 2 threads", "epoch", "A", "bytes/s",
            ours=by("anyrec", format="ffr", threads=2),
            peers=(by("torch", "torch DataLoader", workers=2),),
            targets=(over_row(0.8, "A1", ".ffr, random batches, 2 threads"), over_peer(4, "torch DataLoader"))),
        Row("L2", "first batch at step 1,000,000", "resume", "B", "1/s",
            ours=by("anyrec", format="ffr", step=1_000_000),
            limit=by("anyrec", "at step 10", format="ffr", step=10), targets=(over_limit(1 / 1.2),)),
        Row("L2", "plan, 10^12 records shuffled", "plan", "", "records/s", ours=by("plan"),
            targets=(rate_over(20e6), memory_under(1))),
        *(Row("M1", f"scan of {data} in {format}", "memory", data, "MB",
              ours=by("anyrec", format=format, threads=2), fresh=True, targets=(memory_under(64),))
          for data, format in (
              ("A", "rec"), ("A", "ffr"), ("A", "grail"), ("B", "rec"), ("B", "ffr"), ("T", "zstd"))),
        Row("M1", "scan of idx3", "memory", "", "MB", ours=by("anyrec", path=arrays["large"]), fresh=True,
            targets=(memory_under(64),)),
        Row("I1", ".rec of photos to training batches, 2 threads", "images", "", "images/s",
            ours=by("anyrec", **record_file),
            limit=by("simplejpeg", "libjpeg-turbo, decoding only", **files, threads=2),
            peers=(by("dali", "DALI on the CPU", **record_file), by("mxnet", "ImageRecordIter", **record_file),
                   *(by("torchvision", f"{decode}, 2 workers", **files, decode=decode, workers=2)
                     for decode in ("torchvision.io", "PIL"))),
            extra={"seconds": 1 if quick else 5},
            targets=(over_limit(1), over_peer(2.4, "ImageRecordIter"))),
        *(Row("S1", f"{call}, {shown}", kind, data, "records/s",
              ours=by("standins", format=format, **how), peers=(by(original, **how),),
              targets=(over_peer(1, original),))
          for data, shown in (("B", "200-1000 bytes"), ("A", "~100 KB"))
          for call, kind, format, original, how in (
              ("MXIndexedRecordIO.read_idx", "random", "rec", "mxnet", {}),
              ("MXRecordIO.read", "scan", "rec", "mxnet", {}),
              ("FileReader.read_one", "random", "ffr", "ffrecord", {}),
              ("FileReader.read of 256", "random", "ffr", "ffrecord", {"batched": True}))),
        *(Row("S2", f"{call}, {shown}", "write", data, "records/s",
              ours=by("standins", format=format), peers=(by(original),), targets=(over_peer(1, original),))
          for data, shown in (("B", "200-1000 bytes"), ("A", "~100 KB"))
          for call, format, original in (
              ("MXIndexedRecordIO.write_idx", "rec", "mxnet"), ("FileWriter.write_one", "ffr", "ffrecord"))),
        Row("S3", "ImageRecordIter, 2 threads", "images", "", "images/s",
            ours=by("standins", **record_file), peers=(by("mxnet", "ImageRecordIter", **record_file),),
            extra={"seconds": 1 if quick else 5}, targets=(over_peer(1, "ImageRecordIter"),)),
    ]  # fmt: skip
