"""`holdfast draft`: what a model would draw up for a request, here or on a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_scene import Command
from serving import served

APPLICATION = """
from pathlib import Path

from holdfast import Holdfast
from holdfast.testing.repair_models import diagnosing_model

HERE = Path(__file__).parent
BADGE = {"goal": "A badge for \\u202eZhang", "steps": [
    {"id": "s1", "tool": "grant_access", "args": {"employee": "WZ001"}}]}
app = Holdfast(HERE / "kept", model=diagnosing_model(sketches={"badge": BADGE}))


@app.tool
async def grant_access(employee: str, area: str) -> dict:
    (HERE / "called").touch()
    return {}
"""
OUTLINE = [
    "│ A model drew up this plan:",
    "│ A badge for ⟨202E⟩Zhang",
    "│ It calls, in this order:",
    '│ 1. s1: grant_access {"employee":"WZ001"}',
    "│ These of them act, and each asks for approval first:",
    "│ 1",
    "│ It asks at the start for:",
    "│ - Area",
    "│ In the rehearsal the goal is reached.",
]


@pytest.fixture
def drawing(place: Path) -> str:
    """An application whose model knows of badges; the name to give to --app."""
    (place / "drawing.py").write_text(APPLICATION, encoding="utf-8")
    return "drawing:app"


def test_a_plan_is_shown_and_nothing_is_started(
    holdfast: Command, place: Path, drawing: str
) -> None:
    ending = holdfast("draft", "a badge", "--app", drawing)
    assert (ending.code, ending.err) == (0, "")
    *outline, last = ending.out.splitlines()
    assert outline == OUTLINE
    assert last.startswith("1 model request; ")
    assert not (place / "called").exists()
    assert not (place / "kept").exists(), "no home is taken"


def test_as_json_it_is_what_the_api_tells(holdfast: Command, drawing: str) -> None:
    ending = holdfast("draft", "a badge", "--app", drawing, "--set", "area=lab", "--json")
    assert ending.code == 0
    assert ending.json["requests"] == 1
    draft = ending.json["draft"]
    assert draft["goal"] == "A badge for ⟨202E⟩Zhang"
    assert [one["tool"] for one in draft["rehearsal"]["calls"]] == ["grant_access"]
    assert draft["definition"]["inputs"][0]["name"] == "area"


def test_where_no_plan_comes_of_it_it_says_why(holdfast: Command, drawing: str) -> None:
    ending = holdfast("draft", "a holiday", "--app", drawing)
    assert ending.code == 1
    assert ending.out.splitlines()[:2] == [
        "No plan was drawn up:",
        "│ The model says: “I have nothing to say about this.”",
    ]
    told = holdfast("draft", "a holiday", "--app", drawing, "--json")
    assert (told.code, told.json["draft"]) == (1, None)


def test_without_a_model_the_remedy_is_named(holdfast: Command) -> None:
    ending = holdfast("draft", "a badge")
    assert ending.code == 1
    assert "set HOLDFAST_MODEL" in ending.err
    told = holdfast("draft", "a badge", "--json")
    assert (told.code, told.json["error"]["kind"]) == (1, "NotAllowed")


def test_a_server_draws_it_up_for_those_who_may_run_its_plans(
    holdfast: Command,
    holdfast_process: Command,
    place: Path,
    drawing: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = holdfast_process("token", "create", "will", "--role", "operator", "--app", drawing)
    monkeypatch.setenv("HOLDFAST_TOKEN", made.out.splitlines()[1].strip())
    with served(place, drawing) as running:
        ending = holdfast("draft", "a badge", "--url", running.url)
        assert (ending.code, ending.out.splitlines()[:-1]) == (0, OUTLINE), ending
