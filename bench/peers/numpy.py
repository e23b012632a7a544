"""NumPy and Python's gzip: an IDX file as an array, as one would write it by hand."""

import gzip

import numpy as np

from .base import Peer


class Contestant(Peer):
    def array(self, path):
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as file:
                data = file.read()
            return np.frombuffer(data, np.uint8, offset=16)
        return np.fromfile(path, np.uint8, offset=16)
