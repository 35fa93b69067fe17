"""What an option does is said in our words, and an id does not say the opposite."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.interactions.requests import (
    APPROVAL_OPTIONS,
    PROVIDE_OPTION,
    UNKNOWN_OPTIONS,
    request_from_asking,
    sound,
)
from holdfast.core.interactions.wire import consequence, request_from_wire, request_to_wire
from holdfast.errors import InvalidAnswer
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)

A = InteractionAction
T = InteractionType
PAY = {"tool": "pay", "args": {"amount": 5}}


def asked(type: InteractionType, *options: InteractionOption, **context: Any) -> InteractionRequest:  # noqa: A002
    return InteractionRequest("q1", "s1", type, "Well?", context=context, options=options)


def option(action: InteractionAction, option_id: str = "x", label: str = "X") -> InteractionOption:
    return InteractionOption(option_id, label, action)


def said(request: InteractionRequest, action: InteractionAction) -> str:
    return consequence(request, option(action, label="No, do not pay"))


@pytest.mark.parametrize("action", A)
def test_of_a_call_it_is_said_whether_it_runs(action: InteractionAction) -> None:
    runs = action in (A.APPROVE_AND_EXECUTE, A.PROVIDE_INFO)
    begins = "A handler" if action is A.CUSTOM else "Runs pay" if runs else "Does not run pay"
    assert said(asked(T.TOOL_APPROVAL, **PAY), action).startswith(begins)


def test_an_agent_thinks_again_and_a_plan_asks_again() -> None:
    agent = asked(T.TOOL_APPROVAL, **PAY, call_id="c1")
    assert "the agent thinks again" in said(agent, A.RETRY_WITH_FEEDBACK)
    assert "it is asked again" in said(asked(T.TOOL_APPROVAL, **PAY), A.RETRY_WITH_FEEDBACK)


@pytest.mark.parametrize("kind", [T.MISSING_INFO, T.USER_CHOICE, T.USER_CONFIRMATION])
def test_what_a_call_lacks_leads_to_the_call_whatever_it_is_asked_as(kind: InteractionType) -> None:
    for action in (A.APPROVE_AND_EXECUTE, A.PROVIDE_INFO):
        assert said(asked(kind, **PAY), action).startswith("Goes on to run pay")


def test_of_a_lost_call_it_is_said_whether_it_runs_again() -> None:
    lost = asked(T.USER_CHOICE, *UNKNOWN_OPTIONS, **PAY)
    assert [consequence(lost, one) for one in lost.options] == [
        "Does not run pay again; goes on with the result that you give.",
        "Runs pay again with these arguments.",
        "Does not run pay again; ends the whole run.",
    ]


@pytest.mark.parametrize("action", A)
def test_without_a_call_no_tool_is_named(action: InteractionAction) -> None:
    assert "pay" not in said(asked(T.USER_CHOICE), action)
    assert said(asked(T.USER_CHOICE, tool="pay", args="all"), action) == said(
        asked(T.USER_CHOICE), action
    )


def test_what_a_client_was_shown_of_it_is_ignored_on_reading() -> None:
    request = sound(asked(T.TOOL_APPROVAL, **PAY))
    wire = request_to_wire(request)
    forged = {**wire["options"][0], "consequence": "Does nothing at all."}
    assert request_from_wire({**wire, "options": [forged, *wire["options"][1:]]}) == request


def refused(request: InteractionRequest) -> dict[str, str]:
    with pytest.raises(InvalidAnswer) as caught:
        sound(request)
    return caught.value.fields


@pytest.mark.parametrize(
    "option_id",
    [
        *(
            "reject",
            "No",
            "do_not_pay",
            "doNotPay",
            "don't",
            "cancel-it",
            "skip",
            "retry",
            "拒绝付款",
        ),
        *("rejection", "rejects", "denies", "cancels", "dontpay", "donotpay", "nopay", "unapprove"),
        *("disapproved", "forbidden", "n", "nein", "нет", "却下", "免付"),
        *("block", "preventPayment", "dismissed", "withheld", "halt", "nay", "nah", "false"),
        *("negative", "avoid", "un-approve", "拒付", "勿付", "别付款", "算了"),
    ],
)
@pytest.mark.parametrize("action", [A.APPROVE_AND_EXECUTE, A.PROVIDE_INFO])
def test_an_id_that_says_no_does_not_run_a_call(option_id: str, action: InteractionAction) -> None:
    found = refused(asked(T.TOOL_APPROVAL, option(action, option_id), **PAY))
    assert "says that it does not go on" in found["options[0].option_id"]
    missing = asked(T.USER_INPUT, option(action, option_id), **PAY)
    assert list(refused(missing)) == ["options[0].option_id"]


@pytest.mark.parametrize(
    "option_id",
    [
        "r\u0435ject",
        "rej\u03b5ct",
        "re\u200bject",
        "re\u3164ject",
        "\u0280\u1d07\u1d0a\u1d07\u1d04\u1d1b",
        "\u0433\u03b5j",
    ],
)
@pytest.mark.parametrize("kind", [T.TOOL_APPROVAL, T.USER_CHOICE])
def test_an_id_that_is_easily_taken_for_another_is_refused(
    option_id: str, kind: InteractionType
) -> None:
    found = refused(asked(kind, option(A.APPROVE_AND_EXECUTE, option_id), **PAY))
    assert "mixes letters that look alike" in found["options[0].option_id"]


@pytest.mark.parametrize(
    "option_id", ["r\u00e9ject", "\uff52\uff45ject", "rej\u0338ect", "cance\u0142"]
)
def test_an_id_is_read_as_people_read_it(option_id: str) -> None:
    found = refused(asked(T.TOOL_APPROVAL, option(A.APPROVE_AND_EXECUTE, option_id), **PAY))
    assert "says that it does not go on" in found["options[0].option_id"]


@pytest.mark.parametrize(
    "option_id",
    [
        "Gr\u00f6\u00dfe",
        "\u0434\u0430",
        "\u6279\u51c6_pay",
        "\u30da\u30a4pay",
        "r\u0259dd",
        "\u1ed9t",
        "\ud55cpay",
    ],
)
def test_ids_in_other_languages_are_taken(option_id: str) -> None:
    request = asked(T.TOOL_APPROVAL, option(A.APPROVE_AND_EXECUTE, option_id), **PAY)
    assert sound(request).options[0].option_id == option_id


@pytest.mark.parametrize(
    "option_id",
    [
        *("approve", "YES", "ok", "confirm_payment", "同意", "allow"),
        *("approval", "approves", "y", "да", "承認", "可以", "permitted"),
        *("grant", "endorsed", "continue", "sure", "yep", "true", "确定"),
    ],
)
@pytest.mark.parametrize(
    "action", [A.REJECT_WITH_REASON, A.TERMINATE, A.SKIP, A.RETRY_WITH_FEEDBACK]
)
def test_an_id_that_says_yes_is_not_a_refusal(option_id: str, action: InteractionAction) -> None:
    found = refused(asked(T.TOOL_APPROVAL, option(action, option_id), **PAY))
    assert "says that it goes on" in found["options[0].option_id"]


@pytest.mark.parametrize(
    ("option_id", "action"),
    [
        ("approve_leave", A.APPROVE_AND_EXECUTE),
        ("confirm_cancel", A.APPROVE_AND_EXECUTE),
        ("approve_without_changes", A.APPROVE_AND_EXECUTE),
        ("always_allow", A.APPROVE_AND_EXECUTE),
        ("plan-a", A.APPROVE_AND_EXECUTE),
        ("特别批准", A.APPROVE_AND_EXECUTE),
        ("notify", A.APPROVE_AND_EXECUTE),
        ("интернет", A.APPROVE_AND_EXECUTE),
        ("cancel", A.TERMINATE),
        ("no", A.SKIP),
        ("reject", A.CUSTOM),
        ("7", A.REJECT_WITH_REASON),
    ],
)
def test_an_id_that_does_not_contradict_is_taken(option_id: str, action: InteractionAction) -> None:
    for kind in (T.TOOL_APPROVAL, T.USER_CONFIRMATION, T.USER_CHOICE):
        assert sound(asked(kind, option(action, option_id)))


def test_elsewhere_only_the_whole_id_counts() -> None:
    yes, no = A.APPROVE_AND_EXECUTE, A.REJECT_WITH_REASON
    assert sound(asked(T.USER_CONFIRMATION, option(yes, "no_sugar"), option(no, "go_home")))
    assert refused(asked(T.USER_CONFIRMATION, option(yes, "no")))
    assert refused(asked(T.USER_CONFIRMATION, option(no, "yes")))


def test_among_things_to_choose_from_only_words_of_consent_count() -> None:
    yes, no = A.APPROVE_AND_EXECUTE, A.REJECT_WITH_REASON
    assert sound(asked(T.USER_CHOICE, option(yes, "no"), option(yes, "stop"), option(no, "go")))
    assert refused(asked(T.USER_CHOICE, option(yes, "reject")))
    assert refused(asked(T.USER_CHOICE, option(no, "approve")))


@pytest.mark.parametrize("option_id", ["happened", "run_again"])
def test_an_authors_option_does_not_pass_for_one_about_a_lost_call(option_id: str) -> None:
    own = option(A.PROVIDE_INFO, option_id)
    with pytest.raises(InvalidAnswer, match="an id of ours"):
        request_from_asking(
            Asking(options=(own,)), request_id="q", session_id="s", type=T.MISSING_INFO, title="?"
        )


def test_our_own_options_contradict_nothing() -> None:
    assert sound(asked(T.TOOL_APPROVAL, *APPROVAL_OPTIONS, **PAY))
    assert sound(asked(T.USER_CHOICE, *UNKNOWN_OPTIONS, **PAY))
    assert sound(asked(T.MISSING_INFO, PROVIDE_OPTION, **PAY))


def test_of_a_repair_it_is_said_what_becomes_of_the_plan() -> None:
    request = asked(T.USER_CONFIRMATION, repair_tools=[])
    told = [said(request, one) for one in (A.APPROVE_AND_EXECUTE, A.REJECT_WITH_REASON)]
    assert told == [
        "Changes the plan of this run as shown, and goes on.",
        "Leaves the plan as it is.",
    ]
