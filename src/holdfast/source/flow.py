"""The flow of a plan: what can move which task, and what follows from it before any run.

*Reach.* At the start the main task may have any status but Done and every other task is
NotStarted. A listener can fire when one of its trigger tasks can move and its condition may
hold; then its outputs can move their tasks. What the engine does by itself (a target is
Running while its listener works, Error, Skipped, …) may always follow; Done comes only from
an output. What is not reached when nothing more changes never is. Of listeners that can
never fire only the first cause is reported, not everything that waits for it.

*Snippets* may choose their target while running. One that mentions `target_task` may move
every task whose id it spells out as a string, and every task at all when it spells out none.

*Cycles that cannot end.* A listener fires once per run unless it says `repeat`, so a cycle
is endless only if everything in it repeats, and only if each firing is sure to cause the
next: its success puts a task into a status for which the next condition must hold, whatever
else may be, because it reads nothing but statuses. People can end a cycle, and so can a
snippet that chooses its target: listeners that ask a person, or that choose, are no part of
one. Neither is the main task becoming Done, which ends the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from holdfast.errors import ConditionError
from holdfast.i18n.message import msg
from holdfast.language.conditions import Condition, parse
from holdfast.model.plan import CodeAction, HumanAction, Listener, Plan, TaskStatus, ToolAction
from holdfast.source.dry_run import Outlook, Statuses, may_hold, must_hold
from holdfast.source.locations import Finding
from holdfast.source.snippets import chooses_target, texts_in

_ANY: Final[Statuses] = frozenset(status.value for status in TaskStatus)
_BY_THE_ENGINE: Final[Statuses] = _ANY - {TaskStatus.DONE.value}
_AT_REST: Final[Statuses] = frozenset({TaskStatus.NOT_STARTED.value})
_NAMED_IN_CYCLE: Final = 6


@dataclass(frozen=True, slots=True)
class _Move:
    """A task that a listener may move, and where to."""

    task_id: str
    statuses: Statuses


@dataclass(frozen=True, slots=True)
class _Step:
    """A listener as the flow sees it; `condition` is None when it cannot be read.

    `anywhere` says that it may also move every other task to any status.
    """

    index: int
    listener: Listener
    condition: Condition | None
    moves: tuple[_Move, ...]
    anywhere: bool

    @property
    def watched(self) -> Iterable[str]:
        asked = self.condition.task_ids if self.condition else ()
        return {*self.listener.trigger_task_id, *asked}


def flow_problems(plan: Plan) -> Iterator[Finding]:
    """Tasks and listeners that nothing reaches, a goal that is never met, endless cycles."""
    known = frozenset(task.task_id for task in plan.tasks)
    steps = [_step(index, one, known) for index, one in enumerate(plan.listeners)]
    unreached = list(_unreached(plan, steps))
    yield from (
        Finding(
            ("tasks", index, "task_id"),
            msg("nothing ever reaches task {id}: name it in an output, or remove it", id=task_id),
        )
        for index, task_id in unreached
    )
    if plan.main_task_id in known:
        yield from _goal_problems(plan, steps)
        yield from _Reach(plan, known, steps, {task_id for _, task_id in unreached}).problems()
    yield from _endless_cycles(plan, steps)


def _step(index: int, listener: Listener, known: frozenset[str]) -> _Step:
    named = _named_targets(listener, known)
    moves = (*_output_moves(listener, known), *(_Move(task_id, _ANY) for task_id in named))
    return _Step(index, listener, _condition(listener), moves, _chooses(listener) and not named)


def _condition(listener: Listener) -> Condition | None:
    try:
        return parse(listener.trigger_condition)
    except ConditionError:
        return None


def _output_moves(listener: Listener, known: frozenset[str]) -> Iterator[_Move]:
    chooses = _chooses(listener)
    for output in (listener.success_output, listener.failure_output):
        if output is not None and output.task_id in known:
            yield _Move(output.task_id, _ANY if chooses else frozenset({output.status.value}))


def _named_targets(listener: Listener, known: frozenset[str]) -> frozenset[str]:
    if isinstance(listener.action, CodeAction) and _chooses(listener):
        return known & texts_in(listener.action.code_snippet)
    return frozenset()


def _chooses(listener: Listener) -> bool:
    action = listener.action
    return isinstance(action, CodeAction) and chooses_target(action.code_snippet)


def _unreached(plan: Plan, steps: list[_Step]) -> Iterator[tuple[int, str]]:
    if any(step.anywhere for step in steps):
        return
    moved = {move.task_id for step in steps for move in step.moves} | {plan.main_task_id}
    for index, task in enumerate(plan.tasks):
        if task.task_id not in moved:
            yield index, task.task_id


def _goal_problems(plan: Plan, steps: list[_Step]) -> Iterator[Finding]:
    goal, done = plan.main_task_id, TaskStatus.DONE.value
    if not any(
        step.anywhere or any(m.task_id == goal and done in m.statuses for m in step.moves)
        for step in steps
    ):
        message = msg(
            "no listener ever sets the main task {id} to Done: the plan cannot finish", id=goal
        )
        yield Finding(("main_task_id",), message)


class _Reach:
    """Which statuses tasks may have, growing until nothing changes."""

    def __init__(
        self, plan: Plan, known: frozenset[str], steps: list[_Step], unreached: set[str]
    ) -> None:
        self.steps = steps
        self.possible = dict.fromkeys(known, _AT_REST)
        self.possible[plan.main_task_id] = _BY_THE_ENGINE
        self.possible |= dict.fromkeys(unreached, _ANY)
        self.everywhere = False
        self.waiting = dict.fromkeys(range(len(steps)))
        self.watchers: dict[str, list[int]] = {}
        for step in steps:
            for task_id in step.watched:
                self.watchers.setdefault(task_id, []).append(step.index)

    def problems(self) -> Iterator[Finding]:
        """First what could not fire even if all others did, then what only waits for itself."""
        self.spread(list(self.waiting))
        everything = self.if_all_fired()
        for index in [i for i in self.waiting if not self.can_fire(self.steps[i], everything)]:
            message = msg(
                "listener {id} can never fire: no output brings about what its condition asks",
                id=self.steps[index].listener.listener_id,
            )
            yield self.never(index, message)
            self.fire(index)
        for index in list(self.waiting):
            if index in self.waiting:
                message = msg(
                    "listener {id} can never fire: it waits for what only follows from itself",
                    id=self.steps[index].listener.listener_id,
                )
                yield self.never(index, message)
                self.fire(index)

    def never(self, index: int, message: str) -> Finding:
        return Finding(("listeners", index, "trigger_condition"), message)

    def spread(self, indexes: Iterable[int]) -> None:
        queue = deque(indexes)
        while queue:
            index = queue.popleft()
            if index in self.waiting and self.can_fire(self.steps[index], self.possible):
                queue.extend(self.moved_by(index))

    def fire(self, index: int) -> None:
        self.spread(self.moved_by(index))

    def moved_by(self, index: int) -> Iterator[int]:
        """Let a listener fire; those that may now fire because of it."""
        del self.waiting[index]
        step = self.steps[index]
        if step.anywhere and not self.everywhere:
            self.everywhere = True
            self.possible = dict.fromkeys(self.possible, _ANY)
            yield from self.waiting
        for move in step.moves:
            before = self.possible[move.task_id]
            after = before | move.statuses | _BY_THE_ENGINE
            if after != before:
                self.possible[move.task_id] = after
                yield from self.watchers.get(move.task_id, ())

    def if_all_fired(self) -> dict[str, Statuses]:
        if any(step.anywhere for step in self.steps):
            return dict.fromkeys(self.possible, _ANY)
        possible = dict(self.possible)
        for step in self.steps:
            for move in step.moves:
                possible[move.task_id] |= move.statuses | _BY_THE_ENGINE
        return possible

    @staticmethod
    def can_fire(step: _Step, possible: dict[str, Statuses]) -> bool:
        triggers = step.listener.trigger_task_id
        if all(possible.get(task_id, _ANY) == _AT_REST for task_id in triggers):
            return not triggers
        if step.condition is None:
            return True
        return may_hold(step.condition, triggers, lambda one: possible.get(one, _ANY))


_Fact: TypeAlias = tuple[str, str]
"""A task and the status it was put into."""


@dataclass(slots=True)
class _Cycles:
    """Depth-first search; a way back to an open node is a cycle, each node named once.

    Nodes are listeners, by their index, and between them the facts that they bring about.
    """

    edges: Mapping[int | _Fact, Sequence[int | _Fact]]
    finished: set[int | _Fact] = field(default_factory=set)
    named: set[int | _Fact] = field(default_factory=set)

    def find(self) -> Iterator[list[int]]:
        for start in self.edges:
            for cycle in self._from(start):
                if self.named.isdisjoint(cycle):
                    yield [node for node in cycle if isinstance(node, int)]
                self.named.update(cycle)

    def _from(self, start: int | _Fact) -> Iterator[list[int | _Fact]]:
        trail = {start: iter(self.edges[start])} if start not in self.finished else {}
        while trail:
            current = next(reversed(trail))
            following = next(trail[current], None)
            if following is None:
                self.finished.add(current)
                del trail[current]
            elif following in trail:
                if following not in self.named:
                    path = list(trail)
                    yield path[path.index(following) :]
            elif following not in self.finished:
                trail[following] = iter(self.edges[following])


def _endless_cycles(plan: Plan, steps: list[_Step]) -> Iterator[Finding]:
    for cycle in _Cycles(_sure_edges(plan, steps)).find():
        names = [steps[index].listener.listener_id for index in cycle]
        more = ["…"] if len(names) > _NAMED_IN_CYCLE else []
        shown = " → ".join([*names[:_NAMED_IN_CYCLE], *more, names[0]])
        message = msg(
            "the cycle {path} can never end: every listener in it repeats and asks only "
            "for statuses; let one condition read a context, or drop a repeat",
            path=shown,
        )
        yield Finding(("listeners", min(cycle), "repeat"), message)


def _sure_edges(plan: Plan, steps: list[_Step]) -> dict[int | _Fact, list[int | _Fact]]:
    """From each listener that repeats to its fact, and from there to those that must fire."""
    endless = [step for step in steps if _repeats_by_itself(step)]
    triggered: dict[str, list[_Step]] = {}
    for step in endless:
        for task_id in set(step.listener.trigger_task_id):
            triggered.setdefault(task_id, []).append(step)
    settled = _settled(plan, steps)
    edges: dict[int | _Fact, list[int | _Fact]] = {}
    for step in endless:
        fact = _fact(step)
        edges[step.index] = [fact]
        if fact not in edges:
            others = triggered.get(fact[0], ()) if fact != (plan.main_task_id, "Done") else ()
            edges[fact] = [one.index for one in others if _must_fire(one, fact, settled)]
    return edges


def _fact(step: _Step) -> _Fact:
    output = step.listener.success_output
    assert output is not None
    return output.task_id, output.status.value


def _repeats_by_itself(step: _Step) -> bool:
    one = step.listener
    asks = one.approval or isinstance(one.action, HumanAction)
    asks = asks or (isinstance(one.action, ToolAction) and bool(one.action.fields.fields))
    sure = step.condition is not None and all(
        path[1:] == ("status",) for path in step.condition.paths
    )
    return one.repeat and sure and one.success_output is not None and not asks and not _chooses(one)


def _settled(plan: Plan, steps: list[_Step]) -> Outlook:
    """The statuses in which listeners leave each task."""
    settled = {plan.main_task_id: _BY_THE_ENGINE}
    for step in steps:
        for move in step.moves:
            settled[move.task_id] = settled.get(move.task_id, frozenset()) | move.statuses
    if any(step.anywhere for step in steps):
        return lambda task_id: _ANY
    return lambda task_id: settled.get(task_id, _AT_REST)


def _must_fire(step: _Step, fact: _Fact, settled: Outlook) -> bool:
    assert step.condition is not None
    task_id, status = fact

    def outlook(one: str) -> Statuses:
        return frozenset({status}) if one == task_id else settled(one)

    return must_hold(step.condition, step.listener.trigger_task_id, outlook)
