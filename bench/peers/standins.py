"""anyrec's stand-ins, used as their originals are: one call per record."""

from anyrec import ffrecord, mxnet

from .base import Peer
from .ffrecord import Samples
from .mxnet import Records

ENDINGS = {"rec": ".rec", "ffr": ".ffr"}


class Contestant(Peer):
    def path(self, folder, data, format, **options):
        return folder / f"{data}{ENDINGS[format]}"

    def write(self, path, records, count, format, **how):
        like(format).write(path, records, count, **how)

    def open(self, path, format, **how):
        original = like(format)
        return original, original.open(path, **how)

    def read(self, file, keys):
        original, opened = file
        return original.read(opened, keys)

    def scan(self, file, **how):
        original, opened = file
        return original.scan(opened)

    def close(self, file):
        original, opened = file
        original.close(opened)

    def images(self, path, threads):
        return Records(mxnet, mxnet).images(path, threads)

    def as_array(self, batch):
        return batch.asnumpy()


def like(format):
    """Returns the calls of the original, made on its stand-in."""
    return Records(mxnet, mxnet) if format == "rec" else Samples(ffrecord)
