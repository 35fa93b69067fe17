"""Plan files: YAML text in, a checked plan out, or every problem at once with its location.

Three steps, none of which stops at the first mistake: `yaml` finds nodes,
`shape` makes typed values of them and puts stand-ins where it cannot, `check`
judges the plan that results. A problem of the last step is dropped when it only
repeats that a broken part is broken. See `check` for what a plan must satisfy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from holdfast.errors import PlanRejected
from holdfast.i18n.message import msg
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    Action,
    AgentAction,
    Check,
    CodeAction,
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
    WaitAction,
    WhilePaused,
)
from holdfast.source.asking import ASKING_KEYS, SHORT_KEYS, asking_from, read_asking
from holdfast.source.check import Catalog, find_problems
from holdfast.source.forms import read_form
from holdfast.source.locations import Locations, Path, reported
from holdfast.source.nodes import Mapping, Node
from holdfast.source.retry import read_retry
from holdfast.source.shape import ShapeReader
from holdfast.source.yaml import read_document

Part = TypeVar("Part")

PLAN_REQUIRED = ("plan_id", "main_task_id", "tasks", "listeners")
PLAN_KEYS = (*PLAN_REQUIRED, "name", "description", "inputs", "verify", "while_paused")
TASK_REQUIRED = ("task_id",)
TASK_KEYS = (*TASK_REQUIRED, "name", "prompt")
OUTPUT_REQUIRED = ("task_id", "status")
OUTPUT_KEYS = (*OUTPUT_REQUIRED, "context")
CHECK_REQUIRED = ("tool",)
CHECK_KEYS = (*CHECK_REQUIRED, "args", "expect")
LISTENER_REQUIRED = ("listener_id", "trigger_task_id", "trigger_condition", "listener_type")
LISTENER_KEYS = (
    *LISTENER_REQUIRED,
    "success_output",
    "failure_output",
    "retry",
    "timeout",
    "approval",
    "repeat",
    "priority",
    "max_firings",
)
ACTION_KEYS = {
    "tool": ("tool", "args", "fields", "missing", "consent"),
    "code": ("code_snippet", "functions"),
    "human": ("form", *ASKING_KEYS),
    "plan": ("plan_id", "values"),
    "agent": ("agent_id", "action_prompt"),
    "wait_until": ("until", "after", "clock", "timezone", "weekdays"),
}
ACTION_REQUIRED = {
    "tool": ("tool",),
    "code": ("code_snippet",),
    "plan": ("plan_id",),
    "agent": ("agent_id",),
}
_OWNER_OF_KEY = {key: kind for kind, keys in ACTION_KEYS.items() for key in keys}
_OWNER_OF_SHORT_KEY = dict.fromkeys(SHORT_KEYS, "human")


class ListenerType(StrEnum):
    TOOL = "tool"
    CODE = "code"
    HUMAN = "human"
    PLAN = "plan"
    AGENT = "agent"
    WAIT_UNTIL = "wait_until"


@dataclass(frozen=True, slots=True)
class ParsedPlan:
    """A plan as far as it could be read; `plan` is None when nothing could."""

    plan: Plan | None
    shape: ShapeReader


def read_plan(text: str, file: str = "<plan>") -> Plan:
    """The plan in `text`, checked as far as it goes without knowing tools and agents."""
    return load_plan(text, file, Catalog())


def load_plan(text: str, file: str, catalog: Catalog) -> Plan:
    """The plan in `text`, or PlanRejected with its problems in the file's order."""
    parsed = parse_plan(text, file)
    found = () if parsed.plan is None else find_problems(parsed.plan, catalog)
    problems = [*parsed.shape.problems, *parsed.shape.judged(found)]
    if problems or parsed.plan is None:
        raise PlanRejected(reported(problems))
    return parsed.plan


def parse_plan(text: str, file: str = "<plan>") -> ParsedPlan:
    """Never raises: whatever the text, there is a plan or a problem."""
    document = read_document(text, file)
    shape = ShapeReader(file, Locations(text), list(document.problems))
    root = document.root
    return ParsedPlan(None if root is None else _PlanReader(shape).plan(root), shape)


