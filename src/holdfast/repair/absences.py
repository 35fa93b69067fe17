"""Absences: what a patch reads that no run of its plan could have.

A task's context has what stands there now and what outputs write into it. A snippet may write
anything, so nothing is said of a task that one can move, and the engine tells of failures in the
main task.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.core.plan.state import PlanState
from holdfast.i18n.message import msg
from holdfast.language.facts import Path
from holdfast.language.spelling import remedy
from holdfast.model.plan import CodeAction, Plan
from holdfast.repair.changes import Changes
from holdfast.repair.parts import outputs_of, read_by
from holdfast.repair.provenance import OF_THE_ENGINE
from holdfast.repair.touches import Touch
from holdfast.source.snippets import chooses_target


def absences(state: PlanState, changes: Changes) -> Iterator[Touch]:
    """What is new in a listener's templates and leads nowhere, now or later."""
    after = changes.after
    tasks = {one.task_id for one in after.tasks}
    if any(_may_move_all(one.action) for one in after.listeners):
        return
    for one in changes.listeners:
        for path in sorted(read_by(one.after) - read_by(one.before)):
            if path[0] in tasks and len(path) > 2:
                yield from _absent(state, after, one.id, path)


def _absent(state: PlanState, plan: Plan, listener_id: str, path: Path) -> Iterator[Touch]:
    names = _written_into(plan, path[0])
    if names is None:
        return
    known = {*names, *state.context_of(path[0])}
    if path[0] == plan.main_task_id:
        known |= OF_THE_ENGINE | {one.name for one in plan.inputs.fields}
    if path[2] not in known:
        listed = ", ".join(sorted(known - OF_THE_ENGINE)) or msg("nothing")
        told = msg(
            "{id} reads {path}, which nothing writes: {hint}",
            id=listener_id,
            path=".".join(path),
            hint=remedy(path[2], known, msg("task {task} has {names}", task=path[0], names=listed)),
        )
        yield Touch(listener_id, told)


def _written_into(plan: Plan, task_id: str) -> set[str] | None:
    """The parts of a task's context that outputs write; None where they may write anything."""
    names: set[str] = set()
    for one in plan.listeners:
        for output in outputs_of(one):
            if output.task_id == task_id:
                if isinstance(one.action, CodeAction):
                    return None
                names.update(output.context)
    return names


def _may_move_all(action: object) -> bool:
    return isinstance(action, CodeAction) and chooses_target(action.code_snippet)
