"""What a turn of a run writes: the one append in which everything becomes true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.journal.codec import encode_all
from holdfast.journal.port import NOTHING, Append, Attached
from holdfast.model.record import constructor
from holdfast.runtime import projections as views
from holdfast.runtime.actor import Actor, Envelope
from holdfast.runtime.audit import together

_append: Final = constructor(Append)

ROW_LAG = 1.0
"""How old the progress in lists may be, in seconds, while nothing else in the row changes."""


def append_of(
    actor: Actor, envelopes: Sequence[Envelope] = (), along: Sequence[Attached] = ()
) -> Append:
    state, committed, unsaved = actor.builder.state, actor.committed, actor.unsaved
    heard: tuple[tuple[str, int], ...] = ()
    for envelope in envelopes:
        if envelope.notice is not None:
            heard = (*heard, envelope.notice)
    records, size = encode_all(unsaved, committed.version + 1)
    actor.bytes_since += size
    # The row, where something in it cannot wait or has waited long enough. Only a run that goes on
    # by itself may let it wait: another append is sure to follow.
    row, timers = None, state.timers
    goes_on_by_itself = actor.goes_on_by_itself
    goes_on = goes_on_by_itself(state)
    standing = (state.status, goes_on, min(timers.values()) if timers else None)
    at = unsaved[-1][0] if unsaved else 0.0
    if not goes_on or standing != actor.standing or at - actor.row_at >= ROW_LAG:
        actor.row_at, actor.standing = at, standing
        row = views.run_row(state)
    return _append(
        actor.run_id,
        committed.version,
        records,
        row,
        () if state.questions is committed.questions else views.question_rows(state, unsaved),
        [birth for birth, _ in actor.child_appends] if actor.child_appends else (),
        views.notices(committed, state) if state.parent is not None else (),
        heard,
        together([*actor.attached, *along]) if actor.attached or along else NOTHING,
    )
