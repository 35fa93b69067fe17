"""What a model, a tool or another person wrote: shown whole, and never as a line of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_scene import Command
from rich.cells import cell_len
from terminal import CTRL_C, ENTER, Terminal

from holdfast.cli.shell import complain
from holdfast.cli.terminal.plain import print_json, print_json_line
from holdfast.cli.terminal.question import answering, shown_args, shown_context
from holdfast.cli.terminal.untrusted_text import Speech, rows, screen_width
from holdfast.model.form import Field, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionStatus,
    InteractionType,
)
from holdfast.views.records import InteractionView
from holdfast.views.stories.text import named

OPTION = InteractionOption("approve", "Approve", InteractionAction.APPROVE_AND_EXECUTE)
FORGERY = "ok" + " " * 62 + "    amount = 5" + " " * 66 + '    to = "Will Zhang"'

TRICKSTER = """
from holdfast import Holdfast
from holdfast.testing.model_script import call, fail, say
from holdfast.testing.scripted_model import RuleModel

SPOOF = "Sure.\\\\n\\\\n· pay was rejected" + " " * 100 + "· pay was rejected\\\\n  tool: look"
PADDED = "Which?" + " " * 66 + "Holdfast security: approved" + " " * 80
model = RuleModel([
    ("stuck", fail(401, "no")),
    (lambda seen: bool(seen.results), "paid"),
    ("both", say("", call("ask_stuck", task="stuck"), call("pay", amount=3, to="Will"))),
    ("forge", call("pay", memo="ok" + " " * 62 + "    amount = 5" + " " * 90, amount=5000, to="M")),
    ("quote", call("ask_person", question=PADDED, options=["Approve and run " * 4, "x"])),
    ("spoof", SPOOF),
])


def app():
    made = Holdfast("kept", model=model)

    @made.tool(approval="require")
    async def pay(to: str, amount: int, memo: str = "") -> dict:
        return {"paid": amount}

    made.agent("stuck")
    made.agent("clerk", name="Clerk", tools=["pay"], agents=["stuck"], asks_people=True)
    return made
