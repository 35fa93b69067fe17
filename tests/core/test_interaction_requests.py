"""A question is sound before anybody is asked, and the clock never consents."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from holdfast.core.interactions.requests import (
    APPROVAL_OPTIONS,
    CONFIRM_OPTIONS,
    LONGEST_WAIT,
    PROVIDE_OPTION,
    PROVIDE_OPTIONS,
    UNKNOWN_OPTIONS,
    clock_may_take,
    is_dangerous,
    request_from_asking,
    sound,
)
from holdfast.errors import InvalidAnswer
from holdfast.forms.shapes import parse_form
from holdfast.model.form import Form
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)

GO = InteractionOption("go", "Go", InteractionAction.APPROVE_AND_EXECUTE)
SKIP = InteractionOption("skip", "Skip", InteractionAction.SKIP)
APPROVAL = InteractionType.TOOL_APPROVAL
CALLING = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)


def question(**given: Any) -> InteractionRequest:
    usual = {"type": InteractionType.USER_CONFIRMATION, "title": "Go on?", "options": (GO, SKIP)}
    return InteractionRequest("q1", "s1", **usual | given)


def problems(**given: Any) -> dict[str, str]:
    with pytest.raises(InvalidAnswer) as caught:
        sound(question(**given))
    return caught.value.fields


def problem(**given: Any) -> tuple[str, str]:
    found = problems(**given)
    assert len(found) == 1
    return found.popitem()


def chosen(action: InteractionAction, **given: Any) -> InteractionOption:
    return InteractionOption("x", "X", action, **given)


@pytest.mark.parametrize("kind", InteractionType)
@pytest.mark.parametrize("context", [{}, {"tool": "pay"}], ids=["no call", "a call"])
def test_options_of_ours_are_sound_in_any_question(
    kind: InteractionType, context: dict[str, Any]
) -> None:
    """They are not looked at each time; copies of them are."""
    named = "ours" if kind is InteractionType.CUSTOM else None
    for ours in (PROVIDE_OPTIONS, CONFIRM_OPTIONS, APPROVAL_OPTIONS, UNKNOWN_OPTIONS):
        given = {"type": kind, "context": context, "custom_type": named}
        copies = sound(question(options=(*ours,), **given))
        assert copies == sound(question(options=ours, **given))
        assert [one.option_id for one in copies.options] == [one.option_id for one in ours]


def test_the_customary_options_have_the_ids_that_clients_know() -> None:
    assert [option.option_id for option in APPROVAL_OPTIONS] == [
        "approve",
        "retry",
        "reject",
        "terminate",
    ]
    assert [option.option_id for option in UNKNOWN_OPTIONS] == ["happened", "run_again", "stop"]
    assert [option.option_id for option in CONFIRM_OPTIONS] == ["confirm", "reject"]
    assert PROVIDE_OPTION.action is InteractionAction.PROVIDE_INFO


def test_a_sound_question_stays_as_it_is() -> None:
    asked = question(timeout_seconds=60, reminders=(10, 20.5), escalate_after=30, escalate_to="hr")
    assert sound(asked) == asked
    assert sound(sound(asked)) == asked


def test_a_form_without_options_can_be_filled_in() -> None:
    assert sound(question(options=(), form=parse_form(["name"]))).options == (PROVIDE_OPTION,)


def test_a_bare_question_can_be_confirmed_or_rejected() -> None:
    assert sound(question(options=())).options == CONFIRM_OPTIONS


def test_a_tools_approval_offers_its_four_ways_out() -> None:
    assert sound(question(type=APPROVAL, options=())).options == APPROVAL_OPTIONS


def test_a_choice_of_nothing_is_refused() -> None:
    assert problem(type=InteractionType.USER_CHOICE, options=()) == (
        "options",
        "there are none: a choice needs something to choose from",
    )


@pytest.mark.parametrize("title", ["", " \n"])
def test_a_question_needs_a_title(title: str) -> None:
    assert problem(title=title) == ("title", "is empty: say what is asked")


def test_every_option_needs_an_id_of_its_own() -> None:
    blank = replace(SKIP, option_id=" ")
    assert problems(options=(GO, blank, SKIP, GO, GO)) == {
        "options[1].option_id": "is empty: give every option an id",
        "options[3].option_id": '"go" is options[0] already',
        "options[4].option_id": '"go" is options[0] already',
    }


def test_a_marked_default_is_named_too() -> None:
    asked = sound(question(options=(GO, replace(SKIP, is_default=True)), timeout_seconds=5))
    assert asked.default_option_id == "skip"
    assert sound(asked) == asked


def test_a_named_default_is_marked_too() -> None:
    asked = sound(question(default_option_id="skip", timeout_seconds=5))
    assert [option.is_default for option in asked.options] == [False, True]
    assert sound(asked) == asked


def test_a_default_without_a_timeout_is_a_preselection_and_allowed() -> None:
    assert sound(question(default_option_id="skip")).default_option_id == "skip"


def test_a_default_must_be_an_option() -> None:
    name, message = problem(default_option_id="skp")
    assert (name, message) == ("default_option_id", 'there is no option "skp"')


def test_there_is_one_default() -> None:
    both = (replace(GO, is_default=True), replace(SKIP, is_default=True))
    message = 'only one can be the default, not "go", "skip"'
    assert problem(options=both) == ("options", message)
    assert problem(options=both, default_option_id="go") == ("options", message)


def test_the_two_ways_to_name_the_default_must_agree() -> None:
    marked = (GO, replace(SKIP, is_default=True))
    assert problem(options=marked, default_option_id="go") == (
        "default_option_id",
        'is "go", but "skip" is marked as default',
    )


@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize(
    ("option", "because"),
    [
        (chosen(InteractionAction.SKIP, is_dangerous=True), "it is dangerous"),
        (chosen(InteractionAction.CUSTOM), "a handler decides about it"),
        (chosen(InteractionAction.RETRY_WITH_FEEDBACK, requires_input=True), "it requires input"),
        (chosen(InteractionAction.PROVIDE_INFO), "the form requires name"),
    ],
)
def test_a_default_that_the_clock_may_not_take_is_refused(
    option: InteractionOption, because: str, timeout: float | None
) -> None:
    form = parse_form({"name": {"required": True}, "phone": {"required": False}})
    given = {"form": form, "timeout_seconds": timeout}
    message = f'the clock may not take "x", because {because}'
    named = problem(options=(GO, option), default_option_id="x", **given)
    assert named == ("default_option_id", message)
    marked = problem(options=(GO, replace(option, is_default=True)), **given)
    assert marked == ("options[1].is_default", message)
    assert not clock_may_take(question(form=form), option)


@pytest.mark.parametrize("action", InteractionAction)
def test_the_clock_never_takes_what_leads_to_a_tools_call(action: InteractionAction) -> None:
    approval, option = question(type=APPROVAL), chosen(action)
    safe = action not in (*CALLING, InteractionAction.CUSTOM)
    assert clock_may_take(approval, option) is safe
    assert is_dangerous(approval, option) is (action in CALLING)
    given = {"type": APPROVAL, "options": (option,), "default_option_id": "x"}
    if safe:
        assert sound(question(**given)).default_option_id == "x"
    else:
        assert problem(**given)[0] == "default_option_id"


@pytest.mark.parametrize("action", InteractionAction)
def test_of_other_questions_only_what_is_marked_is_dangerous(action: InteractionAction) -> None:
    assert not is_dangerous(question(), chosen(action))
    assert is_dangerous(question(), chosen(action, is_dangerous=True))
    assert clock_may_take(question(), chosen(action)) is (action is not InteractionAction.CUSTOM)


def test_the_options_of_an_approval_that_lead_to_the_call_are_marked_dangerous() -> None:
    provide = InteractionOption("fill", "Fill in", InteractionAction.PROVIDE_INFO)
    asked = sound(question(type=APPROVAL, options=(GO, provide, SKIP)))
    assert [option.is_dangerous for option in asked.options] == [True, True, False]


@pytest.mark.parametrize(
    ("shape", "may"),
    [
        ({}, True),
        ({"name": {"required": False}}, True),
        ({"name": {"default": "张三"}}, True),
        ({"name": {}}, False),
        (
            {"own": {"type": "boolean", "required": False}, "why": {"visible_if": "values.own"}},
            True,
        ),
    ],
)
def test_the_clock_may_hand_in_a_form_that_needs_nothing_from_anybody(
    shape: dict[str, Any], may: bool
) -> None:
    asked = question(form=parse_form(shape))
    assert clock_may_take(asked, PROVIDE_OPTION) is may
    assert clock_may_take(asked, SKIP)


@pytest.mark.parametrize("seconds", [0, -1, -0.5, nan, inf, -inf, True, "60", LONGEST_WAIT + 1])
def test_a_wait_is_a_positive_number_of_at_most_ten_years(seconds: Any) -> None:
    remedy = "must be a number of seconds above 0, and at most ten years"
    assert problem(timeout_seconds=seconds) == ("timeout_seconds", remedy)
    assert problem(reminders=(1, seconds)) == ("reminders", f"each {remedy}")
    assert problem(escalate_after=seconds, escalate_to="hr") == ("escalate_after", remedy)


def test_a_number_beyond_all_floats_is_too_long_as_well() -> None:
    assert problem(timeout_seconds=10**400)[0] == "timeout_seconds"


def test_ten_years_and_a_blink_are_waits() -> None:
    assert sound(question(timeout_seconds=LONGEST_WAIT)).timeout_seconds == LONGEST_WAIT
    assert sound(question(timeout_seconds=0.001)).timeout_seconds == 0.001


@pytest.mark.parametrize("reminders", [(2, 1), (1, 1)])
def test_reminders_ascend(reminders: tuple[float, ...]) -> None:
    assert problem(reminders=reminders) == (
        "reminders",
        "must ascend: each later than the one before",
    )


def test_reminders_and_the_escalation_come_before_the_timeout() -> None:
    late = "must come before the timeout"
    assert problem(timeout_seconds=60, reminders=(1, 60)) == ("reminders", late)
    assert problem(timeout_seconds=60, escalate_after=60, escalate_to="hr") == (
        "escalate_after",
        late,
    )
    sound(question(reminders=(1, 60), escalate_after=60, escalate_to="hr"))


def test_two_mistakes_in_one_field_make_one_message() -> None:
    assert problem(timeout_seconds=60, reminders=(70, 65)) == (
        "reminders",
        "must ascend: each later than the one before; must come before the timeout",
    )


def test_a_wrong_timeout_does_not_blame_the_other_times() -> None:
    found = problems(timeout_seconds=-1, reminders=(5,), escalate_after=9, escalate_to="hr")
    assert list(found) == ["timeout_seconds"]


def test_an_escalation_says_when_and_to_whom() -> None:
    assert problem(escalate_to="hr") == (
        "escalate_after",
        'is missing: say after how many seconds "hr" is asked',
    )
    missing = ("escalate_to", "is missing: name the role that is asked then")
    assert problem(escalate_after=5) == missing
    assert problem(escalate_after=5, escalate_to=" ") == missing


@pytest.mark.parametrize("name", [None, "", " "])
def test_a_custom_question_names_its_type(name: str | None) -> None:
    found = problem(type=InteractionType.CUSTOM, custom_type=name)
    assert found == (
        "custom_type",
        "is missing: name the registered type of a CUSTOM question",
    )


def test_only_a_custom_question_names_a_type() -> None:
    assert problem(custom_type="signature") == (
        "custom_type",
        "is only for CUSTOM questions, and this is USER_CONFIRMATION",
    )
    assert sound(question(type=InteractionType.CUSTOM, custom_type="signature"))


def test_everything_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidAnswer) as caught:
        sound(question(title="", custom_type="x", timeout_seconds=0, default_option_id="no"))
    names = ["title", "custom_type", "default_option_id", "timeout_seconds"]
    assert list(caught.value.fields) == names
    assert all(name in str(caught.value) for name in names)


GIVEN: dict[str, Any] = {
    "request_id": "q1",
    "session_id": "s1",
    "type": InteractionType.USER_INPUT,
    "title": "Ours",
    "message": "Our message",
    "options": (SKIP,),
    "form": parse_form(["name"]),
    "context": {"tool": "mail"},
}


def test_what_the_author_leaves_out_goes_by_custom() -> None:
    assert request_from_asking(Asking(), **GIVEN) == InteractionRequest(**GIVEN)


def test_little_need_be_given() -> None:
    asked = request_from_asking(
        Asking(),
        request_id="q1",
        session_id="s1",
        type=InteractionType.USER_CONFIRMATION,
        title="Go on?",
    )
    assert (asked.options, asked.form, asked.context) == (CONFIRM_OPTIONS, Form(), {})


def test_the_authors_own_words_and_options_win() -> None:
    asking = Asking(
        title="Theirs",
        message="Their message",
        details="Their details",
        type=InteractionType.CUSTOM,
        custom_type="signature",
        options=(GO, chosen(InteractionAction.SKIP)),
        required=False,
        role="hr",
        timeout_seconds=60,
        default_option_id="x",
        reminders=(10,),
        escalate_after=30,
        escalate_to="admin",
    )
    assert request_from_asking(asking, **GIVEN) == InteractionRequest(
        request_id="q1",
        session_id="s1",
        type=InteractionType.CUSTOM,
        title="Theirs",
        message="Their message",
        details="Their details",
        context={"tool": "mail"},
        options=(GO, chosen(InteractionAction.SKIP, is_default=True)),
        form=parse_form(["name"]),
        required=False,
        timeout_seconds=60,
        default_option_id="x",
        role="hr",
        reminders=(10,),
        escalate_after=30,
        escalate_to="admin",
        custom_type="signature",
    )


def test_an_unsound_asking_is_refused() -> None:
    with pytest.raises(InvalidAnswer) as caught:
        request_from_asking(Asking(default_option_id="gone"), **GIVEN)
    assert list(caught.value.fields) == ["default_option_id"]


def test_a_tools_approval_cannot_be_asked_as_something_that_the_clock_may_take() -> None:
    given = GIVEN | {"type": APPROVAL, "options": (GO, SKIP)}
    disguised = Asking(type=InteractionType.USER_CONFIRMATION, default_option_id="go")
    with pytest.raises(InvalidAnswer, match="leave the type out") as caught:
        request_from_asking(disguised, **given)
    assert list(caught.value.fields) == ["type"]
    assert request_from_asking(Asking(type=APPROVAL), **given).type is APPROVAL
    stricter = request_from_asking(Asking(type=APPROVAL), **GIVEN)
    assert stricter.type is APPROVAL


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"title": 5}, "title"),
        ({"message": "\ud800"}, "message"),
        ({"details": None}, "details"),
        ({"role": 3}, "role"),
        ({"escalate_to": 3, "escalate_after": 5}, "escalate_to"),
        ({"custom_type": 3}, "custom_type"),
        ({"required": 1}, "required"),
        ({"type": "USER_CHOICE"}, "type"),
        ({"context": {"x": float("nan")}}, "context"),
        ({"context": ["x"]}, "context"),
        ({"options": (InteractionOption("x", 7, InteractionAction.SKIP),)}, "options[0].label"),  # type: ignore[arg-type]
        ({"options": (chosen(InteractionAction.SKIP, description=7),)}, "options[0].description"),
        ({"options": (chosen(InteractionAction.SKIP, input_prompt=7),)}, "options[0].input_prompt"),
        ({"options": (chosen(InteractionAction.SKIP, is_default=0),)}, "options[0].is_default"),
        ({"options": (chosen("SKIP"),)}, "options[0].action"),  # type: ignore[arg-type]
        ({"options": (chosen(InteractionAction.SKIP, metadata={1: 2}),)}, "options[0].metadata"),
    ],
)
def test_what_the_journal_could_not_give_back_is_refused(given: Any, field: str) -> None:
    assert set(problems(**given)) == {field}


def test_what_users_attach_is_kept_as_the_journal_will_give_it_back() -> None:
    option = chosen(InteractionAction.SKIP, metadata={"a": (1,)})
    kept = sound(question(context={"a": (1, 2)}, options=(option,)))
    assert kept.context == {"a": [1, 2]}
    assert kept.options[0].metadata == {"a": [1]}
