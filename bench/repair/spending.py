"""What was asked of models, told from the journals: about cases, and for plans that were drawn up.

A request about a case is an event of its own, and its end says what it cost. A request for a plan
is a step of the run that draws it up, and what it cost stands in the step's result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from holdfast.plans.draft_plan import THINKING

Json = Mapping[str, Any]
Event = tuple[str, Json]

_TOKENS: Final = ("input_tokens", "output_tokens")


def requests(events: Collection[Event]) -> int:
    return sum(name == "DiagnosisRequested" or _draws_up(name, told) for name, told in events)


def tokens(events: Collection[Event]) -> int:
    return sum(_usage(told).get(name, 0) for _, told in events for name in _TOKENS)


def _draws_up(name: str, told: Json) -> bool:
    return name == "ListenerStarted" and told["listener_id"] in THINKING


def _usage(told: Json) -> Json:
    """Of one event: its own, or that of the step whose result it has."""
    drawn = told.get("result") if told.get("listener_id") in THINKING else None
    found: Json = told.get("usage") or (drawn or {}).get("usage", {})
    return found
