"""Which attempt a step is at, in a few words."""

from __future__ import annotations

from holdfast.model.run import RunStatus, StepStatus
from holdfast.views.records import RunView, StepView
from holdfast.views.stories.lines import SOON
from holdfast.views.stories.text import clock


def try_words(run: RunView, step: StepView) -> str:
    """The second and later attempts, and when the next one comes; else nothing."""
    due = None if run.status is RunStatus.ERROR else step.retry_at
    if step.status is StepStatus.BACKOFF and due is not None:
        failed = f"try {step.attempt} of {step.most} failed, tries again"
        when = _when(due, run.updated_at)
        why = f" ({step.why})" if step.why else ""
        return f"{failed if step.attempt else f'round {step.retries + 1}'} {when}{why}"
    if step.status is StepStatus.RUNNING and 1 < step.attempt <= step.most:
        return f"try {step.attempt} of {step.most}"
    return ""


def _when(due: float, now: float) -> str:
    if due - now >= SOON:
        return f"at {clock(due)}"
    return "in a moment" if due > now else "at once"
