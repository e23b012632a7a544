"""What all tests share: golden files, a folder of one's own, documentation as tests."""

from __future__ import annotations

import json
import pathlib
import signal
from typing import Any

import pytest

TESTDATA = pathlib.Path(__file__).parents[2] / "testdata"

# A shell starts what runs in its background with Ctrl-C ignored, and processes hand that on: those
# that the tests interrupt would not notice.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Every test works in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def manifest(format: str) -> dict[str, Any]:
    """What the original implementation says about a format's golden files."""
    told: dict[str, Any] = json.loads((TESTDATA / format / "good" / "manifest.json").read_text())
    return told


def golden(format: str, name: str) -> pathlib.Path:
    """A golden file."""
    return TESTDATA / format / "good" / name
