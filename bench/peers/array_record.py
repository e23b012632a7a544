"""ArrayRecord (Riegeli): one record per chunk, as its authors advise for random access."""

from array_record.python import array_record_module

from .base import Peer


class Contestant(Peer):
    ending = ".array_record"

    def write(self, path, records, count):
        writer = array_record_module.ArrayRecordWriter(str(path), "group_size:1,uncompressed")
        for record in records:
            writer.write(record)
        writer.close()

    def open(self, path, ahead=False):
        # Read-ahead helps sequential reading and hinders random access.
        options = "" if ahead else "readahead_buffer_size:0"
        return array_record_module.ArrayRecordReader(str(path), options)

    def read(self, file, keys):
        return file.read(keys)

    def scan(self, file, ahead=False):
        count = file.num_records()
        for begin in range(0, count, 256):
            yield from file.read(begin, min(begin + 256, count))

    def close(self, file):
        file.close()
