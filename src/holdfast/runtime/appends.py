"""What a turn of a run writes: the one append in which everything becomes true."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.journal.codec import encode_all
from holdfast.journal.port import Append, RunRow
from holdfast.runtime import views
from holdfast.runtime.actor import Actor
from holdfast.runtime.deeds import together

ROW_LAG = 1.0
"""How old the progress in lists may be, in seconds, while nothing else in the row changes."""


def append_of(
    actor: Actor, births: Sequence[Append] = (), heard: Sequence[tuple[str, int]] = ()
) -> Append:
    state, committed = actor.state, actor.committed
    return Append(
        run_id=actor.run_id,
        expected=committed.version,
        records=encode_all(actor.unsaved, committed.version + 1),
        row=_row(actor),
        questions=views.question_rows(state, actor.unsaved),
        births=births,
        notices=views.notices(committed, state),
        heard=heard,
        attached=together(actor.attached),
    )


def _row(actor: Actor) -> RunRow | None:
    """The row, where something in it cannot wait or has waited long enough.

    Only a run that goes on by itself may let it wait: another append is sure to follow.
    """
    standing = views.standing(actor.state)
    _, goes_on, _ = standing
    at = actor.unsaved[-1][0] if actor.unsaved else 0.0
    if goes_on and standing == actor.standing and at - actor.row_at < ROW_LAG:
        return None
    actor.row_at = at
    actor.standing = standing
    return views.run_row(actor.state)
