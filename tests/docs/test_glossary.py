"""The glossary and the code: the same packages, the same public names, words that are there."""

from __future__ import annotations

import re
from pathlib import Path

import holdfast

SOURCE = Path(holdfast.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (.*)\n((?:(?!^## ).*\n)*)", re.MULTILINE)
ENTRY = re.compile(
    r"^\| `?(?P<word>[\w. ]+?)`? \| (?P<what>[^|]+) \|(?P<where>[^|]+\|)?$", re.MULTILINE
)
WHERE = re.compile(r"`(?P<file>[\w/]+\.py)` `(?P<name>\w+)`")


def entries(title: str) -> list[tuple[str, str]]:
    """The words of a section with where they stand, without the table's heading."""
    text = dict(SECTION.findall(PAGE))[title]
    found = [(entry["word"], entry["where"] or "") for entry in ENTRY.finditer(text)]
    assert len(found) == text.count("\n|") - 1, "each line of a table is one entry"
    return found[1:]


def words(title: str) -> list[str]:
    found = [word for word, _ in entries(title)]
    assert found == sorted(found, key=str.lower), "in order"
    return found


def test_every_package_has_its_line() -> None:
    packages = {
        ".".join(init.parent.relative_to(SOURCE).parts) for init in SOURCE.rglob("__init__.py")
    }
    assert set(words("Packages")) == packages - {""}


def test_every_public_name_has_its_line() -> None:
    assert set(words("Public names")) == set(holdfast.__all__)


def test_every_word_of_the_kernel_is_in_the_code() -> None:
    assert len(words("Words of the kernel")) > 30
    for word, where in entries("Words of the kernel"):
        place = WHERE.search(where)
        assert place is not None, word
        code = (SOURCE / place["file"]).read_text(encoding="utf-8")
        assert re.search(rf"^(class )?{place['name']}\b", code, re.MULTILINE), word
