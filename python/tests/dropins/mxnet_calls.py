"""Seeded random calls of `mxnet.recordio`, or of what stands in for it.

``python mxnet_calls.py MODULE SEED FOLDER`` writes files into the folder, and to standard output what
every call gave. Run by two interpreters, one with the original, the output and files must be equal.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pickle
import random
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np

MAGIC = bytes.fromhex("0a23d7ce")


def shown(value):
    """A result as JSON can hold it, the same for both."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return ["bytes", type(value).__name__, len(data), hashlib.sha256(data).hexdigest()]
    if isinstance(value, np.ndarray):
        return [
            "array",
            str(value.dtype),
            list(value.shape),
            shown(value.tobytes()),
            bool(value.flags.writeable),
        ]
    if isinstance(value, tuple):
        return [type(value).__name__, [shown(item) for item in value]]
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return [[shown(key), shown(item)] for key, item in value.items()]
    return [type(value).__name__, repr(value)]


class Calls:
    def __init__(self, recordio, seed):
        self.recordio = recordio
        self.random = random.Random(seed)
        self.numbers = np.random.RandomState(seed)
        self.log = []

    def call(self, what, work):
        try:
            outcome = shown(work())
        except Exception as error:
            kinds = {kind.__name__ for kind in type(error).__mro__}
            names = [
                "MXNetError",
                "RuntimeError",
                "KeyError",
                "AssertionError",
                "ValueError",
                "FileNotFoundError",
            ]
            outcome = ["raised", next((name for name in names if name in kinds), "another")]
        self.log.append([what, outcome])
        return outcome

    def payload(self):
        """Any length modulo 4, with magic words at aligned and other places."""
        pieces = []
        for _ in range(self.random.randint(0, 6)):
            kind = self.random.random()
            if kind < 0.3:
                pieces.append(MAGIC)
            elif kind < 0.4:
                pieces.append(MAGIC[: self.random.randint(1, 3)])
            else:
                pieces.append(bytes(self.numbers.randint(0, 256, self.random.randint(0, 40), dtype=np.uint8)))
        return b"".join(pieces)

    def label(self):
        choices = [
            lambda: self.random.randint(-1000, 1000),
            lambda: self.random.uniform(-1e30, 1e30),
            lambda: float(self.random.choice(["nan", "inf", "-inf", "-0.0"])),
            lambda: self.random.random() < 0.5,
            lambda: np.float32(self.random.random()),
            lambda: np.int16(self.random.randint(-99, 99)),
            lambda: Decimal("0.125"),
            lambda: Fraction(3, 8),
            lambda: self.numbers.uniform(size=self.random.randint(0, 9)),
            lambda: [self.random.randint(0, 9) for _ in range(self.random.randint(0, 5))],
            lambda: self.numbers.uniform(size=(2, 3)).astype(np.float32).T,
            lambda: (1, 2.5),
        ]
        return self.random.choice(choices)()

    def identity(self):
        return self.random.choice([0, 1, 2**32, 2**64 - 1, self.random.getrandbits(64), -1, 2**64])

    def sequential(self, name):
        recordio, rec = self.recordio, name + ".rec"
        record = recordio.MXRecordIO(rec, "w")
        for _ in range(self.random.randint(0, 20)):
            data = self.payload()
            self.call("write", lambda data=data: record.write(data))
        if self.random.random() < 0.3:
            self.call("reset writer", record.reset)
            record.write(self.payload())
        self.call("read a writer", record.read)
        self.call("close", record.close)
        self.call("close again", record.close)
        record = recordio.MXRecordIO(rec, "r")
        for _ in range(self.random.randint(5, 30)):
            action = self.random.random()
            if action < 0.85:
                self.call("read", record.read)
            elif action < 0.92:
                self.call("reset", record.reset)
            elif action < 0.96:
                record = pickle.loads(pickle.dumps(record))
                self.call("pickled", lambda: (record.is_open, record.flag, record.writable))
            else:
                self.call("write a reader", lambda: record.write(b"x"))
        record.close()
        self.call("read closed", record.read)
        self.call("state", lambda: (record.is_open, record.pid))

    def indexed(self, name):
        recordio = self.recordio
        key_type = self.random.choice([int, str, float])
        record = recordio.MXIndexedRecordIO(name + ".idx", name + ".rec", "w", key_type)
        for number in range(self.random.randint(1, 25)):
            key = self.random.choice([number, str(number), self.random.randint(-5, 5), 2**70 + number])
            data = self.payload()
            if self.random.random() < 0.9:
                self.call("write_idx", lambda key=key, data=data: record.write_idx(key, data))
            else:
                self.call("write", lambda data=data: record.write(data))
            self.call("tell", record.tell)
        self.call("seek a writer", lambda: record.seek(0))
        self.call("writer's keys", lambda: (record.keys, record.idx))
        record.close()
        if self.random.random() < 0.5:
            self.disturb(name + ".idx")
        record = recordio.MXIndexedRecordIO(name + ".idx", name + ".rec", "r", key_type)
        self.call("keys", lambda: (record.keys, record.idx))
        for _ in range(self.random.randint(5, 40)):
            action = self.random.random()
            key = self.random.choice([*record.keys, key_type(12345)])
            if action < 0.6:
                self.call("read_idx", lambda key=key: record.read_idx(key))
            elif action < 0.7:
                self.call("seek", lambda key=key: record.seek(key))
            elif action < 0.9:
                if self.call("read", record.read)[0] == "NoneType":
                    # The original finds no key any more once it has met the end: not copied.
                    record.reset()
            elif action < 0.94:
                self.call("reset", record.reset)
            elif action < 0.97:
                record = pickle.loads(pickle.dumps(record))
            else:
                # A closed one is opened again by whoever asks for a key.
                self.call("close", record.close)
                self.call("read closed", record.read)
                self.call("read_idx closed", lambda key=key: record.read_idx(key))
                record.reset()
        self.call("tell a reader", record.tell)

    def disturb(self, path):
        """What real index files look like."""
        with open(path) as file:
            lines = file.read().splitlines()
        end = self.random.choice(["\n", "\r\n"])
        extra = self.random.choice(["", "\tmore\tcolumns", " "])
        text = end.join(line + extra for line in lines)
        with open(path, "w", newline="") as file:
            file.write(text + self.random.choice(["", end]))

    def packing(self):
        recordio = self.recordio
        header = (self.random.randint(0, 9), self.label(), self.identity(), self.identity())
        if self.random.random() < 0.5:
            header = recordio.IRHeader(*header)
        data = self.payload()
        packed = []
        self.call("pack", lambda: packed.append(recordio.pack(header, data)) or packed[-1])
        for whole in packed:
            self.call("unpack", lambda: recordio.unpack(whole))
            self.call("repr", lambda: repr(recordio.unpack(whole)[0]))
            cut = whole[: self.random.randint(0, len(whole))]
            self.call("unpack cut", lambda: recordio.unpack(cut)[1])

    def images(self):
        recordio = self.recordio
        shape = self.random.choice([(7, 9), (7, 9, 1), (8, 8, 3), (5, 6, 4)])
        image = self.numbers.randint(0, 256, shape).astype(
            self.random.choice([np.uint8, np.uint8, np.uint16])
        )
        header = recordio.IRHeader(0, 1.0, 2, 0)
        packed = recordio.pack_img(header, image, self.random.randint(1, 9), ".png")
        # Encoders differ; what comes back does not. Gray is a matter of rounding, so not compared.
        self.call("unpack_img", lambda: recordio.unpack_img(packed))
        if image.dtype == np.uint8:
            self.call("unpack_img colour", lambda: recordio.unpack_img(packed, 1))
        garbage = recordio.pack(header, b"no image " + self.payload())
        self.call("unpack_img garbage", lambda: recordio.unpack_img(garbage)[1])

    def damaged(self, name):
        recordio, rec = self.recordio, name + ".rec"
        record = recordio.MXRecordIO(rec, "w")
        for _ in range(3):
            record.write(self.payload())
        record.close()
        with open(rec, "rb") as file:
            data = file.read()
        with open(rec, "wb") as file:
            file.write(data[: self.random.randint(0, len(data))])
        record = recordio.MXRecordIO(rec, "r")
        for _ in range(5):
            self.call("read damaged", record.read)


def main():
    module, seed, folder = sys.argv[1:]
    calls = Calls(importlib.import_module(module), int(seed))
    os.chdir(folder)
    for number in range(12):
        calls.sequential(f"sequential{number}")
        calls.indexed(f"indexed{number}")
        calls.damaged(f"damaged{number}")
        calls.images()
        for _ in range(10):
            calls.packing()
    calls.call("flag", lambda: calls.recordio.MXRecordIO("x.rec", "a"))
    calls.call("missing", lambda: calls.recordio.MXRecordIO("missing.rec", "r"))
    files = {}
    for name in sorted(os.listdir(".")):
        with open(name, "rb") as file:
            files[name] = hashlib.sha256(file.read()).hexdigest()
    json.dump({"log": calls.log, "files": files}, sys.stdout)


if __name__ == "__main__":
    main()
