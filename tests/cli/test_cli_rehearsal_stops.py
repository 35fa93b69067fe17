"""A rehearsal that does not reach the goal says on the command line what stops it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_repair_scene import MockOffice, failed, flat, furnish, opened_office, patch
from cli_scene import Command

TYPO = [{"op": "set_args", "listener_id": "L1", "set": {"employee_id": "{001.context.idd}"}}]


@pytest.fixture
def office(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MockOffice]:
    furnish(place)
    with opened_office() as office:
        monkeypatch.setenv("OFFICE_URL", office.url)
        yield office


def test_a_template_that_reads_what_is_not_there_is_told_with_its_reason(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    failed(holdfast)
    file = patch(place, TYPO)
    shown = flat(holdfast("repair", "1", "--patch", file, "--rehearse").out)
    stops = "stops at: L1: {001.context.idd}: task 001's context has no 'idd'"
    assert stops in shown
    assert "did you mean 'id'?" in shown
    assert "should it fail again" not in shown
    assert shown.index(stops) < shown.index("the end: the run is error")
    told = holdfast("repair", "1", "--patch", file, "--rehearse", "--json").json["proposal"]
    [why] = told["success"]["stopped"]
    assert why.startswith("L1: {001.context.idd}: ")
    assert told["failure"] == told["success"]
