"""The limit: the same bytes moved by the plain system calls, in Rust (`bench/limit`)."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import cache
import numpy as np
from data import BATCH

from .base import Peer

ENDINGS = {"rec": ".rec", "ffr": ".ffr", "grail": ".grail-rio"}
ZSTD_LEVEL = 3


class Contestant(Peer):
    def __init__(self):
        self.program = os.environ["ANYREC_BENCH_LIMIT"]

    def measure(self, task, records):
        """Does one task. Unlike other peers, it runs all of it in another program."""
        with tempfile.TemporaryDirectory() as scratch:
            words = getattr(self, task["options"]["do"])(task, records, Path(scratch))
            found = {}
            if task["kind"] == "cold":
                found["resident_before"] = cache.drop(self._file(task))
            done = subprocess.run(
                [self.program, *map(str, words)], capture_output=True, text=True, check=False
            )
            if task["kind"] == "write":
                (Path(task["folder"]) / "written").unlink()
            if done.returncode != 0:
                raise RuntimeError(done.stderr.strip())
        found |= json.loads(done.stdout)
        return {**found, "blocks": found["records"]}

    def pread(self, task, records, scratch):
        options, path = task["options"], self._file(task)
        batches = records.batches(task["seed"])[: task.get("batches")]
        chosen = batches.reshape(-1)
        offsets = offsets_of(options["format"], records.sizes, path.stat().st_size)
        ranges = np.stack([offsets[chosen], records.sizes[chosen]], axis=1)
        words = ["pread", f"file={path}", f"ranges={integers(scratch / 'ranges', ranges)}", f"batch={BATCH}"]
        words += [f"{name}={options[name]}" for name in ("buffer", "direct") if name in options]
        # Cold batches are read once, because the second time they are not cold.
        return [*words, *between(task, once=task["kind"] == "cold")]

    def read(self, task, records, scratch):
        return ["read", f"file={self._file(task)}", *between(task)]

    def write(self, task, records, scratch):
        sizes = [len(record) for record in records.pool()]
        sizes = np.tile(sizes, max(len(records) // len(sizes), 1))
        # Next to what the others write, so that it is on the same file system.
        folder = Path(task["folder"])
        cache.make_room(folder, 2 * records.total)
        return ["write", f"file={folder / 'written'}", f"lengths={integers(scratch / 'lengths', sizes)}"]

    def memcpy(self, task, records, scratch):
        return ["memcpy", f"bytes={int(records.sizes[:BATCH].sum())}", *between(task)]

    def zstd(self, task, records, scratch):
        plain = scratch / "plain"
        with open(plain, "wb") as file:
            file.writelines(records)
        ends = np.cumsum(records.sizes)[task["block_items"] - 1 :: task["block_items"]]
        order = block_order(task, records)
        return [
            "zstd", f"file={plain}", f"lengths={integers(scratch / 'lengths', np.diff(ends, prepend=0))}",
            f"order={integers(scratch / 'order', order)}", f"level={ZSTD_LEVEL}", *between(task),
        ]  # fmt: skip

    def _file(self, task):
        return Path(task["folder"]) / f"{task['data']}{ENDINGS[task['options']['format']]}"


def block_order(task, records):
    """Returns the blocks to decode: all, or the distinct ones of every random batch."""
    if task["kind"] == "scan":
        return np.arange(len(records) // task["block_items"])
    batches = records.batches(task["seed"]) // task["block_items"]
    return np.concatenate([np.unique(batch) for batch in batches])


def offsets_of(format, sizes, file_size):
    """Returns where the records' bytes are in a file of that format."""
    if format == "ffr":
        # Back to back, up to the end of the file.
        return file_size - np.cumsum(sizes[::-1])[::-1]
    # A header of 8 bytes, the record, and up to 3 bytes of padding to align the next header.
    frames = 8 + (sizes + 3) // 4 * 4
    if int(frames.sum()) != file_size:
        raise RuntimeError("the .rec file does not hold one frame per record")
    return np.cumsum(frames) - frames + 8


def integers(path, numbers):
    np.ascontiguousarray(numbers, "<u8").tofile(path)
    return path


def between(task, once=False):
    return [f"minimum={0 if once else task['minimum']}", f"maximum={task['maximum']}"]
