"""Images for the comparison of `anyrec im2rec` with im2rec.py, and the comparison of pictures.

im2rec_peer.py make FOLDER        fills a folder with images
im2rec_peer.py compare REC REC    holds the pictures of two record files against each other
"""

import pathlib
import sys

import cv2
import numpy as np

if not hasattr(np, "bool"):
    # mxnet 1.9.1 asks for names that NumPy has dropped.
    np.bool = np.bool_

import mxnet as mx  # noqa: E402


def picture(random, height, width, channels):
    """Smooth colours with a few shapes: what JPEG is made for."""
    coarse = random.integers(0, 256, (4, 4, channels), dtype=np.uint8)
    image = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    image = image.reshape(height, width, channels)
    return image if channels > 1 else image[:, :, 0]


def make(folder):
    random = np.random.default_rng(1)
    sizes = [(40, 40), (33, 57), (61, 30), (48, 64), (50, 37)]
    names = ["a", "b", "b/deeper", "b/deeper/deepest", "c with spaces", "É", "é", "z/only deeper", "Z"]
    for place, name in enumerate(["."] + names):
        inner = folder / name
        inner.mkdir(parents=True, exist_ok=True)
        for number in range(3 + place % 4):
            height, width = sizes[(place + number) % len(sizes)]
            channels = [3, 3, 1, 4][(place + number) % 4]
            ending = ".png" if channels == 4 or number % 3 == 0 and name != "b" else ".jpg"
            image = picture(random, height, width, channels)
            cv2.imwrite(str(inner / f"{number}{ending}"), image)
    cv2.imwrite(str(folder / "a" / "UPPER.JPEG"), picture(random, 30, 44, 3))
    cv2.imwrite(str(folder / "a" / "sixteen.png"), picture(random, 30, 44, 3).astype(np.uint16) * 257)
    # Neither is an image's name; the file below is one, but no folder.
    (folder / "a" / "notes.txt").write_text("not an image")
    (folder / "a" / ".png").write_text("a hidden file without an ending")
    (folder / "nothing here").mkdir()
    (folder / "link").symlink_to("b/deeper")
    (folder / "a" / "dead link.png").symlink_to("nowhere")
    # A record with the magic in it, at places where it must be cut and where not.
    data = (folder / "b" / "0.jpg").read_bytes()
    magic = b"\x0a\x23\xd7\xce"
    (folder / "b" / "magic.jpg").write_bytes(data + magic * 3 + b"x" + magic)


def records(path):
    record = mx.recordio.MXRecordIO(str(path), "r")
    found = []
    while True:
        data = record.read()
        if data is None:
            return found
        header, payload = mx.recordio.unpack(data)
        image = cv2.imdecode(np.frombuffer(payload, dtype=np.uint8), cv2.IMREAD_UNCHANGED)
        found.append((header, payload[:4], image))


def compare(one, other):
    theirs, ours = records(one), records(other)
    assert theirs and len(theirs) == len(ours), (len(theirs), len(ours))
    worst = 0.0
    for (header, beginning, image), (our_header, our_beginning, our_image) in zip(theirs, ours):
        assert header == our_header, (header, our_header)
        assert beginning == our_beginning, (header.id, beginning, our_beginning)
        assert image.shape == our_image.shape, (header.id, image.shape, our_image.shape)
        assert image.dtype == our_image.dtype, (header.id, image.dtype, our_image.dtype)
        scale = 257.0 if image.dtype == np.uint16 else 1.0
        difference = np.abs(image.astype(float) - our_image.astype(float)).mean() / scale
        worst = max(worst, difference)
        assert difference < 2.0, f"record {header.id}: pixels differ by {difference:.2f} on average"
    print(f"{len(ours)} pictures, pixels differ by at most {worst:.3f} on average")


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    {"make": make, "compare": compare}[command](*map(pathlib.Path, paths))
