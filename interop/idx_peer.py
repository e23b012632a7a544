"""The IDX side of the interop check: idx2numpy (reads and writes) and torchvision (reads).

idx2numpy refuses to write an empty array or one of rank 0, so neither is written here. `read` accepts
both.
"""

import gzip
import hashlib
import io
import tempfile
import warnings
from pathlib import Path

import idx2numpy
import numpy

with warnings.catch_warnings():
    # Its image codecs only load with its own version of torch; none is used here.
    warnings.filterwarnings("ignore", message="Failed to load image Python extension")
    from torchvision.datasets.mnist import read_sn3_pascalvincent_tensor

import peer_common
from peer_common import digest

FIELDS = {"file", "dtype", "shape", "data_be_sha256", "gz", "records"}
DTYPES = {
    "uint8": "ubyte", "int8": "byte", "int16": "short",
    "int32": "int", "float32": "float", "float64": "double",
}  # fmt: skip


def describe(array):
    """Describes the array for the manifest; all bytes big-endian, as stored. A record is a slice along
    the first dimension, so an array of rank 0 has none."""
    stored = array.astype(array.dtype.newbyteorder(">"), order="C")
    records = None
    if stored.ndim:
        # Slices, as `stored[0]` of a rank 1 array would be a scalar in the host's byte order.
        records = [digest(stored[at : at + 1].tobytes()) for at in range(len(stored))]
    return {
        "dtype": array.dtype.newbyteorder("=").name,
        "shape": list(array.shape),
        "data_be_sha256": hashlib.sha256(stored.tobytes()).hexdigest(),
        "records": records,
    }


def uncompressed(path, gz):
    data = path.read_bytes()
    return gzip.decompress(data) if gz else data


def read_with_idx2numpy(path, gz):
    if not gz:
        return idx2numpy.convert_from_file(str(path))
    with gzip.open(path, "rb") as stream:
        return idx2numpy.convert_from_file(stream)


def read_with_torchvision(path, gz):
    """torchvision reads only plain files: its own data sets are unpacked before they are read."""
    if not gz:
        return read_sn3_pascalvincent_tensor(str(path)).numpy()
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "plain"
        plain.write_bytes(uncompressed(path, gz))
        return read_sn3_pascalvincent_tensor(str(plain)).numpy()


def torchvision_takes(shape):
    """Ranks 1 to 3 only, and `torch.frombuffer` accepts no empty buffer."""
    return 1 <= len(shape) <= 3 and 0 not in shape


# write


def random_shape(random):
    rank = random.choices([1, 2, 3, 4, 5, 12], weights=[25, 20, 30, 12, 10, 3])[0]
    element_limit = random.choices([30, 1000, 9000], weights=[50, 40, 10])[0]
    shape = []
    for _ in range(rank):
        longest = max(1, element_limit // int(numpy.prod(shape, dtype=int)))
        shape.append(random.randint(1, min(longest, random.choice([2, 9, 300, 9000]))))
    random.shuffle(shape)
    return shape


def random_array(random, dtype, shape):
    count = int(numpy.prod(shape, dtype=int))
    if dtype.startswith("float"):
        # Any bit pattern is valid, but idx2numpy's writer quiets signalling NaNs.
        edges = [0.0, -0.0, 1.0, -1.5, 1e-40, 3.4e38, float("inf"), float("-inf"), float("nan")]
        values = [
            random.choice(edges) if random.random() < 0.2 else random.gauss(0, 1e3)
            for _ in range(count)
        ]
        array = numpy.array(values, dtype)
    else:
        size = count * numpy.dtype(dtype).itemsize
        array = numpy.frombuffer(random.randbytes(size), dtype)
    array = array.reshape(shape)
    if random.random() < 0.2:
        # Arrays in other memory orders must also be written in C order.
        array = numpy.asfortranarray(array)
    return array


def compress(random, data):
    """One gzip member or several, with and without a file name in the header."""
    cuts = sorted(random.randint(0, len(data)) for _ in range(random.choice([0, 0, 0, 1, 2])))
    output = io.BytesIO()
    for begin, end in zip([0, *cuts], [*cuts, len(data)]):
        name = random.choice(["", "inner-name"])
        level = random.randint(0, 9)
        # A fixed time keeps the file a function of the seed.
        with gzip.GzipFile(name, "wb", level, output, mtime=0) as member:
            member.write(data[begin:end])
    return output.getvalue()


def write_file(directory, ordinal, random):
    dtype = random.choice(list(DTYPES))
    array = random_array(random, dtype, random_shape(random))
    gz = random.random() < 0.3
    # A gzipped file is detected by its content; some have lost the suffix.
    suffix = ".gz" if gz and random.random() < 0.7 else ""
    name = f"{ordinal:05}-idx{array.ndim}-{DTYPES[dtype]}{suffix}"
    path = directory / name
    if gz:
        path.write_bytes(compress(random, idx2numpy.convert_to_string(array)))
    else:
        idx2numpy.convert_to_file(str(path), array)
    return {"file": name, "gz": gz, **describe(read_with_idx2numpy(path, gz))}


# read


def check_with(library, read, directory, entry, report):
    with report.attempt(library):
        found = describe(read(directory / entry["file"], entry["gz"]))
        for field in ("dtype", "shape", "data_be_sha256"):
            report.compare(f"{library}: {field}", entry[field], found[field])
        if entry["records"] is None or found["records"] is None:
            report.compare(f"{library}: records", entry["records"], found["records"])
        else:
            report.compare_lists(f"{library}: records", entry["records"], found["records"])


def check_file(directory, entry, report):
    check_with("idx2numpy", read_with_idx2numpy, directory, entry, report)
    if torchvision_takes(entry["shape"]):
        check_with("torchvision", read_with_torchvision, directory, entry, report)


if __name__ == "__main__":
    peer_common.main(__doc__.splitlines()[0], FIELDS, write_file, check_file)
