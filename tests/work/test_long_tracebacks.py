"""A service may answer with a million lines: what is told of such an error is bounded before the
standard library goes through it line by line, while the loop waits."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from holdfast.work.tracebacks import LONGEST_WORDS, traceback_of

A_MILLION = "\n" * 1_000_000
MOST_LINES = 12_000


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """As a tool raises it."""
    try:
        raise error from cause
    except BaseException as one:
        return one


def noted(text: str) -> Exception:
    error = ValueError("short")
    error.add_note(text)
    return error


LONG = {
    "its own words": lambda: raised(ValueError(f"first{A_MILLION}last")),
    "those of its cause": lambda: raised(ValueError("short"), raised(OSError(A_MILLION))),
    "its note": lambda: raised(noted(A_MILLION)),
    "those of a member": lambda: raised(ExceptionGroup("two", [OSError(A_MILLION), OSError()])),
    "those of a member of a member": lambda: raised(
        ExceptionGroup("one", [ExceptionGroup("two", [raised(OSError(A_MILLION))])])
    ),
}


@pytest.mark.parametrize("where", LONG)
def test_long_words_are_cut_before_a_traceback_is_made_of_them(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    indented, indent = list[int](), textwrap.indent

    def counting(text: str, *more: Any) -> str:
        indented.append(text.count("\n"))
        return indent(text, *more)

    monkeypatch.setattr(textwrap, "indent", counting)
    error = LONG[where]()
    told = traceback_of(error)
    assert sum(indented) < MOST_LINES
    assert told.count("\n") < MOST_LINES
    assert told.startswith("Traceback (most recent call last):\n")
    assert "in raised" in told
    assert type(error).__name__ in told


def test_what_led_to_it_is_told_in_its_order_and_a_members_words_too() -> None:
    told = traceback_of(raised(ValueError("at last" + "." * 5_000), raised(OSError("first"))))
    assert told.index("OSError: first") < told.index("It led to this:") < told.index("at last")
    assert told.endswith("…\n")
    group = ExceptionGroup("two", [OSError("x" * 5_000), KeyError("y")])
    lines = traceback_of(raised(group)).splitlines()
    assert lines[-3] == "ExceptionGroup: two (2 sub-exceptions)"
    assert lines[-2].startswith("  OSError: xxx")
    assert lines[-1] == "  KeyError: 'y'"


def test_words_that_are_meant_to_be_read_are_told_whole() -> None:
    words = "x" * LONGEST_WORDS
    assert traceback_of(raised(ValueError(words))).endswith(f"ValueError: {words}\n")


def test_a_secret_is_taken_out_before_the_words_are_cut() -> None:
    secret = "s3cret" * 20
    error = raised(ValueError("x" * (LONGEST_WORDS - 10) + secret + A_MILLION))
    told = traceback_of(error, lambda text: text.replace(secret, "‹hidden›"))
    assert "‹hidden›" in told
    assert "s3cret" not in told


def test_causes_that_go_round_in_a_circle_end() -> None:
    first, second = raised(ValueError("x" * 5_000)), raised(OSError("y"))
    first.__cause__, second.__cause__ = second, first
    assert traceback_of(first).count("Traceback") == 2
