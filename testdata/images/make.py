"""Makes the JPEGs of this folder and manifest.json. Needs pillow, numpy and opencv-python-headless."""

import hashlib
import io
import json
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, features

HERE = Path(__file__).parent
WIDTH, HEIGHT = 83, 61


def noise(width, height, channels):
    """The picture that `noise` of crates/anyrec-image/src/tests/make.rs makes."""
    state, samples = 0x2545F4914F6CDD1D, []
    for _ in range(width * height * channels):
        state ^= state << 13 & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 7
        state ^= state << 17 & 0xFFFFFFFFFFFFFFFF
        samples.append(state >> 32 & 0xFF)
    return np.array(samples, np.uint8).reshape(height, width, channels)


def picture():
    """Waves with some noise: smooth and rough parts."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    waves = np.stack([np.sin(x / 9 + y / 23), np.cos(y / 7), np.sin((x + y) / 13)], -1) * 90 + 128
    rough = (noise(WIDTH, HEIGHT, 3).astype(float) - 128) * (x > 50)[..., None] * 0.6
    return np.clip(waves + rough, 0, 255).astype(np.uint8)


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def pillow(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", quality=85, **options)
    return out.getvalue()


def opencv(image, **options):
    flat = [part for name, value in options.items() for part in (getattr(cv2, f"IMWRITE_JPEG_{name}"), value)]
    return cv2.imencode(".jpg", np.asarray(image)[..., ::-1], flat)[1].tobytes()


def first_scans(jpeg, count):
    """A progressive JPEG without its later scans."""
    at, seen = 0, 0
    while True:
        at = jpeg.index(b"\xff\xda", at + 1)
        seen += 1
        if seen > count:
            # The tables of the next scan stay; they do no harm.
            return jpeg[:at] + b"\xff\xd9"


colour = Image.fromarray(picture())
progressive = pillow(colour, subsampling=2, progressive=True)
images = {
    "gray.jpg": pillow(colour.convert("L")),
    "gray_progressive.jpg": pillow(colour.convert("L"), progressive=True),
    "444.jpg": pillow(colour, subsampling=0),
    "422_optimised.jpg": pillow(colour, subsampling=1, optimize=True),
    "420.jpg": pillow(colour, subsampling=2),
    "420_restarts.jpg": opencv(colour, SAMPLING_FACTOR=cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420, RST_INTERVAL=2),
    "440.jpg": opencv(colour, SAMPLING_FACTOR=cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440),
    "411.jpg": opencv(colour, SAMPLING_FACTOR=cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411),
    "444_progressive.jpg": pillow(colour, subsampling=0, progressive=True),
    "420_progressive.jpg": progressive,
    "440_progressive.jpg": opencv(
        colour, SAMPLING_FACTOR=cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440, PROGRESSIVE=1
    ),
    "420_first_scans.jpg": first_scans(progressive, 4),
    "rgb.jpg": pillow(colour, keep_rgb=True),
    "cmyk.jpg": pillow(colour.convert("CMYK")),
}

decoded = {}
for name, data in images.items():
    (HERE / name).write_bytes(data)
    raw = np.frombuffer(data, np.uint8)
    entry = {"gray": digest(cv2.imdecode(raw, 0)), "rgb": digest(cv2.imdecode(raw, 1)[..., ::-1])}
    if "cmyk" not in name:
        assert entry["rgb"] == digest(Image.open(io.BytesIO(data)).convert("RGB")), name
    for eighths in (1, 2, 4):
        image = Image.open(io.BytesIO(data))
        size = (-(-WIDTH * eighths // 8), -(-HEIGHT * eighths // 8))
        image.draft(None, size)
        if image.size == size and image.mode == "RGB":
            entry[f"rgb_{eighths}_eighths"] = digest(image)
    decoded[name] = entry

encoded = {}
for channels in (1, 3):
    for quality in (1, 50, 75, 95, 100):
        pixels = noise(WIDTH, HEIGHT, channels)
        bgr = pixels[..., ::-1] if channels == 3 else pixels
        data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()
        encoded[f"{channels} {quality}"] = hashlib.sha256(data).hexdigest()

manifest = {
    "made_with": {
        "pillow": Image.__version__,
        "its libjpeg-turbo": features.version_feature("libjpeg_turbo"),
        "opencv": cv2.__version__,
    },
    "size": [WIDTH, HEIGHT],
    "decoded": decoded,
    "encoded": encoded,
}
(HERE / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
