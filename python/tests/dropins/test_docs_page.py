"""The page about the drop-in modules prints what it says; so do the docstrings of `anyrec.ffrecord`."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "python.md"
# What a loop prints, one line for each turn.
SEVERAL = {"36 and then 100": ["36", "100"]}


def test_the_page_prints_what_its_comments_say(capsys):
    for needed in ("torch", "PIL"):
        pytest.importorskip(needed, reason=f"DOCUMENTATION NOT RUN: {needed} is not installed")
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    comments = re.findall(r"^ *print\(.*?\) +# (.*)$", code, re.MULTILINE)
    assert len(comments) == code.count("print(") > 25
    expected = [line for comment in comments for line in SEVERAL.get(comment, [comment])]
    exec(compile(code, str(PAGE), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize("name", ["ffrecord", "ffrecord.package", "ffrecord.utils", "ffrecord.torch"])
def test_docstrings_print_what_they_say(name):
    if name.endswith("torch"):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    result = doctest.testmod(importlib.import_module(f"anyrec.{name}"))
    assert result.attempted > 0 and result.failed == 0
