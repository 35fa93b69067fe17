"""What a model is shown of a long conversation: one rule, played as the conversation grew."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.run.window import (
    EARLIER_LEFT_OUT,
    SHORTEST_CUT,
    STEPS_LEFT_OUT,
    _Window,
    result_limit,
    shorten,
    visible,
)
from holdfast.language.strict import canonical_json
from holdfast.model.message import Message, ModelSaid, ToolCall, ToolReturned, UserSaid

LIMIT = 4_000


def step(call_id: str, content: Any, text: str = "") -> list[Message]:
    """The model calls one tool, which returns."""
    call = ToolCall(call_id, "look", {"id": call_id})
    return [ModelSaid(text, (call,)), ToolReturned(call_id, "look", content)]


def length(content: Any) -> int:
    return len(content) if isinstance(content, str) else len(canonical_json(content))


def size(messages: Sequence[Message]) -> int:
    return sum(sum(pieces(message)) for message in messages)


def pieces(message: Message) -> list[int]:
    match message:
        case UserSaid(text):
            return [len(text)]
        case ToolReturned():
            return [length(message.content)]
        case ModelSaid(text, calls):
            args = [len(canonical_json(call.args)) for call in calls]
            return [len(text), *args, *(len(call.malformed or "") for call in calls)]


def is_trimmed(message: Message) -> bool:
    return isinstance(message, ToolReturned) and str(message.content).startswith("[trimmed: ")


class TestShorten:
    def test_what_fits_is_returned_itself(self) -> None:
        content = {"rows": [1, 2, 3]}
        assert shorten(content, 200) is content

    def test_a_long_text_keeps_its_beginning_and_its_end_and_says_how_much_is_missing(self) -> None:
        text = "a" * 500 + "b" * 500
        short = shorten(text, 200)
        first, note, last = short.split("\n")
        assert (first, note, last) == ("a" * 100, "[… 850 characters left out …]", "b" * 50)
        assert len(short) <= 200

    def test_a_long_structure_becomes_a_text(self) -> None:
        short = shorten({"rows": list(range(1_000))}, 200)
        assert isinstance(short, str)
        assert short.startswith('{"rows":[0,1,2')
        assert short.endswith("998,999]}")

    def test_nothing_is_cut_below_what_makes_sense(self) -> None:
        assert shorten("x" * SHORTEST_CUT, 1) == "x" * SHORTEST_CUT
        assert len(shorten("x" * 10**6, -5)) <= SHORTEST_CUT

    @given(st.text(max_size=400), st.integers(0, 400))
    def test_a_cut_text_is_not_cut_again(self, text: str, limit: int) -> None:
        once = shorten(text, limit)
        assert shorten(once, limit) == once


class TestRule:
    def test_an_empty_conversation_stays_empty(self) -> None:
        assert visible([], LIMIT) == ()

    def test_what_fits_is_shown_as_it_is(self) -> None:
        talk = [UserSaid("hello"), *step("1", {"ok": True}), ModelSaid("done")]
        shown = visible(talk, LIMIT)
        assert len(shown) == len(talk)
        assert all(one is other for one, other in zip(shown, talk, strict=True))

    @pytest.mark.parametrize(("limit", "longest"), [(4_000, 1_000), (10**7, 20_000), (0, 160)])
    def test_the_longest_whole_result_depends_on_the_limit(self, limit: int, longest: int) -> None:
        assert result_limit(limit) == longest

    def test_a_huge_result_is_cut_even_where_it_would_fit(self) -> None:
        talk = [UserSaid("read it"), *step("1", "x" * 5_000_000)]
        shown = visible(talk, 10_000_000)
        assert shown[:2] == tuple(talk[:2])
        assert isinstance(shown[2], ToolReturned)
        assert len(shown[2].content) <= 20_000
        assert "[… 4980050 characters left out …]" in shown[2].content

    def test_old_results_are_trimmed_first_and_the_newest_stay(self) -> None:
        talk = [UserSaid("look"), *(m for n in range(5) for m in step(str(n), "x" * 900))]
        shown = visible(talk, LIMIT)
        assert [is_trimmed(message) for message in shown[2::2]] == [True, True, False, False, False]
        assert shown[2] == ToolReturned(
            "0", "look", "[trimmed: the result of look, 900 characters]"
        )
        assert shown[0] is talk[0]
        assert shown[1::2] == tuple(talk[1::2])

    def test_a_trimmed_failure_is_still_a_failure(self) -> None:
        call = ToolCall("f", "look", {})
        failure = ToolReturned("f", "look", "e" * 900, failed=True)
        later = [m for n in range(5) for m in step(str(n), "x" * 900)]
        shown = visible([UserSaid("look"), ModelSaid("", (call,)), failure, *later], LIMIT)
        assert is_trimmed(shown[2])
        assert shown[2].failed

    def test_a_short_result_is_not_replaced_by_a_longer_note(self) -> None:
        talk = [UserSaid("look"), *step("0", True)]
        talk += [m for n in range(1, 6) for m in step(str(n), "x" * 900)]
        shown = visible(talk, LIMIT)
        assert shown[2] is talk[2]
        assert is_trimmed(shown[4])

    def test_all_results_of_the_newest_calls_stay_however_many(self) -> None:
        calls = tuple(ToolCall(str(n), "look", {}) for n in range(4))
        results = [ToolReturned(str(n), "look", "x" * 900) for n in range(4)]
        talk = [UserSaid("a"), *step("old", "y" * 900), ModelSaid("", calls), *results]
        shown = visible(talk, LIMIT)
        assert is_trimmed(shown[2])
        assert shown[-4:] == tuple(results)

    def test_too_many_results_of_the_newest_calls_are_cut_but_not_trimmed(self) -> None:
        calls = tuple(ToolCall(str(n), "look", {}) for n in range(6))
        results = [ToolReturned(str(n), "look", "x" * 900) for n in range(6)]
        shown = visible([UserSaid("a"), ModelSaid("", calls), *results], LIMIT)
        assert size(shown) <= LIMIT
        assert ["characters left out" in message.content for message in shown[2:]] == [True] * 6

    def test_a_huge_result_drives_nothing_out_beyond_its_shown_size(self) -> None:
        talk = [UserSaid("q" * 2_500), *step("1", "x" * 50_000)]
        shown = visible(talk, LIMIT)
        assert shown[0] is talk[0]
        assert 950 < length(shown[2].content) <= 1_000

    def test_then_whole_old_exchanges_go_and_a_note_says_so(self) -> None:
        talk: list[Message] = []
        for n in range(6):
            talk += [UserSaid(f"question {n}"), *step(str(n), "ok"), ModelSaid("x" * 900)]
        shown = visible(talk, LIMIT)
        assert shown[0] == UserSaid(f"{EARLIER_LEFT_OUT}\n\nquestion 2")
        assert shown[1:] == tuple(talk[9:])

    def test_what_came_before_the_first_user_goes_like_an_exchange(self) -> None:
        talk = [ModelSaid("w" * 2_000), UserSaid("hi"), ModelSaid("x" * 2_500)]
        assert visible(talk, LIMIT) == (UserSaid(f"{EARLIER_LEFT_OUT}\n\nhi"), talk[2])

    def test_then_old_steps_of_the_newest_exchange_go(self) -> None:
        talk = [UserSaid("go"), *(m for n in range(6) for m in step(str(n), "ok", "t" * 900))]
        shown = visible(talk, LIMIT)
        assert shown[0] == UserSaid(f"go\n\n{STEPS_LEFT_OUT}")
        assert shown[1:] == tuple(talk[5:])

    def test_a_step_without_calls_goes_alone(self) -> None:
        talk = [UserSaid("go"), *(ModelSaid(f"{n}" * 2_500) for n in range(2))]
        assert visible(talk, LIMIT) == (UserSaid(f"go\n\n{STEPS_LEFT_OUT}"), *talk[2:])

    def test_without_a_user_the_note_stands_alone(self) -> None:
        talk = [m for n in range(6) for m in step(str(n), "ok", "t" * 900)]
        shown = visible(talk, LIMIT)
        assert shown[0] == UserSaid(STEPS_LEFT_OUT)
        assert shown[1:] == tuple(talk[4:])

    def test_at_last_the_longest_texts_are_cut(self) -> None:
        talk = [UserSaid("q" * 9_000), ModelSaid("short")]
        cut, short = visible(talk, LIMIT)
        assert isinstance(cut, UserSaid)
        assert 1_900 < len(cut.text) <= 2_000
        assert short is talk[1]

    def test_a_user_who_writes_too_much_at_once_is_cut_with_the_note_kept(self) -> None:
        (shown,) = visible([UserSaid("before"), UserSaid("q" * 9_000)], LIMIT)
        assert isinstance(shown, UserSaid)
        assert shown.text.startswith(EARLIER_LEFT_OUT)
        assert "characters left out" in shown.text

    def test_arguments_too_long_to_show_stay_an_object(self) -> None:
        long = ToolCall("1", "write", {"text": "z" * 9_000})
        broken = ToolCall("2", "write", {}, malformed="{" * 9_000)
        _, said = visible([UserSaid("go"), ModelSaid("ok", (long, broken))], LIMIT)
        assert isinstance(said, ModelSaid)
        assert said.calls[0] == ToolCall("1", "write", {"left_out": "9011 characters"})
        assert said.calls[1].args == {}
        assert said.calls[1].malformed is not None
        assert len(said.calls[1].malformed) <= 2_000
        assert said.text == "ok"

    def test_without_a_user_the_only_step_is_cut(self) -> None:
        (said,) = visible([ModelSaid("m" * 9_000)], LIMIT)
        assert size([said]) <= LIMIT

    def test_a_long_question_does_not_drive_out_the_steps(self) -> None:
        talk = [UserSaid("q" * 3_200), *(m for n in range(4) for m in step(str(n), "x" * 200))]
        shown = visible(talk, LIMIT)
        assert shown[0] is talk[0]
        assert [is_trimmed(message) for message in shown[2::2]] == [True, True, False, False]

    def test_a_limit_too_small_for_anything_still_shows_the_last_message(self) -> None:
        talk = [UserSaid("q" * 900), *step("1", "x" * 900), *step("2", "y" * 900)]
        shown = visible(talk, 0)
        assert [type(message) for message in shown] == [UserSaid, ModelSaid, ToolReturned]
        assert shown[-1].call_id == "2"
        assert max(max(pieces(message)) for message in shown) <= SHORTEST_CUT


words = st.integers(0, 700).map("w".__mul__)
contents = words | st.lists(st.integers(0, 9), max_size=300) | st.booleans()


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Exchanges of a user and a model with parallel calls, some of which never returned."""
    talk: list[Message] = []
    for turn in range(draw(st.integers(1, 5))):
        if turn or draw(st.integers(0, 4)):
            talk.append(UserSaid(draw(words)))
        for turn_step in range(draw(st.integers(0, 4))):
            ids = [f"{turn}.{turn_step}.{n}" for n in range(draw(st.integers(0, 3)))]
            calls = tuple(ToolCall(call_id, "look", {"a": draw(words)}) for call_id in ids)
            talk.append(ModelSaid(draw(words), calls))
            returned = [call_id for call_id in ids if draw(st.integers(0, 9))]
            talk += [ToolReturned(call_id, "look", draw(contents)) for call_id in returned]
    return talk


