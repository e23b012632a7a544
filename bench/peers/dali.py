"""NVIDIA DALI, all of it on the CPU: decodes only the region of the crop, as its authors advise."""

import numpy as np
from data import IMAGE_BATCH, IMAGE_SIZE, MEAN, STD
from nvidia.dali import fn, pipeline_def, types

from .base import Peer


class Contestant(Peer):
    def images(self, path, threads):
        pipeline = photos(
            path, batch_size=IMAGE_BATCH, num_threads=threads, device_id=None, prefetch_queue_depth=2, seed=1
        )
        pipeline.build()
        while True:
            # It continues from epoch to epoch by itself.
            yield pipeline.run()[0]

    def as_array(self, batch):
        return np.array(batch.as_tensor())


@pipeline_def
def photos(path):
    index = str(path.with_suffix(".idx"))
    files, _ = fn.readers.mxnet(path=[str(path)], index_path=[index], random_shuffle=True)
    images = fn.decoders.image_random_crop(
        files, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
    )
    images = fn.resize(images, device="cpu", size=[IMAGE_SIZE, IMAGE_SIZE])
    return fn.crop_mirror_normalize(
        images, device="cpu", mirror=fn.random.coin_flip(), mean=list(MEAN), std=list(STD),
        dtype=types.FLOAT, output_layout="CHW",
    )  # fmt: skip
