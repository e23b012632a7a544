#!/usr/bin/env python3
"""Draws results/overview.svg, the README's chart, from the figures of a run.

    python3 bench/overview.py

Four rows of the benchmark, each with its peers and its limit. Needs only the standard library, so
that the chart can be drawn again wherever the figures are.
"""

from __future__ import annotations

import argparse
import json
from html import escape
from pathlib import Path

RESULTS = Path(__file__).with_name("results")

# (row id, work, title, unit, divisor, what the limit is)
PANELS = [
    ("A1", ".ffr, random batches, 1 thread", "Random batches, 100 KB records", "GB/s", 1e9, "pread"),
    ("B1", ".rec, random batches, 1 thread", "Random batches, 200 to 1000 byte records", "M records/s", 1e6, "pread"),
    ("A3", ".rec, scan", "Front to back, 100 KB records", "GB/s", 1e9, "read"),
    ("I1", ".rec of photos to training batches, 2 threads", "JPEG photos to training batches, 2 threads",
     "images/s", 1, "libjpeg-turbo alone"),
]  # fmt: skip

PANEL_WIDTH, NAMES, BAR, STEP, HEAD, GAP = 420, 150, 14, 20, 46, 28
FIGURES = 62  # room right of the longest bar
STYLE = """
    text { font-family: system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; font-size: 12px;
           fill: #57606a }
    .card { fill: #ffffff; stroke: #d0d7de } .behind { fill: #ffffff }
    .title { fill: #1f2328; font-weight: 600; font-size: 13px }
    .peer { fill: #afb8c1 } .ours { fill: #0969da } .name-ours { fill: #0969da; font-weight: 600 }
    .limit { stroke: #bc4c00; stroke-width: 1.5; stroke-dasharray: 4 3 } .limit-text { fill: #bc4c00 }
    @media (prefers-color-scheme: dark) {
      text { fill: #9198a1 } .card { fill: #0d1117; stroke: #3d444d } .behind { fill: #0d1117 }
      .title { fill: #f0f6fc }
      .peer { fill: #545d68 } .ours { fill: #4493f8 } .name-ours { fill: #4493f8 }
      .limit { stroke: #f0883e } .limit-text { fill: #f0883e }
    }
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS / "quick-2-cores.json")
    parser.add_argument("--output", type=Path, default=RESULTS / "overview.svg")
    arguments = parser.parse_args()
    results = json.loads(arguments.results.read_text(encoding="utf-8"))
    about = json.loads(arguments.results.with_suffix(".machine.json").read_text(encoding="utf-8"))
    arguments.output.write_text(draw(results, about), encoding="utf-8")


def draw(results: list[dict], about: dict) -> str:
    panels = [(panel, bars(results, *panel[:2])) for panel in PANELS]
    # Two panels to a line; a line is as high as its longer panel.
    heights = [
        HEAD + STEP * max(len(values) for _, (values, _) in panels[i : i + 2])
        for i in range(0, len(panels), 2)
    ]
    width, height = 2 * PANEL_WIDTH + 3 * GAP, sum(heights) + GAP * len(heights) + 42
    body, top = [], GAP / 2
    for line, line_height in enumerate(heights):
        for column in range(2):
            panel, (values, limit) = panels[2 * line + column]
            body += draw_panel(panel, values, limit, GAP + column * (PANEL_WIDTH + GAP), top, line_height)
        top += line_height + GAP
    notes = [
        "Longer is better. Dashed: what the machine does without any format (pread, read, or libjpeg-turbo decoding).",
        f"{about['cores']} cores ({about['processor']}), files in the page cache, median of {about['repetitions']} "
        f"interleaved repetitions, cargo xtask bench{' --quick' if about['quick'] else ''}",
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" width="{width}" '
            f'height="{height:g}" role="img">',
            "  <title>anyrec beside other libraries and the machine's limit</title>",
            f"  <style>{STYLE}  </style>",
            f'  <rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1:g}" rx="8"/>',
            *body,
            *(
                f'  <text x="{GAP}" y="{height - 32 + 16 * i:g}">{escape(note)}</text>'
                for i, note in enumerate(notes)
            ),
            "</svg>",
            "",
        ]
    )


def bars(results: list[dict], row: str, work: str) -> tuple[list[tuple[str, float]], float]:
    """All contestants of a row, fastest first, and the row's limit."""
    (result,) = (each for each in results if each["id"] == row and each["work"] == work)
    rates = {"anyrec": result["rate"], **result["peers"]}
    # A view that is not looked at is other work than a copy; A4 measures those.
    values = [
        (name, rate) for name, rate in rates.items() if rate is not None and not name.endswith(" views")
    ]
    return sorted(values, key=lambda each: -each[1]), result["limit_rate"]


def draw_panel(panel, values, limit, left, top, height) -> list[str]:
    _, _, title, unit, divisor, limit_name = panel
    start, room = left + NAMES, PANEL_WIDTH - NAMES - FIGURES
    scale = room / max(limit, *(rate for _, rate in values))
    lines = [f'  <text class="title" x="{left}" y="{top + 16:g}">{escape(title)}, {unit}</text>']
    at = start + limit * scale
    anchor = "end" if at > start + room / 2 else "start"
    lines += [
        f'  <line class="limit" x1="{at:.1f}" x2="{at:.1f}" y1="{top + 36:g}" '
        f'y2="{top + HEAD + STEP * len(values) - 4:g}"/>',
        f'  <text class="limit-text" x="{at:.1f}" y="{top + 32:g}" text-anchor="{anchor}">'
        f"{escape(limit_name)} {figure(limit / divisor)}</text>",
    ]
    for i, (name, rate) in enumerate(values):
        bar, label = ("ours", "name-ours") if name == "anyrec" else ("peer", "name")
        y, end, text = top + HEAD + STEP * i, start + max(rate * scale, 1), figure(rate / divisor)
        lines += [
            f'  <text class="{label}" x="{start - 8}" y="{y + 11:g}" text-anchor="end">{escape(name)}</text>',
            # Keeps the dashed line out of the figure.
            f'  <rect class="behind" x="{end:.1f}" y="{y:g}" width="{8 + 7 * len(text)}" height="{BAR}"/>',
            f'  <rect class="{bar}" x="{start}" y="{y:g}" width="{end - start:.1f}" height="{BAR}" rx="2"/>',
            f'  <text x="{end + 6:.1f}" y="{y + 11:g}">{text}</text>',
        ]
    return lines


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


if __name__ == "__main__":
    main()
