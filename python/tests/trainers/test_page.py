"""The examples of `docs/trainers.md`, stopped and resumed."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "trainers.md"
WATCHDOG = 300


def scripts() -> dict[str, str]:
    """The blocks of the page by the name in their first line."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found = {}
    for block in blocks:
        named = re.match(r"# (\w+\.py)\n", block)
        assert named, f"a block without a name: {block[:60]}"
        found[named[1]] = block
    return found


SCRIPTS = scripts()


def run(folder: pathlib.Path, name: str, *words: str) -> str:
    command = [sys.executable, "-W", "ignore", name, *words]
    if name == "distributed.py":
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command = [sys.executable, *launcher, name, *words]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=WATCHDOG
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_has_an_example_for_each_trainer() -> None:
    names = ["data.py", "plain.py", "hugging_face.py", "accelerated.py", "in_lightning.py", "distributed.py"]
    assert list(SCRIPTS) == names


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "data.py"])
def test_an_example_resumes_with_the_same_loss(own_folder: pathlib.Path, name: str) -> None:
    told = []
    for folder, runs in [("whole", ["12"]), ("stopped", ["7", "12"])]:
        here = own_folder / folder
        here.mkdir()
        for script in ("data.py", name):
            (here / script).write_text(SCRIPTS[script])
        run(here, "data.py")
        told.append([run(here, name, stop).splitlines()[-1] for stop in runs])
    whole, (stopped, resumed) = told[0][0], told[1]
    assert whole.startswith("step 12: loss ") and stopped.startswith("step 7: loss ")
    assert resumed == whole
