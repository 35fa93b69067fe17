"""What people provided for a call whose tool has changed since they were asked.

A form may wait for months, and the tool be another one when it is answered. What the tool still
takes stays; the rest is left out of the call, so that what is required of it is asked anew. An
answer to the tool as it is stands, whatever the tool makes of it: else it might be asked for ever.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.interactions.proposals import unknown_arguments
from holdfast.core.run.state import QuestionState, RunState
from holdfast.forms.from_tools import takes
from holdfast.model.commands import ToolFacts
from holdfast.model.values import Json


def without_outdated(
    state: RunState, step_id: str, args: Mapping[str, Json], tool: ToolFacts
) -> Mapping[str, Json]:
    """The arguments without what a person gave to an earlier version of the tool in vain."""
    step = state.steps[step_id]
    if not step.provided:
        return args
    shut_out = set(unknown_arguments(tool, args))
    return {
        name: value
        for name, value in args.items()
        if name not in step.provided
        or not _outdated(_asked(state, step_id, name), tool, step.claim)
        or (name not in shut_out and takes(tool.parameters, name, value))
    }


def _asked(state: RunState, step_id: str, name: str) -> QuestionState | None:
    """The last question that asked for the argument."""
    asked = [
        one
        for one in state.questions.values()
        if one.step_id == step_id and any(field.name == name for field in one.request.form.fields)
    ]
    return max(asked, key=lambda one: one.opened_seq, default=None)


def _outdated(question: QuestionState | None, tool: ToolFacts, claim: int) -> bool:
    """Another version was asked for; what has been sent since stays under its key as it is."""
    if question is None or question.opened_seq < claim:
        return False
    return question.request.context.get("tool_version") != tool.version
