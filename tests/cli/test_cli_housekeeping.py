"""`holdfast retention` and `erase`: what goes, what stays, and what is said of it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_scene import Command
from serving import served

from holdfast import Holdfast
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model.run import RunStatus
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.housekeeping import Housekeeper, Why

VALUES = ("--set", "count=2", "--set", "agreed=yes", "--set", "kinds=a")


def answered(holdfast: Command, by: str = "") -> str:
    """A run that is done; by a person other than the machine's user through the API."""
    asked = holdfast("run", "ask", "--json").json
    question = asked["questions"][0]["question_id"]
    if by:
        asyncio.run(answer_as(by, question))
    else:
        assert holdfast("answer", question, *VALUES).code == 0
    return str(asked["instance_id"])


async def draft_as(by: str, question_id: str) -> None:
    async with Holdfast() as app:
        await app.keep_draft(question_id, {"count": 1}, by=by)


async def answer_as(by: str, question_id: str) -> None:
    app = Holdfast()
    app.load_plans("plans")
    async with app:
        data = {"count": 2, "agreed": True, "kinds": ["a"]}
        run = await app.answer(question_id, data=data, by=by)
        await app.engine.wait_for_status(run.id, {RunStatus.DONE})


def runs(holdfast: Command, *more: str) -> list[str]:
    return [one["instance_id"] for one in holdfast("runs", "--json", *more).json]


def test_old_runs_are_listed_exported_and_removed(holdfast: Command, place: Path) -> None:
    done = [answered(holdfast) for _ in range(3)]
    waiting = holdfast("run", "ask", "--json").json["instance_id"]
    listed = holdfast("retention", "--older-than", "0d", "--dry-run", "--json").json
    assert [one["run_id"] for one in listed["would_remove"]] == done
    assert len(runs(holdfast)) == 4
    swept = holdfast("retention", "--older-than", "0d", "--yes", "--export", "gone.jsonl")
    assert swept.code == 0, swept.err
    assert swept.out.startswith("3 runs are gone, with ")
    assert runs(holdfast) == [waiting]
    lines = [json.loads(line) for line in (place / "gone.jsonl").read_text().splitlines()]
    assert [line["run"]["run_id"] for line in lines if "run" in line] == done
    [*_, deed] = holdfast("audit", "list", "--json").json
    assert (deed["action"], deed["detail"]["runs"]) == ("removed_runs", 3)
    assert holdfast("audit", "verify").code == 0
    assert holdfast("doctor", "--integrity").code == 0
    assert answered(holdfast) == "inst_000005"


def test_nothing_goes_without_a_yes(holdfast: Command) -> None:
    answered(holdfast)
    refused = holdfast("retention", "--older-than", "0d")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert len(runs(holdfast)) == 1
    assert holdfast("retention").code == 2
    assert holdfast("retention", "--older-than", "0d", "--status", "pause").code == 2
    assert "nothing to remove" in holdfast("retention", "--older-than", "1d", "--yes").out


def test_an_export_replaces_no_file(holdfast: Command, place: Path) -> None:
    answered(holdfast)
    (place / "kept.jsonl").write_text("mine")
    refused = holdfast("retention", "--older-than", "0d", "--yes", "--export", "kept.jsonl")
    assert (refused.code, "is there already" in refused.err) == (1, True)
    assert (place / "kept.jsonl").read_text() == "mine"
    assert len(runs(holdfast)) == 1


def test_a_home_is_compacted(holdfast: Command) -> None:
    answered(holdfast)
    url = ("--url", "http://127.0.0.1:1")
    refused = holdfast("retention", "--older-than", "0d", "--yes", "--compact", *url)
    assert (refused.code, "--compact takes the home" in refused.err) == (2, True)
    assert holdfast("retention", "--older-than", "0d", "--yes", "--compact").code == 0
    assert holdfast("doctor", "--integrity").code == 0


def test_what_removes_nothing_answers_in_the_same_shape(holdfast: Command) -> None:
    holdfast("run", "ask")
    for command in (("retention", "--older-than", "0d"), ("erase", "nobody")):
        removed = holdfast(*command, "--yes", "--json")
        assert (removed.code, removed.json["runs"], removed.json["left"]) == (0, 0, [])
        assert holdfast(*command, "--yes").out == "there is nothing to remove\n"


