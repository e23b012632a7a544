"""How each kind of work is timed: the same code for every contestant.

A task is a small dictionary from the harness (`rows.py` has its fields); a result has `seconds`, the
`bytes` and `records` processed in them, and sometimes more. What a contestant returns is compared with
what was stored, outside the timed part.
"""

import itertools
import re
import shutil
import threading
import time
from pathlib import Path

import cache
import numpy as np
from data import IMAGE_BATCH, IMAGE_SIZE

NOT_READ = 0.02
"""The fraction of a file that may be in memory when it is measured cold."""


def prepare(peer, task, records):
    """Stores the task's records in the contestant's own format, unless that was done before."""
    path = place(peer, task)
    stamp = path.with_name(path.name + ".done")
    if not stamp.exists() and not getattr(peer, "shares_files", False):
        remove(path)
        peer.write(path, records, len(records), **task["options"])
        stamp.touch()
    return {"bytes_stored": sum(each.stat().st_size for each in cache.files_of(path))}


def random(peer, task, records):
    """Random batches, in whole passes over all records."""
    path = place(peer, task)
    cache.warm(path)
    file = peer.open(path, **task["options"])
    batches = records.batches(task["seed"])
    keys = [peer.keys(batch) for batch in batches]
    check(peer, file, keys[0], batches[0], records)
    # A warm-up pass: the first access to a mapped page costs more than later ones.
    passes(peer, file, keys, 0, task["minimum"])
    done, seconds = passes(peer, file, keys, task["minimum"], task["maximum"])
    peer.close(file)
    return {"seconds": seconds, **amount(task, records, batches, done)}


def passes(peer, file, keys, minimum, maximum):
    """Reads all batches repeatedly; returns how many were read, and in which time."""
    read = peer.read
    rounds = itertools.cycle(keys)
    done, seconds = 0, 0.0
    start = time.perf_counter()
    while seconds < maximum and (done < len(keys) or seconds < minimum):
        # A batch is kept until the next one arrives, as in a training loop.
        held = read(file, next(rounds))  # noqa: F841
        done += 1
        seconds = time.perf_counter() - start
    return done, seconds


def cold(peer, task, records):
    """The same with a file that is not in memory; each batch is read once."""
    path = place(peer, task)
    before = cache.drop(path)
    if before > NOT_READ:
        raise RuntimeError(f"{before:.0%} of the file stays in memory: it cannot be measured cold")
    file = peer.open(path, **task["options"])
    batches = records.batches(task["seed"])[: task["batches"]]
    keys = [peer.keys(batch) for batch in batches]
    done = 0
    start = time.perf_counter()
    for one in keys:
        peer.read(file, one)
        done += 1
        if time.perf_counter() - start > task["maximum"]:
            break
    seconds = time.perf_counter() - start
    peer.close(file)
    return {"seconds": seconds, **amount(task, records, batches, done), "resident_before": before}


