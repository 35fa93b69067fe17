"""A program that imports Holdfast, or lists its runs, loads what that takes and no more.

Told by what was loaded and made, never by the clock. The time that it takes is in docs/speed.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_scene import ASK

from holdfast import Holdfast

HEAVY = {
    "cryptography",
    "fastapi",
    "httpx",
    "jinja2",
    "lark",
    "pydantic_ai",
    "regex",
    "rich",
    "ruamel",
    "starlette",
    "uvicorn",
}
"""What only some programs need, each 5 to 100 ms."""

CORES = {
    "holdfast.app",
    "holdfast.core.plan",
    "holdfast.core.agent",
    "holdfast.core.conversation",
    "holdfast.model.events",
}
"""What moves runs, and is not needed to list them."""

TELL = """
import json, sys
from holdfast.model.record import _made
print(json.dumps({"loaded": sorted(sys.modules), "adapters": _made.cache_info().currsize}))
"""


@dataclass(frozen=True)
class Ended:
    """What a program had loaded at its end, and how many adapters of types were made."""

    loaded: set[str]
    adapters: int


def after(program: str, *arguments: str) -> Ended:
    ran = subprocess.run(
        [sys.executable, "-c", program + TELL, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(ran.stdout.splitlines()[-1])
    return Ended(set(told["loaded"]), told["adapters"])


def command(home: Path, *arguments: str) -> Ended:
    program = """
from holdfast.cli import main
try:
    main()
except SystemExit:
    pass
"""
    return after(program, "--home", str(home), *arguments)


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A home with a run in it."""
    app = Holdfast(tmp_path)
    app.load_plan_text(ASK)
    async with app:
        await app.plans.start_plan_by_prompt("询问", "ask")
    return tmp_path


def test_importing_the_application_loads_nothing_heavy() -> None:
    ended = after("from holdfast import Holdfast")
    assert not ended.loaded & {*HEAVY, "pydantic", "pydantic_core"}
    assert ended.adapters == 0


def test_every_public_name_can_still_be_imported() -> None:
    ended = after("from holdfast import *")
    assert "holdfast.conversations.engine" in ended.loaded


def test_help_loads_no_application() -> None:
    ended = command(Path("nowhere"), "--help")
    assert not ended.loaded & {*HEAVY, *CORES, "pydantic"}


@pytest.mark.parametrize("arguments", [["runs"], ["runs", "--json"], ["inbox"]])
def test_looking_at_an_empty_home_loads_its_journal_alone(
    tmp_path: Path, arguments: list[str]
) -> None:
    ended = command(tmp_path, *arguments)
    assert not ended.loaded & {*HEAVY, *CORES}
    assert ended.adapters == 0


async def test_listing_runs_takes_no_more_than_a_table(home: Path) -> None:
    for arguments, also in ((["runs"], {"rich"}), (["runs", "--json"], set())):
        ended = command(home, *arguments)
        assert "holdfast.journal.sqlite" in ended.loaded
        assert ended.loaded & {*HEAVY, *CORES} == also
        assert ended.adapters == 0
