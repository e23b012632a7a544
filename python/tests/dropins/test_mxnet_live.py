"""Against the original, live: the same seeded calls in two interpreters give the same.

The interpreter with MXNet 1.9.1 is named by the environment variable ANYREC_MXNET_PYTHON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import anyrec
import pytest

ORIGINAL = os.environ.get("ANYREC_MXNET_PYTHON")
SEEDS = range(8)


def run(python, module, seed, folder, environment):
    folder.mkdir()
    done = subprocess.run(
        [python, str(Path(__file__).with_name("mxnet_calls.py")), module, str(seed), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(
    ORIGINAL is None,
    reason="NOT COMPARED WITH THE ORIGINAL: ANYREC_MXNET_PYTHON names no Python that has mxnet 1.9.1",
)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_give_what_the_original_gives(tmp_path, seed):
    package = str(Path(anyrec.__file__).parents[1])
    ours = run(sys.executable, "anyrec.mxnet", seed, tmp_path / "ours", {**os.environ, "PYTHONPATH": package})
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    theirs = run(ORIGINAL, "mxnet.recordio", seed, tmp_path / "theirs", plain)
    assert len(ours["log"]) == len(theirs["log"]) > 500
    for number, (mine, original) in enumerate(zip(ours["log"], theirs["log"], strict=True)):
        assert mine == original, f"call {number}"
    assert ours["files"] == theirs["files"] and len(ours["files"]) == 48
