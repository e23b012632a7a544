"""The examples in the docstrings run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pathlib
import pkgutil
import re
import warnings

import pytest

import anyrec
from anyrec import _anyrec

MODULES = sorted(
    module.name for module in pkgutil.iter_modules(anyrec.__path__, "anyrec.") if not module.ispkg
)
if importlib.util.find_spec("torch") is None:
    MODULES = [name for name in MODULES if name not in ("anyrec.torch", "anyrec._steps")]


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = []
    for name in ["anyrec", *MODULES]:
        found += finder.find(importlib.import_module(name), name)
    # The finder passes over classes of native code.
    parser = doctest.DocTestParser()
    for name, item in vars(_anyrec).items():
        if isinstance(item, type) and ">>>" in (item.__doc__ or ""):
            found.append(parser.get_doctest(item.__doc__ or "", {}, f"_anyrec.{name}", None, None))
    return [example for example in found if example.examples]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_an_example_prints_what_it_says(example: doctest.DocTest) -> None:
    example.globs.pop("open", None)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


PACKAGE = pathlib.Path(__file__).parents[1]


READMES = {
    "own": PACKAGE / "README.md",
    "top": PACKAGE.parent / "README.md",
    "images": PACKAGE.parent / "docs" / "images.md",
    "loader": PACKAGE.parent / "docs" / "loader.md",
    "reading": PACKAGE.parent / "docs" / "reading.md",
}


@pytest.mark.parametrize("readme", READMES.values(), ids=READMES.keys())
def test_the_readme_prints_what_its_comments_say(
    readme: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL))
    expected = re.findall(r"^ *print\(.*?\)\s+# (.*)$", code, re.MULTILINE)
    assert len(expected) == code.count("print(")
    if "import torch" in code:
        pytest.importorskip("torch", reason=f"DOCUMENTATION NOT RUN: {readme.name} needs torch")
    with warnings.catch_warnings():
        # Converting drops the keys, and says so.
        warnings.simplefilter("ignore", anyrec.NotStored)
        exec(compile(code, str(readme), "exec"), {})
    assert capsys.readouterr().out.splitlines() == expected
