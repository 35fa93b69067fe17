"""The command line on a database, whose runs go on without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_scene import Command

LATER = """
plan_id: later
main_task_id: "001"
tasks: [{task_id: "001", name: Later}]
listeners:
  - {listener_id: A, trigger_task_id: "001", trigger_condition: "001.status == Running",
     listener_type: wait_until, after: 1h, success_output: {task_id: "001", status: Done}}
"""


def test_what_a_worker_goes_on_with_is_watched_and_not_continued(
    holdfast: Command, place: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "plans" / "later.yaml").write_text(LATER, encoding="utf-8")
    monkeypatch.setenv("HOLDFAST_DATABASE", database)
    started = holdfast("run", "later", "--no-wait")
    assert "it goes on there; to see it: holdfast watch inst_000001" in started.out
    assert "holdfast continue" not in started.out
    monkeypatch.delenv("HOLDFAST_DATABASE")
    assert "to go on: holdfast continue inst_000001" in holdfast("run", "later", "--no-wait").out