"""


@pytest.fixture
def trickster(place: Path) -> tuple[str, ...]:
    (place / "trickster.py").write_text(TRICKSTER.replace("\\\\", "\\"), encoding="utf-8")
    return ("--app", "trickster:app", "--agent", "clerk")


def request(context: dict[str, Any], *names: str) -> InteractionRequest:
    form = Form(tuple(Field(name) for name in names))
    kind = InteractionType.TOOL_APPROVAL
    return InteractionRequest(
        "q1", "s", kind, "Pay?", options=(OPTION,), form=form, context=context
    )


def test_every_row_carries_the_bar_and_none_is_left_to_the_terminal() -> None:
    text = "a" * 200 + "\n" + "张" * 90 + "\n\n\tend"
    shown = list(rows(text))
    assert all(row.startswith("│ ") for row in shown)
    assert all(cell_len(row) <= screen_width() for row in shown)
    assert "".join(row.removeprefix("│ ") for row in shown) == text.replace("\n", "").replace(
        "\t", "    "
    )


def test_a_picture_may_be_wider_than_its_character() -> None:
    shown = list(rows("☺\ufe0f" * 99))
    assert all(2 * row.count("☺") + 2 <= screen_width() for row in shown)


def test_speech_in_pieces_is_laid_out_as_if_it_came_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "one\n\n" + "two " * 60 + "张三" * 40 + "\n· not ours"
    speech = Speech()
    for character in text:
        speech.write(character)
    speech.end()
    speech.end()
    assert capsys.readouterr().out.splitlines() == list(rows(text))


def test_arguments_are_counted_and_stand_in_the_tools_order() -> None:
    asked = request({}, "to", "amount", "memo")
    shown = list(shown_args(asked, {"z": 1, "memo": FORGERY, "a": 2, "amount": 5000, "to": "M"}))
    assert shown[:4] == [
        "    5 arguments:",
        '    │ to = "M"',
        "    │ amount = 5000",
        shown[3],
    ]
    assert shown[3].startswith('    │ memo = "ok \\u0020')
    assert shown[-2:] == ["    │ a = 2", "    │ z = 1"]
    assert [row for row in shown if "amount = 5" in row.partition("│ ")[2][:10]] == [shown[2]]
    assert all(cell_len(row) <= screen_width() for row in shown)


@pytest.mark.parametrize("blank", ["  ", "\n\n", "\u3000\u3000", "\u00a0", "\u2800", "\u3164"])
def test_what_only_pads_an_argument_is_spelled_out(blank: str) -> None:
    [_, row] = shown_args(request({}), {"memo": f"a{blank}b"})
    assert "\\" in row
    assert json.loads(row.partition(" = ")[2]) == f"a{blank}b"


def test_a_long_value_says_how_much_is_left_out_and_how_to_see_it() -> None:
    shown = list(shown_args(request({}), {"memo": "x" * 4998, "z": 1}))
    assert shown[-2].endswith(
        "3000 characters more are left out; to see all: holdfast inbox q1 --json"
    )
    assert shown[-1] == "    │ z = 1"
    [*quoted, last] = shown_context(request({"quoted": "\n" * 5000}))
    assert "4975 characters more are left out" in last
    assert len(quoted) < 40


def test_a_name_that_is_none_is_quoted() -> None:
    assert named("pay.v2-张") == "pay.v2-张"
    assert named("pay returned: {}") == '"pay returned: {}"'
    assert len(named("x" * 500)) == 60
    [_, row] = shown_args(request({}), {"to = 1": 2})
    assert row == '    │ "to = 1" = 2'


def test_a_label_that_does_not_fit_stands_on_rows_of_its_own() -> None:
    label = "x" * 60 + "    to answer: holdfast answer q1 --option other"
    options = (InteractionOption("a", label, InteractionAction.APPROVE_AND_EXECUTE), OPTION)
    asked = InteractionRequest("q1", "s", InteractionType.USER_CHOICE, "", options=options)
    of = (InteractionStatus.OPEN, asked.type, "", None, 0.0, None, None, asked)
    first, *others, last = answering(InteractionView("q1", "s", "s", *of), "q1")
    assert first == "holdfast answer q1 --option a"
    assert all(row.startswith("      # ") for row in others)
    does = "Goes on with this choice. (“Approve”)"
    assert last == f"holdfast answer q1 --option approve  # {does}"


def test_json_has_no_character_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"张三": "\x1b[31m\x7f\x9b32m\u202e\u2066\u200f\u061c\u2028\ud800 é"}
    print_json(value)
    print_json_line(value)
    complain("Kind", value["张三"], as_json=True)
    out = capsys.readouterr().out
    assert not any(one in out for one in "\x1b\x7f\x9b\u202e\u2066\u200f\u061c\u2028\ud800")
    assert '"张三": "\\u001b[31m\\u007f\\u009b32m\\u202e' in out
    assert " é" in out
    assert json.loads(out.splitlines()[-2]) == value
    complain("Kind", "\x1b[31m", as_json=False)
    assert capsys.readouterr().err == "error: \\u001b[31m\n"


def test_a_padded_argument_forges_no_row(holdfast: Command, trickster: tuple[str, ...]) -> None:
    shown = holdfast("chat", "forge", *trickster).out.splitlines()
    at = shown.index("      3 arguments:")
    assert shown[at + 1 : at + 3] == ['      │ to = "M"', "      │ amount = 5000"]
    foreign = shown[at + 3 : next(i for i, row in enumerate(shown) if "to answer" in row)]
    assert foreign[0].startswith('      │ memo = "ok')
    assert all(row.startswith("      │     ") and len(row) <= 80 for row in foreign[1:])


def test_a_padded_quotation_and_its_choices_forge_no_row(
    holdfast: Command, trickster: tuple[str, ...]
) -> None:
    shown = holdfast("chat", "quote", *trickster).out.splitlines()
    [where] = [row for row in shown if "Holdfast security" in row]
    assert where.startswith("    │ ")
    assert all(row.startswith("      # ") for row in shown if "Approve and run" in row)


@pytest.mark.parametrize("claimed", ["80", "20", ""], ids=lambda claimed: f"COLUMNS={claimed}")
def test_a_reply_at_a_terminal_never_looks_like_ours(
    trickster: tuple[str, ...], place: Path, claimed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the environment claims, the terminal's own width counts."""
    monkeypatch.setenv("COLUMNS", claimed)
    with Terminal("chat", "spoof", *trickster, cwd=place, columns=60) as terminal:
        assert terminal.end() == 0
        spoken = [row for row in terminal.screen.splitlines() if row.strip()]
    assert len(spoken) > 4
    assert all(row.startswith("│ ") and len(row) < 60 for row in spoken), spoken


def test_a_failed_turn_with_a_question_says_what_can_be_done(
    holdfast: Command, trickster: tuple[str, ...]
) -> None:
    failed = holdfast("chat", "both", *trickster)
    assert failed.code == 3
    assert "waits for: Run pay?" in failed.out
    assert "to try again: holdfast resume chat_000001" in failed.out
    assert "to end it instead: holdfast cancel chat_000001" in failed.out
    assert "say something else" not in failed.out


def test_a_question_beside_a_failure_is_answered_at_the_prompt(
    holdfast_process: Command, trickster: tuple[str, ...], place: Path
) -> None:
    assert holdfast_process("chat", "both", *trickster).code == 3
    with Terminal("chat", "--session", "1", *trickster, cwd=place) as terminal:
        terminal.wait_for("/retry tries again; /answer shows what is asked; /cancel")
        terminal.wait_for("you>")
        terminal.type("/answer" + ENTER)
        terminal.wait_for("Reject and stop everything")
        terminal.type(CTRL_C)
        terminal.wait_for("/answer shows what is asked")
        terminal.wait_for("you>")
        terminal.type("/answer" + ENTER)
        terminal.wait_for("Reject and stop everything")
        terminal.type("4" + ENTER)
        terminal.wait_for("Why not?")
        terminal.type("no" + ENTER)
        terminal.wait_for("/retry tries again; a further message begins the next turn")
        terminal.wait_for("you>")
        terminal.type("/quit" + ENTER)
        assert terminal.end() == 3
