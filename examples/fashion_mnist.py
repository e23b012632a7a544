#!/usr/bin/env python3
"""Trains on Fashion-MNIST directly from its gzipped IDX files, is interrupted, and resumes.

    python examples/fashion_mnist.py [--folder FOLDER] [--steps 300] [--stop 170]

Needs the anyrec wheel and torch. The data comes from Debian's package `dataset-fashion-mnist`, or from
four files with the same names in a folder of yours. The interrupted run restores its model, optimizer and
loader from a checkpoint. Its losses must equal those of an uninterrupted run to the last bit; otherwise
the script exits with 1.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import anyrec
import anyrec.torch
import torch

DEBIAN = Path("/usr/share/datasets/fashion-mnist")
BATCH = 256
HIDDEN = 32


class Run:
    """A model, its optimizer and the loader that feeds it: what a checkpoint holds."""

    def __init__(self, folder: Path) -> None:
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(28 * 28, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 10)
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        # The labels come from train-labels-idx1-ubyte.gz in the same folder.
        self.loader = anyrec.torch.Loader(
            folder / "train-images-idx3-ubyte.gz", BATCH, labels=True, shuffle=True, seed=1, threads=2
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
        while True:
            for batch in self.loader:
                images, labels = batch.data.float() / 255, batch.labels.long()
                loss = torch.nn.functional.cross_entropy(self.model(images), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
                if len(losses) == steps:
                    return losses


def accuracy(model: torch.nn.Module, folder: Path) -> float:
    """Returns the fraction of test images that the model classifies correctly."""
    images = torch.from_numpy(anyrec.idx.read(folder / "t10k-images-idx3-ubyte.gz"))
    labels = torch.from_numpy(anyrec.idx.read(folder / "t10k-labels-idx1-ubyte.gz"))
    with torch.no_grad():
        return float((model(images.float() / 255).argmax(1) == labels).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", type=Path, default=DEBIAN, help="where the IDX files are")
    parser.add_argument("--steps", type=int, default=300, help="steps of the whole run (an epoch has 235)")
    parser.add_argument("--stop", type=int, default=170, help="steps after which one run is interrupted")
    arguments = parser.parse_args()
    if not (arguments.folder / "train-images-idx3-ubyte.gz").exists():
        sys.exit(f"no Fashion-MNIST in {arguments.folder}: apt-get install dataset-fashion-mnist, or --folder")

    whole = Run(arguments.folder)
    expected = whole.train(arguments.steps)

    with tempfile.TemporaryDirectory() as scratch:
        checkpoint = Path(scratch) / "checkpoint.pt"
        first = Run(arguments.folder)
        found = first.train(arguments.stop)
        first.save(checkpoint)
        del first
        second = Run(arguments.folder)
        second.load(checkpoint)
        print(f"resuming at epoch {second.loader.epoch}, step {second.loader.step}")
        found += second.train(arguments.steps - arguments.stop)

    for step in range(0, arguments.steps, max(arguments.steps // 10, 1)):
        mark = "  (resumed)" if step >= arguments.stop else ""
        print(f"step {step:4}  loss {expected[step]:.6f}  {found[step]:.6f}{mark}")
    print(f"accuracy on the test images {accuracy(second.model, arguments.folder):.1%}")
    if found != expected:
        step = next(step for step in range(arguments.steps) if found[step] != expected[step])
        sys.exit(f"the losses differ from step {step} on: {expected[step]!r} became {found[step]!r}")
    print(f"all {arguments.steps} losses are the same, interrupted after {arguments.stop} or not")


if __name__ == "__main__":
    main()
