"""Interactions travel as camelCase JSON, are read in either spelling, and come back the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.interactions.wire import (
    option_from_wire,
    option_to_wire,
    request_from_wire,
    request_to_wire,
    response_from_wire,
    response_to_wire,
)
from holdfast.errors import InvalidAnswer, InvalidValue
from holdfast.forms.schemas import json_schema
from holdfast.forms.shapes import parse_form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionResponse,
    InteractionType,
)

SEED_REQUEST = [
    "requestId",
    "sessionId",
    "type",
    "title",
    "message",
    "details",
    "context",
    "options",
    "required",
    "timeoutSeconds",
    "defaultOptionId",
]
SEED_OPTION = [
    "optionId",
    "label",
    "action",
    "description",
    "isDefault",
    "isDangerous",
    "requiresInput",
    "inputPrompt",
    "metadata",
]

OPTION = {"optionId": "go", "label": "Go", "action": "SKIP"}
REQUEST = {"requestId": "q1", "sessionId": "s1", "type": "USER_INPUT", "title": "Which one?"}
LAPTOP = {"model": {"type": "select", "label": "电脑型号", "options": ["MacBook", "ThinkPad"]}}


def refused(read: Any, raw: Any) -> dict[str, str]:
    with pytest.raises(InvalidAnswer) as caught:
        read(raw)
    return caught.value.fields


def problem(read: Any, raw: Any) -> tuple[str, str]:
    found = refused(read, raw)
    assert len(found) == 1
    return found.popitem()


def test_a_small_request_is_written_with_every_field_of_the_seed_and_none_of_ours() -> None:
    wire = request_to_wire(InteractionRequest("q1", "s1", InteractionType.USER_CHOICE, "Which?"))
    assert list(wire) == SEED_REQUEST
    assert wire == {
        "requestId": "q1",
        "sessionId": "s1",
        "type": "USER_CHOICE",
        "title": "Which?",
        "message": "",
        "details": "",
        "context": {},
        "options": [],
        "required": True,
        "timeoutSeconds": None,
        "defaultOptionId": None,
    }
    assert type(wire["type"]) is str


def test_our_own_fields_are_written_where_they_are_set() -> None:
    request = InteractionRequest(
        "q1",
        "s1",
        InteractionType.CUSTOM,
        "Sign here",
        role="legal",
        reminders=(60, 120.5),
        escalate_after=300.0,
        escalate_to="admin",
        custom_type="signature",
    )
    wire = request_to_wire(request)
    assert {key: each for key, each in wire.items() if key not in SEED_REQUEST} == {
        "role": "legal",
        "reminders": [60, 120.5],
        "escalateAfter": 300.0,
        "escalateTo": "admin",
        "customType": "signature",
    }
    assert request_from_wire(wire) == request


def test_an_option_is_written_with_every_field_of_the_seed() -> None:
    wire = option_to_wire(InteractionOption("go", "Go", InteractionAction.SKIP))
    assert sorted(wire) == sorted(SEED_OPTION)
    assert wire["isDefault"] is False
    assert wire["metadata"] == {}


def test_a_response_is_written_with_every_field_of_the_seed() -> None:
    assert response_to_wire(InteractionResponse("q1")) == {
        "requestId": "q1",
        "sessionId": "",
        "selectedOptionId": None,
        "data": {},
        "feedback": None,
    }


def test_a_form_travels_as_its_shape_and_as_a_schema_that_is_ignored_on_the_way_back() -> None:
    form = parse_form(LAPTOP)
    request = InteractionRequest("q1", "s1", InteractionType.USER_INPUT, "Which?", form=form)
    wire = request_to_wire(request)
    assert wire["form"]["model"]["label"] == "电脑型号"
    assert wire["formSchema"] == json_schema(form)
    assert request_from_wire(wire) == request
    assert request_from_wire(wire | {"formSchema": "anything at all"}) == request
    del wire["formSchema"]
    assert request_from_wire(wire | {"form_schema": 7}) == request


def test_what_has_a_default_may_be_left_out_or_null() -> None:
    small = InteractionRequest("q1", "s1", InteractionType.USER_INPUT, "Which one?")
    nothing = dict.fromkeys(["message", "context", "options", "form", "required", "role"])
    assert request_from_wire(REQUEST) == small
    assert request_from_wire(REQUEST | nothing) == small
    assert response_from_wire({"requestId": "q1", "feedback": None}) == InteractionResponse("q1")


def test_python_names_are_read_as_well() -> None:
    response = response_from_wire(
        {"request_id": "q1", "session_id": "s1", "selected_option_id": "go", "data": {}}
    )
    assert response == InteractionResponse("q1", "s1", "go")


@pytest.mark.parametrize("key", ["isDefault", "is_default", "default"])
def test_a_default_is_read_in_each_spelling(key: str) -> None:
    assert option_from_wire(OPTION | {key: True}).is_default is True


@pytest.mark.parametrize("key", ["isDangerous", "is_dangerous", "dangerous"])
def test_danger_is_read_in_each_spelling(key: str) -> None:
    assert option_from_wire(OPTION | {key: True}).is_dangerous is True


def test_a_word_that_drops_its_is_belongs_to_options_alone() -> None:
    assert problem(request_from_wire, REQUEST | {"dangerous": True})[0] == "dangerous"


def test_the_users_own_keys_are_never_renamed() -> None:
    own = {"api_key": 1, "apiKey": 2, "requestId": {"request_id": [3]}}
    response = response_from_wire({"requestId": "q1", "data": own})
    assert response.data == own
    assert response_to_wire(response)["data"] == own
    option = option_from_wire(OPTION | {"metadata": own})
    assert option_to_wire(option)["metadata"] == own
    request = request_from_wire(REQUEST | {"context": own})
    assert request_to_wire(request)["context"] == own


def test_what_is_read_shares_nothing_with_what_was_given() -> None:
    data = {"list": [1]}
    response = response_from_wire({"requestId": "q1", "data": data})
    data["list"].append(2)
    assert response.data == {"list": [1]}


@pytest.mark.parametrize(
    ("given", "later", "first"),
    [
        ({"isDefault": True, "is_default": True}, "is_default", "isDefault"),
        ({"default": True, "isDefault": False}, "isDefault", "default"),
        ({"input_prompt": "", "inputPrompt": ""}, "inputPrompt", "input_prompt"),
    ],
)
def test_two_spellings_at_once_are_refused_even_if_they_agree(
    given: dict[str, Any], later: str, first: str
) -> None:
    assert problem(option_from_wire, OPTION | given) == (
        later,
        f"says the same as {first}: give only one of them",
    )


def test_an_unknown_key_is_refused_with_what_may_have_been_meant() -> None:
    assert problem(response_from_wire, {"requestId": "q1", "feedbck": "no"}) == (
        "feedbck",
        "unknown key: did you mean feedback?",
    )
    assert problem(response_from_wire, {"requestId": "q1", "userId": "zhang"}) == (
        "userId",
        "unknown key: known are requestId, sessionId, selectedOptionId, data, feedback",
    )
    assert problem(response_from_wire, {"requestId": "q1", 7: "x"})[0] == "7"


def test_what_is_missing_is_asked_for_by_its_name_on_the_wire() -> None:
    assert problem(response_from_wire, {}) == ("requestId", "is required")
    assert problem(response_from_wire, {"request_id": None}) == ("request_id", "is required")
    assert set(refused(request_from_wire, {})) == {"requestId", "sessionId", "type", "title"}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("title", 7, "must be text, not a number"),
        ("title", ["x"], "must be text, not a list"),
        ("title", "\ud800", "$: text with a lone surrogate: it is not valid Unicode"),
        ("type", True, "must be text, not true or false"),
        ("type", "user_input", 'there is no "user_input": did you mean USER_INPUT?'),
        ("context", "hunter2", "must be an object, not text"),
        ("context", {"a": float("nan")}, "$.a: NaN and Infinity are not JSON: send null or text"),
        ("required", 1, "must be true or false, not a number"),
        ("required", "yes", "must be true or false, not text"),
        ("timeout_seconds", True, "must be a number, not true or false"),
        ("timeoutSeconds", "60", "must be a number, not text"),
        ("timeoutSeconds", {}, "must be a number, not an object"),
        ("reminders", 60, "must be a list, not a number"),
        ("options", {"go": {}}, "must be a list, not an object"),
        ("options", {1}, "must be a list, not set"),
    ],
)
def test_a_wrong_value_is_refused_under_the_name_that_was_given(
    key: str, value: Any, message: str
) -> None:
    assert problem(request_from_wire, REQUEST | {key: value}) == (key, message)


def test_an_unknown_action_lists_those_that_there_are() -> None:
    name, message = problem(option_from_wire, OPTION | {"action": "丢弃"})
    assert name == "action"
    assert message.endswith("use " + ", ".join(InteractionAction))


def test_a_response_never_echoes_what_somebody_typed() -> None:
    with pytest.raises(InvalidAnswer) as caught:
        response_from_wire({"requestId": "q1", "data": "hunter2", "feedback": {"pin": "hunter2"}})
    assert "hunter2" not in f"{caught.value} {caught.value.fields}"


def test_everything_wrong_is_told_at_once_with_its_place() -> None:
    raw = {
        "request_id": 7,
        "type": "USER_INPUT",
        "title": "Which one?",
        "options": [OPTION, {"option_id": "x", "label": 1}, None],
        "reminders": [1, None, True],
        "form": {"model": {"type": "texte"}, "seats": 4},
    }
    with pytest.raises(InvalidAnswer) as caught:
        request_from_wire(raw)
    assert caught.value.fields == {
        "request_id": "must be text, not a number",
        "sessionId": "is required",
        "options[1].label": "must be text, not a number",
        "options[1].action": "is required",
        "options[2]": "must be an object, not null",
        "reminders[1]": "must be a number, not null",
        "reminders[2]": "must be a number, not true or false",
        "form.model.type": 'there is no field type "texte": did you mean text?',
        "form.seats": "a field is keys and values, such as {type: text}",
    }
    assert str(caught.value) == (
        "this request cannot be read: request_id: must be text, not a number (and 8 more)"
    )


def test_several_mistakes_at_one_place_make_one_message() -> None:
    twice = refused(response_from_wire, {"requestId": "q1", "a" * 100: 1, "a" * 101: 2})
    assert list(twice) == ["a" * 100]
    assert twice["a" * 100].count("unknown key") == 2


def test_a_form_that_is_none_is_refused() -> None:
    assert problem(request_from_wire, REQUEST | {"form": 7})[0] == "form"


@pytest.mark.parametrize("raw", [None, [], "requestId", 7, True])
def test_what_is_no_object_is_no_response(raw: Any) -> None:
    name, message = problem(response_from_wire, raw)
    assert name == "$"
    assert message.startswith("must be an object, not ")


def test_a_name_that_cannot_be_printed_is_spelt_out() -> None:
    assert problem(response_from_wire, {"requestId": "q1", "\ud800": 1})[0] == "\\ud800"


def test_what_is_not_json_cannot_be_written() -> None:
    with pytest.raises(InvalidValue, match="bytes is not JSON"):
        response_to_wire(InteractionResponse("q1", data={"file": b"x"}))


plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
objects = st.dictionaries(
    plain,
    st.recursive(
        st.none() | st.booleans() | numbers | plain,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)
options = st.builds(
    InteractionOption,
    option_id=plain,
    label=plain,
    action=st.sampled_from(InteractionAction),
    description=plain,
    is_default=st.booleans(),
    is_dangerous=st.booleans(),
    requires_input=st.booleans(),
    input_prompt=plain,
    metadata=objects,
)
forms = st.sampled_from(
    [
        {},
        LAPTOP,
        ["name", "phone"],
        {"age": {"type": "number", "required": False, "validation": {"min": 1, "max": 9}}},
        {"own": {"type": "boolean"}, "why": {"visible_if": "values.own", "default": "x"}},
    ]
).map(parse_form)
requests = st.builds(
    InteractionRequest,
    request_id=plain,
    session_id=plain,
    type=st.sampled_from(InteractionType),
    title=plain,
    message=plain,
    details=plain,
    context=objects,
    options=st.lists(options, max_size=3).map(tuple),
    form=forms,
    required=st.booleans(),
    timeout_seconds=st.none() | numbers,
    default_option_id=st.none() | plain,
    role=st.none() | plain,
    reminders=st.lists(numbers, max_size=3).map(tuple),
    escalate_after=st.none() | numbers,
    escalate_to=st.none() | plain,
    custom_type=st.none() | plain,
)
responses = st.builds(
    InteractionResponse,
    request_id=plain,
    session_id=plain,
    selected_option_id=st.none() | plain,
    data=objects,
    feedback=st.none() | plain,
)


def posted(wire: dict[str, Any]) -> Any:
    return json.loads(json.dumps(wire))


def pythonic(wire: dict[str, Any]) -> dict[str, Any]:
    snake = {"".join(f"_{c.lower()}" if c.isupper() else c for c in key): key for key in wire}
    return {name: wire[key] for name, key in snake.items()}


@given(requests)
def test_every_request_comes_back_the_same_in_either_spelling(request: InteractionRequest) -> None:
    wire = posted(request_to_wire(request))
    assert request_from_wire(wire) == request
    wire["options"] = [pythonic(option) for option in wire["options"]]
    assert request_from_wire(pythonic(wire)) == request


@given(options)
def test_every_option_comes_back_the_same(option: InteractionOption) -> None:
    wire = posted(option_to_wire(option))
    assert option_from_wire(wire) == option_from_wire(pythonic(wire)) == option


@given(responses)
def test_every_response_comes_back_the_same(response: InteractionResponse) -> None:
    wire = posted(response_to_wire(response))
    assert response_from_wire(wire) == response_from_wire(pythonic(wire)) == response


guesses = st.dictionaries(
    st.sampled_from([*SEED_REQUEST, *SEED_OPTION, "form", "reminders", "data", "default", "role"])
    | st.text(max_size=4),
    st.none() | st.booleans() | numbers | st.text(max_size=4) | st.lists(st.just(OPTION)) | objects,
)


@given(guesses, st.sampled_from([request_from_wire, option_from_wire, response_from_wire]))
def test_whatever_comes_is_read_or_refused_with_reasons(raw: dict[str, Any], read: Any) -> None:
    try:
        read(raw)
    except InvalidAnswer as refusal:
        reasons = refusal.fields
    else:
        reasons = {"none": "it was read"}
    assert all(reasons.values())
    assert reasons
    assert json.dumps(reasons, ensure_ascii=False).encode()
