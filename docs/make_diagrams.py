"""Writes docs/diagrams from the tables of the machines: `python docs/make_diagrams.py`."""

from __future__ import annotations

from pathlib import Path

from holdfast.drawing.diagrams import documents

DIAGRAMS = Path(__file__).parent / "diagrams"


def main() -> None:
    DIAGRAMS.mkdir(exist_ok=True)
    for name, content in documents().items():
        (DIAGRAMS / name).write_text(content, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
