"""FFRecord's own reader and writer, on the `.ffr` that anyrec wrote, one call per sample."""

from .base import Peer


class Samples(Peer):
    """The calls of `ffrecord`, or of what stands in for it."""

    ending = ".ffr"
    shares_files = True

    def __init__(self, ffrecord):
        self.ffrecord = ffrecord

    def write(self, path, records, count):
        writer = self.ffrecord.FileWriter(str(path), count)
        for record in records:
            writer.write_one(record)
        writer.close()

    def open(self, path, batched=False):
        reader = self.ffrecord.FileReader(str(path), True)
        return reader, batched

    def read(self, file, keys):
        reader, batched = file
        if batched:
            return reader.read(keys)
        read = reader.read_one
        return [read(key) for key in keys]

    def scan(self, file):
        reader, _ = file
        return map(reader.read_one, range(reader.n))

    def close(self, file):
        file[0].close()


def Contestant():
    import ffrecord

    return Samples(ffrecord)
