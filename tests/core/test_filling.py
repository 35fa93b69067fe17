"""Which options a question's form goes with."""

from __future__ import annotations

import pytest

from holdfast.core.interactions.filling import needs_all_of_it, takes_the_form
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)

APPROVE = InteractionAction.APPROVE_AND_EXECUTE
PROVIDE = InteractionAction.PROVIDE_INFO
CUSTOM = InteractionAction.CUSTOM
TOOL_APPROVAL = InteractionType.TOOL_APPROVAL
FORM = Form((Field("x", FieldType.NUMBER),))

OTHER_TYPES = [kind for kind in InteractionType if kind is not TOOL_APPROVAL]


def asked(kind: InteractionType, form: Form = FORM) -> InteractionRequest:
    return InteractionRequest("q", "r", kind, "Well?", form=form)


def taking(
    request: InteractionRequest, *, requires_input: bool = False
) -> dict[InteractionAction, bool]:
    """The actions that the form goes with; True where it needs to be whole."""
    options = [
        InteractionOption(action.value, action.value, action, requires_input=requires_input)
        for action in InteractionAction
    ]
    takers = [one for one in options if takes_the_form(request, one)]
    return {one.action: needs_all_of_it(request, one) for one in takers}


@pytest.mark.parametrize("kind", OTHER_TYPES, ids=str.lower)
def test_a_form_goes_with_providing_and_with_what_a_handler_decides(kind: InteractionType) -> None:
    assert taking(asked(kind)) == {PROVIDE: True, CUSTOM: False}


@pytest.mark.parametrize("kind", OTHER_TYPES, ids=str.lower)
def test_it_is_the_input_that_a_way_on_requires(kind: InteractionType) -> None:
    expected = {APPROVE: True, PROVIDE: True, CUSTOM: True}
    assert taking(asked(kind), requires_input=True) == expected


@pytest.mark.parametrize("requires_input", [False, True])
def test_an_approvals_arguments_are_changed_only_by_consenting(requires_input: bool) -> None:
    found = taking(asked(TOOL_APPROVAL), requires_input=requires_input)
    assert found == {APPROVE: False, PROVIDE: False}


@pytest.mark.parametrize("kind", list(InteractionType), ids=str.lower)
def test_without_fields_there_is_nothing_to_fill_in(kind: InteractionType) -> None:
    assert taking(asked(kind, Form()), requires_input=True) == {}