def test_what_an_interrupted_erasure_left_behind_goes_with_the_next(
    holdfast: Command, place: Path
) -> None:
    run_id = answered(holdfast, "eva")
    journal = SqliteJournal(place / ".holdfast" / "holdfast.db")

    async def erase_and_stop() -> None:
        await journal.open()
        await Housekeeper(journal, SystemClock()).remove([run_id], Why("erased_person", "eva"))
        await journal.close()

    asyncio.run(erase_and_stop())
    assert kept_records(place) > 0
    assert holdfast("erase", "eva", "--yes").out == "there is nothing to remove\n"
    assert kept_records(place) == 0


def kept_records(place: Path) -> int:
    with closing(sqlite3.connect(place / ".holdfast" / "holdfast.db")) as connection:
        [[count]] = connection.execute("SELECT count(*) FROM events").fetchall()
        return int(count)


def test_nobody_is_erased_by_an_empty_name(holdfast: Command) -> None:
    answered(holdfast)
    refused = holdfast("erase", " ", "--yes")
    assert (refused.code, "NAME is empty" in refused.err) == (2, True)
    assert len(runs(holdfast)) == 1


def test_a_person_is_erased_and_what_goes_on_is_named(holdfast: Command) -> None:
    theirs, other = answered(holdfast, "eva"), answered(holdfast, "will")
    listed = holdfast("erase", "eva", "--dry-run", "--json").json
    assert [one["run_id"] for one in listed["would_remove"]] == [theirs]
    erased = holdfast("erase", "eva", "--yes", "--json").json
    assert (erased["runs"], erased["stay"]) == (1, [])
    assert runs(holdfast) == [other]
    living = holdfast("run", "ask", "--json").json
    asyncio.run(draft_as("will", living["questions"][0]["question_id"]))
    erased = holdfast("erase", "will", "--yes", "--json")
    assert erased.code == 1
    assert erased.json["runs"] == 1
    assert [one["run_id"] for one in erased.json["stay"]] == [living["instance_id"]]
    assert "is pause and stays" in erased.err
    assert runs(holdfast) == [living["instance_id"]]
    [deed] = [one for one in holdfast("audit", "list", "--json").json if one["subject"] == "eva"]
    assert deed["action"] == "erased_person"
    assert holdfast("audit", "verify").code == 0


def test_a_server_sweeps_beside_its_work(
    holdfast: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = [answered(holdfast, "eva") for _ in range(2)]
    waiting = holdfast("run", "ask", "--json").json
    with served(place) as server:
        monkeypatch.setenv("HOLDFAST_TOKEN", server.token("admin"))
        url = ("--url", server.url)
        refused = holdfast("retention", "--older-than", "0d", "--yes")
        assert (refused.code, f"--url {server.url}" in refused.err) == (1, True)
        listed = holdfast("retention", "--older-than", "0d", "--dry-run", "--json").json
        assert len(listed["would_remove"]) == 2
        listed = holdfast("erase", "eva", "--dry-run", "--json", *url).json
        assert [one["run_id"] for one in listed["would_remove"]] == done
        swept = holdfast(
            "retention", "--older-than", "0d", "--yes", "--json", "--export", "gone.jsonl", *url
        )
        assert (swept.code, swept.json["runs"]) == (0, 2), swept.out
        assert runs(holdfast, *url) == [waiting["instance_id"]]
        assert holdfast("answer", waiting["questions"][0]["question_id"], *VALUES, *url).code == 0
        lines = [json.loads(line) for line in (place / "gone.jsonl").read_text().splitlines()]
        assert [line["run"]["run_id"] for line in lines if "run" in line] == done
        told = holdfast("token", "create", "op", "--role", "operator", "--json", *url).json["token"]
        monkeypatch.setenv("HOLDFAST_TOKEN", told)
        assert holdfast("retention", "--older-than", "0d", "--yes", *url).code == 1
        assert holdfast("erase", "will", "--yes", *url).code == 1
    assert holdfast("doctor", "--integrity").code == 0


def test_a_server_removes_old_runs_by_itself(holdfast: Command, place: Path) -> None:
    done = answered(holdfast)
    with served(place, "--keep-finished-days", "0.000001", "--keep-finished-export", "gone"):
        while True:
            deeds = holdfast("audit", "list", "--who", "retention", "--json").json
            if deeds:
                break
    assert deeds[0]["detail"]["runs"] == 1
    [file] = (place / "gone").iterdir()
    assert json.loads(file.read_text().splitlines()[0])["run"]["run_id"] == done
    assert runs(holdfast) == []
