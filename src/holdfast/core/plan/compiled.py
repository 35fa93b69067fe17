"""A plan made ready to run: looked up by trigger, parsed on first use.

Two kinds of listeners are not in the author's file: `inputs` asks for what the
main task needs at the start, and `verify.1`, `verify.2`, … look at the outcome
when the main task is Done, as does `verify.hr` with the verification tools of the
agent `hr` where that takes part. They run like every other listener.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from holdfast.errors import NotFound
from holdfast.forms.lost_results import lost_result_form
from holdfast.i18n.message import msg
from holdfast.language.conditions import Condition, parse
from holdfast.language.moments import next_time, read_duration, read_moment
from holdfast.language.templates import Template, compile_template, literally
from holdfast.model.events import Move
from holdfast.model.form import Form
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
    WhilePaused,
)
from holdfast.model.record import lazy
from holdfast.model.retry import RetryPolicy

_STATUSES = {status.value: status for status in TaskStatus}

INPUTS = "inputs"
VERIFY = "verify."


class CompiledListener:
    """A listener with its condition and templates parsed when they are first needed."""

    def __init__(self, listener: Listener, check: Check | None = None) -> None:
        self.listener = listener
        self.id = listener.listener_id
        self.action = listener.action
        self.check = check
        self.verifies = self.id.startswith(VERIFY)
        output = listener.success_output
        self.target = output.task_id if output else None
        self.running = (Move(self.target, TaskStatus.RUNNING, self.id),) if self.target else ()
        """Its target is Running while it works; this is the move where it fires nothing."""
        alone = len(listener.trigger_task_id) == 1
        self.wanted = _STATUSES.get(listener.trigger_condition.strip()) if alone else None
        """The status its only trigger must have, where that is the whole condition."""
        self.is_code = isinstance(listener.action, CodeAction)
        self.tool: str | None = None
        if isinstance(listener.action, ToolAction):
            self.tool, self.fields = listener.action.tool, listener.action.fields

    def prepare(self) -> None:
        _ = (self.condition, self.args, self.success, self.failure, self.expect)
        assert self.bounded is not None

    @lazy
    def condition(self) -> Condition:
        return parse(self.listener.trigger_condition)

    @lazy
    def args(self) -> Template:
        match self.action:
            case ToolAction(args=args):
                return compile_template(dict(args))
            case PlanAction(values=values):
                return compile_template(dict(values))
            case AgentAction(action_prompt=prompt):
                return compile_template({"prompt": prompt})
            case WaitAction(until=until, after=after, clock=clock):
                return compile_template({"until": until, "after": after, "clock": clock})
            case _:
                return compile_template({})

    @lazy
    def words(self) -> Template:
        """The title and message of a question to a person."""
        assert isinstance(self.action, HumanAction)
        asking = self.action.asking
        return compile_template([asking.title, asking.message, asking.details])

    @lazy
    def success(self) -> Template:
        return _output_template(self.listener.success_output)

    @lazy
    def failure(self) -> Template:
        return _output_template(self.listener.failure_output)

    @lazy
    def bounded(self) -> bool:
        """What its outputs set is bounded as its result is; a snippet may set what it likes."""
        return not self.is_code and self.success.bounded and self.failure.bounded

    @lazy
    def expect(self) -> Condition | None:
        return parse(self.check.expect) if self.check and self.check.expect else None

    @lazy
    def lost_result(self) -> Form:
        """What a person must tell of a result that is lost: all that the plan reads of it."""
        judged = self.expect.paths if self.expect else ()
        checked = (path for path in judged if path[0] == "result")
        return lost_result_form((*self.success.result_paths, *checked))

    @lazy
    def code_reads(self) -> frozenset[str] | None:
        """The task ids a snippet reads by literal name, or None when it may read any."""
        assert isinstance(self.action, CodeAction)
        return _literal_reads(self.action.code_snippet)

    @property
    def pure(self) -> bool:
        """Touches nothing outside the process, so it may simply run again."""
        return isinstance(self.action, CodeAction) and not self.action.functions


def moment_of(action: WaitAction, now: float) -> float:
    """When it goes on, in seconds since the epoch; raises NoMoment."""
    if action.after:
        return now + read_duration(action.after)
    if action.clock:
        return next_time(now, action.clock, action.timezone, action.weekdays)
    return read_moment(action.until, action.timezone)


def _output_template(output: Output | None) -> Template:
    return compile_template(dict(output.context) if output else {})


def _literal_reads(snippet: str) -> frozenset[str] | None:
    tree = ast.parse(snippet)
    literal: set[str] = set()
    explained: set[int] = set()
    for node in ast.walk(tree):
        name, key = _literal_lookup(node)
        if name is not None and key is not None:
            literal.add(key)
            explained.add(id(name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "context" and id(node) not in explained:
            return None
    return frozenset(literal)


def _literal_lookup(node: ast.AST) -> tuple[ast.Name | None, str | None]:
    """`context["002"]` and `context.get("002")` read one task that is known beforehand."""
    match node:
        case ast.Subscript(
            value=ast.Name(id="context") as name, slice=ast.Constant(value=str(key))
        ):
            return name, key
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="context") as name, attr="get"),
            args=[ast.Constant(value=str(key)), *_],
        ):
            return name, key
        case _:
            return None, None


Watching: TypeAlias = Mapping[TaskStatus, Mapping[str, Sequence[CompiledListener]]]

_task_id: Final = attrgetter("task_id")


class Tables(NamedTuple):
    """What a plan's listeners are looked up in. `own` are those that are not in the author's file;
    `watching` has by a status, and by the task that gets it, the listeners that this may fire."""

    own: Mapping[str, CompiledListener]
    listeners: Mapping[str, CompiledListener]
    by_trigger: Mapping[str, Sequence[CompiledListener]]
    watching: Watching


def tables_of(plan: Plan) -> Tables:
    own = own_listeners(plan)
    listeners = {**{one.listener_id: CompiledListener(one) for one in plan.listeners}, **own}
    by_trigger: dict[str, list[CompiledListener]] = {}
    for one in plan.listeners:
        for task_id in one.trigger_task_id:
            by_trigger.setdefault(task_id, []).append(listeners[one.listener_id])
    watching: dict[TaskStatus, dict[str, Sequence[CompiledListener]]]
    watching = {status: {} for status in TaskStatus}
    for task_id, triggered in by_trigger.items():
        watch(watching, task_id, triggered)
    return Tables(own, listeners, by_trigger, watching)


def watch(
    watching: Mapping[TaskStatus, dict[str, Sequence[CompiledListener]]],
    task_id: str,
    triggered: Iterable[CompiledListener],
) -> None:
    """Have a task watched by the listeners that it triggers."""
    found: dict[TaskStatus, list[CompiledListener]] = {}
    for one in triggered:
        for status in TaskStatus if one.wanted is None else (one.wanted,):
            found.setdefault(status, []).append(one)
    for status, ones in found.items():
        watching[status][task_id] = ones


def own_listeners(plan: Plan) -> dict[str, CompiledListener]:
    """Those that ask for the inputs, and look at the outcome."""
    own: dict[str, CompiledListener] = {}
    if plan.inputs.fields:
        own[INPUTS] = CompiledListener(_inputs_listener(plan))
    for number, check in enumerate(plan.verify, 1):
        one = _check_listener(f"{VERIFY}{number}", check)
        own[one.listener_id] = CompiledListener(one, check)
    for agent_id in agents_of(plan):
        one = _agent_check(f"{VERIFY}{agent_id}", agent_id, plan)
        own[one.listener_id] = CompiledListener(one)
    return own


def agents_of(plan: Plan) -> tuple[str, ...]:
    """The agents that take part, each of which looks at the outcome in the end."""
    actions = (one.action for one in plan.listeners)
    ids = (one.agent_id for one in actions if isinstance(one, AgentAction))
    return tuple(dict.fromkeys(ids))


class CompiledPlan:
    """`holds` says that other branches stop while a person is asked, here or in a child run.
    `tables` are those of the plan, where they are known already."""

    def __init__(self, plan: Plan, digest: str, tables: Tables | None = None) -> None:
        self.plan = plan
        self.digest = digest
        self.main = plan.main_task_id
        self.holds = plan.while_paused is WhilePaused.HOLD
        self.task_ids = frozenset(map(_task_id, plan.tasks))
        self.own, self.listeners, self.by_trigger, self.watching = tables or tables_of(plan)

    def __eq__(self, other: object) -> bool:
        """A plan's digest is its name."""
        return isinstance(other, CompiledPlan) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @lazy
    def verify_ids(self) -> tuple[str, ...]:
        return tuple(one for one in self.own if one.startswith(VERIFY))

    def prepare(self) -> None:
        """Parse everything now, so that no run has to wait for it."""
        for listener in self.listeners.values():
            listener.prepare()

    def listener(self, listener_id: str) -> CompiledListener:
        try:
            return self.listeners[listener_id]
        except KeyError:
            raise NotFound(
                msg(
                    "plan {id} has no listener {listener}",
                    id=self.plan.plan_id,
                    listener=listener_id,
                )
            ) from None


