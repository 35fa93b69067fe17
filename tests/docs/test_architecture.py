"""docs/architecture.md names the rooms that there are, in the order of the import contract."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def rooms() -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", PAGE.partition("## Rooms")[2], re.MULTILINE)


def test_every_room_is_named() -> None:
    package = ROOT / "src" / "holdfast"
    found = {one.parent.name for one in package.glob("*/__init__.py")}
    found |= {one.stem for one in package.glob("*.py")} - {"__init__"}

    assert set(rooms()) == found


def test_the_order_is_that_of_the_import_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = (
        one
        for one in settings["tool"]["importlinter"]["contracts"]
        if one["name"] == "imports point down only"
    )
    layers = [name for row in contract["layers"] for name in row.split(" | ")]

    assert rooms() == [name.removeprefix("holdfast.") for name in layers]


def test_the_files_that_it_names_are_there() -> None:
    named = re.findall(r"`((?:core|model|journal|runtime|work)/[\w/]+\.py)`", PAGE)

    assert named
    assert [one for one in named if not (ROOT / "src" / "holdfast" / one).exists()] == []