@dataclass(slots=True)
class _PlanReader:
    shape: ShapeReader

    def plan(self, node: Node) -> Plan | None:
        if not isinstance(node, Mapping):
            self.shape.wrong(node, (), msg("a plan is a mapping; it begins with plan_id: …"))
            return None
        self.shape.locations.record((), Mapping((), node.line, node.column))
        found = self.shape.entries(node, (), known=PLAN_KEYS, required=PLAN_REQUIRED)
        for key in found.keys() - {"tasks", "listeners", "verify"}:
            self.shape.locations.record((key,), found[key])
        shape = self.shape
        plan_id = shape.text(found.get("plan_id"), ("plan_id",))
        return Plan(
            plan_id=plan_id,
            name=shape.text(found.get("name"), ("name",), plan_id),
            main_task_id=shape.text(found.get("main_task_id"), ("main_task_id",)),
            tasks=self._each(found, "tasks", self._task),
            listeners=self._each(found, "listeners", self._listener),
            description=shape.text(found.get("description"), ("description",)),
            inputs=read_form(self.shape, found.get("inputs"), ("inputs",)),
            verify=self._each(found, "verify", self._check),
            while_paused=shape.word(
                found.get("while_paused"), ("while_paused",), WhilePaused, WhilePaused.GO_ON
            ),
        )

    def _each(
        self, found: dict[str, Node], key: str, read: Callable[[Mapping, Path], Part]
    ) -> tuple[Part, ...]:
        """The list's mappings, numbered as in the plan; what is no mapping is left out."""
        parts: list[Part] = []
        if key in found:
            node = found[key]
            self.shape.locations.record((key,), Mapping((), node.line, node.column))
        for item in self.shape.items(found.get(key), (key,)):
            path = (key, len(parts))
            if isinstance(item, Mapping):
                self.shape.locations.record(path, item)
                parts.append(read(item, path))
            else:
                self.shape.note(item, msg("each of {key} must be a mapping", key=key))
        return tuple(parts)

    def _task(self, node: Mapping, path: Path) -> Task:
        found = self.shape.entries(node, path, known=TASK_KEYS, required=TASK_REQUIRED)
        return Task(*(self.shape.text(found.get(key), (*path, key)) for key in TASK_KEYS))

    def _check(self, node: Mapping, path: Path) -> Check:
        found = self.shape.entries(node, path, known=CHECK_KEYS, required=CHECK_REQUIRED)
        return Check(
            tool=self.shape.text(found.get("tool"), (*path, "tool")),
            args=self.shape.json_object(found.get("args"), (*path, "args")),
            expect=self.shape.optional_text(found.get("expect"), (*path, "expect")),
        )

    def _listener(self, node: Mapping, path: Path) -> Listener:
        kind = self._listener_type(node, path)
        found = self._listener_entries(node, path, kind)
        shape = self.shape
        return Listener(
            listener_id=shape.text(found.get("listener_id"), (*path, "listener_id")),
            trigger_task_id=shape.texts(found.get("trigger_task_id"), (*path, "trigger_task_id")),
            trigger_condition=shape.text(
                found.get("trigger_condition"), (*path, "trigger_condition")
            ),
            action=self._action(kind, found, path),
            success_output=self._output(found.get("success_output"), (*path, "success_output")),
            failure_output=self._output(found.get("failure_output"), (*path, "failure_output")),
            retry=read_retry(shape, found.get("retry"), (*path, "retry")),
            timeout=shape.optional_number(found.get("timeout"), (*path, "timeout")),
            approval=self._approval(kind, found.get("approval"), (*path, "approval")),
            repeat=shape.flag(found.get("repeat"), (*path, "repeat")),
            priority=shape.integer(found.get("priority"), (*path, "priority"), 100),
            max_firings=shape.integer(found.get("max_firings"), (*path, "max_firings"), 1_000),
        )

    def _approval(self, kind: ListenerType | None, node: Node | None, path: Path) -> bool:
        """Of a listener whose type is not known it is not known whether it may be approved."""
        wanted = isinstance(node, Mapping) or self.shape.flag(node, path)
        return wanted and kind is not None

    def _listener_type(self, node: Mapping, path: Path) -> ListenerType | None:
        """None when it is missing or unknown; then the keys of every type are welcome."""
        path = (*path, "listener_type")
        value = next((value for key, value in node.entries if key.text == path[-1]), None)
        if value is None:
            return None
        kind = self.shape.word(value, path, ListenerType, ListenerType.HUMAN)
        unsure = path in self.shape.broken and kind is ListenerType.HUMAN
        return None if unsure else kind

    def _listener_entries(
        self, node: Mapping, path: Path, kind: ListenerType | None
    ) -> dict[str, Node]:
        own = ACTION_KEYS[kind] if kind else tuple(_OWNER_OF_KEY)
        short = SHORT_KEYS if kind in (ListenerType.HUMAN, None) else {}
        misplaced = {
            key: msg(
                "{key} belongs to listeners of type {owner}; this one is of type {kind}",
                key=key,
                owner=owner,
                kind=kind,
            )
            for key, owner in (_OWNER_OF_KEY | _OWNER_OF_SHORT_KEY).items()
            if key not in own and key not in short
        }
        return self.shape.entries(
            node,
            path,
            known=(*LISTENER_KEYS, *own),
            required=(*LISTENER_REQUIRED, *(ACTION_REQUIRED.get(kind, ()) if kind else ())),
            misplaced=misplaced,
            short=short,
        )

    def _action(self, kind: ListenerType | None, found: dict[str, Node], path: Path) -> Action:
        shape = self.shape
        match kind:
            case ListenerType.TOOL:
                return self._tool(found, path)
            case ListenerType.CODE:
                code = shape.text(found.get("code_snippet"), (*path, "code_snippet"))
                return CodeAction(code, shape.texts(found.get("functions"), (*path, "functions")))
            case ListenerType.PLAN:
                plan_id = shape.text(found.get("plan_id"), (*path, "plan_id"))
                values = shape.json_object(found.get("values"), (*path, "values"))
                return PlanAction(plan_id, values)
            case ListenerType.AGENT:
                agent_id = shape.text(found.get("agent_id"), (*path, "agent_id"))
                prompt = shape.text(found.get("action_prompt"), (*path, "action_prompt"))
                return AgentAction(agent_id, prompt)
            case ListenerType.WAIT_UNTIL:
                return self._wait(found, path)
            case _:
                form = read_form(shape, found.get("form"), (*path, "form"))
                return HumanAction(form, asking_from(shape, found, path))

    def _wait(self, found: dict[str, Node], path: Path) -> WaitAction:
        keys = ("until", "after", "clock", "timezone")
        texts = {key: self.shape.text(found.get(key), (*path, key)) for key in keys}
        named = found.get("weekdays")
        weekdays = self.shape.texts(named, (*path, "weekdays"))
        if named is not None and not weekdays and (*path, "weekdays") not in self.shape.broken:
            every_day = msg("weekdays names no day: name some, or leave it out for every day")
            self.shape.wrong(named, (*path, "weekdays"), every_day)
        return WaitAction(**texts, weekdays=weekdays)

    def _tool(self, found: dict[str, Node], path: Path) -> ToolAction:
        return ToolAction(
            tool=self.shape.text(found.get("tool"), (*path, "tool")),
            args=self.shape.json_object(found.get("args"), (*path, "args")),
            fields=read_form(self.shape, found.get("fields"), (*path, "fields"), enriches=True),
            missing=read_asking(self.shape, found.get("missing"), (*path, "missing")),
            consent=self._consent(found, path),
        )

    def _consent(self, found: dict[str, Node], path: Path) -> Asking:
        """`approval` with a mapping says in one that consent is needed and how it is asked."""
        approval, path = found.get("approval"), (*path, "consent")
        if not isinstance(approval, Mapping):
            return read_asking(self.shape, found.get("consent"), path)
        if "consent" in found:
            self.shape.note(
                found["consent"], msg("approval says how consent is asked; keep one of them")
            )
        self.shape.locations.record(path, approval)
        return read_asking(self.shape, approval, path)

    def _output(self, node: Node | None, path: Path) -> Output | None:
        if node is None:
            return None
        found = self.shape.entries(node, path, known=OUTPUT_KEYS, required=OUTPUT_REQUIRED)
        if not found:
            return None
        return Output(
            task_id=self.shape.text(found.get("task_id"), (*path, "task_id")),
            status=self.shape.word(
                found.get("status"), (*path, "status"), TaskStatus, TaskStatus.DONE
            ),
            context=self.shape.json_object(found.get("context"), (*path, "context")),
        )
