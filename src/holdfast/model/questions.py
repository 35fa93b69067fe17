"""What stands in a question's row: the request as JSON, with its messages."""

from __future__ import annotations

import json
from typing import Final

from holdfast.i18n.journaled import beside, restored
from holdfast.model.interaction import InteractionRequest
from holdfast.model.record import adapter
from holdfast.model.rows import QuestionRow

_FOUR_EYES: Final = "four_eyes"


def question_body(request: InteractionRequest, *, four_eyes: bool) -> str:
    """The request as JSON, and whether it was asked under four eyes."""
    to_json = adapter(InteractionRequest).serializer.to_json
    body = beside(to_json(request, exclude_defaults=True).decode(), request)
    return f'{body[:-1]},"{_FOUR_EYES}":true}}' if four_eyes else body


def request_of(row: QuestionRow) -> InteractionRequest:
    found: InteractionRequest = adapter(InteractionRequest).validator.validate_json(row.body)
    return restored(found, row.body)  # type: ignore[no-any-return]


def asked_under_four_eyes(row: QuestionRow) -> bool:
    return _FOUR_EYES in json.loads(row.body)
