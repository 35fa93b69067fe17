"""docs/settings.md has the table of all settings, and its example is a file that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from make_settings import PAGE, page

from holdfast.settings.file import read_file
from holdfast.settings.table import INTERNAL, SETTINGS

ROOT = Path(__file__).parents[2]
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_is_what_the_table_says() -> None:
    assert page(TEXT) == TEXT, "run: make diagrams"


def test_the_example_can_be_read(tmp_path: Path) -> None:
    [example] = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    file = tmp_path / "holdfast.toml"
    file.write_text(example, encoding="utf-8")

    assert set(read_file(file).values) == set(re.findall(r"^(\w+) =", example, re.MULTILINE))


@pytest.mark.parametrize("tree", ["src", "docs"])
def test_every_variable_that_is_read_or_documented_is_in_the_table(tree: str) -> None:
    known = {one.variable for one in SETTINGS.values()} | INTERNAL
    found: set[str] = set()
    for file in (ROOT / tree).rglob("*"):
        if file.suffix in (".py", ".md", ".html"):
            found |= set(re.findall(r"\bHOLDFAST_[A-Z_]+\b", file.read_text(encoding="utf-8")))

    assert found - known == set()
