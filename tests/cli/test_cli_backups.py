"""`holdfast backup` and `restore`: of a home here, of a server, and what they say of the key."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_scene import Command
from serving import served


def test_a_home_is_backed_up_and_restored(holdfast: Command, place: Path) -> None:
    run_id = holdfast("run", "ask", "--json").json["instance_id"]
    made = holdfast("backup", "kept")
    assert (made.code, made.err) == (0, "")
    assert made.out.startswith("kept: verified\n  ")
    assert "1 runs replayed" in made.out
    restored = holdfast("restore", "kept", "--home", "again")
    assert restored.code == 0, restored.err
    assert holdfast("runs", "--home", "again", "--json").json[0]["instance_id"] == run_id
    asked = holdfast("inbox", "--home", "again", "--json").json[0]["question_id"]
    values = ("--set", "count=2", "--set", "agreed=yes", "--set", "kinds=a")
    assert holdfast("answer", asked, *values, "--home", "again").code == 0
    head = holdfast(
        "audit", "verify", "--home", "again", "--head", made.out.split("head: ")[1][:64]
    )
    assert head.code == 0, head.err


def test_a_backup_says_what_becomes_of_the_key(holdfast: Command, place: Path) -> None:
    holdfast("run", "ask")
    (place / ".holdfast" / "secret.key").write_text("kept apart")
    without = holdfast("backup", "without")
    assert "the key of its secrets is NOT in it" in without.out
    assert not (place / "without" / "secret.key").exists()
    included = holdfast("backup", "included", "--with-key", "--json").json
    assert included["key"] == "included"
    assert (place / "included" / "secret.key").read_text() == "kept apart"
    assert holdfast("restore", "without", "--home", "a", "--json").json["needs_key"] is False


def test_what_cannot_be_restored_is_refused_in_one_line(holdfast: Command, place: Path) -> None:
    holdfast("run", "ask")
    holdfast("backup", "kept")
    for arguments, told in [
        (("restore", "kept"), "is not empty"),
        (("restore", "plans", "--home", "again"), "is no backup"),
        (("backup", "kept"), "is there already"),
        (("backup", "new", "--home", "nowhere"), "holds no runs yet"),
    ]:
        refused = holdfast(*arguments)
        assert (refused.code, told in refused.err) == (1, True), refused.err
    assert not (place / "again").exists()


def test_postgresql_is_backed_up_with_its_own_tools(
    holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DATABASE", "postgresql:///holdfast")
    for command in (("backup", "kept"), ("restore", "kept")):
        refused = holdfast(*command)
        assert refused.code == 1
        assert "pg_dump" in refused.err
        assert "pg_restore" in refused.err


def test_a_server_sends_its_journal(
    holdfast: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = holdfast("run", "ask", "--json").json["instance_id"]
    with served(place) as server:
        monkeypatch.setenv("HOLDFAST_TOKEN", server.token("admin"))
        made = holdfast(
            "token", "create", "eva", "--role", "operator", "--url", server.url, "--json"
        )
        operator = made.json["token"]
        made = holdfast("backup", "kept", "--url", server.url, "--json")
        assert made.code == 0, made.out
        assert made.json["counts"]["runs"] == 1
        held = sorted(one.name for one in (place / ".holdfast").iterdir())
        assert not [name for name in held if name.endswith(".copy")]
        monkeypatch.setenv("HOLDFAST_TOKEN", operator)
        refused = holdfast("backup", "other", "--url", server.url)
        assert refused.code == 1
        assert "admin" in refused.err
        assert not (place / "other").exists()
        keyed = holdfast("backup", "other", "--url", server.url, "--with-key")
        assert keyed.code == 2
    assert holdfast("restore", "kept", "--home", "again").code == 0
    assert holdfast("history", run_id, "--home", "again").code == 0


def test_a_database_is_looked_at_by_the_same_doctor(
    holdfast: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DATABASE", database)
    assert holdfast("run", "ask").code == 4  # it waits for a person, and no more for a worker
    for command in (("doctor",), ("doctor", "--integrity")):
        told = holdfast(*command, "--json")
        assert (told.code, told.json["read"]["runs"]) == (0, 1), told.out
        assert told.json["journal"].startswith("the database ")
