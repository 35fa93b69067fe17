"""What came of a session, for whoever handed it the work.

What the model claims is believed only as far as its calls bear it out: after a last call
that failed, or that a person refused, the work has not succeeded, whatever it says. A
final answer that is a JSON object is a result with those fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from holdfast.core.agent.session_reducers import FAILED_ENDS
from holdfast.core.agent.state import ReactState
from holdfast.errors import InvalidValue
from holdfast.language.strict import strict_json
from holdfast.model.retry import FailureKind
from holdfast.model.values import Json

_BY_A_PERSON = frozenset({"rejected", "skipped", "expired", "refused"})


def result(state: ReactState) -> dict[str, Json]:
    """Success, the answer in words and its own fields, and what each tool last returned."""
    fields = _object(state.answer)
    ended = {tool: content for tool, how, content in state.did if how == "done"}
    told = {**fields, "answer": state.answer, "tools": ended}
    if state.only is not None:
        return {**told, "success": verdict(state) != "failed", "verdict": verdict(state)}
    return {**told, **_success(state, fields)}


def _success(state: ReactState, fields: Mapping[str, Json]) -> dict[str, Json]:
    how, content = (state.did[-1][1], state.did[-1][2]) if state.did else ("done", None)
    if how in FAILED_ENDS:
        return {"success": False, "error": _why(content), **_kind(how)}
    if fields.get("success") is False:
        return {"success": False, "error": str(fields.get("error") or state.answer)}
    return {"success": True}


def _kind(how: str) -> dict[str, Json]:
    """What a person refused is not tried again by itself."""
    return {"error_class": FailureKind.FORBIDDEN.value} if how in _BY_A_PERSON else {}


def _why(content: Json) -> str:
    if not isinstance(content, Mapping):
        return str(content)
    named = (content.get(one) for one in ("error", "reason", "rejected", "retry", "skipped"))
    return next((str(one) for one in named if one), "the last call failed")


def verdict(state: ReactState) -> str:
    """What the tools of one who only looks have answered: verified, failed or neither."""
    answered = [content for _, how, content in state.did if how in ("done", "failed")]
    denied = any(isinstance(one, Mapping) and one.get("success") is False for one in answered)
    if denied:
        return "failed"
    done = [how for _, how, _ in state.did if how == "done"]
    return "verified" if done and len(done) == len(state.did) else "unable_to_verify"


def _object(text: str) -> dict[str, Json]:
    stripped = text.strip().removeprefix("```json").removesuffix("```").strip()
    if not stripped.startswith("{"):
        return {}
    try:
        found = strict_json(json.loads(stripped))
    except (ValueError, RecursionError, InvalidValue):
        return {}
    return dict(found)
