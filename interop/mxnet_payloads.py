"""Seeded random contents for MXNet record files: payloads, keys, labels, images."""

import struct

import numpy

MAGIC = struct.pack("<I", 0xCED7230A)


def record_count(random):
    return random.choices(
        [0, 1, random.randint(2, 40), random.randint(41, 300)], weights=[10, 10, 70, 10]
    )[0]


def payload_size(random, record_total):
    if record_total > 40:
        return random.randint(0, 200)
    return random.choices(
        [0, random.randint(1, 300), random.randint(301, 4000), random.randint(4001, 70_000)],
        weights=[10, 70, 15, 5],
    )[0]


def payload(random, size):
    """Bytes that sometimes contain the magic word, around which the format must split."""
    flavour = random.choices(["noise", "sprinkled", "magic", "letters"], weights=[40, 35, 10, 15])[
        0
    ]
    if flavour == "noise":
        return random.randbytes(size)
    if flavour == "letters":
        return bytes(random.choices(b"abcdefgh \n\0", k=size))
    if flavour == "magic":
        # Back to back from the first byte, or shifted off the four-byte grid.
        shift = random.choice([0, 0, 1, 2, 3])
        return (b"\x0a" * shift + MAGIC * (size // 4 + 1))[:size]
    data = bytearray(random.randbytes(size))
    for _ in range(random.randint(1, 6)):
        if size >= 4:
            at = random.randrange(size - 3)
            at = random.choice([at, at & ~3, 0, (size & ~3) - 4])
            data[at : at + 4] = MAGIC
    return bytes(data)


def integer_keys(random, count):
    flavour = random.choice(["dense", "shuffled", "sparse", "extreme", "repeated"])
    keys = list(range(count))
    if flavour == "shuffled":
        random.shuffle(keys)
    elif flavour == "sparse":
        keys = random.sample(range(10**9), count)
    elif flavour == "extreme":
        edges = [-1, -(2**63), 2**31, 2**32, 2**63, 2**64 - 1, 10**25]
        keys = [random.choice(edges) if random.random() < 0.3 else key for key in keys]
    elif flavour == "repeated":
        keys = [random.randrange(count // 2 + 1) for _ in keys]
    return keys


def text_keys(random, count):
    """No tab, no newline, no space at either end: the index file has no escape for them."""
    made = []
    for ordinal in range(count):
        made.append(
            random.choice(
                [
                    f"{ordinal:08}",
                    f"train/{ordinal}.jpg",
                    f"two words {ordinal}",
                    f"ключ-{ordinal}-ü-鍵",
                    str(random.randrange(50)),
                    f"-{ordinal}",
                ]
            )
        )
    return made


def label(random):
    """Every kind of label that `pack` accepts: numbers of several types, and arrays."""
    number = random.choice(
        [0.0, -0.0, 1.5, 3e38, 1e-45, float("inf"), float("nan"), random.gauss(0, 100)]
    )
    flavour = random.choice(["float", "int", "bool", "scalar", "list", "array", "matrix", "empty"])
    if flavour == "float":
        return number
    if flavour == "int":
        return random.randint(-1000, 100_000)
    if flavour == "bool":
        return random.random() < 0.5
    if flavour == "scalar":
        return numpy.float32(number)
    if flavour == "list":
        return [random.randint(0, 9) for _ in range(random.randint(1, 12))]
    if flavour == "array":
        return numpy.array([random.gauss(0, 1) for _ in range(random.randint(1, 200))])
    if flavour == "matrix":
        return numpy.array(
            [[random.gauss(0, 1) for _ in range(5)] for _ in range(random.randint(1, 8))]
        )
    return []


def identifier(random):
    return random.choice([0, 1, random.randrange(2**32), 2**63, 2**64 - 1])


def picture(random):
    """(array, encoding, quality): colour, gray, alpha and 16-bit, if the encoding allows it."""
    height, width = random.randint(1, 40), random.randint(1, 40)
    encoding = random.choice([".jpg", ".png"])
    shapes = [(height, width), (height, width, 1), (height, width, 3), (height, width, 3)]
    kind = numpy.uint8
    if encoding == ".png":
        shapes.append((height, width, 4))
        kind = random.choice([numpy.uint8, numpy.uint8, numpy.uint8, numpy.uint16])
    shape = random.choice(shapes)
    size = int(numpy.prod(shape)) * numpy.dtype(kind).itemsize
    array = numpy.frombuffer(random.randbytes(size), kind).reshape(shape)
    quality = random.randint(1, 9) if encoding == ".png" else random.randint(30, 100)
    return array, encoding, quality
