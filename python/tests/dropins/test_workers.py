"""Workers of any start method and number get the right data, and none outlives its loader.

Each case is a process of its own under a watchdog of 60 seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyrec
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

WATCHDOG = 60
CASES = [("fork", 0)] + [
    (method, workers) for method in ("fork", "spawn", "forkserver") for workers in (1, 2, 8)
]


@pytest.mark.parametrize("read_before", [False, True], ids=["fresh", "parent-has-read"])
@pytest.mark.parametrize(("method", "workers"), CASES)
def test_every_sample_arrives(run_python, method, workers, read_before):
    run_python(
        "import sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "import worker_data\n"
        "if __name__ == '__main__':\n"
        f"    worker_data.check({method!r}, {workers}, {read_before})\n",
        timeout=WATCHDOG,
    )


def children_of(parent):
    """Process numbers of all descendants that are running."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    found, waiting = [], [parent]
    for one in waiting:
        below = [child for child, above in parents.items() if above == one]
        found += below
        waiting += below
    return found


def alive(process):
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


INTERRUPTED = """
import time, warnings
warnings.simplefilter("ignore")
import torch, worker_data
from anyrec.torch import DataLoader

if __name__ == "__main__":
    worker_data.make()
    loader = DataLoader(
        worker_data.Everything(), num_workers=2, multiprocessing_context="{method}", collate_fn=worker_data.as_given
    )
    for number, batch in enumerate(loader):
        if number == 3:
            print("loading", flush=True)
        if number >= 3:
            time.sleep(0.2)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("whole_group", [True, False], ids=["as-a-terminal", "parent-only"])
def test_interrupted_loader_ends_at_once_and_leaves_no_process(tmp_path, method, whole_group):
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED.format(method=method))
    paths = [str(Path(anyrec.__file__).parents[1]), str(Path(__file__).parent)]
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,
    )
    descendants: list[int] = []
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        descendants = children_of(process.pid)
        assert len(descendants) >= 2
        if whole_group:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert "KeyboardInterrupt" in errors and process.returncode != 0
        deadline = time.monotonic() + 10
        while any(map(alive, descendants)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not [child for child in descendants if alive(child)]
    finally:
        for one in [process.pid, *descendants]:
            if alive(one):
                os.kill(one, signal.SIGKILL)
        process.wait()