def scan(peer, task, records):
    """All records in order; their bytes are not accessed."""
    path = place(peer, task)
    cache.warm(path)
    options = task["options"]
    file = peer.open(path, **options)
    batched = peer.batched or "batches" in options
    count = len(records)
    step = max(count // 100, 1)
    done, seconds = 0, 0.0
    start = time.perf_counter()
    while seconds < task["maximum"] and (done % count or not done or seconds < task["minimum"]):
        if done % count == 0:
            items = iter(peer.scan(file, **options))
        if batched:
            done += len(next(items))
        else:
            some = min(step, count - done % count)
            for _ in itertools.islice(items, some - 1):
                pass
            # The last one, by number: this raises if there are fewer.
            next(items)
            done += some
        seconds = time.perf_counter() - start
    if done % count == 0 and next(items, None) is not None:
        raise RuntimeError("the scan returned too many records")
    peer.close(file)
    passes, part = divmod(done, count)
    bytes_done = passes * records.total + int(records.sizes[:part].sum())
    return {"seconds": seconds, "bytes": bytes_done, "records": done}


def open_one(peer, task, records):
    """Opening a file and reading one record, in a process that did neither before."""
    path = place(peer, task)
    cache.warm(path)
    number = len(records) // 2
    keys = peer.keys(records.batches(0).reshape(-1)[:1] * 0 + number)
    before = anonymous()
    start = time.perf_counter()
    file = peer.open(path, **task["options"])
    record = peer.read(file, keys)
    seconds = time.perf_counter() - start
    memory = anonymous() - before
    if peer.as_bytes(record) != [records[number]]:
        raise RuntimeError(f"record {number} is not what was stored")
    peer.close(file)
    return {"seconds": seconds, "bytes": 0, "records": 1, "memory": memory}


def write(peer, task, records):
    """Writes records to a new file in the page cache, including closing it."""
    folder = emptied(Path(task["folder"]) / "written")
    output = peer.path(folder, task["data"], **task["options"])
    pool = records.pool()
    pools_wanted = max(len(records) // len(pool), 1)
    cache.make_room(folder, 2 * records.total)
    given = 0

    def pools():
        nonlocal given
        while given < pools_wanted and time.perf_counter() - start < task["maximum"]:
            given += 1
            yield pool

    count = pools_wanted * len(pool)
    start = time.perf_counter()
    peer.write(output, itertools.chain.from_iterable(pools()), count, **task["options"])
    seconds = time.perf_counter() - start
    remove(folder)
    return {"seconds": seconds, "bytes": given * sum(map(len, pool)), "records": given * len(pool)}


def epoch(peer, task, records):
    """Shuffled epochs; the consumer touches every page of every batch."""
    path = place(peer, task)
    cache.warm(path)
    batches = peer.epoch(path, **task["options"])
    # A warm-up: workers and threads start, and the memory for reading ahead is allocated. That happens
    # once, not in every epoch.
    epochs(peer, batches, task["minimum"])
    held, done, seconds = epochs(peer, batches, task["maximum"])
    return {"seconds": seconds, "bytes": held, "records": done}


def epochs(peer, batches, minimum):
    """Runs whole epochs for some time; returns bytes, records and seconds."""
    held = done = 0
    seconds = 0.0
    start = time.perf_counter()
    while seconds < minimum:
        for batch in batches:
            held += peer.touch(batch)
            done += len(batch)
        seconds = time.perf_counter() - start
    return held, done, seconds


def resume(peer, task, records):
    """The time from seeking a step to receiving its batch, the shortest of many tries: the time to wake a
    thread varies by a factor of two, whatever the step."""
    path = place(peer, task)
    cache.warm(path)
    first_batch = peer.resume(path, **{k: v for k, v in task["options"].items() if k != "step"})
    step = min(task["options"]["step"], len(records) // 2)
    times = []
    for shift in range(100):
        start = time.perf_counter()
        first_batch(step + shift)
        times.append(time.perf_counter() - start)
    return {"seconds": min(times), "bytes": 0, "records": 1, "step": step}


def memory(peer, task, records):
    """The most anonymous memory a scan adds."""
    options = task["options"]
    peak = Peak()
    start = time.perf_counter()
    if "path" in options:
        found = peer.array(Path(options["path"]), mapped=True)
        found.reshape(-1)[::4096].sum()
    else:
        for _ in peer.scan(peer.open(place(peer, task), **options), **options):
            pass
    return {"seconds": time.perf_counter() - start, "bytes": 0, "records": 0, "memory": peak.stop()}


def array(peer, task, records):
    """A whole IDX file as an array; or only opened, if it is mapped."""
    path = Path(task["options"]["path"])
    options = {name: value for name, value in task["options"].items() if name != "path"}
    cache.warm(path)
    size = peer.array(path, **options).nbytes
    done, seconds = 0, 0.0
    start = time.perf_counter()
    while seconds < task["minimum"]:
        peer.array(path, **options)
        done += 1
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "bytes": done * size, "records": done}


def images(peer, task, records):
    """Photos as finished batches, one after the other, across epochs."""
    options = {name: Path(value) if name in ("path", "folder") else value for name, value in task["options"].items()}
    for path in (options[name] for name in ("path", "folder") if name in options):
        cache.warm(path)
    batches = peer.images(**options)
    check_images(peer.as_array(next(batches)))
    # A warm-up, which uses up the batches that were prepared ahead.
    take(batches, task["seconds"] / 2)
    done, seconds = take(batches, task["seconds"])
    batches.close()
    return {"seconds": seconds, "bytes": 0, "records": done * IMAGE_BATCH}


def take(batches, minimum):
    """Takes batches for this long; returns how many there were, and in which time."""
    done, seconds = 0, 0.0
    start = time.perf_counter()
    while seconds < minimum:
        held = next(batches)  # noqa: F841
        done += 1
        seconds = time.perf_counter() - start
    return done, seconds


def check_images(found):
    """Checks that a batch is what every contestant has to make of the photos."""
    wanted = (IMAGE_BATCH, 3, IMAGE_SIZE, IMAGE_SIZE)
    if found.shape != wanted or found.dtype != np.float32:
        raise RuntimeError(f"a batch is {found.dtype} of {found.shape} instead of float32 of {wanted}")
    if not (abs(found.mean()) < 1 and 0.5 < found.std() < 2 and -2.2 < found.min() and found.max() < 2.7):
        raise RuntimeError("a batch is not normalised")


KINDS = {
    each.__name__: each
    for each in (prepare, random, cold, scan, open_one, write, epoch, resume, memory, array, images)
}


def place(peer, task):
    return peer.path(Path(task["folder"]), task["data"], **task["options"])


def check(peer, file, keys, batch, records):
    """Checks that a batch equals what was stored."""
    delivered = peer.as_bytes(peer.read(file, keys))
    if delivered != [records[number] for number in batch.tolist()]:
        raise RuntimeError("the batch is not what was stored")


def amount(task, records, batches, done):
    """Returns what these batches hold: bytes, records and, if they come in blocks, distinct blocks."""

    def of_all(each):
        passes, part = divmod(done, len(batches))
        return passes * int(each.sum()) + int(each[:part].sum())

    found = {"bytes": of_all(records.sizes[batches].sum(axis=1)), "records": done * batches.shape[1]}
    if "block_items" in task:
        found["blocks"] = of_all(np.array([len(np.unique(batch // task["block_items"])) for batch in batches]))
    return found


def emptied(folder):
    """Returns the folder, emptied."""
    remove(folder)
    folder.mkdir()
    return folder


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def anonymous() -> int:
    """Returns the bytes of anonymous memory that this process uses."""
    with open("/proc/self/status", encoding="ascii") as status:
        return int(re.search(r"^RssAnon:\s+(\d+) kB$", status.read(), re.MULTILINE).group(1)) * 1024


class Peak:
    """Watches this process's anonymous memory until stopped."""

    def __init__(self):
        self._before = self._highest = anonymous()
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self):
        while not self._over.wait(0.002):
            self._highest = max(self._highest, anonymous())

    def stop(self) -> int:
        """Returns the most that was added."""
        self._over.set()
        self._watcher.join()
        return max(self._highest, anonymous()) - self._before
