"""MosaicML Streaming: MDS shards on the local disk."""

from streaming import LocalDataset, MDSWriter

from .base import Peer


class Contestant(Peer):
    ending = ".mds"

    def write(self, path, records, count):
        with MDSWriter(out=str(path), columns={"data": "bytes"}) as writer:
            for record in records:
                writer.write({"data": record})

    def open(self, path):
        return LocalDataset(str(path))

    def read(self, file, keys):
        return [file[key]["data"] for key in keys]

    def scan(self, file):
        for sample in file:
            yield sample["data"]
