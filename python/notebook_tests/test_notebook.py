"""Notebooks, executed and looked at in a browser: every image is drawn, and nothing from a file runs.

The test command runs these in an environment of their own, with Jupyter and Chromium.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
from html import unescape
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "first_look.ipynb"

# What the page reports about itself when it is complete. A script from a record would set `ran`.
REPORT = """
window.ran = [];
window.addEventListener("load", () => setTimeout(() => {
    const widths = [...document.images].map(image => image.naturalWidth);
    document.body.setAttribute("data-report", JSON.stringify({widths, ran: window.ran}));
}, 100));
"""

HOSTILE = """
import numpy as np, anyrec
from anyrec import _anyrec
attack = "<script>window.ran.push('script')</script><img src=x onerror=\\"window.ran.push('image')\\">"
name = "<img src=x onerror='window.ran.push(0)'>.ffr"
jpeg = _anyrec.encode_image(np.zeros((50, 50, 3), np.uint8), ".jpg", 90)
svg = b'<svg xmlns="http://www.w3.org/2000/svg" onload="window.ran.push(1)"></svg>'
html = attack.encode()
with anyrec.create(name, overwrite=True) as writer:
    for record in [html, html + b"\\0", html * 10000, svg, jpeg, jpeg[:300], jpeg[:20] + html, b""]:
        writer.write(record)
dataset = anyrec.open(name)
display(dataset)
for record in dataset:
    display(record)
display(dataset.read(range(len(dataset))))
with anyrec.create("keys.rec", overwrite=True) as writer:
    writer.write(html, key=attack)
display(anyrec.open("keys.rec")[0])
"""


def executed(notebook: Any, folder: pathlib.Path) -> Any:
    return NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()


def seen(notebook: Any, folder: pathlib.Path) -> dict[str, Any]:
    """What a browser reports about the page of an executed notebook."""
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    page = folder / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><script>{REPORT}</script><body>{body}", "utf-8")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    assert browser is not None, "there is no Chromium"
    # The sandbox needs privileges that a container may not give, and the page is our own.
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    options += ["--virtual-time-budget=10000", "--dump-dom"]
    command = [browser, *options, page.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    report = re.search(r'data-report="([^"]*)"', dom)
    assert report is not None, dom[-2000:]
    told: dict[str, Any] = json.loads(unescape(report[1]))
    return told


def test_the_example_shows_all_its_images(tmp_path: pathlib.Path) -> None:
    notebook = nbformat.read(EXAMPLE, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the outputs are not part of the file"
    report = seen(executed(notebook, tmp_path), tmp_path)
    # A record, a batch of five, a digit, and a grid of twelve.
    assert len(report["widths"]) == 1 + 5 + 1 + 12
    assert all(width > 0 for width in report["widths"])


def test_nothing_that_a_record_holds_runs(tmp_path: pathlib.Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(HOSTILE)])
    report = seen(executed(notebook, tmp_path), tmp_path)
    assert report["ran"] == []
    # The intact JPEG, alone and in the batch.
    assert report["widths"] == [50, 50]


def test_the_browser_would_notice_a_script(tmp_path: pathlib.Path) -> None:
    cell = nbformat.v4.new_code_cell("from IPython.display import HTML\nHTML('<script>window.ran.push(1)</script>')")
    report = seen(executed(nbformat.v4.new_notebook(cells=[cell]), tmp_path), tmp_path)
    assert report["ran"] == [1]


@pytest.fixture(autouse=True)
def kernel_of_this_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """A kernel that the user installed elsewhere must not be taken."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