limits = st.integers(0, 6_000)


def call_ids(messages: Sequence[Message]) -> list[str]:
    return [c.call_id for m in messages if isinstance(m, ModelSaid) for c in m.calls]


def result_ids(messages: Sequence[Message]) -> list[str]:
    return [m.call_id for m in messages if isinstance(m, ToolReturned)]


def users_in_a_row(messages: Sequence[Message]) -> int:
    both = (isinstance(a, UserSaid) and isinstance(b, UserSaid) for a, b in pairwise(messages))
    return sum(both)


def is_subsequence(few: list[str], many: list[str]) -> bool:
    rest = iter(many)
    return all(one in rest for one in few)


def left_out(talk: Sequence[Message], limit: int) -> set[str]:
    """Calls that are gone, and results that are gone or no longer whole."""
    shown = visible(talk, limit)
    whole = {m.call_id: m.content for m in shown if isinstance(m, ToolReturned)}
    results = {
        f"result {m.call_id}"
        for m in talk
        if isinstance(m, ToolReturned) and whole.get(m.call_id, ...) != m.content
    }
    return results | (set(call_ids(talk)) - set(call_ids(shown)))


class TestProperties:
    @given(conversations(), limits)
    def test_order_is_kept_and_the_last_message_is_shown(
        self, talk: list[Message], limit: int
    ) -> None:
        shown = visible(talk, limit)
        assert is_subsequence(call_ids(shown), call_ids(talk))
        assert is_subsequence(result_ids(shown), result_ids(talk))
        if talk:
            assert type(shown[-1]) is type(talk[-1])
            assert call_ids(shown[-1:]) == call_ids(talk[-1:])
            assert result_ids(shown[-1:]) == result_ids(talk[-1:])

    @given(conversations(), limits)
    def test_a_call_and_its_result_are_shown_together_or_not_at_all(
        self, talk: list[Message], limit: int
    ) -> None:
        shown = visible(talk, limit)
        for place, message in enumerate(shown):
            if isinstance(message, ToolReturned):
                assert message.call_id in call_ids(shown[:place])
        answered = [one for one in call_ids(shown) if one in result_ids(talk)]
        assert answered == result_ids(shown)

    @given(conversations(), limits)
    @example([ModelSaid("w" * 25), ModelSaid(""), UserSaid("")], 24)
    def test_a_shown_conversation_never_has_two_users_in_a_row_that_were_not_there(
        self, talk: list[Message], limit: int
    ) -> None:
        assert users_in_a_row(visible(talk, limit)) <= users_in_a_row(talk)

    @given(conversations(), limits)
    def test_the_size_is_bounded(self, talk: list[Message], limit: int) -> None:
        shown = visible(talk, limit)
        uncuttable = SHORTEST_CUT * sum(len(pieces(message)) for message in shown)
        assert size(shown) <= max(limit, uncuttable)
        assert all(
            length(message.content) <= result_limit(limit)
            for message in shown
            if isinstance(message, ToolReturned)
        )

    @given(conversations())
    def test_what_fits_is_unchanged(self, talk: list[Message]) -> None:
        limit = max(size(talk), 4 * 700)
        shown = visible(talk, limit)
        assert len(shown) == len(talk)
        assert all(one is other for one, other in zip(shown, talk, strict=True))

    @given(conversations(), limits)
    def test_what_was_shown_once_is_shown_the_same_again(
        self, talk: list[Message], limit: int
    ) -> None:
        shown = visible(talk, limit)
        assert visible(shown, limit) == shown
        assert visible(talk, limit) == shown

    @given(conversations(), limits)
    def test_what_was_left_out_never_comes_back(self, talk: list[Message], limit: int) -> None:
        gone: set[str] = set()
        for end in range(len(talk) + 1):
            now_gone = left_out(talk[:end], limit)
            assert gone <= now_gone
            gone = now_gone

    @given(conversations(), st.integers(5_700, 9_000))
    def test_the_shown_beginning_changes_only_where_the_limit_was_passed(
        self, talk: list[Message], limit: int
    ) -> None:
        for end in range(len(talk)):
            before, after = visible(talk[:end], limit), visible(talk[: end + 1], limit)
            if size(before) + size(talk[end : end + 1]) <= limit:
                assert after[: len(before)] == before


