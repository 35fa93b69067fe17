"""Filling in: which options of a question its form goes with, wherever it is shown.

`PROVIDE_INFO` is there for it. The handler of a CUSTOM option may need it, and an option to
go on that requires input takes it as that input. On an approval the form is the call's own
arguments: they may be changed by whoever consents, and by nobody else. Whoever does not go
on gives reasons, in words.
"""

from __future__ import annotations

from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)


def takes_the_form(request: InteractionRequest, option: InteractionOption) -> bool:
    approval = request.type is InteractionType.TOOL_APPROVAL
    if not request.form.fields:
        return False
    match option.action:
        case InteractionAction.PROVIDE_INFO:
            return True
        case InteractionAction.APPROVE_AND_EXECUTE:
            return approval or option.requires_input
        case InteractionAction.CUSTOM:
            return not approval
        case _:
            return False


def needs_all_of_it(request: InteractionRequest, option: InteractionOption) -> bool:
    """A call has its arguments already, and a CUSTOM option may be a way around the form."""
    if request.type is InteractionType.TOOL_APPROVAL:
        return False
    return option.action is not InteractionAction.CUSTOM or option.requires_input
