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
from typing import Any, TypeVar, get_args

from holdfast.errors import PlanRejected
from holdfast.i18n.message import msg
from holdfast.model.form import Form
from holdfast.model.interaction import Asking
from holdfast.model.plan import Action, Check, HumanAction, Listener, Output, Plan, Task
from holdfast.model.repair import RepairPolicy
from holdfast.model.retry import RetryPolicy
from holdfast.source.asking import ASKING, asking_from, read_asking
from holdfast.source.check import Catalog, find_problems
from holdfast.source.forms import read_form
from holdfast.source.locations import Locations, Path, reported
from holdfast.source.nodes import Mapping, Node
from holdfast.source.records import READERS, Keys
from holdfast.source.repairs import read_repair
from holdfast.source.retry import read_retry
from holdfast.source.shape import ShapeReader
from holdfast.source.yaml import read_document

Part = TypeVar("Part")


def read_output(shape: ShapeReader, node: Node | None, path: Path, usual: None) -> Output | None:
    if node is None:
        return None
    found = shape.entries(node, path, known=OUTPUT.known, required=OUTPUT.required)
    return OUTPUT.fill(shape, found, path) if found else None


TASK = Keys(Task)
OUTPUT = Keys(Output)
CHECK = Keys(Check)
PLAN = Keys(Plan, {**READERS, Form: read_form, RepairPolicy: read_repair}, like={"name": "plan_id"})
LISTENER = Keys(
    Listener,
    {**READERS, RetryPolicy: read_retry, Output | None: read_output},
    without=("action",),
    needed=("listener_type",),
)
ACTIONS: dict[str, Keys[Action]] = {
    each.kind: Keys(each, {**READERS, Form: read_form, Asking: read_asking}, without=("asking",))
    for each in get_args(Action)
}
ACTION_KEYS = {kind: keys.known for kind, keys in ACTIONS.items()}
ACTION_KEYS["human"] += ASKING.known
_OWNER_OF_KEY = {key: kind for kind, keys in ACTION_KEYS.items() for key in keys}
_OWNER_OF_SHORT_KEY = dict.fromkeys(ASKING.short, "human")


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
        found = self.shape.entries(node, (), known=PLAN.known, required=PLAN.required)
        for key in found.keys() - {"tasks", "listeners", "verify"}:
            self.shape.locations.record((key,), found[key])
        return PLAN.fill(
            self.shape,
            found,
            (),
            tasks=self._each(found, "tasks", self._task),
            listeners=self._each(found, "listeners", self._listener),
            verify=self._each(found, "verify", self._check),
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
        return TASK.read(self.shape, node, path)

    def _check(self, node: Mapping, path: Path) -> Check:
        return CHECK.read(self.shape, node, path)

    def _listener(self, node: Mapping, path: Path) -> Listener:
        kind = self._listener_type(node, path)
        found = self._listener_entries(node, path, kind)
        return LISTENER.fill(
            self.shape,
            found,
            path,
            action=self._action(kind, found, path),
            approval=self._approval(kind, found.get("approval"), (*path, "approval")),
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
        short = ASKING.short if kind in (ListenerType.HUMAN, None) else {}
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
            known=(*LISTENER.known, *own),
            required=(*LISTENER.required, *(ACTIONS[kind].required if kind else ())),
            misplaced=misplaced,
            short=short,
        )

    def _action(self, kind: ListenerType | None, found: dict[str, Node], path: Path) -> Action:
        if kind is None or kind is ListenerType.HUMAN:
            form = read_form(self.shape, found.get("form"), (*path, "form"))
            return HumanAction(form, asking_from(self.shape, found, path))
        given: dict[str, Any] = {}
        if kind is ListenerType.TOOL:
            fields = found.get("fields"), (*path, "fields")
            given["fields"] = read_form(self.shape, *fields, enriches=True)
            given["consent"] = self._consent(found, path)
        if kind is ListenerType.WAIT_UNTIL:
            given["weekdays"] = self._weekdays(found.get("weekdays"), (*path, "weekdays"))
        return ACTIONS[kind].fill(self.shape, found, path, **given)

    def _weekdays(self, node: Node | None, path: Path) -> tuple[str, ...]:
        weekdays = self.shape.texts(node, path)
        if node is not None and not weekdays and path not in self.shape.broken:
            every_day = msg("weekdays names no day: name some, or leave it out for every day")
            self.shape.wrong(node, path, every_day)
        return weekdays

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
