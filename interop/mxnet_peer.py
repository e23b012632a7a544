"""The MXNet side of the interop check: `mxnet.recordio` and `ImageRecordIter`, as released.

Kinds of file written: `plain` (no index file), `indexed`, `packed` (image headers on
arbitrary payloads), `images` (packed images, also read in shards), `insightface`.
"""

import hashlib
import os
import struct
import tempfile

# MXNet's thread pools do not help with files this small; starting them costs more.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MXNET_CPU_WORKER_NTHREADS", "1")

import mxnet  # noqa: E402
from mxnet import recordio  # noqa: E402

import mxnet_payloads as make  # noqa: E402
import peer_common  # noqa: E402
from peer_common import digest  # noqa: E402

FIELDS = {
    "file", "kind", "records", "offsets", "index", "key_type", "keys",
    "headers", "images", "shards",
}  # fmt: skip
KEY_TYPES = {"int": int, "str": str}


# What the library finds in a file


def read_sequentially(path):
    reader = recordio.MXRecordIO(str(path), "r")
    records = []
    while (record := reader.read()) is not None:
        records.append(record)
    if reader.read() is not None:
        raise ValueError("read() gave a record after the end")
    reader.close()
    return records


def describe_header(record):
    """The image header as `unpack` returns it. Scalar labels pass through a Python float,
    which quiets a signalling NaN: none is written here."""
    header, body = recordio.unpack(record)
    labels = header.label.tobytes() if header.flag > 0 else struct.pack("<f", header.label)
    return {
        "flag": header.flag,
        "labels": labels.hex(),
        "id": header.id,
        "id2": header.id2,
        "payload": digest(body),
    }


def describe_image(record, encoding):
    pixels = recordio.unpack_img(record)[1]
    return {
        "encoding": encoding,
        "depth": pixels.dtype.itemsize * 8,
        "shape": list(pixels.shape),
        "bgr_sha256": hashlib.sha256(pixels.tobytes()).hexdigest(),
    }


