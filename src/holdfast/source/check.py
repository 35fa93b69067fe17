"""What a plan must satisfy before it may run; all its mistakes at once.

Checked here: ids, references between the parts, conditions, templates and snippets, numbers,
and the tools, agents and plans that it names. `flow` looks at what can happen at all.

A catalogue says what an installation has. Where it has None (or a test has no catalogue), that
kind of name is not checked. Snippets are only parsed here; a caller that knows the sandbox gives
a sharper `snippet_checker`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, assert_never

from holdfast.core.plan.compiled import moment_of
from holdfast.errors import ConditionError, FormRejected, InvalidValue, TemplateError
from holdfast.forms.from_tools import check_enrichment
from holdfast.i18n.message import msg
from holdfast.language.conditions import Condition, parse
from holdfast.language.facts import ROOTS
from holdfast.language.moments import NoMoment
from holdfast.language.strict import strict_json
from holdfast.language.templates import Template, compile_template
from holdfast.model.form import Form
from holdfast.model.interaction import Asking, InteractionType
from holdfast.model.plan import (
    AgentAction,
    Check,
    CodeAction,
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    TaskStatus,
    ToolAction,
    WaitAction,
)
from holdfast.model.values import Json, JsonObject
from holdfast.source.flow import flow_problems
from holdfast.source.locations import Finding, Path
from holdfast.source.names import no_argument, not_known, not_looking, only_looks, unknown
from holdfast.source.numbers import range_problems, wait_problems
from holdfast.source.repairs import repair_problems
from holdfast.source.retry import retry_problems
from holdfast.source.snippets import SnippetProblem, syntax_problems
from holdfast.source.soundness import WHAT_IS_MISSING, asking_problems

SnippetChecker: TypeAlias = Callable[[str], Collection[SnippetProblem]]

RESERVED_LISTENER_IDS: Final = frozenset({"inputs"})
MOST_FIRINGS: Final = 1_000_000

_ID: Final = re.compile(r"[\w-]{1,100}")
_ANY_CLOCK: Final = "00:00"
_WAITS_WHOLE: Final = msg(
    "a wait_until listener has no timeout: it ends at its moment; leave timeout out"
)
_NO_ZONE: Final = msg(
    "after counts from the start, in any time zone: leave timezone out, or write until or clock"
)
_PLAN_ID: Final = re.compile(r"[\w.-]{1,100}")


@dataclass(frozen=True, slots=True)
class Catalog:
    """What an installation has; `tools` has each tool's parameters as a JSON schema."""

    tools: Mapping[str, JsonObject] | None = None
    read_only: Collection[str] = frozenset()
    agents: Collection[str] | None = None
    plans: Collection[str] | None = None
    snippet_checker: SnippetChecker = syntax_problems


def find_problems(plan: Plan, catalog: Catalog) -> Iterator[Finding]:
    """Every mistake, named by its path in the plan."""
    yield from _Checker(plan, catalog).findings()
    yield from flow_problems(plan)


