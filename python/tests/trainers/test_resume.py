"""Trainers resume in the middle of an epoch, in another process, exactly where they stopped."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import anyrec
from anyrec.mxnet import IRHeader, pack, pack_img

HERE = pathlib.Path(__file__).parent
RECORDS, STEPS, STOP, EPOCHS = 40, 10, 14, 3
WATCHDOG = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The files that the runs train from: every record has a label of its own."""
    made = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(1)
    with anyrec.create(made / "images.rec") as images, anyrec.create(made / "labelled.rec") as labelled:
        for i in range(RECORDS):
            pixels = random.integers(0, 256, (12, 16, 3), np.uint8)
            images.write(pack_img(IRHeader(0, i, i, 0), pixels, 3, ".png"))
            labelled.write(pack(IRHeader(0, i, i, 0), bytes([i, i % 7])))
    with anyrec.create(made / "numbers.ffr") as writer:
        for i in range(RECORDS):
            writer.write(f"{i}")
    return made


def run(folder: pathlib.Path, *words: str) -> dict[tuple[str, str], list[Any]]:
    """Trains in another process; returns samples and losses by case and kind of run."""
    command = [sys.executable, str(HERE / "training.py"), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WATCHDOG)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return {(case, what): seen for case, what, seen in lines}


KINDS = ("Loader", "ImageLoader", "DataLoader")
CASES = [f"{trainer}:{kind}" for trainer in ("hugging-face", "accelerate", "accelerate-skip") for kind in KINDS]
# Only the Trainer makes a loader of a dataset.
CASES.append("hugging-face:Dataset")


@pytest.fixture(scope="module")
def runs(folder: pathlib.Path) -> dict[tuple[str, str], list[Any]]:
    """All runs. Importing the trainers takes so long that one process trains all cases."""
    return {**run(folder, *CASES, "whole", "stop"), **run(folder, *CASES, "resume")}


@pytest.mark.parametrize("case", CASES)
def test_a_trainer_goes_on_with_the_same_samples_and_losses(
    runs: dict[tuple[str, str], list[Any]], case: str
) -> None:
    whole = runs[case, "whole"]
    assert len(whole) == EPOCHS * STEPS
    for epoch in range(EPOCHS):
        steps = whole[epoch * STEPS : (epoch + 1) * STEPS]
        assert sorted(sum((labels for labels, _ in steps), [])) == list(range(RECORDS))
    assert whole[:STEPS] != whole[STEPS : 2 * STEPS]
    assert runs[case, "stop"] == whole[:STOP]
    assert runs[case, "resume"] == whole[STOP:]
