"""What every append must satisfy, whichever store takes it.

These are mistakes of ours, not of the store: they are found before anything is
written, so that a journal can never hold a gap or a run without a row.
"""

from __future__ import annotations

from holdfast.errors import InternalError, VersionConflict
from holdfast.journal.port import Append


def check(append: Append) -> None:
    """Raise `InternalError` for an append that no store may accept."""
    seq, row = append.expected, append.row
    if seq == 0 and (row is None or not append.records):
        raise InternalError(f"run {append.run_id} cannot be created without a row and a record")
    for one in append.records:
        seq += 1
        if one[0] != seq:
            raise InternalError(f"run {append.run_id}: record {one[0]} stands where {seq} belongs")
    if row is not None and row.run_id != append.run_id:
        raise InternalError(f"run {append.run_id} was given the row of {row.run_id}")
    if append.questions or append.notices or append.child_appends:
        _check_company(append)


def conflict(append: Append) -> VersionConflict:
    """What the loser of a race is told."""
    if append.expected == 0:
        return VersionConflict(f"run {append.run_id} exists already")
    return VersionConflict(f"run {append.run_id} is no longer at version {append.expected}")


def _check_company(append: Append) -> None:
    for question in append.questions:
        if question.run_id != append.run_id:
            raise InternalError(f"run {append.run_id} cannot ask for {question.run_id}")
    for notice in append.notices:
        if notice.source_id != append.run_id:
            raise InternalError(f"run {append.run_id} cannot speak for {notice.source_id}")
    for birth in append.child_appends:
        if birth.expected != 0:
            raise InternalError(f"run {birth.run_id} is born at {birth.expected} instead of 0")
        check(birth)
