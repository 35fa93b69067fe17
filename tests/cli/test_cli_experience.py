"""`holdfast experience` and `holdfast lessons`, on a home and on a server."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_scene import Command, Ending
from kept_lessons import learned, recovered
from serving import Served, served

from holdfast import Holdfast
from holdfast.cli.commands.lesson_book import HomeLessons, lesson_id
from holdfast.errors import NotAllowed, NotFound
from holdfast.model.repair import LessonState, Level
from holdfast.views.experience import LessonView

APP = ("--app", "works:app")
ASKS_WILL = {"op": "set_args", "listener_id": "@listener", "set": {"who": "Will Zhang"}}
WORDS = 'L001 passes who = "Will Zhang" instead of "张三"'

There = Callable[..., Ending]


class BookOf(HomeLessons):
    """It has lessons of these ids."""

    def __init__(self, *ids: str) -> None:
        object.__setattr__(self, "known", ids)

    async def lessons(self) -> list[LessonView]:
        named = {"plan_id": "p", "tool": "t", "version": "v", "fingerprint": "f"}
        counted = {"state": LessonState.TRIAL, "wins": 1, "losses": 0, "level": Level.ACT}
        return [LessonView(one, **named, **counted) for one in self.known]  # type: ignore


@pytest.fixture
def home(place: Path, application: str, holdfast_process: Command) -> str:
    """A home in which a run has failed and was resumed, and in which a lesson was learned; its
    id."""
    assert holdfast_process("run", "call_shaky", *APP).code == 3
    (place / "mended").touch()
    assert holdfast_process("resume", "1", *APP).code == 0

    async def taught() -> str:
        app: Holdfast = runpy.run_path(str(place / "works.py"))["app"]
        async with app:
            await recovered(app, "shaky", 24, after=2.0)
            return await learned(app, "call_shaky", "L001", ASKS_WILL, wins=3)

    return asyncio.run(taught())


def test_experience_is_a_table_of_chances_by_tool_and_failure(home: str, holdfast: Command) -> None:
    ending = holdfast("experience", *APP)
    assert ending.code == 0, ending.err
    head, curve, _, told, titles, took = ending.out.splitlines()
    assert head.split() == [
        *("tool", "failure", "cases"),
        *("0.5", "s", "2", "s", "8", "s", "30", "s", "2", "min", "10", "min", "30", "min"),
        *("last", "seen"),
    ]
    words = curve.split()
    assert words[:4] == ["shaky", "outage", "01234567", "24"]
    assert [one[-1] for one in words[4:11]] == ["%"] * 7
    assert told == "how long calls take, of runs in which something failed:"
    assert titles.split()[:2] == ["tool", "calls"]
    assert took.split()[:2] == ["shaky", "25"]


def test_experience_as_json(home: str, holdfast: Command) -> None:
    found = holdfast("experience", "--json", *APP).json
    [curve] = found["curves"]
    assert (curve["tool"], curve["cause"], curve["cases"]) == ("shaky", "outage", 24)
    assert [one["within"] for one in curve["chances"]] == [0.5, 2, 8, 30, 120, 600, 1800]
    assert curve["last_seen"].endswith("+00:00")
    [took] = found["durations"]
    assert (took["tool"], took["calls"]) == ("shaky", 25)


def test_a_rebuild_keeps_what_the_journals_say(home: str, holdfast: Command) -> None:
    assert holdfast("lessons", "pin", home, *APP).code == 0
    ending = holdfast("experience", "--rebuild", "--json", *APP)
    assert (ending.code, ending.err) == (0, "learned again from 1 run\n")
    assert (ending.json["curves"], [one["calls"] for one in ending.json["durations"]]) == ([], [1])
    [lesson] = holdfast("lessons", "--json", *APP).json
    assert (lesson["state"], lesson["wins"]) == ("pinned", 0), "nobody takes back what was said"


def test_lessons_are_a_table_with_what_each_changes(home: str, holdfast: Command) -> None:
    ending = holdfast("lessons", *APP)
    assert ending.code == 0, ending.err
    head, lesson = ending.out.splitlines()
    assert head.split() == [
        *("lesson", "plan", "listener", "tool", "state", "won", "lost", "level", "repair")
    ]
    told = lesson.rstrip()
    assert told.split()[:8] == [home, "call_shaky", "L001", "shaky", "proven", "3", "0", "act"]
    assert told.endswith(WORDS)
    [shown] = holdfast("lessons", "--json", *APP).json
    assert (shown["lesson_id"], shown["listener_ids"], shown["words"]) == (home, ["L001"], [WORDS])


def test_lessons_are_read_without_the_application_too(home: str, holdfast: Command) -> None:
    [shown] = holdfast("lessons", "--json", "--home", "kept").json
    assert (shown["listener_ids"], shown["outdated"]) == (["L001"], False)


def test_a_lesson_for_another_version_of_its_tool_says_so(
    home: str, place: Path, holdfast: Command
) -> None:
    text = (place / "works.py").read_text(encoding="utf-8")
    newer = text.replace("@app.tool\nasync def shaky", '@app.tool(version="2")\nasync def shaky')
    (place / "newer.py").write_text(newer, encoding="utf-8")
    ending = holdfast("lessons", "--app", "newer:app")
    assert "retired: its tool has changed" in ending.out, ending.err
    [shown] = holdfast("lessons", "--json", "--app", "newer:app").json
    assert (shown["state"], shown["outdated"]) == ("retired", True)
    told = holdfast("lessons", "pin", home, "--app", "newer:app").out
    assert told.endswith("\n  its tool has changed since: it is offered to nobody now\n")


def test_a_lesson_is_pinned_and_retired_and_the_audit_knows(home: str, holdfast: Command) -> None:
    ending = holdfast("lessons", "pin", home, *APP)
    told = f"{home} is pinned: it is offered first, and outlives its losses\n"
    assert (ending.code, ending.out) == (0, told)
    assert holdfast("lessons", "retire", home, *APP).out == (
        f"{home} is retired: it is offered no more\n"
    )
    assert holdfast("lessons", "pin", home, "--json", *APP).json["state"] == "pinned"
    records = holdfast("audit", "list", "--json", "--home", "kept").json
    said = [(one["action"], one["subject"], one["origin"]) for one in records][-3:]
    assert said == [
        ("pinned_lesson", home, "cli"),
        ("retired_lesson", home, "cli"),
        ("pinned_lesson", home, "cli"),
    ]


def test_a_promoted_lesson_is_a_plan_that_checks(home: str, place: Path, holdfast: Command) -> None:
    ending = holdfast("lessons", "promote", home, *APP)
    assert ending.code == 0
    assert ending.err == f"{WORDS}\nnothing was registered: this is the plan as it would be\n"
    file = place / "calls" / "call_shaky.yaml"
    assert "张三" in file.with_name("shaky.yaml").read_text(encoding="utf-8")
    file.write_text(ending.out, encoding="utf-8")
    checked = holdfast("check", str(file), *APP)
    assert checked.code == 0, checked.err
    found = holdfast("lessons", "promote", home, "--json", *APP).json
    assert (found["plan_id"], found["listener_ids"]) == ("call_shaky", ["L001"])
    assert found["source"] == ending.out
    assert found["base"] != found["digest"]


@pytest.mark.parametrize("what", ["pin", "retire", "promote"])
def test_a_lesson_that_is_not_there_is_refused(home: str, holdfast: Command, what: str) -> None:
    ending = holdfast("lessons", what, "nothing", *APP)
    told = "error: no lesson begins with 'nothing': `holdfast lessons` lists them\n"
    assert (ending.code, ending.err) == (1, told)
    error = holdfast("lessons", what, "nothing", "--json", *APP).json["error"]
    assert error["kind"] == "NotFound"


async def test_a_lesson_is_named_by_the_only_id_that_begins_so() -> None:
    book = BookOf("55c6a1", "55c6b2", "55c6", "aa01")
    assert await lesson_id(book, "55c6a") == "55c6a1"
    assert await lesson_id(book, "55c6") == "55c6", "a whole id is that lesson's"
    assert await lesson_id(book, "a") == "aa01"
    with pytest.raises(NotAllowed, match=r"3 lessons begin with '55': write more of it \(55c6a1, "):
        await lesson_id(book, "55")
    for unknown in ("", "b"):
        with pytest.raises(NotFound, match="no lesson begins with"):
            await lesson_id(book, unknown)


def test_where_nothing_was_learned_it_says_so(place: Path, holdfast: Command) -> None:
    for arguments in (
        ("lessons",),
        ("experience",),
        ("lessons", "pin", "x"),
        ("experience", "--rebuild"),
    ):
        ending = holdfast(*arguments)
        assert (ending.code, "holds no runs yet" in ending.err) == (1, True), arguments
        assert not (place / ".holdfast").exists()
    assert holdfast("run", "greet", "--set", "name=张三").code == 0
    told = "no lessons yet: a repair that has helped becomes one\n"
    assert holdfast("lessons").out == told
    assert holdfast("experience").out == "nothing was learned of failures yet\n"
    assert holdfast("lessons", "--json").json == []
    assert holdfast("experience", "--json").json == {"curves": [], "durations": []}


# On a server.


@pytest.fixture
def server(
    place: Path, home: str, holdfast_process: Command, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    made = holdfast_process("token", "create", "will", "--role", "admin", *APP)
    monkeypatch.setenv("HOLDFAST_TOKEN", made.out.splitlines()[1].strip())
    with served(place, "works:app") as running:
        yield running


@pytest.fixture
def there(server: Served, holdfast: Command) -> There:
    return lambda *arguments: holdfast(*arguments, "--url", server.url)


def test_a_server_tells_and_does_the_same(
    home: str, place: Path, there: There, holdfast: Command
) -> None:
    local = holdfast("lessons", "--json", *APP).json
    assert there("lessons", "--json").json == local
    assert there("lessons").out == holdfast("lessons", *APP).out
    ours = holdfast("experience", "--json", *APP).json
    assert [one["cases"] for one in there("experience", "--json").json["curves"]] == [24]
    assert there("experience", "--json").json["durations"] == ours["durations"]
    assert there("lessons", "pin", home).out.startswith(f"{home} is pinned")
    assert json.loads(there("lessons", "retire", home, "--json").out)["state"] == "retired"
    promoted = there("lessons", "promote", home)
    assert promoted.out == holdfast("lessons", "promote", home, *APP).out
    assert there("lessons", "pin", home[:4]).out.startswith(f"{home} is pinned")
    assert "no lesson begins with 'xyz'" in there("lessons", "pin", "xyz").err


def test_a_home_that_is_served_is_changed_by_its_server(
    home: str, server: Served, holdfast: Command
) -> None:
    ending = holdfast("lessons", "pin", home, *APP)
    assert (ending.code, server.url in ending.err) == (1, True), ending.err
    assert holdfast("lessons", *APP).code == 0, "to look, nobody need be asked"


def test_a_rebuild_is_not_for_a_server(holdfast: Command) -> None:
    ending = holdfast("experience", "--rebuild", "--url", "http://127.0.0.1:1")
    assert (ending.code, "--rebuild takes the home" in ending.err) == (2, True)
