"""What a result that says `success: false` says of the failure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.repair.causes import judged
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.work.driver import outcome_of_call
from holdfast.work.failure_details import NONE, Details


def result_of(**said: Any) -> Failure:
    effect = f.CallTool(f.Work("inst_000001", "L001", 1, 1, 1, "k"), "pay", {}, False)
    outcome = outcome_of_call(effect, {"success": False, **said}, lambda _: None)
    assert isinstance(outcome, c.Failed)
    return outcome.failure


RESULTS: dict[str, tuple[dict[str, Any], Details]] = {
    "nothing": ({"error": "out of paper"}, NONE),
    "a code": ({"error": "x", "code": "out_of_paper"}, Details(code="out_of_paper")),
    "a status": ({"error": "x", "status": 409}, Details(409)),
    "a status of a task": ({"error": "x", "status": "Done"}, NONE),
    "a status that is no error": ({"error": "x", "status": 200, "status_code": True}, NONE),
    "a field": ({"error": "x", "field": "model"}, Details(field="model")),
    "a phrase": ({"error": "unknown argument 'model'"}, Details(field="model")),
    "an object": (
        {"error": {"message": "x", "code": "E7", "param": "model"}},
        Details(code="E7", field="model"),
    ),
    "a cause": ({"error": "x", "cause": "conflict"}, Details(cause=Cause.CONFLICT)),
    "a cause that is none": ({"error": "x", "cause": "bad luck"}, NONE),
    "a cause of another kind": ({"error": "x", "cause": ["conflict"]}, NONE),
    "a refusal, which only a person utters": ({"error": "x", "cause": "refused"}, NONE),
    "doubt, which follows from the kind": ({"error": "x", "cause": "doubt"}, NONE),
    "a cause in doubt": ({"error": "x", "cause": "conflict", "error_class": "unknown"}, NONE),
    "transient": ({"error": "x", "error_class": "transient"}, Details(code="transient")),
    "permanent": ({"error": "x", "error_class": "permanent"}, NONE),
    "transient with a code": (
        {"error": "x", "error_class": "transient", "code": "E7"},
        Details(code="E7"),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_what_is_wrong_with_it(name: str) -> None:
    said, details = RESULTS[name]
    failure = result_of(**said)
    assert Details(failure.status, failure.code, failure.field, failure.cause) == details


def test_the_kind_of_a_result_is_what_it_was() -> None:
    assert result_of(error="x", status=403, cause="rights").kind is FailureKind.TRANSIENT
    assert result_of(error="x", error_class="forbidden", code="X").kind is FailureKind.FORBIDDEN


@given(
    st.dictionaries(
        st.sampled_from(["code", "status", "field", "cause", "error"]),
        st.text() | st.integers() | st.none() | st.lists(st.text()),
    )
)
def test_any_result_can_be_judged(said: dict[str, Any]) -> None:
    failure = judged(result_of(**said), "pay")
    assert failure.cause not in (None, Cause.REFUSED)
    json.dumps([failure.code, failure.field], ensure_ascii=False).encode()
