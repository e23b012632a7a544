"""LMDB: a B+ tree, keyed by the record's number."""

import lmdb

from .base import Peer


class Contestant(Peer):
    ending = ".lmdb"

    def write(self, path, records, count):
        # In ascending order and without a sync: the fastest way to write.
        with lmdb.open(str(path), map_size=1 << 40, sync=False, metasync=False) as environment:
            with environment.begin(write=True) as transaction:
                for number, record in enumerate(records):
                    transaction.put(number.to_bytes(8, "big"), record, append=True)

    def open(self, path, views=False):
        environment = lmdb.open(str(path), readonly=True, lock=False, readahead=True)
        return environment, environment.begin(buffers=views)

    def keys(self, indices):
        return [number.to_bytes(8, "big") for number in indices.tolist()]

    def read(self, file, keys):
        get = file[1].get
        return [get(key) for key in keys]

    def scan(self, file, views=False):
        return file[1].cursor().iternext(keys=False)

    def close(self, file):
        file[1].abort()
        file[0].close()
