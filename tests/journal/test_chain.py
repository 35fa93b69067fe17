"""The audit chain tells that an entry was changed, removed or moved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.journal.port import AUDIT_START, AuditEntry, link, verify
from holdfast.testing.journal_samples import audit_record


def chained(*actions: str) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    previous = AUDIT_START
    for number, action in enumerate(actions, 1):
        digest = link(previous, number, audit_record(action))
        entries.append(AuditEntry(number, audit_record(action), previous, digest))
        previous = digest
    return entries


@pytest.fixture
def entries() -> list[AuditEntry]:
    return chained("one", "two", "three", "four")


def test_an_untouched_chain_is_sound(entries: list[AuditEntry]) -> None:
    assert verify(entries) is None
    assert verify([]) is None


def test_a_chain_is_verified_page_by_page(entries: list[AuditEntry]) -> None:
    assert verify(entries[2:], entries[1]) is None
    assert verify(entries[3:], entries[1]) == "entry 3 is missing: entry 4 stands in its place"


def test_an_edited_deed_is_found(entries: list[AuditEntry]) -> None:
    entries[1] = replace(entries[1], record=replace(entries[1].record, who="somebody.else"))
    assert verify(entries) == "entry 2 has been changed since it was written"


def test_an_edit_with_a_fitting_digest_is_found_at_the_next_entry(
    entries: list[AuditEntry],
) -> None:
    forged = audit_record("two", who="somebody.else")
    entries[1] = AuditEntry(2, forged, entries[0].digest, link(entries[0].digest, 2, forged))
    assert verify(entries) == "entry 3 does not follow the entry before it"
    entries[2] = replace(entries[2], previous=entries[1].digest)
    assert verify(entries) == "entry 3 has been changed since it was written"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_removed_entry_is_missed(entries: list[AuditEntry], place: int) -> None:
    del entries[place]
    assert verify(entries) == f"entry {place + 1} is missing: entry {place + 2} stands in its place"


def test_a_gap_closed_by_new_numbers_is_found(entries: list[AuditEntry]) -> None:
    del entries[1]
    entries = [replace(entry, number=number) for number, entry in enumerate(entries, 1)]
    assert verify(entries) == "entry 2 does not follow the entry before it"


def test_entries_that_changed_places_are_found(entries: list[AuditEntry]) -> None:
    entries[1], entries[2] = entries[2], entries[1]
    assert verify(entries) is not None
    moved = [replace(entry, number=number) for number, entry in enumerate(entries, 1)]
    assert verify(moved) == "entry 2 does not follow the entry before it"


def test_a_number_is_covered_too(entries: list[AuditEntry]) -> None:
    [first, *_] = entries
    assert link(AUDIT_START, 1, first.record) != link(AUDIT_START, 2, first.record)


def test_a_whole_number_of_seconds_makes_no_difference() -> None:
    assert link(AUDIT_START, 1, audit_record(at=5)) == link(AUDIT_START, 1, audit_record(at=5.0))
