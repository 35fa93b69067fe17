"""Answers: the first valid one wins, and every other is told why not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from immutables import Map
from small_plans import WILL

from holdfast.core.interactions.answers import (
    Judged,
    expiry,
    find,
    judge,
    kept_draft,
)
from holdfast.core.interactions.calls import bind_consent, call_name
from holdfast.core.interactions.filling import for_the_handler
from holdfast.core.interactions.requests import sound
from holdfast.core.run.state import QuestionState, RunState
from holdfast.errors import AlreadyAnswered, InvalidAnswer, NotFound, TooLate
from holdfast.model.commands import Answer, KeepDraft
from holdfast.model.form import Field, FieldType, Form, Option, Validation
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionStatus,
    InteractionType,
    Resolution,
)

A, T = InteractionAction, InteractionType
NOW = 1_700_000_000.0
RUN = RunState("inst_000001")
OTHER = "操作员"

SIZE = Form((Field("size"),))
PASSWORD = Form((Field("password", FieldType.SECRET, validation=Validation(max_length=8)),))
SEALED = f"secret:{'0' * 32}"
ORDER = Form(
    (
        Field("amount", FieldType.NUMBER, required=False, validation=Validation(maximum=100)),
        Field(
            "model",
            FieldType.SELECT,
            options=(Option("air", "Air"), Option("pro", "Pro")),
            required=False,
        ),
    )
)
EVERYTHING = Form(
    (
        *ORDER.fields,
        Field("to", required=False),
        Field("date", FieldType.DATE, required=False),
        Field("until", FieldType.DATE, required=False, nullable=True),
        Field("paid", FieldType.BOOLEAN, required=False),
        Field("tags", FieldType.MULTISELECT, options=(Option("a", "A"),), required=False),
        Field("deep", FieldType.TEXTAREA, required=False, json=True),
    )
)
SHOWN = {"amount": 5, "model": "air", "who": "张三"}


def option(action: InteractionAction, **more: Any) -> InteractionOption:
    return InteractionOption(more.pop("option_id", action.lower()), "It", action, **more)


def asked(
    *options: InteractionOption,
    purpose: str = "human",
    form: Form = Form(),  # noqa: B008
    args: Mapping[str, Any] | None = None,
    deadline: float | None = None,
    **more: Any,
) -> QuestionState:
    request = InteractionRequest(
        "q1", RUN.run_id, more.pop("type", T.USER_INPUT), "Which?", options=options, form=form
    )
    return QuestionState(
        request=replace(request, **more),
        step_id="L001",
        firing=2,
        purpose=purpose,
        opened_at=NOW,
        opened_seq=3,
        deadline=deadline,
        args=args,
        consent="shown",
    )


def approval(*options: InteractionOption, form: Form = ORDER) -> QuestionState:
    return asked(
        *(options or (option(A.APPROVE_AND_EXECUTE),)),
        purpose="approval",
        type=T.TOOL_APPROVAL,
        form=form,
        args=SHOWN,
        context={"tool": "order", "tool_version": "7", "args": SHOWN},
    )


def answer(question: QuestionState, option_id: str | None = None, **more: Any) -> Judged:
    only = question.request.options[0].option_id
    command = Answer("q1", WILL, option_id or only, **more)
    judged = judge(RUN, question, command, NOW)
    assert judged is not None
    return judged


def refusal(question: QuestionState, option_id: str | None = None, **more: Any) -> InvalidAnswer:
    with pytest.raises(InvalidAnswer) as refused:
        answer(question, option_id, **more)
    return refused.value


def answered(question: QuestionState, judged: Judged) -> QuestionState:
    event = judged.event
    return replace(
        question,
        status=InteractionStatus.ANSWERED,
        closed_at=NOW,
        by=event.by,
        option_id=event.option_id,
        data=event.data,
        feedback=event.feedback,
    )


class TestTheFirstAnswerWins:
    first = Answer("q1", WILL, "provide_info", {"size": "XL"}, "in a hurry")

    def question(self) -> QuestionState:
        before = asked(option(A.PROVIDE_INFO), form=SIZE)
        judged = judge(RUN, before, self.first, NOW)
        assert judged is not None
        return answered(before, judged)

    def test_the_same_again_is_harmless_even_late_and_without_the_option(self) -> None:
        question = replace(self.question(), deadline=NOW + 1)
        assert judge(RUN, question, self.first, NOW + 9) is None
        assert judge(RUN, question, replace(self.first, option_id=None), NOW) is None

    def test_no_words_and_empty_words_are_the_same(self) -> None:
        question = replace(self.question(), feedback=None)
        assert judge(RUN, question, replace(self.first, feedback=""), NOW) is None

    @pytest.mark.parametrize(
        "change",
        [
            {"by": OTHER},
            {"option_id": "reject"},
            {"data": {"size": "S"}},
            {"data": {}},
            {"feedback": "no hurry"},
            {"feedback": None},
        ],
    )
    def test_another_is_told_who_answered_when_and_how(self, change: dict[str, Any]) -> None:
        with pytest.raises(AlreadyAnswered) as refused:
            judge(RUN, self.question(), replace(self.first, **change), NOW + 60)
        told = refused.value
        assert (told.by, told.at, told.option_id) == (WILL, NOW, "provide_info")
        assert str(told) == (
            f"'Which?' was already answered by {WILL} at 2023-11-14T22:13:20.000+00:00 with 'It'"
        )

    def test_true_is_not_the_same_answer_as_one(self) -> None:
        question = replace(self.question(), data={"size": 1})
        with pytest.raises(AlreadyAnswered):
            judge(RUN, question, replace(self.first, data={"size": True}), NOW)


class TestWhenAndWhat:
    def test_late_is_judged_by_the_clock_not_by_the_timer(self) -> None:
        question = asked(option(A.SKIP), deadline=NOW + 30)
        command = Answer("q1", WILL, "skip")
        assert judge(RUN, question, command, NOW + 29.9) is not None
        with pytest.raises(TooLate, match="expired at 2023-11-14T22:13:50"):
            judge(RUN, question, command, NOW + 30)

    @pytest.mark.parametrize("status", [InteractionStatus.EXPIRED, InteractionStatus.WITHDRAWN])
    def test_a_closed_question_says_how_it_ended(self, status: InteractionStatus) -> None:
        question = replace(asked(option(A.SKIP)), status=status)
        with pytest.raises(TooLate, match=f"is {status}; nothing was changed"):
            judge(RUN, question, Answer("q1", WILL, "skip"), NOW)

    def test_a_question_is_found_by_its_id_or_not_at_all(self) -> None:
        question = asked(option(A.SKIP))
        state = replace(RUN, questions=Map({"q1": question}))
        assert find(state, "q1") is question
        with pytest.raises(NotFound, match="inst_000001 has no question q2"):
            find(state, "q2")

    def test_an_option_must_be_one_of_those_offered(self) -> None:
        question = asked(option(A.SKIP), option(A.TERMINATE))
        assert str(refusal(question, "maybe")) == (
            "there is no option 'maybe'; choose one of: skip, terminate"
        )

    @pytest.mark.parametrize("actions", [(A.SKIP,), (A.PROVIDE_INFO, A.SKIP)])
    def test_without_a_name_or_data_nobody_guesses_the_option(
        self, actions: tuple[InteractionAction, ...]
    ) -> None:
        question = asked(*map(option, actions), form=SIZE)
        with pytest.raises(InvalidAnswer, match=r"^choose one of: "):
            judge(RUN, question, Answer("q1", WILL), NOW)

    def test_bare_data_is_meant_for_the_one_option_that_takes_it(self) -> None:
        command = Answer("q1", WILL, None, {"size": "S"})
        judged = judge(RUN, asked(option(A.SKIP), option(A.PROVIDE_INFO), form=SIZE), command, NOW)
        assert judged is not None
        assert judged.event.option_id == "provide_info"
        two = asked(option(A.PROVIDE_INFO), option(A.PROVIDE_INFO, option_id="b"), form=SIZE)
        with pytest.raises(InvalidAnswer, match="choose one of: provide_info, b"):
            judge(RUN, two, command, NOW)

    def test_no_option_and_no_data_say_nothing(self) -> None:
        form = Form((Field("size", default="M"),))
        for purpose in ("missing", "human", "asked"):
            question = asked(option(A.PROVIDE_INFO), form=form, purpose=purpose)
            for words in (None, "M"):
                with pytest.raises(InvalidAnswer, match="choose one of: provide_info"):
                    judge(RUN, question, Answer("q1", WILL, feedback=words), NOW)

    def test_what_a_call_lacks_needs_no_option_whatever_else_takes_data(self) -> None:
        ways = (option(A.PROVIDE_INFO), option(A.CUSTOM), option(A.SKIP))
        command = Answer("q1", WILL, data={"size": "M"})
        judged = judge(RUN, asked(*ways, form=SIZE, purpose="missing"), command, NOW)
        assert judged is not None
        assert judged.event.option_id == "provide_info"
        with pytest.raises(InvalidAnswer, match="choose one of"):
            judge(RUN, asked(*ways, form=SIZE), command, NOW)

    @pytest.mark.parametrize("purpose", ["missing", "human", "asked"])
    def test_a_dangerous_option_is_named(self, purpose: str) -> None:
        risky = option(A.PROVIDE_INFO, is_dangerous=True)
        question = asked(risky, form=SIZE, purpose=purpose)
        with pytest.raises(InvalidAnswer, match="choose one of: provide_info"):
            judge(RUN, question, Answer("q1", WILL, data={"size": "M"}), NOW)
        assert answer(question, data={"size": "M"}).event.values == {"size": "M"}

    @pytest.mark.parametrize("type_", [T.USER_CHOICE, T.TOOL_APPROVAL, T.MISSING_INFO])
    @pytest.mark.parametrize("purpose", ["unknown", "approval"])
    def test_data_alone_says_nothing_about_a_call(
        self, purpose: str, type_: InteractionType
    ) -> None:
        question = asked(option(A.PROVIDE_INFO), form=SIZE, purpose=purpose, type=type_)
        with pytest.raises(InvalidAnswer, match="choose one of: provide_info"):
            judge(RUN, question, Answer("q1", WILL, data={"size": "M"}), NOW)

    def test_of_a_question_that_looks_like_an_approval_the_option_is_named(self) -> None:
        question = asked(option(A.PROVIDE_INFO), form=SIZE, purpose="asked", type=T.TOOL_APPROVAL)
        with pytest.raises(InvalidAnswer, match="choose one of: provide_info"):
            judge(RUN, question, Answer("q1", WILL, data={"size": "M"}), NOW)

    def test_who_named_no_option_repeats_only_what_that_could_have_meant(self) -> None:
        named = asked(option(A.APPROVE_AND_EXECUTE), option(A.PROVIDE_INFO), form=SIZE)
        closed = {"status": InteractionStatus.ANSWERED, "by": WILL, "closed_at": NOW}
        approved = replace(named, option_id="approve_and_execute", **closed)
        with pytest.raises(AlreadyAnswered):
            judge(RUN, approved, Answer("q1", WILL), NOW)
        provided = replace(named, option_id="provide_info", data={"size": "M"}, **closed)
        assert judge(RUN, provided, Answer("q1", WILL, data={"size": "M"}), NOW) is None

    def test_an_option_that_requires_input_is_satisfied_by_words_or_by_data(self) -> None:
        question = asked(option(A.REJECT_WITH_REASON, requires_input=True, input_prompt="Why?"))
        assert refusal(question).fields == {"feedback": "Why?"}
        assert answer(question, feedback="too dear").reason == "too dear"
        assert answer(question, data={"reason": "too dear"}).reason == "too dear"
        both = answer(question, data={"price": 9, "limit": 5})
        assert both.reason == '{"limit":5,"price":9}'
        assert both.event.values["feedback"] == both.reason

    def test_an_option_without_a_prompt_still_says_what_it_needs(self) -> None:
        question = asked(option(A.SKIP, requires_input=True))
        assert refusal(question).fields == {"feedback": "this option needs your words"}

    @pytest.mark.parametrize(
        "blank",
        [
            {"feedback": " \n"},
            {"data": {"reason": "  ", "more": None}},
            {"data": {"reason": [], "more": ["", {"a": " "}]}},
            {"data": {}},
        ],
    )
    def test_blanks_are_no_words(self, blank: dict[str, Any]) -> None:
        question = asked(option(A.REJECT_WITH_REASON, requires_input=True, input_prompt="Why?"))
        assert refusal(question, **blank).fields == {"feedback": "Why?"}

    def test_data_that_nobody_asked_for_is_not_dropped_in_silence(self) -> None:
        told = refusal(asked(option(A.APPROVE_AND_EXECUTE), form=SIZE), data={"size": "S"})
        assert told.fields == {"size": "not asked for"}
        for action in (A.REJECT_WITH_REASON, A.SKIP, A.RETRY_WITH_FEEDBACK, A.TERMINATE):
            assert refusal(approval(option(action)), data={"amount": 1}).fields

    @pytest.mark.parametrize("action", [A.PROVIDE_INFO, A.CUSTOM])
    def test_a_raw_secret_is_taken_from_nobody(self, action: InteractionAction) -> None:
        secret = {"password": "hunter2"}
        told = refusal(
            asked(option(action), form=PASSWORD),
            data={} if action is A.CUSTOM else secret,
            resolution=Resolution(A.PROVIDE_INFO, secret),
        )
        assert told.fields == {
            "password": "this is a secret: only a reference to it may be recorded"
        }
        assert "hunter2" not in str(told)

    def test_a_reference_to_a_secret_is_an_answer_whatever_its_length(self) -> None:
        judged = answer(asked(option(A.PROVIDE_INFO), form=PASSWORD), data={"password": SEALED})
        assert judged.event.values == judged.event.data == {"password": SEALED}

    def test_a_required_secret_is_still_required(self) -> None:
        told = refusal(asked(option(A.PROVIDE_INFO), form=PASSWORD), data={"password": ""})
        assert told.fields == {"password": "this is required: please fill it in"}

    def test_a_secret_is_not_taken_as_feedback(self) -> None:
        told = refusal(asked(option(A.PROVIDE_INFO), form=PASSWORD), feedback="hunter2")
        assert told.fields == {"feedback": "give it as data, under the name password"}
        assert "hunter2" not in str(told)


class TestWhatTheWorkReceives:
    def test_provided_information_is_checked_field_by_field(self) -> None:
        question = asked(option(A.PROVIDE_INFO), form=ORDER)
        told = refusal(question, data={"amount": 500, "model": "mini", "colour": "red"})
        assert set(told.fields) == {"amount", "model", "colour"}
        judged = answer(question, data={"amount": 50, "model": "pro"})
        assert judged.event.values == {"amount": 50, "model": "pro"}
        assert judged.event.args is None
        assert judged.action is A.PROVIDE_INFO

    def test_bare_words_are_the_value_of_the_one_open_field(self) -> None:
        question = asked(option(A.PROVIDE_INFO), form=SIZE)
        assert answer(question, feedback="XL").event.values == {"size": "XL"}
        beside = Form((*SIZE.fields, Field("note", required=False)))
        question = asked(option(A.PROVIDE_INFO), form=beside)
        assert answer(question, feedback="XL").event.values == {"size": "XL"}

    def test_bare_words_that_could_be_meant_for_two_fields_fill_in_neither(self) -> None:
        two = Form((Field("size"), Field("colour")))
        assert set(refusal(asked(option(A.PROVIDE_INFO), form=two), feedback="XL").fields) == {
            "size",
            "colour",
        }
        optional = asked(option(A.PROVIDE_INFO), form=ORDER)
        assert answer(optional, feedback="as you like").event.values == {}

    def test_without_a_form_the_persons_words_and_data_are_what_goes_on(self) -> None:
        judged = answer(asked(option(A.PROVIDE_INFO)), data={"n": 1}, feedback="here")
        assert judged.event.values == {"option": "provide_info", "feedback": "here", "n": 1}

    def test_a_choice_goes_on_with_its_metadata(self) -> None:
        question = asked(option(A.APPROVE_AND_EXECUTE, metadata={"plan": "onboard"}))
        judged = answer(question, feedback="fine")
        assert judged.event.values == {
            "option": "approve_and_execute",
            "plan": "onboard",
            "feedback": "fine",
        }

    def test_input_that_an_option_requires_reaches_the_work(self) -> None:
        question = asked(option(A.APPROVE_AND_EXECUTE, requires_input=True))
        judged = answer(question, data={"model": "other"})
        assert judged.event.values == {"option": "approve_and_execute", "model": "other"}

    def test_data_that_a_choice_requires_must_fit_the_whole_form(self) -> None:
        chosen = option(A.APPROVE_AND_EXECUTE, requires_input=True)
        form = Form((Field("n", FieldType.NUMBER), Field("colour")))
        question = asked(chosen, form=form)
        assert set(refusal(question, data={"n": "many"}).fields) == {"n", "colour"}
        assert set(refusal(question, data={"n": 1, "colour": "red", "x": 2}).fields) == {"x"}
        judged = answer(question, data={"n": 1, "colour": "red"}, feedback="go")
        assert judged.event.values == {
            "option": "approve_and_execute",
            "n": 1,
            "colour": "red",
            "feedback": "go",
        }

    def test_words_alone_are_input_too(self) -> None:
        chosen = option(A.APPROVE_AND_EXECUTE, requires_input=True)
        judged = answer(asked(chosen, form=SIZE), feedback="as before")
        assert judged.event.values == {"option": "approve_and_execute", "feedback": "as before"}

    def test_what_the_author_attached_to_a_choice_is_filled_in_already(self) -> None:
        metadata = {"n": 3, "plan": "redis"}
        chosen = option(A.APPROVE_AND_EXECUTE, requires_input=True, metadata=metadata)
        form = Form((Field("n", FieldType.NUMBER), Field("colour")))
        question = asked(chosen, form=form, purpose="missing")
        judged = answer(question, data={"colour": "red", "n": 9})
        assert judged.event.values == {"n": 3, "colour": "red", "plan": "redis"}

    def test_no_data_says_that_another_option_was_chosen_or_what_it_means(self) -> None:
        metadata = {"plan": "redis"}
        chosen = option(A.APPROVE_AND_EXECUTE, requires_input=True, metadata=metadata)
        data = {"option": "plan-c", "plan": "none", "note": "mine"}
        assert answer(asked(chosen), data=data).event.values == {
            "option": "approve_and_execute",
            "plan": "redis",
            "note": "mine",
        }
        provided = answer(asked(option(A.PROVIDE_INFO)), data={"option": "other", "n": 1})
        assert provided.event.values == {"option": "provide_info", "n": 1}

    def test_a_handler_may_change_what_was_attached_but_not_which_option_it_was(self) -> None:
        chosen = option(A.CUSTOM, metadata={"plan": "redis", "handler": "boss"})
        decided = Resolution(A.APPROVE_AND_EXECUTE, {"plan": "sql", "option": "other"})
        judged = answer(asked(chosen), resolution=decided)
        assert judged.event.values == {"option": "custom", "plan": "sql"}

    def test_a_handler_is_given_only_what_fits_the_form(self) -> None:
        form = Form((Field("n", FieldType.NUMBER), Field("colour")))
        request = asked(option(A.CUSTOM), form=form).request
        way_around = option(A.CUSTOM)
        assert for_the_handler(request, way_around, {}) == {}
        assert for_the_handler(request, way_around, {"n": 1}) == {"n": 1}
        with pytest.raises(InvalidAnswer) as refused:
            for_the_handler(request, way_around, {"n": "many", "x": 1})
        assert set(refused.value.fields) == {"n", "x"}
        with pytest.raises(InvalidAnswer) as refused:
            for_the_handler(request, option(A.CUSTOM, requires_input=True), {"n": 1})
        assert set(refused.value.fields) == {"colour"}
        free = asked(option(A.CUSTOM)).request
        assert for_the_handler(free, way_around, {"x": 1}) == {"x": 1}

    def test_what_is_missing_may_be_chosen_as_an_options_metadata(self) -> None:
        chosen = option(A.APPROVE_AND_EXECUTE, metadata={"size": "XL"})
        judged = answer(asked(chosen, purpose="missing", form=SIZE), feedback="the usual")
        assert judged.event.values == {"size": "XL"}

    def test_a_refusal_of_missing_information_keeps_its_words(self) -> None:
        question = asked(option(A.RETRY_WITH_FEEDBACK), purpose="missing", form=SIZE)
        judged = answer(question, feedback="ask the boss")
        assert judged.event.values["feedback"] == "ask the boss"


class TestEditedApprovals:
    def test_what_is_changed_is_merged_and_consent_bound_to_the_result(self) -> None:
        judged = answer(approval(), data={"amount": 50})
        changed = {"amount": 50, "model": "air", "who": "张三"}
        call = call_name(RUN.run_id, "L001", 2)
        assert judged.event.args == changed
        assert judged.event.consent == bind_consent(call, "order", "7", changed)
        assert judged.event.values == {"option": "approve_and_execute"}

    def test_no_edit_changes_nothing(self) -> None:
        event = answer(approval(), data={}).event
        assert (event.args, event.consent) == (None, None)

    @pytest.mark.parametrize("action", [A.APPROVE_AND_EXECUTE, A.PROVIDE_INFO])
    @pytest.mark.parametrize("blank", [None, "", "  ", []])
    @pytest.mark.parametrize("name", ["amount", "model", "date", "paid", "tags", "deep"])
    def test_a_blank_that_does_not_fit_is_refused_and_never_dropped(
        self, action: InteractionAction, name: str, blank: Any
    ) -> None:
        question = approval(option(action), form=EVERYTHING)
        if name in ("tags", "deep") and blank == []:
            assert answer(question, data={name: blank}).event.args == {**SHOWN, name: []}
            return
        assert set(refusal(question, data={name: blank}).fields) == {name}

    @pytest.mark.parametrize("action", [A.APPROVE_AND_EXECUTE, A.PROVIDE_INFO])
    @pytest.mark.parametrize(
        "change",
        [
            {"to": ""},
            {"to": "  "},
            {"amount": 0},
            {"paid": False},
            {"until": None},
            {"deep": "{}"},
            {"deep": "[]"},
        ],
    )
    def test_a_blank_that_fits_is_what_runs(
        self, action: InteractionAction, change: dict[str, Any]
    ) -> None:
        event = answer(approval(option(action), form=EVERYTHING), data=change).event
        meant = {"{}": {}, "[]": []}
        [(name, value)] = change.items()
        args = {**SHOWN, name: meant.get(value, value) if isinstance(value, str) else value}
        assert event.args == args
        call = call_name(RUN.run_id, "L001", 2)
        assert event.consent == bind_consent(call, "order", "7", args)

    @pytest.mark.parametrize("action", [A.APPROVE_AND_EXECUTE, A.PROVIDE_INFO])
    @pytest.mark.parametrize("value", [["z"], {"a": [1]}, [], {}, 7, 1.5, False])
    def test_json_is_taken_as_it_is_and_in_a_text(
        self, action: InteractionAction, value: Any
    ) -> None:
        for given in (value, json.dumps(value)):
            event = answer(approval(option(action), form=EVERYTHING), data={"deep": given}).event
            assert event.args == {**SHOWN, "deep": value}

    def test_a_null_that_is_spelled_as_json_is_a_null(self) -> None:
        told = refusal(approval(form=EVERYTHING), data={"deep": "null"})
        assert "null is not taken here" in told.fields["deep"]

    def test_what_a_handler_changes_is_judged_as_it_was_given(self) -> None:
        question = approval(option(A.CUSTOM), form=EVERYTHING)
        for change in ({"amount": None}, {"amount": ""}, {"nobody": 1}):
            decided = Resolution(A.APPROVE_AND_EXECUTE, change)
            assert set(refusal(question, resolution=decided).fields) == set(change)
        decided = Resolution(A.APPROVE_AND_EXECUTE, {"to": ""})
        assert answer(question, resolution=decided).event.args == {**SHOWN, "to": ""}

    def test_the_handler_is_given_what_was_sent(self) -> None:
        question = approval(option(A.CUSTOM), form=EVERYTHING)
        [custom] = question.request.options
        assert for_the_handler(question.request, custom, {"to": " "}) == {"to": " "}
        with pytest.raises(InvalidAnswer):
            for_the_handler(question.request, custom, {"amount": None})

    def test_what_is_left_out_stays_as_shown_whatever_the_form_would_fill_in(self) -> None:
        form = Form((Field("model", default="pro"), Field("note")))
        assert answer(approval(form=form)).event.args is None
        assert answer(approval(form=form), data={"note": "x"}).event.args == {**SHOWN, "note": "x"}

    @pytest.mark.parametrize(
        ("data", "field"),
        [
            ({"amount": "50"}, "amount"),
            ({"amount": True}, "amount"),
            ({"amount": 101}, "amount"),
            ({"model": "mini"}, "model"),
            ({"who": "李四"}, "who"),
            ({"extra": 1}, "extra"),
        ],
    )
    @pytest.mark.parametrize("action", [A.APPROVE_AND_EXECUTE, A.PROVIDE_INFO])
    def test_an_edit_must_fit_the_form(
        self, action: InteractionAction, data: dict[str, Any], field: str
    ) -> None:
        assert set(refusal(approval(option(action)), data=data).fields) == {field}

    def test_a_tool_without_a_form_takes_no_edit(self) -> None:
        for action in (A.APPROVE_AND_EXECUTE, A.PROVIDE_INFO):
            question = approval(option(action), form=Form())
            assert refusal(question, data={"amount": 1}).fields
            assert answer(question, feedback="good").event.args is None

    def test_information_that_is_provided_completes_the_arguments(self) -> None:
        judged = answer(approval(option(A.PROVIDE_INFO)), data={"model": "pro"})
        assert judged.event.args == {**SHOWN, "model": "pro"}
        assert judged.event.values == {"model": "pro"}

    def test_words_complete_the_one_argument_that_the_call_lacks(self) -> None:
        form = Form((*ORDER.fields, Field("note", required=False)))
        judged = answer(approval(option(A.PROVIDE_INFO), form=form), feedback="with care")
        assert judged.event.args == {**SHOWN, "note": "with care"}

    def test_words_that_could_be_meant_for_several_arguments_run_nothing(self) -> None:
        told = refusal(approval(option(A.PROVIDE_INFO)), feedback="more")
        assert told.fields == {"feedback": "say which it is for: amount, model"}

    def test_words_beside_an_approval_are_a_remark_and_no_argument(self) -> None:
        form = Form((Field("who", required=False),))
        event = answer(approval(form=form), feedback="go ahead").event
        assert event.args is None
        assert event.values["feedback"] == "go ahead"


class TestCustomOptions:
    question = asked(option(A.CUSTOM, metadata={"handler": "boss", "level": 3}))

    def test_nothing_comes_of_one_that_no_handler_decides(self) -> None:
        for resolution in (None, Resolution(A.CUSTOM)):
            told = refusal(self.question, resolution=resolution)
            assert "no handler is registered that could decide 'custom'" in str(told)

    @pytest.mark.parametrize("action", [one for one in A if one is not A.CUSTOM])
    def test_it_comes_to_what_the_handler_says(self, action: InteractionAction) -> None:
        decided = Resolution(action, {"n": 1}, "the boss said so")
        judged = answer(self.question, resolution=decided, data={"raw": 1}, feedback="ask him")
        assert judged.action is action
        assert judged.event.action is action
        assert judged.reason == "the boss said so"
        assert judged.event.feedback == "ask him"
        assert judged.event.data == {"raw": 1}
        assert judged.event.values == {
            "option": "custom",
            "level": 3,
            "feedback": "the boss said so",
            "n": 1,
        }

    def test_the_persons_words_stand_where_the_handler_adds_none(self) -> None:
        judged = answer(self.question, resolution=Resolution(A.SKIP), feedback="not today")
        assert judged.reason == "not today"

    def test_the_handlers_data_must_fit_the_form_and_the_tool(self) -> None:
        form = asked(option(A.CUSTOM), form=SIZE)
        assert set(refusal(form, resolution=Resolution(A.PROVIDE_INFO)).fields) == {"size"}
        call = approval(option(A.CUSTOM))
        wrong = Resolution(A.APPROVE_AND_EXECUTE, {"amount": 101})
        assert set(refusal(call, resolution=wrong).fields) == {"amount"}
        right = Resolution(A.APPROVE_AND_EXECUTE, {"amount": 100})
        event = answer(call, resolution=right, data={"amount": 1}).event
        assert event.args == {**SHOWN, "amount": 100}

    def test_a_missing_value_is_chosen_without_the_handlers_name(self) -> None:
        question = replace(self.question, purpose="missing")
        judged = answer(question, resolution=Resolution(A.APPROVE_AND_EXECUTE))
        assert judged.event.values == {"level": 3}

    def test_only_a_custom_option_heeds_a_handler(self) -> None:
        judged = answer(asked(option(A.SKIP)), resolution=Resolution(A.APPROVE_AND_EXECUTE))
        assert judged.action is A.SKIP
        assert judged.event.action is None


class TestExpiry:
    def defaulting(self, chosen: InteractionOption, **more: Any) -> QuestionState:
        return asked(chosen, default_option_id=chosen.option_id, **more)

    def test_without_a_default_nobody_answered(self) -> None:
        event, action = expiry(asked(option(A.SKIP)))
        assert action is None
        assert event.option_id is None

    def test_the_default_is_taken_with_its_metadata(self) -> None:
        chosen = option(A.APPROVE_AND_EXECUTE, metadata={"plan": "onboard"})
        event, action = expiry(self.defaulting(chosen))
        assert action is A.APPROVE_AND_EXECUTE
        assert event.values == {"option": "approve_and_execute", "plan": "onboard"}

    def test_a_default_for_what_is_missing_gives_the_metadata_only(self) -> None:
        chosen = option(A.APPROVE_AND_EXECUTE, metadata={"size": "M"})
        event, _ = expiry(self.defaulting(chosen, purpose="missing", form=SIZE))
        assert event.values == {"size": "M"}

    def test_a_form_is_filled_in_with_its_own_defaults(self) -> None:
        form = Form((Field("size", default="M"), Field("note", required=False)))
        event, action = expiry(self.defaulting(option(A.PROVIDE_INFO), form=form))
        assert action is A.PROVIDE_INFO
        assert event.values == {"size": "M"}

    @pytest.mark.parametrize(
        "question",
        [
            asked(option(A.SKIP, is_dangerous=True), default_option_id="skip"),
            asked(option(A.SKIP, requires_input=True), default_option_id="skip"),
            asked(option(A.CUSTOM), default_option_id="custom"),
            asked(option(A.PROVIDE_INFO), form=SIZE, default_option_id="provide_info"),
            *(
                asked(option(action), purpose=purpose, default_option_id=action.lower())
                for action in (A.APPROVE_AND_EXECUTE, A.PROVIDE_INFO)
                for purpose in ("approval", "unknown")
            ),
        ],
    )
    def test_the_clock_takes_nothing_that_only_a_person_may(self, question: QuestionState) -> None:
        event, action = expiry(question)
        assert action is None
        assert event.option_id is None

    def test_the_clock_may_refuse_a_call(self) -> None:
        question = self.defaulting(option(A.REJECT_WITH_REASON), purpose="approval")
        _, action = expiry(question)
        assert action is A.REJECT_WITH_REASON


class TestWhatIsNotRequired:
    def request(self, *options: InteractionOption, **more: Any) -> InteractionRequest:
        return sound(asked(*options, required=False, **more).request)

    def test_it_can_be_skipped_although_nobody_offered_that(self) -> None:
        request = self.request(form=SIZE)
        assert [one.option_id for one in request.options] == ["provide", "skip"]
        question = replace(asked(), request=request)
        assert answer(question, "skip").action is A.SKIP

    def test_one_way_to_skip_is_enough(self) -> None:
        request = self.request(option(A.SKIP, option_id="later"))
        assert [one.option_id for one in request.options] == ["later"]

    def test_the_added_option_takes_a_free_id(self) -> None:
        taken = [
            option(A.REJECT_WITH_REASON, option_id="skip"),
            option(A.REJECT_WITH_REASON, option_id="skip_2"),
        ]
        request = self.request(*taken)
        assert [one.option_id for one in request.options] == ["skip", "skip_2", "skip_3"]
        assert request.options[-1].action is A.SKIP

    def test_the_clock_may_take_it(self) -> None:
        request = self.request(form=SIZE, timeout_seconds=5.0, default_option_id="skip")
        _, action = expiry(replace(asked(), request=request))
        assert action is A.SKIP

    def test_a_choice_of_nothing_is_still_no_question(self) -> None:
        with pytest.raises(InvalidAnswer, match="something to choose from"):
            self.request(type=T.USER_CHOICE)

    def test_what_is_required_gains_nothing(self) -> None:
        request = sound(asked(form=SIZE).request)
        assert [one.option_id for one in request.options] == ["provide"]


class TestDrafts:
    def test_a_draft_may_be_unfinished_and_wrong(self) -> None:
        command = KeepDraft("q1", WILL, {"amount": "many", "colour": 3})
        kept = kept_draft(asked(option(A.PROVIDE_INFO), form=ORDER), command, NOW)
        assert (kept.by, kept.data) == (WILL, {"amount": "many", "colour": 3})

    def test_a_draft_is_no_place_for_a_secret(self) -> None:
        for given in ("hunter2", SEALED):
            command = KeepDraft("q1", WILL, {"password": given})
            with pytest.raises(InvalidAnswer, match="a draft keeps no secrets: password is given"):
                kept_draft(asked(option(A.PROVIDE_INFO), form=PASSWORD), command, NOW)

    @pytest.mark.parametrize(
        "status", [one for one in InteractionStatus if one is not InteractionStatus.OPEN]
    )
    def test_it_comes_too_late_for_a_closed_question(self, status: InteractionStatus) -> None:
        question = replace(asked(option(A.SKIP)), status=status)
        with pytest.raises(TooLate, match=f"is {status}"):
            kept_draft(question, KeepDraft("q1", WILL, {}), NOW)

    def test_it_comes_too_late_after_the_deadline(self) -> None:
        with pytest.raises(TooLate, match="expired at"):
            kept_draft(asked(option(A.SKIP), deadline=NOW), KeepDraft("q1", WILL, {}), NOW)
