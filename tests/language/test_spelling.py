"""Of many unknown names only some are compared with what is known."""

from __future__ import annotations

import pytest

from holdfast.core.interactions.wire import response_from_wire
from holdfast.errors import AuthorError, CallerError, FormRejected
from holdfast.forms.shapes import parse_form
from holdfast.forms.validation import validate
from holdfast.language.spelling import MOST_UNKNOWN, nearest
from holdfast.model.form import Field, Form


def test_of_many_unknown_names_only_some_are_compared() -> None:
    form = Form((Field("word"),))
    found = validate(form, {f"wor{n}": 1 for n in range(1_000)})
    assert len(found.errors) == MOST_UNKNOWN + 1, "the required one is missing too"
    with pytest.raises(FormRejected) as rejected:
        parse_form({"x": {f"typ{n}": 1 for n in range(1_000)}})
    assert len(rejected.value.problems) == MOST_UNKNOWN
    assert nearest("wrd", ["word"]) == "word"
    assert nearest("w" * 101, ["word", "w" * 100]) is None
    assert nearest("wrd", ["word", *map(str, range(200))]) is None


def test_so_is_an_answer_with_many_unknown_keys() -> None:
    with pytest.raises((AuthorError, CallerError)) as refused:
        response_from_wire({f"requestI{n}": 1 for n in range(1_000)})
    assert 0 < str(refused.value).count("unknown key") <= MOST_UNKNOWN
