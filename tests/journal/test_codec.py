"""The codec: whatever was ever written can be read, and what cannot says where it stands."""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from holdfast.errors import JournalDamaged, JournalTooNew
from holdfast.journal import codec
from holdfast.journal.codec import decode, encode, encode_all
from holdfast.journal.port import Record
from holdfast.model import events as e
from holdfast.model.plan import TaskStatus
from holdfast.model.recorded import Event
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import Parent

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner)
    ),
    max_leaves=6,
)
OBJECT = st.dictionaries(st.sampled_from(["a", "b", "名"]), JSON, max_size=3)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
NUMBERS = st.floats(0, 2e9, allow_nan=False)


def of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a field's type, as strict JSON allows it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return JSON
    if origin in (UnionType, Union):
        return st.one_of(*(of(one) for one in inner))
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is tuple and inner[-1] is not ...:
        return st.tuples(*map(of, inner))
    if origin is tuple:
        return st.lists(of(inner[0]), max_size=2).map(tuple)
    if origin is not None:
        values = of(inner[1])
        return OBJECT if inner[1] is Any else st.dictionaries(TEXT, values, max_size=2)
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        fields = {one.name: of(hints[one.name]) for one in dataclasses.fields(hint)}
        return st.builds(hint, **fields)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    return {bool: st.booleans(), int: st.integers(0, 99), float: NUMBERS, NoneType: st.none()}.get(
        hint, TEXT
    )


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
@settings(derandomize=True, max_examples=25, deadline=None)
@given(data=st.data())
def test_every_event_comes_back_as_it_was(kind: type[Any], data: st.DataObject) -> None:
    event = data.draw(of(kind))
    name, payload = encode(event)
    version = codec.VERSIONS.get(kind.__name__)
    assert name == (f"{kind.__name__}@{version}" if version else kind.__name__)
    assert decode(Record(1, 0.0, name, payload)) == event
    assert payload.encode() == TypeAdapter(kind).dump_json(event, exclude_defaults=True)


def test_what_is_usual_costs_no_bytes() -> None:
    assert encode(e.ListenerSucceeded("L001", 1)) == (
        "ListenerSucceeded",
        '{"listener_id":"L001","firing":1}',
    )


def test_an_empty_object_is_not_an_absent_one() -> None:
    for args in ({}, None):
        record = Record(1, 0.0, *encode(e.ListenerStarted("L001", 1, args=args)))
        decoded = decode(record)
        assert isinstance(decoded, e.ListenerStarted)
        assert decoded.args == args


def test_records_are_numbered_in_order() -> None:
    records, size = encode_all([(1.0, e.RunRecovered(1)), (2.0, e.RunRecovered(2))], 7)
    assert size == sum(len(payload) for _, _, _, payload in records)
    assert [(seq, at) for seq, at, _, _ in records] == [(7, 1.0), (8, 2.0)]


def test_fields_that_a_later_version_added_are_passed_over() -> None:
    payload = '{"count":2,"mood":"fine"}'
    assert decode(Record(1, 0.0, "RunRecovered", payload)) == e.RunRecovered(2)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("RunExploded", "{}"),
        ("RunRecovered", ""),
        ("RunRecovered", '{"count":'),
        ("RunRecovered", "{}"),
        ("RunRecovered", '{"count":"many"}'),
        ("RunRecovered", "[]"),
        ("RunRecovered@one", '{"count":1}'),
        ("RunRecovered@0", '{"count":1}'),
    ],
)
def test_a_damaged_record_says_where_it_stands(kind: str, payload: str) -> None:
    with pytest.raises(JournalDamaged, match="record 42"):
        decode(Record(42, 0.0, kind, payload))


def test_a_record_of_a_newer_version_is_not_guessed_at() -> None:
    with pytest.raises(JournalTooNew, match="RunRecovered@2"):
        decode(Record(42, 0.0, "RunRecovered@2", '{"count":1}'))


class TestOldShapes:
    @pytest.fixture(autouse=True)
    def third_shape(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As if the failure's kind had once been `type`, and once a number before that."""

        def from_number(body: dict[str, Any]) -> dict[str, Any]:
            kinds = list(FailureKind)
            return {**body, "failure": {**body["failure"], "type": kinds[body["failure"]["n"]]}}

        def from_type(body: dict[str, Any]) -> dict[str, Any]:
            failure = body["failure"]
            return {**body, "failure": {"kind": failure["type"], "message": failure["message"]}}

        upcasters = {("AttemptFailed", 1): from_number, ("AttemptFailed", 2): from_type}
        monkeypatch.setattr(codec, "VERSIONS", {"AttemptFailed": 3})
        monkeypatch.setattr(codec, "UPCASTERS", upcasters)
        monkeypatch.setattr(codec, "_ENCODERS", codec._Encoders())

    event = e.AttemptFailed("L001", 1, Failure(FailureKind.PERMANENT, "no"), 5.0)

    @pytest.mark.parametrize(
        ("kind", "failure"),
        [
            ("AttemptFailed", {"n": 1, "message": "no"}),
            ("AttemptFailed@2", {"type": "permanent", "message": "no"}),
            ("AttemptFailed@3", {"kind": "permanent", "message": "no"}),
        ],
    )
    def test_every_old_shape_is_led_to_the_present_one(
        self, kind: str, failure: dict[str, Any]
    ) -> None:
        body = {"step_id": "L001", "firing": 1, "failure": failure, "retry_at": 5.0}
        assert decode(Record(1, 0.0, kind, json.dumps(body))) == self.event

    def test_the_present_shape_is_written(self) -> None:
        name, payload = encode(self.event)
        assert name == "AttemptFailed@3"
        assert decode(Record(1, 0.0, name, payload)) == self.event

    def test_an_old_shape_that_is_damaged_says_so(self) -> None:
        for payload in ('{"failure": {}}', "[]", "{"):
            with pytest.raises(JournalDamaged, match="record 3"):
                decode(Record(3, 0.0, "AttemptFailed", payload))

    def test_other_events_are_as_they_were(self) -> None:
        assert encode(e.RunRecovered(1))[0] == "RunRecovered"


@pytest.mark.parametrize(
    ("kind", "body", "event"),
    [
        ("ListenerWoken", {"listener_id": "L1", "firing": 2}, e.StepWoken("L1", 2)),
        ("ListenerReleased", {"listener_id": "L1", "firing": 2}, e.StepReleased("L1", 2)),
        (
            "RunStarted",
            {
                "plan_id": "p",
                "digest": "d",
                "prompt": "",
                "root_id": "r",
                "parent": {"run_id": "r", "listener_id": "L1", "firing": 1},
            },
            e.RunStarted("p", "d", "", "r", parent=Parent("r", "L1", 1)),
        ),
        (
            "RunStarted",
            {"plan_id": "p", "digest": "d", "prompt": "", "root_id": "r"},
            e.RunStarted("p", "d", "", "r"),
        ),
        (
            "OutcomeLost",
            {"listener_id": "L1", "firing": 1, "reason": "?"},
            e.OutcomeLost("L1", 1, "?"),
        ),
    ],
)
def test_what_was_said_of_listeners_is_read_of_steps(
    kind: str, body: dict[str, Any], event: Event
) -> None:
    assert decode(Record(1, 0.0, kind, json.dumps(body))) == event


def test_a_status_is_written_as_people_read_it() -> None:
    moved = e.RunCancelled((e.Move("001", TaskStatus.CANCELLED, "取消"),))
    assert encode(moved)[1] == '{"moves":[{"task_id":"001","status":"Cancelled","reason":"取消"}]}'
