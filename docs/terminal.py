#!/usr/bin/env python3
"""Draws docs/terminal.svg, the README's screenshot, from what the command really prints.

    cargo build --release
    python3 docs/terminal.py target/release/anyrec

The files come from `anyrec demo --keep`. Run this again whenever the output of `info`, `verify` or
`repair` changes. Needs only the standard library.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from html import escape
from pathlib import Path

COMMANDS = [
    ["info", "photos.rec"],
    ["verify", "damaged.ffr"],
    ["repair", "damaged.ffr", "-o", "fixed.ffr"],
    ["verify", "fixed.ffr"],
]
# `verify` exits with 1 when it finds damage.
EXPECTED_EXITS = {0, 1}

COLUMN, LINE, MARGIN, TITLE = 7.82, 18, 16, 34
STYLE = """
    .window { fill: #0d1117; stroke: #30363d }
    text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
           font-size: 13px; fill: #c9d1d9 }
    .prompt { fill: #8b949e } .command { fill: #f0f6fc; font-weight: bold }
    .a31 { fill: #ff7b72; font-weight: bold } .a32 { fill: #56d364; font-weight: bold }
    .a33 { fill: #e3b341; font-weight: bold } .a36 { fill: #76e3ea; font-weight: bold }
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("anyrec", type=Path, help="the command to run")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("terminal.svg"))
    arguments = parser.parse_args()
    arguments.output.write_text(draw(record(arguments.anyrec.resolve())), encoding="utf-8")


def record(anyrec: Path) -> list[str]:
    """Every line of the session; a line that begins with `$ ` is a command."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([anyrec, "demo", "--keep", folder], check=True, capture_output=True)
        for command in COMMANDS:
            done = subprocess.run(
                [anyrec, "--color", "always", *command], cwd=folder, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            if done.returncode not in EXPECTED_EXITS:
                raise SystemExit(f"anyrec {' '.join(command)} failed: {done.stdout}")
            lines += [f"$ anyrec {' '.join(command)}", *done.stdout.splitlines(), ""]
    return lines[:-1]


def draw(lines: list[str]) -> str:
    columns = max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in lines)
    width = round(2 * MARGIN + columns * COLUMN)
    height = TITLE + len(lines) * LINE + MARGIN
    rows = [
        f'  <text x="{MARGIN}" y="{TITLE + (row + 1) * LINE - 5}">{spans(line)}</text>'
        for row, line in enumerate(lines)
        if line
    ]
    lights = "".join(
        f'<circle cx="{MARGIN + 6 + 18 * i}" cy="18" r="5.5" fill="{colour}"/>'
        for i, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"])
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">',
            "  <title>anyrec describes a file, finds damage in another, and repairs it</title>",
            f"  <style>{STYLE}  </style>",
            f'  <rect class="window" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
            f"  {lights}",
            *rows,
            "</svg>",
            "",
        ]
    )


def spans(line: str) -> str:
    """One line as SVG; the terminal's colour codes become classes."""
    # SVG joins ordinary spaces.
    line = line.replace(" ", "\N{NO-BREAK SPACE}")
    if line.startswith("$"):
        return f'<tspan class="prompt">{line[:2]}</tspan><tspan class="command">{escape(line[2:])}</tspan>'
    parts, colour = [], None
    for text, code in re.findall(r"([^\x1b]*)(?:\x1b\[(\d*)m)?", line):
        if text:
            parts.append(f'<tspan class="a{colour}">{escape(text)}</tspan>' if colour else escape(text))
        if code in ("0", ""):
            colour = None if code == "0" else colour
        elif code.startswith("3"):
            colour = code
    return "".join(parts)


if __name__ == "__main__":
    main()
