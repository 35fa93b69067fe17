"""How people are asked, as plans say it: in YAML with places, and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from random_askings import ASKINGS

from holdfast.core.storing import plan_digest, record_from_json, record_to_json
from holdfast.errors import PlanRejected
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
)
from holdfast.model.plan import HumanAction, Listener, Plan, ToolAction
from holdfast.source.check import Catalog
from holdfast.source.planfile import load_plan, read_plan

TOP = """\
plan_id: p
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: Running
    success_output: {task_id: "001", status: Done}
"""
FIRST_LINE = TOP.count("\n") + 1

ORDER = ("listener_type: tool", "tool: order")


def plan_of(*lines: str) -> str:
    return TOP + "".join(f"    {line}\n" for line in lines)


def plan_read(*lines: str) -> Plan:
    return read_plan(plan_of(*lines))


def listener_read(*lines: str) -> Listener:
    (listener,) = plan_read(*lines).listeners
    return listener


def asked(*lines: str) -> Asking:
    """How a human listener with these keys asks."""
    action = listener_read("listener_type: human", *lines).action
    assert isinstance(action, HumanAction)
    return action.asking


def problems(*lines: str) -> list[str]:
    """Every problem as `line:column: message`; line 1 is the first of `lines`.

    So -3:5 is where the listener begins: the place of what it leaves out.
    """
    with pytest.raises(PlanRejected) as caught:
        load_plan(plan_of(*lines), "p.yaml", Catalog())
    return [
        f"{one.line - FIRST_LINE + 1}:{one.column}: {one.message}" for one in caught.value.problems
    ]


def problem(*lines: str) -> str:
    (only,) = problems(*lines)
    return only


class TestAHumanListener:
    def test_says_everything_about_its_question_beside_its_form(self) -> None:
        action = listener_read(
            "listener_type: human",
            "title: Which way?",
            "message: For {001.context.name}",
            "details: Both cost the same.",
            "type: user_choice",
            "required: false",
            "role: manager",
            "timeout_seconds: 3600",
            "default: wait",
            "reminders: [60, 600.5]",
            "escalate: {after: 1800, role: director}",
            "options:",
            "  - {option_id: go, label: Go, action: APPROVE_AND_EXECUTE, dangerous: true,",
            "     description: At once, metadata: {speed: 2}}",
            "  - {id: wait, action: Skip, default: true}",
            "  - {id: else, action: custom, handler: ask_around, requires_input: true,",
            "     input_prompt: Whom?}",
            "form: {reason: {type: text, required: false}}",
        ).action
        assert isinstance(action, HumanAction)
        assert [field.name for field in action.form.fields] == ["reason"]
        assert action.asking == Asking(
            title="Which way?",
            message="For {001.context.name}",
            details="Both cost the same.",
            type=InteractionType.USER_CHOICE,
            options=(
                InteractionOption(
                    "go",
                    "Go",
                    InteractionAction.APPROVE_AND_EXECUTE,
                    description="At once",
                    is_dangerous=True,
                    metadata={"speed": 2},
                ),
                InteractionOption("wait", "wait", InteractionAction.SKIP, is_default=True),
                InteractionOption(
                    "else",
                    "else",
                    InteractionAction.CUSTOM,
                    requires_input=True,
                    input_prompt="Whom?",
                    metadata={"handler": "ask_around"},
                ),
            ),
            required=False,
            role="manager",
            timeout_seconds=3600.0,
            default_option_id="wait",
            reminders=(60.0, 600.5),
            escalate_after=1800.0,
            escalate_to="director",
        )

    def test_asks_as_usual_when_it_says_nothing(self) -> None:
        assert asked() == Asking()

    @pytest.mark.parametrize(
        ("word", "action"),
        [
            ("approve", InteractionAction.APPROVE_AND_EXECUTE),
            ("Retry", InteractionAction.RETRY_WITH_FEEDBACK),
            ("reject_with_reason", InteractionAction.REJECT_WITH_REASON),
            ("TERMINATE", InteractionAction.TERMINATE),
            ("provide", InteractionAction.PROVIDE_INFO),
            ("skip", InteractionAction.SKIP),
            ("CUSTOM", InteractionAction.CUSTOM),
        ],
    )
    def test_names_actions_in_short_or_in_full_and_in_any_case(
        self, word: str, action: InteractionAction
    ) -> None:
        (option,) = asked(f"options: [{{id: x, action: {word}}}]").options
        assert option.action is action

    def test_may_be_of_a_custom_type(self) -> None:
        asking = asked("type: Custom", "custom_type: seating_plan")
        assert (asking.type, asking.custom_type) == (InteractionType.CUSTOM, "seating_plan")


class TestAToolListener:
    def test_says_how_it_asks_for_consent_and_for_what_is_missing(self) -> None:
        listener = listener_read(
            *ORDER,
            "approval: {title: Order it?, role: buyer, timeout_seconds: 60}",
            "missing: {title: What shall be ordered?, details: See the catalogue.}",
        )
        assert listener.approval
        assert listener.action == ToolAction(
            "order",
            missing=Asking("What shall be ordered?", details="See the catalogue."),
            consent=Asking("Order it?", role="buyer", timeout_seconds=60.0),
        )

    @pytest.mark.parametrize(("said", "approval"), [("true", True), ("false", False), ("{}", True)])
    def test_may_only_say_whether_consent_is_needed(self, said: str, approval: bool) -> None:
        listener = listener_read(*ORDER, f"approval: {said}")
        assert listener.approval is approval
        assert listener.action == ToolAction("order")

    def test_may_say_how_consent_is_asked_and_leave_it_to_the_tool_whether(self) -> None:
        listener = listener_read(*ORDER, "consent: {role: buyer}")
        assert not listener.approval
        assert listener.action == ToolAction("order", consent=Asking(role="buyer"))

    def test_says_it_once(self) -> None:
        assert problem(*ORDER, "approval: {role: a}", "consent: {role: b}") == (
            "4:14: approval says how consent is asked; keep one of them"
        )

    @pytest.mark.parametrize("key", ["missing", "consent"])
    def test_needs_a_mapping_to_say_how(self, key: str) -> None:
        assert problem(*ORDER, f"{key}: soon").startswith(
            f"3:{7 + len(key)}: {key} must be a mapping with the keys title, message, "
        )


class TestOtherListeners:
    CODE = ("listener_type: code", "code_snippet: result = 1")

    def test_cannot_be_approved(self) -> None:
        assert problem(*self.CODE, "approval: {role: buyer}") == (
            "3:15: only a tool call can be approved; put the call in a tool listener"
        )

    @pytest.mark.parametrize(
        ("key", "owner"), [("missing", "tool"), ("options", "human"), ("default", "human")]
    )
    def test_do_not_ask(self, key: str, owner: str) -> None:
        assert problem(*self.CODE, f"{key}: {{}}") == (
            f"3:5: {key} belongs to listeners of type {owner}; this one is of type code"
        )

    def test_of_an_unknown_type_may_have_every_key(self) -> None:
        assert problem(
            "listener_type: magic", "approval: {}", "default: reject", "missing: {}"
        ) == (
            "1:20: listener_type cannot be 'magic'; "
            "write one of tool, code, human, plan, agent, wait_until"
        )


HUMAN = "listener_type: human"


class TestMistakes:
    @pytest.mark.parametrize(
        ("line", "place"),
        [
            ("type: USER_CHIOCE", "2:11: type cannot be 'USER_CHIOCE'; did you mean user_choice?"),
            ("type: 7", "2:11: type cannot be '7'; write one of tool_approval, missing_info, "),
            ("options: {}", "2:14: options must be a list"),
            (
                "options: [yes]",
                "2:15: options[0] must be a mapping with the keys option_id, action",
            ),
            ("options: [{id: x}]", "2:15: options[0] lacks the key action"),
            ("options: [{action: skip}]", "2:15: options[0] lacks the key option_id"),
            (
                "options: [{id: x, option_id: z, action: skip}]",
                "2:16: id is another word for option_id; keep one of them",
            ),
            (
                "options: [{id: x, action: dance}]",
                "2:31: action cannot be 'dance'; write one of approve, retry, reject, terminate, ",
            ),
            (
                "options: [{id: x, action: skip, colour: red}]",
                "2:37: unknown key 'colour'; known are option_id, ",
            ),
            (
                "options: [{id: x, action: custom, handler: h, metadata: {handler: g}}]",
                "2:48: the handler stands in the metadata too; keep one of them",
            ),
            ("required: maybe", "2:15: required must be true or false, not 'maybe'"),
            ("reminders: 60", "2:16: reminders must be a list"),
            ("reminders: [soon]", "2:17: reminders[0] must be a number, not 'soon'"),
            ("escalate: director", "2:15: escalate must be a mapping with the keys after, role"),
            ("escalate: {after: 60}", "2:15: escalate lacks the key role"),
            ("escalate: {role: director}", "2:15: escalate lacks the key after"),
            (
                "default_option: a",
                "2:5: unknown key 'default_option'; did you mean default_option_",
            ),
        ],
    )
    def test_of_shape_have_a_place_and_a_remedy(self, line: str, place: str) -> None:
        options = () if line.startswith("options") else ("options: [{id: a, action: skip}]",)
        assert problem(HUMAN, line, *options).startswith(place)

    @pytest.mark.parametrize(
        ("lines", "place"),
        [
            (["title: ' '"], "2:12: title: is empty"),
            (["timeout_seconds: 0"], "2:22: timeout_seconds: must be a number of seconds"),
            (["reminders: [60, 30]"], "2:16: reminders: must ascend"),
            (["timeout_seconds: 9", "reminders: [9]"], "3:16: reminders: must come before"),
            (["escalate: {after: -1, role: boss}"], "2:23: escalate_after: must be a number"),
            (["escalate: {after: 1, role: ''}"], "2:32: escalate_to: is missing"),
            (["default: nobody"], "2:14: default_option_id: there is no option"),
            (["type: custom"], "-3:5: custom_type: is missing"),
            (["custom_type: x"], "2:18: custom_type: is only for CUSTOM questions"),
            (["type: user_choice"], "-3:5: options: there are none"),
            (
                ["options: [{id: a, action: skip}, {id: a, action: skip}]"],
                "2:43: options[1].option_id: ",
            ),
            (
                ["options: [{id: a, action: skip}, {id: b, action: custom, default: true}]"],
                "2:71: options[1].is_default: the clock may not take",
            ),
            (
                ["form: [reason]", "default: provide"],
                "3:14: default_option_id: the clock may not take",
            ),
            (["details: '{008.context.x}'"], "2:14: there is no task '008'"),
        ],
    )
    def test_of_sense_stand_where_they_were_made(self, lines: list[str], place: str) -> None:
        assert problem(HUMAN, *lines).startswith(place)

    def test_of_consent_stand_in_the_approval(self) -> None:
        lines = (*ORDER, "approval:", "  default: approve", "  title: '{{result.x}}'")
        default, title = problems(*lines)
        assert default.startswith("4:16: default_option_id: the clock may not take")
        assert title.startswith("5:14: there is no result yet")

    def test_consent_is_asked_as_nothing_else(self) -> None:
        assert problem(*ORDER, "approval: {type: user_choice}").startswith(
            "3:22: type: a tool's approval cannot be asked as USER_CHOICE"
        )

    def test_the_clock_does_not_fill_in_what_is_missing(self) -> None:
        assert problem(*ORDER, "missing: {default: provide}").endswith(
            "because the form requires what is missing"
        )


def test_no_listener_cancels_a_task() -> None:
    assert problem(HUMAN, "failure_output: {task_id: '001', status: Cancelled}") == (
        "2:46: a task is cancelled only with the whole run; Skipped may be meant"
    )


class TestAsJson:
    @settings(max_examples=100, deadline=None)
    @given(ASKINGS)
    def test_an_asking_survives_storage(self, asking: Asking) -> None:
        assert record_from_json(Asking, json.loads(json.dumps(record_to_json(asking)))) == asking

    def test_what_is_usual_is_left_out(self) -> None:
        assert record_to_json(Asking()) == {}
        option = InteractionOption("go", "go", InteractionAction.SKIP)
        assert record_to_json(Asking(required=False, options=(option,), reminders=(1,))) == {
            "required": False,
            "options": [{"option_id": "go", "action": "SKIP"}],
            "reminders": [1.0],
        }

    def test_a_listener_keeps_its_question_flat(self) -> None:
        lines = ("title: Sure?", "escalate: {after: 60, role: boss}", "form: [why]")
        (listener,) = record_to_json(plan_read(HUMAN, *lines))["listeners"]
        assert listener["title"] == "Sure?"
        assert listener["escalate"] == {"after": 60.0, "role": "boss"}
        assert [field["name"] for field in listener["form"]] == ["why"]

    @pytest.mark.parametrize(
        "lines",
        [
            (HUMAN, "default: wait", "options: [{id: wait, action: skip}]", "role: boss"),
            (*ORDER, "approval: {title: Really?, reminders: [5]}", "missing: {role: buyer}"),
            (*ORDER, "consent: {options: [{id: ok, action: custom, handler: h}]}"),
        ],
    )
    def test_a_plan_in_json_is_also_a_plan_file(self, lines: tuple[str, ...]) -> None:
        plan = plan_read(*lines)
        stored = json.dumps(record_to_json(plan))
        assert read_plan(stored) == record_from_json(Plan, json.loads(stored)) == plan

    def test_the_digest_changes_with_how_people_are_asked(self) -> None:
        plan = plan_read(*ORDER)
        action = ToolAction("order", consent=Asking(role="buyer"))
        listener = replace(plan.listeners[0], action=action)
        plans = [
            plan,
            replace(plan, listeners=(listener,)),
            replace(plan, listeners=(replace(listener, approval=True),)),
            plan_read(*ORDER, "approval: true"),
            plan_read(*ORDER, "missing: {role: buyer}"),
        ]
        assert len({plan_digest(one) for one in plans}) == len(plans)

    def test_the_digest_of_a_question_from_before_options_is_what_it_was(self) -> None:
        plan = plan_read(
            HUMAN,
            "title: Sure",
            "message: hi",
            "form: {a: {type: number}}",
            "timeout_seconds: 5",
            'role: ""',
            "retry: {attempts: 2, initial: 1}",
            "timeout: 3",
        )
        assert plan_digest(plan) == (
            "83bad93e4653a5d54e1e8808884231792e04d980f31ce25651e1636fc6c9ae42"
        )
