#!/usr/bin/env python3
"""Packs a folder of images with `anyrec im2rec`, trains a small network from the `.rec` file, is
interrupted, and resumes.

    python examples/image_training.py [--steps 60] [--stop 25] [--anyrec PROGRAM]

Needs the anyrec wheel, the `anyrec` command (`cargo build --release` builds it), torch and Pillow. The
script draws the images itself: discs, squares and stripes, in one folder per class.
`anyrec.torch.ImageLoader` decodes, randomly crops, flips and normalises them. The loader's state covers
this randomness, so the losses of the interrupted run must equal those of an uninterrupted run to the last
bit; otherwise the script exits with 1.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import anyrec.torch
import torch
from PIL import Image, ImageDraw

CLASSES = ("discs", "squares", "stripes")
IMAGES = 150
"""Images per class."""
BATCH, SIZE = 32, 48
ROOT = Path(__file__).resolve().parents[1]


def draw(folder: Path) -> None:
    """Draws the images, in one folder per class."""
    chance = random.Random(1)
    for name in CLASSES:
        (folder / name).mkdir(parents=True)
        for number in range(IMAGES):
            dark, bright = ([chance.randrange(base, base + 100) for _ in range(3)] for base in (0, 150))
            image = Image.new("RGB", (chance.randrange(90, 130), chance.randrange(70, 100)), tuple(dark))
            pen = ImageDraw.Draw(image)
            left, top, size = chance.randrange(30), chance.randrange(20), chance.randrange(40, 60)
            if name == "discs":
                pen.ellipse((left, top, left + size, top + size), tuple(bright))
            elif name == "squares":
                pen.rectangle((left, top, left + size, top + size), tuple(bright))
            else:
                for at in range(left - 30, image.width, 16):
                    pen.line((at, 0, at + top, image.height), tuple(bright), 7)
            image.save(folder / name / f"{number:03}.jpg", quality=90)


def pack(program: str, images: Path, prefix: Path) -> Path:
    """Lists the images, with one label per folder, and packs them; returns the `.rec` file."""
    subprocess.run([program, "im2rec", "--list", "--recursive", prefix, images], check=True)
    subprocess.run([program, "im2rec", "--resize", "64", "--quality", "90", prefix, images], check=True)
    return prefix.with_suffix(".rec")


class Run:
    """A model, its optimizer and the loader that feeds it: what a checkpoint holds."""

    def __init__(self, path: Path) -> None:
        torch.manual_seed(1)
        layers: list[torch.nn.Module] = []
        for before, after in ((3, 8), (8, 16), (16, 32)):
            layers += [torch.nn.Conv2d(before, after, 3, 2, 1), torch.nn.BatchNorm2d(after), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(
            *layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, len(CLASSES))
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.loader = anyrec.torch.ImageLoader(
            path, BATCH, SIZE, train=True, shuffle=True, seed=1, threads=2, drop_last=True
        )

    def parts(self) -> dict:
        return {"model": self.model, "optimizer": self.optimizer, "loader": self.loader}

    def save(self, path: Path) -> None:
        torch.save({name: part.state_dict() for name, part in self.parts().items()}, path)

    def load(self, path: Path) -> None:
        saved = torch.load(path)
        for name, part in self.parts().items():
            part.load_state_dict(saved[name])

    def train(self, steps: int) -> list[float]:
        """Trains this many steps from the loader's position, across epochs; returns the losses."""
        losses: list[float] = []
        self.model.train()
        while True:
            for batch in self.loader:
                loss = torch.nn.functional.cross_entropy(self.model(batch.data), batch.labels.long())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
                if len(losses) == steps:
                    return losses


def accuracy(model: torch.nn.Module, path: Path) -> float:
    """Returns the fraction of uncropped images that the model classifies correctly."""
    model.eval()
    right = 0
    with torch.no_grad():
        for batch in anyrec.torch.ImageLoader(path, BATCH, SIZE, train=False):
            right += int((model(batch.data).argmax(1) == batch.labels.long()).sum())
    return right / (IMAGES * len(CLASSES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=60, help="steps of the whole run (an epoch has 14)")
    parser.add_argument("--stop", type=int, default=25, help="steps after which one run is interrupted")
    parser.add_argument("--anyrec", metavar="PROGRAM", default=program(), help="the anyrec command")
    arguments = parser.parse_args()
    if arguments.anyrec is None:
        sys.exit("`anyrec` was not found: build it with `cargo build --release`, or pass --anyrec")

    with tempfile.TemporaryDirectory() as scratch:
        draw(Path(scratch) / "images")
        path = pack(arguments.anyrec, Path(scratch) / "images", Path(scratch) / "shapes")
        expected = Run(path).train(arguments.steps)

        checkpoint = Path(scratch) / "checkpoint.pt"
        first = Run(path)
        found = first.train(arguments.stop)
        first.save(checkpoint)
        del first
        second = Run(path)
        second.load(checkpoint)
        print(f"resuming at epoch {second.loader.epoch}, step {second.loader.step}")
        found += second.train(arguments.steps - arguments.stop)
        right = accuracy(second.model, path)

    for step in range(0, arguments.steps, max(arguments.steps // 10, 1)):
        mark = "  (resumed)" if step >= arguments.stop else ""
        print(f"step {step:4}  loss {expected[step]:.6f}  {found[step]:.6f}{mark}")
    print(f"accuracy on the uncropped images {right:.1%}")
    if found != expected:
        step = next(step for step in range(arguments.steps) if found[step] != expected[step])
        sys.exit(f"the losses differ from step {step} on: {expected[step]!r} became {found[step]!r}")
    print(f"all {arguments.steps} losses are the same, interrupted after {arguments.stop} or not")


def program() -> str | None:
    """Finds the command: the installed one, or the one that cargo built here."""
    built = [ROOT / "target" / kind / "anyrec" for kind in ("release", "debug")]
    return shutil.which("anyrec") or next((str(path) for path in built if path.exists()), None)


if __name__ == "__main__":
    main()
