"""Pictures and parameters for comparing ImageRecordIter with MXNet's."""

from __future__ import annotations

import functools
import io
import pathlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from anyrec.mxnet import IRHeader, MXIndexedRecordIO, pack
from conftest import golden

COUNT = 500
DRAWS = 2000

# Pictures to compare


@functools.cache
def photo(number: int) -> npt.NDArray[np.uint8]:
    """A picture as photographs are: shapes of all sizes, with noise. Sizes vary."""
    pil = pytest.importorskip("PIL.Image", reason="Pillow makes the pictures")
    random = np.random.default_rng(number)
    height, width = (int(side) for side in random.integers(44, 130, 2))
    picture = np.zeros((height, width, 3))
    for grain in (2, 7, 20, 60):
        noise = random.integers(0, 256, (height // grain + 2, width // grain + 2, 3), dtype=np.uint8)
        picture += np.asarray(pil.fromarray(noise).resize((width, height), pil.BICUBIC)) * grain**0.5
    picture = (picture - picture.min()) / np.ptp(picture) * 255
    finished: npt.NDArray[np.uint8] = picture.astype(np.uint8)
    return finished


def encoded(picture: npt.NDArray[np.uint8], kind: str = "JPEG", **options: Any) -> bytes:
    pil = pytest.importorskip("PIL.Image", reason="Pillow makes the pictures")
    stream = io.BytesIO()
    pil.fromarray(picture).save(stream, kind, **options)
    return stream.getvalue()


def write(path: pathlib.Path, payloads: list[bytes], labels: int = 1) -> None:
    """A file whose records have the labels i (and i + 1000, ...) and the ids 5000 - i."""
    with MXIndexedRecordIO(path.with_suffix(".idx"), path, "w") as record:
        for i, payload in enumerate(payloads):
            label = float(i) if labels == 1 else [i + 1000.0 * k for k in range(labels)]
            record.write_idx(i, pack(IRHeader(0, label, 5000 - i, 0), payload))


def all_kinds() -> list[bytes]:
    """Pictures of every kind that both read alike."""
    pil = pytest.importorskip("PIL.Image", reason="Pillow makes the pictures")
    kinds = []
    for number in range(12):
        picture = photo(600 + number)
        gray = picture[:, :, 1]
        upright = pil.Exif()
        upright[0x112] = number % 8 + 1
        kinds += [
            encoded(picture, quality=90),
            encoded(picture, quality=75, progressive=True),
            encoded(picture, quality=95, subsampling=0),
            encoded(gray, quality=90),
            encoded(picture, quality=90, exif=upright.tobytes()),
            encoded(picture, "PNG"),
            encoded(gray, "PNG"),
            encoded(np.dstack([picture, gray]), "PNG"),
        ]
    return kinds


# One pixel red x, green y: where a part of it comes from can be read off.
ROWS, COLUMNS = 90, 120


def coordinates() -> npt.NDArray[np.uint8]:
    y, x = np.mgrid[0:ROWS, 0:COLUMNS]
    return np.dstack([x, y, np.zeros_like(x)]).astype(np.uint8)


# Cases

GOLDEN = {
    name: str(golden("mxnet", f"{name}.rec")) for name in ("im2rec_jpg", "im2rec_pass", "im2rec_labels")
}


def parts() -> list[tuple[int, int]]:
    return [(parts, index) for parts in (1, 3) for index in range(parts)]


def golden_cases() -> dict[str, dict[str, Any]]:
    cases = {}
    for name in ("im2rec_jpg", "im2rec_pass"):
        for num_parts, part_index in parts():
            for round_batch in (True, False):
                for indexed in (True, False):
                    case = f"{name}-{part_index}-of-{num_parts}-{round_batch=!s}-{indexed=!s}"
                    cases[case] = {
                        "path_imgrec": GOLDEN[name],
                        "path_imgidx": GOLDEN[name].replace(".rec", ".idx") if indexed else "",
                        "data_shape": (3, 20, 21),
                        "batch_size": 2 if num_parts == 3 else 4,
                        "num_parts": num_parts,
                        "part_index": part_index,
                        "round_batch": round_batch,
                    }
    for width in (1, 4):
        for round_batch in (True, False):
            cases[f"im2rec_labels-{width=}-{round_batch=!s}"] = {
                "path_imgrec": GOLDEN["im2rec_labels"],
                "path_imglist": GOLDEN["im2rec_labels"].replace(".rec", ".lst") if width == 1 else "four.lst",
                "label_width": width,
                "data_shape": (3, 20, 20),
                "batch_size": 4,
                "round_batch": round_batch,
            }
    return cases


def photo_cases() -> dict[str, dict[str, Any]]:
    cases = {}
    for num_parts, part_index in parts():
        for round_batch in (True, False):
            for indexed in (True, False):
                for width in (1, 4):
                    name = "photos" if width == 1 else "photos4"
                    case = f"{name}-{part_index}-of-{num_parts}-{round_batch=!s}-{indexed=!s}"
                    cases[case] = {
                        "path_imgrec": f"{name}.rec",
                        "path_imgidx": f"{name}.idx" if indexed else "",
                        "data_shape": (3, 40, 36),
                        "batch_size": 32,
                        "label_width": width,
                        "num_parts": num_parts,
                        "part_index": part_index,
                        "round_batch": round_batch,
                        "dtype": "uint8",
                    }
    return cases


# Parameters that change pixels, and how far those may be off: on average, and at most.
DECODED = (0.5, 6.0)
RESIZED = (1.5, 30.0)
PIXELS: dict[str, tuple[dict[str, Any], tuple[float, float]]] = {
    "plain": ({}, DECODED),
    "bytes": ({"dtype": "uint8"}, DECODED),
    "small-bytes": ({"dtype": "int8", "mean_r": 99.5, "mean_g": 100.5, "mean_b": 128}, DECODED),
    "gray": ({"data_shape": (1, 40, 41)}, (1.0, 6.0)),
    "odd": ({"data_shape": (3, 33, 38)}, DECODED),
    "mirror": ({"mirror": True}, DECODED),
    "normal": ({"mean_r": 123.7, "mean_g": 116, "mean_b": 103.5, "scale": 0.5}, DECODED),
    "deviation": ({"mean_r": 10, "std_r": 2, "std_g": 4, "std_b": 5, "scale": 2.5}, (1.0, 8.0)),
    "pad": ({"data_shape": (3, 60, 150), "pad": 30}, RESIZED),
    "fill": ({"data_shape": (3, 60, 60), "pad": 9, "fill_value": 12}, RESIZED),
    "enlarged": ({"data_shape": (3, 90, 140)}, RESIZED),
    "enlarged-tall": ({"data_shape": (3, 170, 60), "inter_method": 2}, RESIZED),
    "rotate": ({"rotate": 30}, RESIZED),
    "rotate-all": ({"rotate": 15, "resize": 60, "pad": 4, "fill_value": 77, "mirror": True}, RESIZED),
    **{
        f"resize-{shorter}-{method}": ({"resize": shorter, "inter_method": method}, RESIZED)
        for shorter in (42, 64, 101)
        for method in (0, 1, 2, 3, 4, 9)
    },
}


def pixel_cases() -> dict[str, dict[str, Any]]:
    plain = {"path_imgrec": "kinds.rec", "data_shape": (3, 40, 41), "batch_size": 96}
    cases = {f"pixels-{name}": {**plain, **given} for name, (given, _) in PIXELS.items()}
    opacity = {"path_imgrec": "opacity.rec", "data_shape": (4, 40, 41), "batch_size": 12}
    cases["pixels-opacity"] = {**plain, **opacity, "mean_a": 8, "pad": 3}
    return cases


RANDOM: dict[str, dict[str, Any]] = {
    "crop": {"rand_crop": True, "data_shape": (3, 30, 40)},
    "mirror": {"rand_mirror": True},
    "part": {
        "random_resized_crop": True,
        "min_random_area": 0.08,
        "max_random_area": 1,
        "min_aspect_ratio": 0.75,
        "max_aspect_ratio": 4 / 3,
    },
    "part-narrow": {
        "random_resized_crop": True,
        "min_random_area": 0.2,
        "max_random_area": 0.3,
        "min_aspect_ratio": 1.2,
        "max_aspect_ratio": 1.5,
    },
    "part-symmetric": {
        "random_resized_crop": True,
        "min_random_area": 0.5,
        "max_random_area": 0.6,
        "max_aspect_ratio": 0.25,
    },
}


def random_cases() -> dict[str, dict[str, Any]]:
    plain = {"path_imgrec": "coordinates.rec", "data_shape": (3, 60, 60), "batch_size": DRAWS, "seed_aug": 3}
    return {f"random-{name}": {**plain, **given} for name, given in RANDOM.items()}


COLOURS: dict[str, dict[str, Any]] = {
    "brightness": {"brightness": 0.3},
    "contrast": {"contrast": 0.4},
    "saturation": {"saturation": 0.5},
    "pca": {"pca_noise": 0.2},
    "lightness": {"random_l": 50},
    "hue": {"random_h": 36},
    "hsl-saturation": {"random_s": 60},
    "turned": {"max_rotate_angle": 30},
}


def colour_cases() -> dict[str, dict[str, Any]]:
    plain = {"path_imgrec": "same.rec", "data_shape": (3, 32, 32), "batch_size": DRAWS, "seed_aug": 3}
    return {f"colour-{name}": {**plain, **given} for name, given in COLOURS.items()}


CASES = {**golden_cases(), **photo_cases(), **pixel_cases(), **random_cases(), **colour_cases()}


def epochs_of(name: str) -> int:
    return 1 if name.startswith(("pixels", "random", "colour")) else 3
