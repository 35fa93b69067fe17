"""The audit from the command line: who did what, and proof that none of it was changed."""

from __future__ import annotations

import getpass
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_scene import Command
from serving import served


def test_what_a_command_changes_is_a_deed_of_who_ran_it(holdfast: Command) -> None:
    run_id = holdfast("run", "ask", "--json").json["instance_id"]
    holdfast("cancel", run_id, "--reason", "no longer needed")
    holdfast("runs")
    started, cancelled = holdfast("audit", "list", "--json").json
    assert {one["who"] for one in (started, cancelled)} == {getpass.getuser()}
    assert {one["origin"] for one in (started, cancelled)} == {"cli"}
    assert (started["action"], started["run_id"]) == ("started", run_id)
    assert (cancelled["action"], cancelled["run_id"]) == ("cancelled", run_id)
    assert cancelled["previous"] == started["digest"]


def test_the_list_can_be_narrowed(holdfast: Command) -> None:
    holdfast("run", "ask")
    holdfast("run", "ask")
    deeds = holdfast("audit", "list", "--run", "2", "--json").json
    assert [one["run_id"] for one in deeds] == ["inst_000002"]
    assert holdfast("audit", "list", "--who", "nobody").out == "no such record\n"
    last = holdfast("audit", "list", "--limit", "1", "--json").json
    assert [one["number"] for one in last] == [2]
    assert "inst_000002" in holdfast("audit", "list").out


def test_an_answer_notes_the_digest_of_what_was_shown(holdfast: Command) -> None:
    asked = holdfast("run", "ask", "--json").json["questions"][0]["question_id"]
    values = ("--set", "count=2", "--set", "agreed=yes", "--set", "kinds=a")
    assert holdfast("answer", asked, *values).code == 0
    *_, deed = holdfast("audit", "list", "--json").json
    assert (deed["action"], deed["subject"], len(deed["seen"])) == ("answered", asked, 64)


def test_the_head_is_told_and_stays_in_the_chain(holdfast: Command) -> None:
    holdfast("run", "ask")
    noted = holdfast("audit", "verify", "--json").json
    assert (noted["ok"], noted["count"], noted["problem"]) == (True, 1, None)
    holdfast("cancel", "1")
    later = holdfast("audit", "verify", "--head", noted["head"])
    assert later.code == 0
    assert later.out.startswith("2 records, none changed\n  head: ")
    unknown = holdfast("audit", "verify", "--head", "0" * 64)
    assert unknown.code == 1
    assert "changed or taken away" in unknown.err


@pytest.mark.parametrize(
    ("tampering", "complaint"),
    [
        ("UPDATE audit SET who = 'eva' WHERE number = 2", "entry 2 has been changed"),
        ("DELETE FROM audit WHERE number = 2", "entry 2 is missing"),
    ],
)
def test_tampering_is_found_and_the_first_broken_entry_named(
    holdfast: Command, place: Path, tampering: str, complaint: str
) -> None:
    for _ in range(3):
        holdfast("run", "ask")
    with closing(sqlite3.connect(place / ".holdfast" / "holdfast.db")) as database, database:
        assert database.execute(tampering).rowcount == 1
    ending = holdfast("audit", "verify")
    assert ending.code == 1
    assert complaint in ending.err
    in_json = holdfast("audit", "verify", "--json").json
    assert (in_json["ok"], in_json["count"]) == (False, 1)


def test_a_servers_chain_is_read_and_checked_like_a_homes(
    place: Path, holdfast_process: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = holdfast_process("token", "create", "will", "--role", "admin", "--json").json["token"]
    monkeypatch.setenv("HOLDFAST_TOKEN", token)
    with served(place) as server:
        at = ("--url", server.url, "--json")
        holdfast_process("run", "ask", *at)
        there = holdfast_process("audit", "list", *at).json
        assert there == holdfast_process("audit", "list", "--json").json
        assert (there[-1]["who"], there[-1]["origin"]) == ("will", "127.0.0.1")
        checked = holdfast_process("audit", "verify", "--head", there[0]["digest"], *at)
        assert (checked.code, checked.json["head"]) == (0, there[-1]["digest"])
        assert holdfast_process("audit", "verify", "--head", "f" * 64, *at).code == 1
