from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.language.display import clip, columns, pad, pretty, unquoted, visible


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("plan", 4), ("申请电脑", 8), ("a申b", 4), ("e\u0301", 1), ("ﾊ", 1), ("ハ", 2)],
)
def test_a_column_is_one_cell_of_a_terminal(text: str, width: int) -> None:
    assert columns(text) == width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("申请", "申请"),
        ("a\nb\tc", "a␊b␉c"),
        ("\x7f", "␡"),
        ("\x85", "⟨0085⟩"),
        ("pay\u202eload", "pay⟨202E⟩load"),
        ("\u2066x\u2069", "⟨2066⟩x⟨2069⟩"),
        ("a\u2028b", "a⟨2028⟩b"),
        ("\ufeffx\uffff", "⟨FEFF⟩x⟨FFFF⟩"),
        ("\ud800", "⟨D800⟩"),
        ("क\u200dष", "क\u200dष"),
    ],
)
def test_what_would_deceive_the_eye_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_text_that_fits_stays_whole() -> None:
    assert clip("申请电脑", 8) == "申请电脑"


def test_a_long_text_ends_in_an_ellipsis_and_never_in_half_a_character() -> None:
    assert clip("申请电脑", 7) == "申请电…"
    assert clip("申请电脑", 6) == "申请…"


def test_no_blank_is_left_before_the_ellipsis() -> None:
    assert clip("send the mail", 6) == "send…"


def test_nothing_fits_into_no_columns() -> None:
    assert clip("abc", 0) == ""


def test_a_heap_of_combining_marks_is_bounded() -> None:
    assert len(clip("a" + "\u0301" * 1000, 10)) <= 40


def test_padding_counts_columns_not_characters() -> None:
    assert pad("申请", 6) == "申请  "
    assert pad("申请电脑", 5) == "申请…"


@given(st.text(), st.integers(0, 20))
def test_a_clipped_text_never_exceeds_its_columns(text: str, limit: int) -> None:
    clipped = clip(text, limit)

    assert columns(clipped) <= limit
    assert visible(clipped) == clipped
    assert columns(pad(text, limit)) == limit


@pytest.mark.parametrize(
    ("text", "bare"),
    [("“茶”", "茶"), ("茶", "茶"), ("“", "“"), ("“a” or “b", "“a” or “b"), ("", "")],
)
def test_quotation_marks_around_all_of_it_are_left_out(text: str, bare: str) -> None:
    assert unquoted(text) == bare


def test_a_value_is_shown_in_lines_and_of_a_long_one_the_beginning() -> None:
    assert pretty({"名": [1]}) == '{\n  "名": [\n    1\n  ]\n}'
    assert pretty("x" * 9, longest=4) == '"xxx…'