def indexed_shard_is_empty(record_count, parts, part):
    """Returns whether this shard of an indexed file is empty. The iterator must not be used then: it
    reads past its list of offsets, and sometimes crashes the process."""
    return part * -(-record_count // parts) >= record_count


def shard_labels(path, index_path, parts, part):
    """Labels of the records in one shard, in order, as float32 bytes. The iterator yields only images and
    labels, so the labels must identify the records."""
    options = {"path_imgidx": str(index_path)} if index_path else {}
    try:
        batches = mxnet.io.ImageRecordIter(
            path_imgrec=str(path), data_shape=(3, 1, 1), batch_size=1, round_batch=False,
            num_parts=parts, part_index=part, preprocess_threads=1, prefetch_buffer=1,
            verbose=False, **options,
        )  # fmt: skip
    except StopIteration:
        # An empty shard: the constructor already fetches the first batch.
        return []
    return [batch.label[0].asnumpy().astype("<f4").tobytes().hex() for batch in batches]


# write


class Writing:
    """One file being written: the records, and where each one starts according to the library."""

    def __init__(self, directory, ordinal, key_type):
        self.name = f"{ordinal:05}.rec"
        self.path = directory / self.name
        self.index_name = f"{ordinal:05}.idx" if key_type else None
        self.key_type = key_type
        self.keys = [] if key_type else None
        self.offsets = []
        if key_type:
            self.writer = recordio.MXIndexedRecordIO(
                str(directory / self.index_name), str(self.path), "w", KEY_TYPES[key_type]
            )
        else:
            self.writer = recordio.MXRecordIO(str(self.path), "w")

    def add(self, record, key=None):
        # Only the indexed class has `tell`, but it uses the same handle.
        self.offsets.append(recordio.MXIndexedRecordIO.tell(self.writer))
        if self.key_type:
            self.keys.append(None if key is None else str(key))
        if key is None:
            self.writer.write(record)
        else:
            self.writer.write_idx(key, record)

    def finish(self, kind, headers=False, encodings=None, shards=()):
        self.writer.close()
        records = read_sequentially(self.path)
        images = None
        if encodings is not None:
            images = [
                describe_image(record, encoding) if encoding else None
                for record, encoding in zip(records, encodings)
            ]
        return {
            "file": self.name,
            "kind": kind,
            "records": [digest(record) for record in records],
            "offsets": self.offsets,
            "index": self.index_name,
            "key_type": self.key_type,
            "keys": self.keys,
            "headers": [describe_header(record) for record in records] if headers else None,
            "images": images,
            "shards": list(shards),
        }


def choose_keys(random, count):
    """(key type, keys); a key of None is a record written past the index file."""
    key_type = random.choice(["int", "int", "str"])
    keys = (make.integer_keys if key_type == "int" else make.text_keys)(random, count)
    if random.random() < 0.15:
        keys = [None if random.random() < 0.2 else key for key in keys]
    return key_type, keys


def write_plain_or_indexed(directory, ordinal, random, kind):
    count = make.record_count(random)
    key_type, keys = choose_keys(random, count) if kind == "indexed" else (None, [None] * count)
    writing = Writing(directory, ordinal, key_type)
    for key in keys:
        writing.add(make.payload(random, make.payload_size(random, count)), key)
    return writing.finish(kind)


def write_packed(directory, ordinal, random):
    count = make.record_count(random)
    key_type, keys = choose_keys(random, count) if random.random() < 0.5 else (None, [None] * count)
    writing = Writing(directory, ordinal, key_type)
    for key in keys:
        # `pack` overwrites the flag it is given, whatever it is.
        header = recordio.IRHeader(
            random.choice([0, 7]),
            make.label(random),
            make.identifier(random),
            make.identifier(random),
        )
        writing.add(
            recordio.pack(header, make.payload(random, make.payload_size(random, count))), key
        )
    return writing.finish("packed", headers=True)


def write_images(directory, ordinal, random):
    count = random.randint(1, 25)
    indexed = random.random() < 0.6
    writing = Writing(directory, ordinal, "int" if indexed else None)
    encodings = []
    for position in range(count):
        pixels, encoding, quality = make.picture(random)
        header = recordio.IRHeader(0, float(position), make.identifier(random), 0)
        writing.add(
            recordio.pack_img(header, pixels, quality, encoding), position if indexed else None
        )
        encodings.append(encoding)
    writing.writer.close()

    shards = []
    parts = random.choice([1, 2, 3, 5])
    for by_index in [False, True] if indexed else [False]:
        if by_index and indexed_shard_is_empty(count, parts, parts - 1):
            continue
        first = 0
        for part in range(parts):
            index_path = directory / writing.index_name if by_index else None
            labels = shard_labels(writing.path, index_path, parts, part)
            expected = [struct.pack("<f", first + step).hex() for step in range(len(labels))]
            if labels != expected:
                raise ValueError(f"{writing.name}: shards are not contiguous")
            shards.append(
                {
                    "n": parts,
                    "start": part,
                    "limit": part + 1,
                    "indexed": by_index,
                    "first": first if labels else None,
                    "count": len(labels),
                }  # fmt: skip
            )
            first += len(labels)
    return writing.finish("images", headers=True, encodings=encodings, shards=shards)


def write_insightface(directory, ordinal, random):
    """Key 0: the header record; then the images; then a header record for each identity."""
    pictures_by_identity = [random.randint(1, 5) for _ in range(random.randint(1, 6))]
    images_end = 1 + sum(pictures_by_identity)
    identities_end = images_end + len(pictures_by_identity)
    writing = Writing(directory, ordinal, "int")
    encodings = [None]
    writing.add(recordio.pack(recordio.IRHeader(0, [images_end, identities_end], 0, 0), b""), 0)
    ranges = []
    key = 1
    for identity, picture_count in enumerate(pictures_by_identity):
        ranges.append([key, key + picture_count])
        for _ in range(picture_count):
            pixels, encoding, quality = make.picture(random)
            label = random.choice([float(identity), [float(identity), 1.0]])
            header = recordio.IRHeader(0, label, key, 0)
            writing.add(recordio.pack_img(header, pixels, quality, encoding), key)
            encodings.append(encoding)
            key += 1
    for first_and_limit in ranges:
        writing.add(recordio.pack(recordio.IRHeader(0, first_and_limit, key, 0), b""), key)
        encodings.append(None)
        key += 1
    return writing.finish("insightface", headers=True, encodings=encodings)


def write_file(directory, ordinal, random):
    kind = random.choices(
        ["plain", "indexed", "packed", "images", "insightface"], weights=[25, 30, 20, 17, 8]
    )[0]
    if kind == "packed":
        return write_packed(directory, ordinal, random)
    if kind == "images":
        return write_images(directory, ordinal, random)
    if kind == "insightface":
        return write_insightface(directory, ordinal, random)
    return write_plain_or_indexed(directory, ordinal, random, kind)


# read


def check_offsets(path, entry, report):
    """Reads through an index file of our own, so that the library seeks to every stated offset."""
    with tempfile.TemporaryDirectory() as scratch:
        index_path = os.path.join(scratch, "offsets.idx")
        with open(index_path, "w", encoding="ascii") as index:
            index.writelines(f"{key}\t{offset}\n" for key, offset in enumerate(entry["offsets"]))
        reader = recordio.MXIndexedRecordIO(index_path, str(path), "r")
        found = [digest(reader.read_idx(key)) for key in reversed(reader.keys)]
        reader.close()
    report.compare_lists("records by offset", entry["records"], found[::-1])


def check_index(directory, entry, report):
    key_type = KEY_TYPES[entry["key_type"]]
    reader = recordio.MXIndexedRecordIO(
        str(directory / entry["index"]), str(directory / entry["file"]), "r", key_type
    )
    keyed = [(key_type(key), at) for at, key in enumerate(entry["keys"]) if key is not None]
    report.compare_lists("keys", [str(key) for key, _ in keyed], [str(key) for key in reader.keys])
    expected, found = [], []
    # If a key repeats, the last record wins.
    for key, at in dict(keyed).items():
        following = entry["records"][at + 1] if at + 1 < len(entry["records"]) else None
        expected.append([str(key), entry["offsets"][at], entry["records"][at], following])
        record = digest(reader.read_idx(key))
        following = reader.read()
        if following is None:
            # Once the reader has reached the end of the file, it stays there after any seek.
            reader.reset()
        else:
            following = digest(following)
        found.append([str(key), reader.idx[key], record, following])
    reader.close()
    report.compare_lists("key, offset, record, next record", expected, found)


def check_image(position, expected, record, report):
    found = describe_image(record, expected["encoding"])
    if expected["bgr_sha256"] is None:
        # The writer of the manifest has no decoder that matches OpenCV exactly.
        found["bgr_sha256"] = None
    report.compare(f"images[{position}]", expected, found)


def check_shard(directory, entry, shard, report):
    what = f"shard {shard['start']} of {shard['n']}, indexed {shard['indexed']}"
    report.compare(f"{what}: limit", shard["start"] + 1, shard["limit"])
    index_path = directory / entry["index"] if shard["indexed"] else None
    if shard["indexed"] and indexed_shard_is_empty(
        len(entry["records"]), shard["n"], shard["start"]
    ):
        labels = []
    else:
        labels = shard_labels(directory / entry["file"], index_path, shard["n"], shard["start"])
    first = shard["first"] or 0
    headers = entry["headers"][first : first + shard["count"]]
    report.compare_lists(what, [header["labels"] for header in headers], labels)


def check_file(directory, entry, report):
    path = directory / entry["file"]
    records = []
    with report.attempt("sequential read"):
        records = read_sequentially(path)
    report.compare_lists("records", entry["records"], [digest(record) for record in records])
    with report.attempt("read by offset"):
        check_offsets(path, entry, report)
    if entry["index"] is not None:
        with report.attempt("read by key"):
            check_index(directory, entry, report)
    if entry["headers"] is not None:
        with report.attempt("image headers"):
            found = [describe_header(record) for record in records]
            report.compare_lists("headers", entry["headers"], found)
    for position, (expected, record) in enumerate(zip(entry["images"] or [], records)):
        if expected is not None:
            with report.attempt(f"images[{position}]"):
                check_image(position, expected, record, report)
    for shard in entry["shards"]:
        with report.attempt("shard"):
            check_shard(directory, entry, shard, report)


if __name__ == "__main__":
    peer_common.main(__doc__.splitlines()[0], FIELDS, write_file, check_file)
