"""A plan compiled anew after a patch: only what the patch concerns is made again.

A run's plan may have ten thousand listeners, and a patch is applied while other runs wait for the
loop. So listeners that it leaves alone are shared with the plan before, and only the tasks that
trigger others than before are looked through. What comes of it is what compiling the whole plan
comes to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import count
from operator import attrgetter
from typing import Final

from holdfast.core.plan.compiled import (
    CompiledListener,
    CompiledPlan,
    Tables,
    own_listeners,
    watch,
)
from holdfast.model.plan import AgentAction, Plan

_listener_id: Final = attrgetter("listener_id")


def recompiled(
    before: CompiledPlan, plan: Plan, digest: str, concerned: Collection[str]
) -> CompiledPlan:
    """`plan`, which is the one before but for tasks that are new and the `concerned` listeners:
    those that are new, and those that have changed."""
    ids = tuple(map(_listener_id, plan.listeners))
    found = dict(zip(ids, plan.listeners, strict=True))
    known = before.listeners
    new = {one: CompiledListener(found[one]) for one in concerned}
    old = {one: known[one] for one in concerned if one in known}
    own = before.own
    if any(isinstance(one.action, AgentAction) for one in (*old.values(), *new.values())):
        own = own_listeners(plan)  # they are told what the agents' parts begin with and lead to
    made = {**known, **new, **own}
    listeners = {**dict(zip(ids, map(made.__getitem__, ids), strict=True)), **own}
    triggers = dict(before.by_trigger)
    watching = {status: dict(tasks) for status, tasks in before.watching.items()}
    for task_id, triggered in _triggered(before, new, old, dict(zip(ids, count(), strict=False))):
        for tasks in watching.values():
            tasks.pop(task_id, None)
        watch(watching, task_id, triggered)
        triggers[task_id] = triggered
    return CompiledPlan(plan, digest, Tables(own, listeners, triggers, watching))


def _triggered(
    before: CompiledPlan,
    new: Mapping[str, CompiledListener],
    old: Mapping[str, CompiledListener],
    places: Mapping[str, int],
) -> Iterable[tuple[str, list[CompiledListener]]]:
    """By each task that triggers others than before, or changed ones, all that it triggers: some,
    for what is put before a listener has its trigger."""
    changed = (*old.values(), *new.values())
    for task_id in dict.fromkeys(t for one in changed for t in one.listener.trigger_task_id):
        left = [one for one in before.by_trigger.get(task_id, ()) if one.id not in new]
        come = [one for one in new.values() for t in one.listener.trigger_task_id if t == task_id]
        yield task_id, sorted([*left, *come], key=lambda one: places[one.id])
