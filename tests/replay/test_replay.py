"""Every journal that was ever recorded replays to the end that it had."""

from __future__ import annotations

from pathlib import Path

import pytest
from journals import HERE, read, replayed, summary

from holdfast.journal.codec import decode
from holdfast.journal.snapshots import dump_state, load_state
from holdfast.runtime.machines import blank, definition_of, replay

RECORDINGS = sorted(HERE.glob("*.jsonl"))


def test_there_are_recordings_of_every_kind_of_story() -> None:
    headers = [read(file)[0] for file in RECORDINGS]
    assert {one["summary"]["status"] for one in headers} >= {"done", "cancelled"}
    kinds = {one.get("kind", "plan") for one in headers}
    assert kinds == {"plan", "react", "conversation"}


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.stem)
def test_a_recorded_journal_replays_to_its_recorded_end(file: Path) -> None:
    header, records = read(file)
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    state = replayed(header, records)
    assert definition_of(state).digest == header["digest"], "a name by content has changed"
    assert summary(state) == header["summary"]


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.stem)
def test_a_snapshot_anywhere_in_it_goes_on_to_the_same_end(file: Path) -> None:
    header, records = read(file)
    middle = len(records) // 2
    half = replayed(header, records[:middle])
    rest = [(record.at, decode(record)) for record in records[middle:]]
    loaded = load_state(dump_state(half), blank("", definition_of(half)))
    assert replay(loaded, rest) == replay(half, rest)
