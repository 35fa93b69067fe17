"""Rules about results: a field that a template reads and the tool calls something else by now.

The work is done and its result is kept, so that only the output is determined anew. The field is
looked for in that result: by the same name elsewhere, by a name much like it, and last as the only
one that the call itself did not give and that nothing else reads. Where a tool of the plan is to be
given the value, only what that takes is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from holdfast.core.plan.state import TaskFacts
from holdfast.forms.shapes import answer_problem
from holdfast.i18n.message import joined, msg
from holdfast.language.facts import Path
from holdfast.language.spelling import nearest
from holdfast.model.form import Field
from holdfast.model.plan import Output, ToolAction
from holdfast.model.values import Json
from holdfast.repair.drafts import Draft, Rank, confirm_first, set_output
from holdfast.repair.failed_work import FailedWork, fields_of
from holdfast.repair.leaves import paths_in
from holdfast.repair.mentions import stems
from holdfast.repair.readings import (
    Reading,
    absent,
    in_result,
    instead,
    lone_path,
    nodes,
    redirected,
    written,
)

_MOST_FIELDS: Final = 3
_LOOK_AGAIN: Final = msg("Look again?")
_NOTHING_CHANGES: Final = msg("The answer could not be read. Looking changes nothing.")
_SUCCESS: Final = "success"


def unread(work: FailedWork) -> Iterator[Draft]:
    """A look whose answer could not be read does no harm twice; a person says when."""
    if work.step.carried is None and work.tool and work.surroundings.looks(work.tool):
        operations = confirm_first(work.id, _LOOK_AGAIN, _NOTHING_CHANGES)
        reason = msg("{tool} only looks, and may be asked again", tool=work.tool)
        yield Draft("look_again", Rank.CONFIRM, operations, reason)


def results(work: FailedWork) -> Iterator[Draft]:
    output = work.listener.listener.success_output
    if work.step.carried is None or output is None:
        return
    result = work.step.carried[0]
    facts = TaskFacts(work.state.tasks, {"result": result})
    lost = absent(dict(output.context), facts)
    found = {path: _instead(work, output, path, result) for path in lost}
    if not found or not all(found.values()):
        return
    best = {path: readings[0] for path, readings in found.items()}
    sure = all(len(ways) == 1 and _alike(path, ways[0].path) for path, ways in found.items())
    yield _reading(work, output, best, sure)
    for path, readings in found.items():
        for other in readings[1:_MOST_FIELDS]:
            yield _reading(work, output, {**best, path: other}, False)


def _alike(old: Path, new: Path) -> bool:
    return bool(stems(old[-1]) & stems(new[-1])) or nearest(old[-1], new[-1:]) is not None


def _reading(work: FailedWork, output: Output, found: Mapping[Path, Reading], sure: bool) -> Draft:
    changes = {path: one.path for path, one in found.items()}
    operations = set_output(work.id, redirected(output.context, changes))
    told = (
        msg("the result has {new} in place of {old}", new=written(new), old=written(old))
        for old, new in changes.items()
    )
    return Draft("other_field", Rank.EVIDENT, operations, joined("; ", told), sure, not sure)


def _instead(work: FailedWork, output: Output, path: Path, result: Json) -> list[Reading]:
    if path[0] != "result":
        return instead(path, work.state)
    takers = list(_takers(work, output, path))

    def fits(value: Json) -> bool:
        return all(answer_problem(field, value) is None for field in takers)

    return in_result(path, result, fits) or _only_one_left(work, output, result, fits)


def _only_one_left(
    work: FailedWork, output: Output, result: Json, fits: Callable[[Json], bool]
) -> list[Reading]:
    """What the call did not give itself and the output does not read."""
    read = set(paths_in(dict(output.context)))
    left = [
        one
        for one in nodes(result, ("result",))
        if one.path not in read
        and one.path[-1] != _SUCCESS
        and one.value not in work.sent.values()
        and not isinstance(one.value, Mapping)
        and fits(one.value)
    ]
    return left if len(left) == 1 else []


def _takers(work: FailedWork, output: Output, path: Path) -> Iterator[Field]:
    """The arguments of the plan's tools that are to be given just this."""
    names = [name for name, one in output.context.items() if lone_path(one) == path]
    places = {(output.task_id, "context", name) for name in names}
    tools = work.surroundings.tools
    for one in work.plan.listeners:
        if isinstance(one.action, ToolAction) and one.action.tool in tools:
            given = one.action.args.items()
            taking = [name for name, arg in given if lone_path(arg) in places]
            fields = fields_of(tools[one.action.tool]) if taking else {}
            yield from (fields[name] for name in taking if name in fields)
