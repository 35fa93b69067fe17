"""What an HTTP service says with a status that is an error: its reason, code and argument."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.errors import InvalidValue
from holdfast.i18n.message import msg
from holdfast.language.strict import load_json
from holdfast.work.error_bodies import argument_in, code_in
from holdfast.work.failure_details import Details

_LONGEST_REASON: Final = 300


def refusal(
    status: int,
    content: bytes,
    hide: Callable[[str], str],
    argument: Callable[[str], str],
) -> tuple[str, Details]:
    """The service's own words, and what else it says; `argument` tells by what name the tool takes
    what the service calls otherwise."""
    text = content.decode("utf-8", "replace").strip()
    try:
        answer = load_json(text)
    except (ValueError, RecursionError, InvalidValue):
        answer = None
    if not isinstance(answer, dict):
        return _reason(text, hide), Details(status)
    field = argument(argument_in(answer, status))
    return _reason(_told(answer, text), hide), Details(status, code_in(answer, status), field)


def _told(answer: Mapping[str, Any], text: str) -> str:
    told = next((answer[k] for k in ("error", "detail", "message") if answer.get(k)), text)
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)


def _reason(text: str, hide: Callable[[str], str]) -> str:
    """Shortened; a secret that was cut would not be recognised."""
    text = hide(text)
    return (text[:_LONGEST_REASON] + "…" if len(text) > _LONGEST_REASON else text) or msg(
        "no reason"
    )
