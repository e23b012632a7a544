"""anyrec itself, through its Python interface. All calls to it are in this file."""

import anyrec
from data import IMAGE_BATCH, IMAGE_SIZE

from .base import Peer

ENDINGS = {"rec": ".rec", "ffr": ".ffr", "grail": ".grail-rio", "zstd": ".zstd.grail-rio"}
ZSTD_LEVEL = 3


class Contestant(Peer):
    def path(self, folder, data, format, **options):
        return folder / f"{data}{ENDINGS[format]}"

    def write(self, path, records, count, format, **how):
        how |= {"durability": "process", "overwrite": True}
        if format == "ffr":
            how["count"] = count
        if format == "zstd":
            how["transformers"] = [f"zstd {ZSTD_LEVEL}"]
        with anyrec.create(str(path), **how) as writer:
            if format == "rec":
                for number, record in enumerate(records):
                    writer.write(record, key=number)
            else:
                for record in records:
                    writer.write(record)

    def open(self, path, format=None, threads=1, views=False, batches=None, lent=False, indexed=False):
        if views:
            # A checksum covers a whole record, so a view that is not accessed has none to verify.
            return Views(anyrec.open(str(path), copy=False, verify=False))
        file = anyrec.open(str(path), threads=threads, copy=not lent)
        if indexed:
            # anyrec reads an index file on first use; MXNet reads it when opening.
            len(file)
        return file

    def keys(self, indices):
        return indices

    def read(self, file, keys):
        return file.read(keys)

    def scan(self, file, format=None, threads=1, batches=None, lent=False):
        return iter(file) if batches is None else file.batches(batches)

    def as_bytes(self, delivered):
        return [bytes(record) for record in delivered]

    def close(self, file):
        file.close()

    def epoch(self, path, format=None, threads=2):
        return loader(path, batch_size=256, threads=threads)

    def touch(self, batch):
        batch.buffer[::4096].sum()
        return batch.nbytes

    def resume(self, path, format=None):
        """Returns a function that starts at a step and returns its first batch."""
        found = loader(path, batch_size=1, threads=1)

        def first_batch(step):
            found.set_step(step)
            return next(iter(found))

        return first_batch

    def images(self, path, threads):
        found = anyrec.ImageLoader(
            str(path), IMAGE_BATCH, IMAGE_SIZE, train=True, shuffle=True, seed=1, threads=threads, drop_last=True
        )
        while True:
            for batch in found:
                yield batch.data

    def array(self, path, mapped=False):
        return anyrec.idx.read(str(path), mapped=mapped)


class Views:
    """Returns records as views into the mapped file, many at a time."""

    def __init__(self, dataset):
        self.read = dataset.__getitem__
        self.close = dataset.close


def loader(path, batch_size, threads):
    return anyrec.Loader(
        str(path), batch_size=batch_size, shuffle=True, seed=1, threads=threads, drop_last=True
    )
