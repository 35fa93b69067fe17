"""What a turn of a run writes: the one append in which everything becomes true."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.journal.codec import encode_all
from holdfast.journal.port import NOTHING, Append, RunRow
from holdfast.runtime import views
from holdfast.runtime.actor import Actor, Letter
from holdfast.runtime.deeds import together

ROW_LAG = 1.0
"""How old the progress in lists may be, in seconds, while nothing else in the row changes."""


def append_of(actor: Actor, letters: Sequence[Letter] = ()) -> Append:
    state, committed = actor.state, actor.committed
    heard: tuple[tuple[str, int], ...] = ()
    for letter in letters:
        if letter.notice is not None:
            heard = (*heard, letter.notice)
    return Append(
        actor.run_id,
        committed.version,
        encode_all(actor.unsaved, committed.version + 1),
        _row(actor),
        () if state.questions is committed.questions else views.question_rows(state, actor.unsaved),
        [birth for birth, _ in actor.births] if actor.births else (),
        views.notices(committed, state) if state.parent is not None else (),
        heard,
        together(actor.attached) if actor.attached else NOTHING,
    )


def _row(actor: Actor) -> RunRow | None:
    """The row, where something in it cannot wait or has waited long enough.

    Only a run that goes on by itself may let it wait: another append is sure to follow.
    """
    state = actor.state
    goes_on, timers = actor.machine.goes_on_by_itself(state), state.timers
    standing = (state.status, goes_on, min(timers.values()) if len(timers) else None)
    at = actor.unsaved[-1][0] if actor.unsaved else 0.0
    if goes_on and standing == actor.standing and at - actor.row_at < ROW_LAG:
        return None
    actor.row_at = at
    actor.standing = standing
    return views.run_row(state)