def _inputs_listener(plan: Plan) -> Listener:
    main = plan.main_task_id
    return Listener(
        listener_id=INPUTS,
        trigger_task_id=(main,),
        trigger_condition=TaskStatus.NOT_STARTED.value,
        action=HumanAction(form=plan.inputs),
        success_output=Output(main, TaskStatus.RUNNING),
    )


def _check_listener(listener_id: str, check: Check) -> Listener:
    return Listener(
        listener_id=listener_id,
        trigger_task_id=(),
        trigger_condition=TaskStatus.DONE.value,
        action=ToolAction(check.tool, check.args),
        retry=RetryPolicy(),
    )


def _agent_check(listener_id: str, agent_id: str, plan: Plan) -> Listener:
    """It begins anew and remembers nothing, so it is told what its part began with and led to."""
    concerned = _concerned(agent_id, plan)
    known = [
        f"- {literally(f'{task.task_id} {task.name}')}: {{{task.task_id}.context}}"
        for task in plan.tasks
        if task.task_id in concerned
    ]
    name = literally(repr(plan.name))
    words = f"Everything for {name} is said to be done. Check the outcome of your part."
    return Listener(
        listener_id=listener_id,
        trigger_task_id=(),
        trigger_condition=TaskStatus.DONE.value,
        action=AgentAction(agent_id, "\n".join([words, "What is known:", *known])),
    )


def _concerned(agent_id: str, plan: Plan) -> frozenset[str]:
    """The goal, and the tasks between which the agent's listeners stand."""
    found = {plan.main_task_id}
    for one in plan.listeners:
        if isinstance(one.action, AgentAction) and one.action.agent_id == agent_id:
            found.update(one.trigger_task_id)
            found.update([one.success_output.task_id] if one.success_output else [])
    return frozenset(found)
