"""What a run waits for: the oldest question that is open, its own or a child run's.

A child tells its parent in the notice that it leaves, and the parent its own: so the runs above
know what is asked without reading those below.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.core.run.state import RunState
from holdfast.model.interaction import Waiting
from holdfast.model.run import RunStatus


def waits_for(state: RunState) -> tuple[str, Waiting] | None:
    """The step that waits, and for what; None where nothing is asked, or nobody has said what."""
    return min(_asked(state), key=lambda one: one[1].opened_at, default=None)


def _asked(state: RunState) -> Iterator[tuple[str, Waiting]]:
    opened = (state.questions[one] for one in state.open_questions)
    for one in sorted(opened, key=lambda one: one.opened_seq):
        request = one.request
        yield one.step_id, Waiting(request.request_id, one.purpose, request.form, one.opened_at)
    for step_id, step in sorted(state.steps.items()) if state.paused_children else ():
        if step.waits_for is not None and step.child_status == RunStatus.PAUSE:
            yield step_id, step.waits_for
