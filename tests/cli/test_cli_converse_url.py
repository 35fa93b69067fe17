"""Conversations of a server, which `converse` does not reach and the other commands do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli_scene import Command
from serving import Served, served


@pytest.fixture
def server(
    place: Path, goals: str, holdfast_process: Command, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """A server that the environment names, with the token of an admin."""
    made = holdfast_process("token", "create", "will", "--role", "admin", "--app", goals)
    token = made.out.splitlines()[1].strip()
    with served(place, "--app", goals) as running:
        monkeypatch.setenv("HOLDFAST_TOKEN", token)
        monkeypatch.setenv("HOLDFAST_URL", running.url)
        yield running


@pytest.fixture
def begin(server: Served) -> Callable[..., Any]:
    def post(path: str, body: dict[str, Any] | None = None) -> Any:
        bearer = {"Authorization": f"Bearer {os.environ['HOLDFAST_TOKEN']}"}
        answered = httpx.post(f"{server.url}{path}", json=body or {}, headers=bearer)
        assert answered.is_success, answered.text
        return answered.json()

    return post


@pytest.mark.parametrize("arguments", [("more",), ("more", "--id", "u1"), ("--id", "u1")])
def test_converse_refuses_while_the_environment_names_a_server(
    holdfast: Command, place: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "http://127.0.0.1:8420")
    ending = holdfast("converse", *arguments)
    assert ending.code == 2
    assert "$HOLDFAST_URL names http://127.0.0.1:8420, and converse works on a home" in ending.err
    assert not (place / ".holdfast").exists()


def test_converse_works_on_a_home_that_is_named_nevertheless(
    holdfast: Command, goals: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "http://127.0.0.1:8420")
    assert holdfast("converse", "帮我分析销售数据", "--app", goals).code == 0


def test_no_command_is_shown_that_would_not_reach_the_server(
    begin: Callable[..., Any], holdfast: Command, place: Path
) -> None:
    begin("/conversations", {"input": "break"})
    failed = holdfast("watch", "conv_000001")
    assert (failed.code, "converse" in failed.out) == (3, False)
    assert "to try again: holdfast resume conv_000001 --failed retry" in failed.out
    (place / "mended").touch()
    done = holdfast("resume", "conv_000001", "--failed", "retry")
    assert done.code == 0
    assert done.out.endswith('  mend: {"mended":true}\n')
    finished = holdfast("resume", "conv_000001")
    assert (finished.code, "converse" in finished.err) == (1, False)


def test_a_paused_one_is_resumed_there(begin: Callable[..., Any], holdfast: Command) -> None:
    begin("/conversations", {"input": "order"})
    assert holdfast("watch", "conv_000001").code == 4
    begin("/conversations/conv_000001/pause")
    paused = holdfast("watch", "conv_000001")
    assert "to go on: holdfast resume conv_000001" in paused.out
    resumed = holdfast("resume", "conv_000001", "--no-wait")
    assert (resumed.code, "to go on" in resumed.out) == (0, False)
