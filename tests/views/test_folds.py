"""Views of recorded runs: every prefix of every journal folds, and a view survives JSON."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journals import HERE, definition, read, replayed

from holdfast.model.run import RunStatus
from holdfast.runtime.machines import blank
from holdfast.views.chat import Transcript
from holdfast.views.folds import run_view
from holdfast.views.records import RunView, TimelineEntry
from holdfast.views.timeline import Chronicle, Following, decoded, worth_telling
from holdfast.views.wire import from_json, to_json

RECORDED = sorted(HERE.glob("*.jsonl"))
recordings = pytest.mark.parametrize("file", RECORDED, ids=[one.stem for one in RECORDED])

NOW = 2_000_000_000.0


@recordings
def test_every_prefix_of_a_journal_has_a_view_that_json_keeps(file: Path) -> None:
    header, records = read(file)
    for last in range(1, len(records) + 1):
        view = run_view(replayed(header, records[:last]), NOW)
        assert view.version == last
        assert from_json(RunView, to_json(view)) == view


@recordings
def test_following_a_run_tells_each_event_and_ends_at_its_view(file: Path) -> None:
    header, records = read(file)
    following = Following(blank(header["run_id"], definition(header)))
    entries = [following.tell(one) for one in records]
    assert [one.seq for one in entries] == [one.seq for one in records]
    assert all(one.what for one in entries)
    assert following.view(NOW) == run_view(replayed(header, records), NOW)
    assert entries[-1].status == RunStatus(header["summary"]["status"])
    assert from_json(TimelineEntry, to_json(entries[0])) == entries[0]


@given(data=st.data(), file=st.sampled_from(RECORDED))
@settings(max_examples=60, deadline=None)
def test_a_page_of_a_timeline_tells_from_any_event_on(data: st.DataObject, file: Path) -> None:
    header, records = read(file)
    after = data.draw(st.integers(0, len(records)))
    chronicle = Chronicle.of(replayed(header, records))
    told = [chronicle.tell(one) for one in worth_telling(decoded(records[after:]))]
    assert all(one.seq > after and one.what for one in told)
    following = Following(replayed(header, records[:after]))
    assert [following.tell(one).seq for one in records[after:]] == [
        one.seq for one in records[after:]
    ]
    assert following.view(NOW) == run_view(replayed(header, records), NOW)


@given(data=st.data(), file=st.sampled_from(RECORDED))
@settings(max_examples=60, deadline=None)
def test_a_chat_may_be_read_from_any_event_on(data: st.DataObject, file: Path) -> None:
    _, records = read(file)
    first = data.draw(st.integers(0, len(records)))
    last = data.draw(st.integers(first, len(records)))
    transcript = Transcript.of(decoded(records[first:last]))
    assert len(transcript.in_order()) == len(transcript.entries)
