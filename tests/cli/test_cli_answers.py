"""Every type of question and every action, answered on the command line.

What is counted is what follows: the calls of `order`, and how the run rests. Nothing is
taken that was not said in full, and what ends or runs something is said twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answer_scene import (
    APPLICATION,
    APPROVE,
    CUSTOM,
    MISSING_INFO,
    PROMPTS,
    PROVIDE,
    REJECT,
    RETRY,
    SKIP,
    TERMINATE,
    TOOL_APPROVAL,
    ordered,
    write_plan,
)
from cli_scene import Command
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.output import DummyOutput
from terminal import DOWN, ENTER, Terminal

from holdfast.cli.terminal.prompts import Given, ask
from holdfast.core.interactions.requests import sound
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)

COMMON = ("--app", "answers:app")
WORDS = "only the small one"
USER_INPUT = InteractionType.USER_INPUT

EVERY_TYPE = pytest.mark.parametrize("kind", list(InteractionType), ids=str.lower)
EVERY_ACTION = pytest.mark.parametrize("action", list(InteractionAction), ids=str.lower)

RUNS = {APPROVE: [5], PROVIDE: [7], CUSTOM: [4]}
"""What `order` is called with; after every other action it is not called at all."""

RESTS = {RETRY: (4, "pause"), REJECT: (3, "error"), TERMINATE: (5, "cancelled")}
"""How the command ends; after every other action the run is done."""

SAID: dict[InteractionAction, tuple[str, ...]] = {
    PROVIDE: ("--set", "x=7"),
    CUSTOM: ("--set", "x=8"),
    RETRY: ("--feedback", WORDS),
    REJECT: ("--feedback", WORDS),
}

Asked = Callable[..., str]


@pytest.fixture
def asked(holdfast: Command, place: Path) -> Asked:
    """Runs a plan that asks; the id of its question."""
    (place / "answers.py").write_text(APPLICATION, encoding="utf-8")
    (place / "questions").mkdir()

    def run(kind: InteractionType, options: list[dict[str, Any]] | None = None) -> str:
        write_plan(place, "asks", kind, options)
        paused = holdfast("run", "asks", *COMMON, "--json")
        assert paused.code == 4, paused
        [question] = paused.json["questions"]
        assert question["type"] == kind
        return str(question["question_id"])

    return run


def said_twice(kind: InteractionType, action: InteractionAction) -> bool:
    return action is TERMINATE or (kind is TOOL_APPROVAL and action in (APPROVE, PROVIDE))


@EVERY_TYPE
@EVERY_ACTION
def test_without_a_terminal_each_action_does_its_own_and_nothing_else(
    kind: InteractionType, action: InteractionAction, asked: Asked, holdfast: Command, place: Path
) -> None:
    question = asked(kind)
    answer = ("answer", question, "--option", action.lower(), *COMMON, "--json")
    said = SAID.get(action, ())
    if action in PROMPTS:
        silent = holdfast(*answer)
        assert (silent.code, PROMPTS[action] in silent.out) == (1, True)
    if said_twice(kind, action):
        once = holdfast(*answer, *said)
        assert once.code == 1
        assert "is dangerous: say --yes if you mean it" in once.json["error"]["message"]
        said = (*said, "--yes")
    assert ordered(place) == []
    answered = holdfast(*answer, *said)
    assert (answered.code, answered.json["status"]) == RESTS.get(action, (0, "done"))
    assert ordered(place) == RUNS.get(action, [])
    again = answered.json["questions"]
    assert [WORDS in one["message"] for one in again] == ([True] if action is RETRY else [])


@EVERY_TYPE
def test_every_option_is_listed_with_a_command_that_answers(
    kind: InteractionType, asked: Asked, holdfast: Command
) -> None:
    question = asked(kind)
    shown = holdfast("inbox", question, *COMMON).out
    lines = [line.partition("--option ")[2] for line in shown.splitlines() if "--option" in line]
    commands = [line.partition(" --app answers:app")[0] for line in lines]
    form = "" if kind is TOOL_APPROVAL else " --set x=…"
    sure = " --yes" if kind is TOOL_APPROVAL else ""
    rest = {
        APPROVE: sure,
        RETRY: " --feedback '…'",
        REJECT: " --feedback '…'",
        TERMINATE: " --yes",
        PROVIDE: form + sure,
        SKIP: "",
        CUSTOM: form,
    }
    assert commands == [f"{action.lower()}{rest[action]}" for action in InteractionAction]


@pytest.mark.parametrize(
    ("option", "command"),
    [
        ({"action": "PROVIDE_INFO"}, "--set x=…"),
        ({"action": "PROVIDE_INFO", "dangerous": True}, "--option go --set x=… --yes"),
        ({"action": "APPROVE_AND_EXECUTE", "metadata": {"x": 5}}, "--option go"),
        ({"action": "CUSTOM", "metadata": {"handler": "halve"}}, "--option go --set x=…"),
        (
            {"action": "CUSTOM", "requires_input": True, "input_prompt": "Well?"},
            "--option go --set x=… --feedback '…'",
        ),
    ],
    ids=["provide", "dangerous", "approve", "custom", "custom with words"],
)
def test_the_command_that_is_shown_for_an_only_option_answers(
    option: dict[str, Any], command: str, asked: Asked, holdfast: Command, place: Path
) -> None:
    question = asked(InteractionType.CUSTOM, [{"option_id": "go", **option}])
    shown = holdfast("inbox", question, *COMMON).out
    assert f"holdfast answer {question} {command} --app answers:app" in shown
    words = [one.replace("…", "8").strip("'") for one in command.split()]
    assert holdfast("answer", question, *words, *COMMON).code == 0
    expected = {"PROVIDE_INFO": 8, "APPROVE_AND_EXECUTE": 5, "CUSTOM": 4}[option["action"]]
    assert ordered(place) == [expected]


def test_a_question_of_a_custom_type_is_decided_by_the_types_handler(
    asked: Asked, holdfast: Command, place: Path
) -> None:
    option = {"option_id": "unregistered", "action": "CUSTOM"}
    question = asked(InteractionType.CUSTOM, [option])
    answer = ("answer", question, "--option", "unregistered", *COMMON)
    wrong = holdfast(*answer, "--set", "x=many")
    assert (wrong.code, "x: " in wrong.err, ordered(place)) == (1, True, [])
    assert holdfast(*answer, "--set", "x=8").code == 0
    assert ordered(place) == [4]


OPTIONS = tuple(
    InteractionOption(
        action.lower(),
        f"<{action.lower()}>",
        action,
        requires_input=action in PROMPTS,
        input_prompt=PROMPTS.get(action, ""),
    )
    for action in InteractionAction
)
FORM = Form((Field("x", FieldType.NUMBER, integer=True), Field("y", FieldType.TEXT)))


def question(kind: InteractionType, *options: InteractionOption) -> InteractionRequest:
    context = {"tool": "order", "args": {"x": 5, "y": "a"}} if kind is TOOL_APPROVAL else {}
    custom = "decision" if kind is InteractionType.CUSTOM else None
    return sound(
        InteractionRequest(
            "q",
            "r",
            kind,
            "Order?",
            options=options or OPTIONS,
            form=FORM,
            context=context,
            custom_type=custom,
        )
    )


def typed(request: InteractionRequest, chosen: str | None, *keys: str) -> Given | None:
    """What comes of these keys, each of which is asked for."""

    async def answer() -> Given | None:
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            pipe.send_text("".join(keys))
            given = await asyncio.wait_for(ask(request, chosen), 30)
            assert [*get_typeahead(pipe), *pipe.read_keys()] == []
            return given

    return asyncio.run(answer())


@EVERY_TYPE
@EVERY_ACTION
def test_a_terminal_asks_for_what_the_option_takes_and_for_nothing_else(
    kind: InteractionType, action: InteractionAction
) -> None:
    filled: dict[str, Any] = {"x": 7, "y": "b"} if action in (PROVIDE, CUSTOM) else {}
    if kind is TOOL_APPROVAL and action is CUSTOM:
        filled = {}
    keys: list[str] = []
    if filled:
        keys += ["\x7f7" if kind is TOOL_APPROVAL else "7", ENTER]
        keys += ["\x7fb" if kind is TOOL_APPROVAL else "b", ENTER]
    if action in PROMPTS:
        keys += [WORDS, ENTER]
    if said_twice(kind, action):
        keys += ["y"]
    words = WORDS if action in PROMPTS else None
    expected = Given(action.lower(), filled, words)
    assert typed(question(kind), action.lower(), *keys) == expected


@EVERY_TYPE
def test_what_ends_or_runs_something_is_asked_for_twice(kind: InteractionType) -> None:
    assert typed(question(kind), "terminate", "n") is None
    if kind is TOOL_APPROVAL:
        assert typed(question(kind), "approve_and_execute", "n") is None


def test_a_form_that_an_option_requires_is_asked_whole_and_no_words_on_top() -> None:
    for action in (APPROVE, PROVIDE, CUSTOM):
        option = InteractionOption("go", "Go", action, requires_input=True)
        keys = (ENTER, "7", ENTER, ENTER, "b", ENTER)
        assert typed(question(USER_INPUT, option), "go", *keys) == Given("go", {"x": 7, "y": "b"})


def test_words_that_an_option_prompts_for_are_asked_beside_the_form() -> None:
    option = InteractionOption("go", "Go", CUSTOM, requires_input=True, input_prompt="Why?")
    keys = ("7", ENTER, "b", ENTER, WORDS, ENTER)
    expected = Given("go", {"x": 7, "y": "b"}, WORDS)
    assert typed(question(USER_INPUT, option), "go", *keys) == expected


def test_what_a_choice_brings_with_it_is_not_asked_for() -> None:
    option = InteractionOption("go", "Go", APPROVE, requires_input=True, metadata={"x": 5})
    assert typed(question(USER_INPUT, option), "go", "b", ENTER) == Given("go", {"y": "b"})


def test_a_way_around_the_form_leaves_it_empty() -> None:
    assert typed(question(USER_INPUT), "custom", ENTER, ENTER) == Given("custom", {})


def test_a_question_without_a_form_asks_words_alone_of_an_option_that_needs_them() -> None:
    option = InteractionOption("go", "Go", CUSTOM, requires_input=True)
    other = InteractionOption("no", "No", SKIP)
    request = InteractionRequest("q", "r", USER_INPUT, "Well?", options=(option, other))
    assert typed(sound(request), "go", WORDS, ENTER) == Given("go", {}, WORDS)


def test_a_custom_option_asks_its_form_at_the_terminal_and_its_handler_gets_it(
    asked: Asked, place: Path
) -> None:
    custom = {"option_id": "half", "action": "CUSTOM", "metadata": {"handler": "halve"}}
    question_id = asked(USER_INPUT, [custom])
    with Terminal("answer", question_id, *COMMON, cwd=place) as terminal:
        terminal.wait_for("How many")
        terminal.type("8" + ENTER)
        terminal.wait_for("inst_000001 is done")
        assert terminal.end() == 0
    assert ordered(place) == [4]


def test_an_answer_is_chosen_left_and_taken_up_again_at_the_terminal(
    asked: Asked, place: Path
) -> None:
    question_id = asked(InteractionType.CUSTOM)
    with Terminal("answer", question_id, *COMMON, cwd=place) as terminal:
        terminal.wait_for("<custom>")
        terminal.type("4" + ENTER)
        terminal.wait_for("<terminate>: this cannot be undone. Are you sure?")
        terminal.type("n")
        assert terminal.end() == 4
    with Terminal("answer", question_id, *COMMON, cwd=place) as terminal:
        terminal.wait_for("<custom>")
        terminal.type("2" + ENTER)
        terminal.wait_for("What should be different?")
        terminal.type(WORDS + ENTER)
        terminal.wait_for(f"Feedback on the last answer: {WORDS}")
        terminal.wait_for("<custom>")
        terminal.type(DOWN * 5 + ENTER)
        terminal.wait_for("inst_000001 is done")
        assert terminal.end() == 0
    assert ordered(place) == []


def test_an_option_that_there_is_not_asks_nothing(asked: Asked, place: Path) -> None:
    question_id = asked(MISSING_INFO)
    arguments = ("answer", question_id, "--option", "provide", *COMMON)
    with Terminal(*arguments, cwd=place) as terminal:
        terminal.wait_for("there is no option 'provide'; choose one of: approve_and_execute")
        assert terminal.end() == 1
    assert ordered(place) == []
