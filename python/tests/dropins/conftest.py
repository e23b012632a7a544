"""What the tests of the drop-in modules share."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyrec
import pytest

TESTDATA = Path(__file__).parents[3] / "testdata"


def golden(format_name: str) -> tuple[Path, dict[str, Any]]:
    """The files that an original wrote, and what it said about them."""
    folder = TESTDATA / format_name / "good"
    return folder, json.loads((folder / "manifest.json").read_text())


def digest(data: Any) -> list[Any]:
    """Bytes as the manifests show them."""
    data = bytes(data)
    return [len(data), hashlib.sha256(data).hexdigest()]


@pytest.fixture
def run_python(tmp_path):
    """Runs Python code in a process of its own, which must end within a minute."""

    def run(code: str, *arguments: str, timeout: float = 60, check: bool = True) -> Any:
        script = tmp_path / "script.py"
        script.write_text(code)
        package = str(Path(anyrec.__file__).parents[1])
        paths = [package, str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        done = subprocess.run(
            [sys.executable, str(script), *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env=environment,
        )
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    """Tests write where nothing is."""
    monkeypatch.chdir(tmp_path)
