"""Drafts: the plan that a model's sketch makes, judged before a person is asked about it.

A draft has passed what every plan must, the checker with the real catalogue, and has been played
through (`core.repair.rehearsal`). It is nobody's plan yet: `outline` tells a person what it would
do, in lines of which the fixed ones can be put into another language.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import TopologicalSorter

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.repair.rehearsal import rehearse_plan
from holdfast.core.storing import plan_digest, record_to_json
from holdfast.i18n.message import msg
from holdfast.language.display import visible
from holdfast.language.strict import canonical_json
from holdfast.model.message import ModelReply
from holdfast.model.plan import Plan
from holdfast.model.record import adapter, record
from holdfast.model.repair import Rehearsal
from holdfast.model.values import JsonObject
from holdfast.repair.replies import Unusable
from holdfast.repair.sketch import Sketch, SketchedStep, read_sketch_reply
from holdfast.repair.sketched_plan import plan_of
from holdfast.repair.surroundings import Surroundings
from holdfast.source.check import Catalog, find_problems


@record
class Draft:
    """A sketch, the plan that it makes, and how that would go. `outline` says so in lines."""

    sketch: Sketch
    plan: Plan
    digest: str
    rehearsal: Rehearsal
    outline: str = ""


def drafted(
    reply: ModelReply, surroundings: Surroundings, plan_id: str, *, now: float
) -> Draft | Unusable:
    """The draft that a reply comes to, or all that is wrong with it."""
    sketch = read_sketch_reply(reply, surroundings.tools)
    if isinstance(sketch, Unusable):
        return sketch
    plan = plan_of(sketch, surroundings.tools, plan_id)
    if problems := tuple(findings(plan, surroundings.catalog)):
        return Unusable(problems)
    compiled = CompiledPlan(plan, plan_digest(plan))
    rehearsal = rehearse_plan(compiled, {}, surroundings.tools.get, now=now)
    outline = "\n".join(map(visible, _lines(sketch, plan, rehearsal, surroundings)))
    return Draft(sketch, plan, compiled.digest, rehearsal, outline)


def draft_to_json(draft: Draft) -> JsonObject:
    return {
        "goal": draft.sketch.goal,
        "digest": draft.digest,
        "sketch": adapter(Sketch).dump_python(draft.sketch, mode="json"),
        "plan": record_to_json(draft.plan),
        "rehearsal": adapter(Rehearsal).dump_python(draft.rehearsal, mode="json"),
        "outline": draft.outline,
    }


def findings(plan: Plan, catalog: Catalog) -> Iterator[str]:
    """What the plan's checker says of a plan that stands in no file."""
    for one in find_problems(plan, catalog):
        place = ".".join(map(str, one.path))
        yield msg("{place}: {problem}", place=place, problem=one.message)


def _lines(
    sketch: Sketch, plan: Plan, rehearsal: Rehearsal, surroundings: Surroundings
) -> Iterator[str]:
    steps, checks = tuple(enumerate(_in_order(sketch), 1)), sketch.check
    acting = [str(number) for number, one in steps if not surroundings.tools[one.tool].read_only]
    yield msg("A model drew up this plan:")
    yield sketch.goal
    yield msg("It calls, in this order:")
    yield from (f"{number}. {one.id}: {_call(one.tool, one.args)}" for number, one in steps)
    if acting:
        yield msg("These of them act, and each asks for approval first:")
        yield ", ".join(acting)
    if plan.inputs.fields:
        yield msg("It asks at the start for:")
        yield from (f"- {one.label or one.name}" for one in plan.inputs.fields)
    if checks:
        yield msg("It looks in the end whether it has succeeded:")
        yield from (f"- {_call(one.tool, one.args)} {one.expect or ''}".rstrip() for one in checks)
    if rehearsal.reached:
        yield msg("In the rehearsal the goal is reached.")
    else:
        yield msg("In the rehearsal the goal is not reached.")
        yield from (f"- {one}" for one in (*rehearsal.stopped, *rehearsal.open_conditions))


def _in_order(sketch: Sketch) -> Iterator[SketchedStep]:
    """Each after those that it waits for."""
    steps = {one.id: one for one in sketch.steps}
    order = TopologicalSorter({one.id: one.after for one in sketch.steps}).static_order()
    return (steps[one] for one in order)


def _call(tool: str, args: JsonObject) -> str:
    return f"{tool} {canonical_json(dict(args))}"
