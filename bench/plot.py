"""The plot of a run, SVG by hand: speeds as bars, a step's cost over a plan's size as lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from bench.works import SYSTEMS, Work

Figures = dict[str, dict[str, float | None]]

COLOURS = dict(zip(SYSTEMS, ("#0b7285", "#e8590c", "#7048e8", "#2b8a3e", "#868e96"), strict=True))
LENGTHS = (10, 100, 1000, 10_000)
WIDTH, LEFT, RIGHT, BAR = 800, 290, 90, 14


def draw(works: list[Work], figures: Figures) -> str:
    speeds = [work for work in works if work.unit == "steps/s"]
    bars, height = _bars(speeds, figures, top=60)
    lines, height = _lines(figures, top=height + 20)
    body = [_text(20, 28, "Holdfast beside its peers (logarithmic)", 16), *_legend(), *bars, *lines]
    frame = f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
    paper = f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {frame}>'
    return "\n".join([svg, paper, *body, "</svg>", ""])


def _legend() -> list[str]:
    marks = []
    for place, (system, colour) in enumerate(COLOURS.items()):
        x = 20 + place * 110
        marks.append(f'<rect x="{x}" y="38" width="10" height="10" fill="{colour}"/>')
        marks.append(_text(x + 15, 47, system))
    return marks


def _bars(works: list[Work], figures: Figures, top: float) -> tuple[list[str], float]:
    known = [value for work in works for value in figures[work.name].values() if value]
    if not known:
        return [], top
    scale = _scale(min(known) / 2, max(known), WIDTH - LEFT - RIGHT)
    marks, y = [], top
    for work in works:
        shown = [(name, value) for name, value in figures[work.name].items() if value]
        marks.append(_text(20, y + BAR * len(shown) / 2 + 4, f"{work.title}, {work.unit}"))
        for place, (name, value) in enumerate(shown):
            row = y + place * BAR
            size = f'width="{scale(value):.1f}" height="{BAR - 2}"'
            marks.append(f'<rect x="{LEFT}" y="{row}" {size} fill="{COLOURS[name]}"/>')
            marks.append(_text(LEFT + scale(value) + 5, row + 10, f"{value:,.0f}"))
        y += BAR * len(shown) + 12
    return marks, y


def _lines(figures: Figures, top: float) -> tuple[list[str], float]:
    rows = {length: figures.get(f"step_us_{length}", {}) for length in LENGTHS}
    known = [value for row in rows.values() for value in row.values() if value]
    if not known:
        return [], top
    across = _scale(LENGTHS[0], LENGTHS[-1], WIDTH - LEFT - RIGHT)
    up = _scale(min(known) / 1.5, max(known) * 1.5, 200)
    floor = top + 230
    marks = [_text(20, top + 12, "cost of a step, µs, over the number of tasks")]
    marks += [_text(LEFT + across(length), floor + 18, f"{length:,}") for length in LENGTHS]
    for system, colour in COLOURS.items():
        points = [
            (LEFT + across(length), floor - up(value), value)
            for length, row in rows.items()
            if (value := row.get(system))
        ]
        marks += _line(points, colour)
    return marks, floor + 35


def _line(points: list[tuple[float, float, float]], colour: str) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    line = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    return [line, *(_text(x + 4, y - 5, f"{value:,.0f}", 9) for x, y, value in points)]


def _scale(low: float, high: float, size: float) -> Callable[[float], float]:
    span = math.log(high / low) or 1.0
    return lambda value: math.log(value / low) / span * size


def _text(x: float, y: float, words: str, size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}">{escape(words)}</text>'
