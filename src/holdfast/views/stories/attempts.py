"""Which try a step is at, in a few words, for whoever looks while it works."""

from __future__ import annotations

from holdfast.core.run.state import RunState
from holdfast.core.run.tables import StepStatus
from holdfast.drawing.graph import next_try
from holdfast.views.stories.phrases import ENGLISH


def try_words(state: RunState, step_id: str, most: int) -> str:
    """The second and later tries, and when the next one comes; else nothing."""
    step, due = state.steps[step_id], next_try(state, step_id)
    if step.status is StepStatus.BACKOFF and due is not None:
        failed = f"try {step.attempt} of {most} failed, tries again"
        when = ENGLISH.due(due, state.updated_at)
        why = f" ({step.why})" if step.why else ""
        return f"{failed if step.attempt else f'round {step.retries + 1}'} {when}{why}"
    if step.status is StepStatus.RUNNING and 1 < step.attempt <= most:
        return f"try {step.attempt} of {most}"
    return ""
