"""The training runs in `examples/`: they go on after an interruption as if there had been none."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="EXAMPLES NOT RUN: PyTorch is not installed")

ROOT = pathlib.Path(__file__).parents[2]
FASHION_MNIST = pathlib.Path("/usr/share/datasets/fashion-mnist")
WATCHDOG = 300


def run(name: str, *words: str) -> str:
    command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / name), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not FASHION_MNIST.exists(), reason="EXAMPLE NOT RUN: dataset-fashion-mnist is missing")
def test_fashion_mnist_goes_on_with_the_same_losses() -> None:
    told = run("fashion_mnist.py", "--steps", "250", "--stop", "220")
    assert "resuming at epoch 0, step 220" in told
    assert told.splitlines()[-1] == "all 250 losses are the same, interrupted after 220 or not"


def test_pictures_of_im2rec_go_on_with_the_same_losses() -> None:
    if importlib.util.find_spec("PIL") is None:
        pytest.skip("EXAMPLE NOT RUN: Pillow is missing")
    programs = [ROOT / "target" / kind / "anyrec" for kind in ("debug", "release")]
    program = next((path for path in programs if path.exists()), None)
    if program is None:
        pytest.skip("EXAMPLE NOT RUN: cargo has not built the anyrec program")
    told = run("image_training.py", "--anyrec", str(program))
    assert "resuming at epoch 1, step 11" in told
    assert told.splitlines()[-1] == "all 60 losses are the same, interrupted after 25 or not"
