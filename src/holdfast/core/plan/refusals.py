"""Values that a person gave and the work refused for good: a resume asks for them anew.

The same value would be refused again. What was obtained with it already (a snippet's calls, a
result) is kept, and then so is the value.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.run.state import StepState
from holdfast.language.display import clip
from holdfast.model.retry import FailureKind

_LONGEST_REASON = 300


def refused(step: StepState) -> tuple[str, ...]:
    """The names of what a person gave, where the work has refused it."""
    failure = step.failure
    if failure is None or failure.kind is not FailureKind.PERMANENT or not step.attempt:
        return ()
    return () if step.calls or step.carried is not None else tuple(step.provided)


def reason(step: StepState) -> str:
    """What whoever is asked again should know."""
    return clip(step.failure.message, _LONGEST_REASON) if step.failure else ""


def remedy(names: Iterable[str]) -> str:
    return f"resume the run: it asks again for {', '.join(names)}"
