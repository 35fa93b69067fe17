"""The page on conversations: each example is run, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "conversations.md"
EXAMPLE = re.compile(
    r"^```python\n(?P<script>.*?)^```\n\n```text\n(?P<printed>.*?)^```$", re.DOTALL | re.MULTILINE
)
PYTHON = re.compile(r"^```python$", re.MULTILINE)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def examples() -> list[object]:
    text = PAGE.read_text(encoding="utf-8")
    return [
        pytest.param(found["script"], found["printed"], id=heading_before(text, found.start()))
        for found in EXAMPLE.finditer(text)
    ]


def heading_before(text: str, position: int) -> str:
    return [one[1] for one in HEADING.finditer(text, 0, position)][-1]


@pytest.mark.parametrize(("script", "printed"), examples())
def test_an_example_prints_what_stands_below_it(
    script: str,
    printed: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(script, "<example>", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == printed


def test_no_example_goes_without_its_output() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(PYTHON.findall(text)) == len(EXAMPLE.findall(text)) > 0