class _Checker:
    def __init__(self, plan: Plan, catalog: Catalog) -> None:
        self.plan = plan
        self.catalog = catalog
        self.task_ids = frozenset(task.task_id for task in plan.tasks)

    def findings(self) -> Iterator[Finding]:
        plan = self.plan
        if not _PLAN_ID.fullmatch(plan.plan_id):
            yield Finding(("plan_id",), msg("a plan_id has letters, digits, _ . and - only"))
        yield from self.task(plan.main_task_id, ("main_task_id",))
        yield from self.ids("tasks", [task.task_id for task in plan.tasks])
        yield from self.ids("listeners", [one.listener_id for one in plan.listeners])
        for index, listener in enumerate(plan.listeners):
            yield from self.listener(listener, ("listeners", index))
        for index, check in enumerate(plan.verify):
            yield from self.verification(check, ("verify", index))
        for index, tool in enumerate(plan.repair.tools):
            yield from not_known("tool", tool, self.catalog.tools, ("repair", "tools", index))
        yield from repair_problems(plan, ("repair",))

    def ids(self, owner: str, ids: list[str]) -> Iterator[Finding]:
        key = "task_id" if owner == "tasks" else "listener_id"
        reserved = ROOTS if owner == "tasks" else RESERVED_LISTENER_IDS
        seen: dict[str, int] = {}
        for index, one in enumerate(ids):
            path: Path = (owner, index, key)
            if not _ID.fullmatch(one):
                yield Finding(
                    path, msg("a {key} has letters, digits, _ and - only, at most 100", key=key)
                )
            elif one in reserved:
                yield Finding(
                    path, msg("the {key} {id} is reserved; choose another", key=key, id=one)
                )
            elif one in seen:
                yield Finding(
                    path,
                    msg(
                        "the {key} {id} is taken by {owner}[{index}]",
                        key=key,
                        id=one,
                        owner=owner,
                        index=seen[one],
                    ),
                )
            seen.setdefault(one, index)

    def task(self, task_id: str, path: Path) -> Iterator[Finding]:
        if task_id not in self.task_ids:
            yield Finding(path, unknown(msg("task"), task_id, self.task_ids))

    def listener(self, one: Listener, path: Path) -> Iterator[Finding]:
        triggers: Path = (*path, "trigger_task_id")
        if not one.trigger_task_id:
            yield Finding(triggers, msg("a listener needs a task that triggers it"))
        for index, task_id in enumerate(one.trigger_task_id):
            yield from self.task(task_id, (*triggers, index))
        yield from self.trigger_condition(one.trigger_condition, (*path, "trigger_condition"))
        yield from self.output(one.success_output, (*path, "success_output"))
        yield from self.output(one.failure_output, (*path, "failure_output"))
        yield from _number_problems(one, path)
        if one.approval and not isinstance(one.action, ToolAction):
            message = msg("only a tool call can be approved; put the call in a tool listener")
            yield Finding((*path, "approval"), message)
        match one.action:
            case ToolAction() as action:
                yield from self.tool_action(action, path)
            case CodeAction() as action:
                yield from self.code_action(action, path)
            case HumanAction() as action:
                yield from self.human_action(action, path)
            case PlanAction() as action:
                yield from self.plan_action(action, path)
            case AgentAction() as action:
                agents = self.catalog.agents
                yield from not_known("agent", action.agent_id, agents, (*path, "agent_id"))
                yield from self.template(action.action_prompt, (*path, "action_prompt"))
            case WaitAction() as action:
                yield from self.wait_action(action, path)
                if one.timeout is not None:
                    yield Finding((*path, "timeout"), _WAITS_WHOLE)
            case _:
                assert_never(one.action)

    def human_action(self, action: HumanAction, path: Path) -> Iterator[Finding]:
        filled_in = bool(action.form.fields)
        usual = InteractionType.USER_INPUT if filled_in else InteractionType.USER_CONFIRMATION
        yield from self.asking(action.asking, usual, action.form, path)

    def asking(
        self, asking: Asking, usual: InteractionType, form: Form, path: Path
    ) -> Iterator[Finding]:
        for key in ("title", "message", "details"):
            yield from self.template(getattr(asking, key), (*path, key))
        yield from asking_problems(asking, usual, form, path)

    def tool_action(self, action: ToolAction, path: Path) -> Iterator[Finding]:
        yield from self.tool_call(action.tool, action.args, path)
        missing, consent = InteractionType.MISSING_INFO, InteractionType.TOOL_APPROVAL
        yield from self.asking(action.missing, missing, WHAT_IS_MISSING, (*path, "missing"))
        yield from self.asking(action.consent, consent, Form(), (*path, "consent"))
        tools = self.catalog.tools or {}
        if _argument_names(tools, action.tool) is None:
            return
        try:
            check_enrichment(tools[action.tool], action.fields)
        except FormRejected as rejected:
            for problem in rejected.problems:
                yield Finding((*path, "fields", *problem.path), str(problem), at_key=True)

    def tool_call(self, tool: str, args: JsonObject, path: Path) -> Iterator[Finding]:
        yield from not_known("tool", tool, self.catalog.tools, (*path, "tool"))
        yield from self.template(args, (*path, "args"))
        names = _argument_names(self.catalog.tools, tool)
        for name in args:
            if names is not None and name not in names:
                message = no_argument(tool, name, names)
                yield Finding((*path, "args", name), message, at_key=True)

    def code_action(self, action: CodeAction, path: Path) -> Iterator[Finding]:
        for message, line, column in self.catalog.snippet_checker(action.code_snippet):
            where: Path = (*path, "code_snippet")
            yield Finding(
                where, msg("bad snippet: {reason}", reason=message), line=line, column=column
            )
        for index, name in enumerate(action.functions):
            yield from not_known("tool", name, self.catalog.tools, (*path, "functions", index))

    def plan_action(self, action: PlanAction, path: Path) -> Iterator[Finding]:
        if action.plan_id != self.plan.plan_id:
            plans = self.catalog.plans
            yield from not_known("plan", action.plan_id, plans, (*path, "plan_id"))
        yield from self.template(action.values, (*path, "values"))

    def wait_action(self, action: WaitAction, path: Path) -> Iterator[Finding]:
        """What is a template is judged when it is rendered."""
        said = {key: getattr(action, key) for key in ("until", "after", "clock")}
        given = [key for key, text in said.items() if text]
        if len(given) != 1:
            yield Finding(path, msg("a wait_until listener has one of until, after and clock"))
            return
        yield from self.template(said[given[0]], (*path, given[0]))
        if action.weekdays and not action.clock:
            yield Finding((*path, "weekdays"), msg("weekdays go with clock only"))
        if action.timezone and action.after:
            yield Finding((*path, "timezone"), _NO_ZONE)
        known = action
        if "{" in said[given[0]]:
            known = WaitAction(clock=_ANY_CLOCK, timezone=action.timezone, weekdays=action.weekdays)
        try:
            moment_of(known, 0.0)
        except NoMoment as wrong:
            yield Finding((*path, wrong.key), wrong.message)

    def verification(self, check: Check, path: Path) -> Iterator[Finding]:
        yield from self.tool_call(check.tool, check.args, path)
        tools = self.catalog.tools
        looks = only_looks(check.tool, self.catalog.read_only)
        if tools is not None and check.tool in tools and not looks:
            yield not_looking(check.tool, (*path, "tool"))
        if check.expect is not None:
            yield from self.expectation(check.expect, (*path, "expect"))

    def expectation(self, text: str, path: Path) -> Iterator[Finding]:
        condition = yield from self.condition(text, path)
        if condition is not None and condition.asks_triggers:
            yield Finding(path, msg("there is no trigger here: write 002.status == Done instead"))

    def trigger_condition(self, text: str, path: Path) -> Iterator[Finding]:
        condition = yield from self.condition(text, path)
        if condition is not None and any(asked[0] == "result" for asked in condition.paths):
            yield Finding(path, msg("there is no result before the listener has run"))

    def condition(self, text: str, path: Path) -> Generator[Finding, None, Condition | None]:
        try:
            condition = parse(text)
        except ConditionError as error:
            message = msg("bad condition: {reason}", reason=error.reason)
            yield Finding(path, message, line=1, column=error.column)
            return None
        for task_id in sorted(condition.task_ids - self.task_ids):
            yield Finding(path, unknown(msg("task"), task_id, self.task_ids))
        return condition

    def output(self, output: Output | None, path: Path) -> Iterator[Finding]:
        if output is not None:
            yield from self.task(output.task_id, (*path, "task_id"))
            yield from self.template(output.context, (*path, "context"), has_result=True)
            if output.status is TaskStatus.CANCELLED:
                message = msg("a task is cancelled only with the whole run; Skipped may be meant")
                yield Finding((*path, "status"), message)

    def template(self, value: Json, path: Path, has_result: bool = False) -> Iterator[Finding]:
        """Each text is compiled by itself, so that a mistake is placed at that text."""
        try:
            plain = strict_json(value)
        except InvalidValue as error:
            yield Finding(path, msg("not a JSON value: {reason}", reason=str(error)))
            return
        for where, text in _texts(plain, path):
            try:
                template = _compiled(text)
            except TemplateError as error:
                yield Finding(
                    where,
                    msg("bad template: {reason}", reason=str(error)),
                    line=1,
                    column=error.column,
                )
            else:
                yield from self.reads(template, where, has_result)

    def reads(self, template: Template, path: Path, has_result: bool) -> Iterator[Finding]:
        tasks = {asked[0]: None for asked in template.task_paths if asked[0] not in ROOTS}
        for task_id in tasks:
            yield from self.task(task_id, path)
        if template.result_paths and not has_result:
            message = msg(
                "there is no result yet: {{{{result…}}}} belongs into an output's context"
            )
            yield Finding(path, message)


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Template:
    return compile_template(text)


def _texts(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    """The texts with braces in them, and where they stand."""
    match value:
        case str() if "{" in value:
            yield path, value
        case dict():
            for key, item in value.items():
                yield from _texts(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from _texts(item, (*path, index))


def _argument_names(tools: Mapping[str, JsonObject] | None, tool: str) -> Collection[str] | None:
    """The arguments that a tool takes; None when that is unknown or it takes any."""
    schema = (tools or {}).get(tool)
    if schema is None or ("properties" not in schema and "additionalProperties" not in schema):
        return None
    # JSON schema allows further properties by default, but no author of a tool means that.
    if schema.get("additionalProperties", False) is not False:
        return None
    names: Collection[str] = schema.get("properties", {})
    return names


def _number_problems(one: Listener, path: Path) -> Iterator[Finding]:
    yield from retry_problems(one.retry, (*path, "retry"))
    yield from wait_problems(one.timeout, (*path, "timeout"))
    if isinstance(one.priority, bool) or not isinstance(one.priority, int):
        yield Finding((*path, "priority"), msg("priority must be a whole number"))
    yield from range_problems(one.max_firings, 1, MOST_FIRINGS, (*path, "max_firings"))