def changes(talk: list[Message], limit: int) -> int:
    """How often one more message changed what had been shown before it."""
    shown: tuple[Message, ...] = ()
    changed = 0
    for end in range(1, len(talk) + 1):
        now = visible(talk[:end], limit)
        changed += now[: len(shown)] != shown
        shown = now
    return changed


def test_small_messages_rarely_change_the_beginning() -> None:
    """Each trimming frees a quarter of the limit, which is 20 such messages."""
    talk: list[Message] = []
    for n in range(200):
        talk += [UserSaid(f"{n:050}"), ModelSaid("a" * 50)]
    assert 10 <= changes(talk, LIMIT) <= len(talk) // 18


def test_small_results_rarely_change_the_beginning() -> None:
    talk = [UserSaid("go"), *(m for n in range(100) for m in step(str(n), "x" * 200))]
    assert 5 <= changes(talk, LIMIT) <= len(talk) // 8


@pytest.mark.parametrize("limit", [0, 500, LIMIT])
def test_the_work_grows_with_the_conversation_not_faster(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    resize, resized = _Window._resize, []

    def counted(window: _Window, index: int, size: int) -> None:
        resized.append(index)
        resize(window, index, size)

    monkeypatch.setattr(_Window, "_resize", counted)
    calls = tuple(ToolCall(f"p{n}", "look", {}) for n in range(1_000))
    talk = [UserSaid("go"), ModelSaid("", calls)]
    talk += [ToolReturned(call.call_id, "look", "x" * 90) for call in calls]
    talk += [m for n in range(1_000) for m in step(str(n), "y" * 90)]
    visible(talk, limit)
    assert len(resized) <= 5 * len(talk)
