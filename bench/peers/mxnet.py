"""MXNet's own `recordio` and `ImageRecordIter`, on the `.rec` and `.idx` that anyrec wrote."""

from data import IMAGE_BATCH, IMAGE_SIZE, MEAN, STD

from .base import Peer


class Records(Peer):
    """The calls of MXNet's modules, or of what stands in for them."""

    ending = ".rec"
    shares_files = True

    def __init__(self, recordio, io):
        self.recordio = recordio
        self.io = io

    def write(self, path, records, count):
        writer = self.recordio.MXIndexedRecordIO(str(path.with_suffix(".idx")), str(path), "w")
        for number, record in enumerate(records):
            writer.write_idx(number, record)
        writer.close()

    def open(self, path):
        return self.recordio.MXIndexedRecordIO(str(path.with_suffix(".idx")), str(path), "r")

    def read(self, file, keys):
        read = file.read_idx
        return [read(key) for key in keys]

    def scan(self, file):
        file.reset()
        return iter(file.read, None)

    def close(self, file):
        file.close()

    def images(self, path, threads):
        iterator = self.io.ImageRecordIter(
            path_imgrec=str(path),
            path_imgidx=str(path.with_suffix(".idx")),
            data_shape=(3, IMAGE_SIZE, IMAGE_SIZE),
            batch_size=IMAGE_BATCH,
            shuffle=True,
            preprocess_threads=threads,
            random_resized_crop=True,
            min_random_area=0.08,
            max_random_area=1.0,
            min_aspect_ratio=3 / 4,
            max_aspect_ratio=4 / 3,
            rand_mirror=True,
            **{f"mean_{each}": value for each, value in zip("rgb", MEAN)},
            **{f"std_{each}": value for each, value in zip("rgb", STD)},
        )
        while True:
            for batch in iterator:
                batch.data[0].wait_to_read()
                yield batch.data[0]
            iterator.reset()

    def as_array(self, batch):
        return batch.asnumpy()


def Contestant():
    from mxnet import io, recordio

    return Records(recordio, io)
