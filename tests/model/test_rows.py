"""Rows of the projection: what is asked stands in a question's row, whole."""

from __future__ import annotations

import pytest

from holdfast.model.interaction import InteractionRequest, InteractionType
from holdfast.model.rows import QuestionRow, asked_under_four_eyes, question_body, request_of

ASKED = InteractionRequest("q1", "r", InteractionType.USER_CHOICE, "Who has four_eyes?")


def row(body: str) -> QuestionRow:
    return QuestionRow("q1", "r", "r", "open", "USER_CHOICE", "", None, 1.0, None, None, body)


@pytest.mark.parametrize("four_eyes", [True, False])
def test_a_body_says_whether_it_was_asked_under_four_eyes(four_eyes: bool) -> None:
    written = row(question_body(ASKED, four_eyes=four_eyes))

    assert asked_under_four_eyes(written) is four_eyes
    assert request_of(written) == ASKED
