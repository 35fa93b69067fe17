from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path

import pytest
from make_diagrams import documents

from holdfast.core.agent.tables import COMMANDS as SESSION_COMMANDS
from holdfast.core.agent.tables import SESSION
from holdfast.core.plan.tables import COMMANDS
from holdfast.core.run.tables import INSTANCE, STEP

DIAGRAMS = Path(__file__).parents[2] / "docs" / "diagrams"


@pytest.mark.parametrize("name", sorted(documents()))
def test_the_committed_file_is_what_the_tables_say(name: str) -> None:
    committed = (DIAGRAMS / name).read_text(encoding="utf-8")

    assert committed == documents()[name], "run: python docs/make_diagrams.py"


def test_nothing_else_lies_among_the_generated_files() -> None:
    assert {path.name for path in DIAGRAMS.iterdir()} == set(documents())


@pytest.mark.parametrize(
    ("name", "states"), [("instance.svg", INSTANCE), ("session.svg", SESSION), ("step.svg", STEP)]
)
def test_a_drawing_shows_every_state_once(name: str, states: Collection[StrEnum]) -> None:
    groups = ET.fromstring(documents()[name]).iter("{http://www.w3.org/2000/svg}g")
    drawn = [one.get("data-id") for one in groups if "state" in one.get("class", "").split()]

    assert sorted(drawn, key=str) == sorted(state.value for state in states)


def test_every_command_has_its_row() -> None:
    page = documents()["machines.md"]

    assert all(
        f"| **{command.__name__}** |" in page for command in {**COMMANDS, **SESSION_COMMANDS}
    )
