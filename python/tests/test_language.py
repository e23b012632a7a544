"""Errors speak the caller's language: Python names Python's functions, the command line its own options."""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import pytest

from anyrec import _anyrec

ROOT = pathlib.Path(__file__).parents[2]

OF_THE_COMMAND_LINE = re.compile(r"(?<![\w-])--[a-z]|(?<![\w-])-o\b|`anyrec (?!finish)[a-z]+")
OF_RUST = re.compile(r"\w::\w|\b(Open|Write|Convert|Repair)Options\b")
OF_PYTHON = re.compile(r"\banyrec\.[a-z]+\b(?!-)|=True\b|=False\b|=\.\.\.|\bkeyword argument")

# A string literal of Rust. Raw strings do not occur in messages.
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def rust_literals(folder: str) -> Iterator[tuple[str, str]]:
    """The string literals of a crate, without comments, tests and attributes: (file, literal)."""
    for path in sorted((ROOT / folder).rglob("*.rs")):
        name = str(path.relative_to(ROOT))
        if "/tests" in name or "/testkit" in name:
            continue
        text = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests {")[0]
        lines = [line for line in text.splitlines() if not re.match(r"\s*(//|#\[)", line)]
        # The character is no beginning of a string.
        for literal in LITERAL.findall("\n".join(lines).replace("'\"'", "")):
            yield name, literal


def python_messages() -> Iterator[tuple[str, str]]:
    """The string literals in the `raise` statements and warnings of the package: (file, literal)."""
    for path in sorted((ROOT / "python" / "py_src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            told = isinstance(node, ast.Raise) or (
                isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "warn")
            )
            for part in ast.walk(node) if told else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield str(path.relative_to(ROOT)), part.value


def test_no_hint_in_python_names_what_only_the_command_line_or_rust_has() -> None:
    hints = _anyrec.hint_examples()
    assert len(hints) == len(set(hints)) > 10
    for hint in hints:
        assert not OF_THE_COMMAND_LINE.search(hint) and not OF_RUST.search(hint), hint
    # The package carries the command, and nothing else completes a replacement.
    assert [hint for hint in hints if "`anyrec " in hint] == [hint for hint in hints if "finish" in hint]


def test_the_patterns_find_what_they_look_for() -> None:
    assert OF_THE_COMMAND_LINE.search("allow overwriting with `--force`")
    assert OF_THE_COMMAND_LINE.search("`anyrec repair x.rec -o OUT`")
    assert OF_RUST.search("give it with `Registry::with_key`")
    assert OF_PYTHON.search("anyrec.verify() lists all damage") and OF_PYTHON.search("pass overwrite=True")


# Words of the library itself are the same for all front ends.
LIBRARY = ["crates/anyrec/src", "crates/anyrec-image/src"]
# Where the words for Rust's own users are.
WORDED_FOR_RUST = {"crates/anyrec/src/base/hint.rs"}


@pytest.mark.parametrize("folder", LIBRARY)
def test_the_library_names_no_front_end(folder: str) -> None:
    found = [
        (name, literal)
        for name, literal in rust_literals(folder)
        if name not in WORDED_FOR_RUST
        and any(words.search(literal) for words in (OF_THE_COMMAND_LINE, OF_RUST, OF_PYTHON))
    ]
    assert not found


def test_the_bindings_name_neither_the_command_line_nor_rust() -> None:
    messages = [*rust_literals("python/src"), *python_messages()]
    assert len(messages) > 300
    found = [one for one in messages if OF_THE_COMMAND_LINE.search(one[1]) or OF_RUST.search(one[1])]
    assert not found


def test_the_command_line_names_neither_python_nor_rust() -> None:
    literals = list(rust_literals("crates/anyrec-cli/src"))
    assert len(literals) > 300
    found = [one for one in literals if OF_PYTHON.search(one[1]) or OF_RUST.search(one[1])]
    assert not found
