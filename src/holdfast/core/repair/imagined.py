"""Imagined outcomes: what comes of work that is not done, and what people answer who are not asked.

What nobody knows yet is a placeholder, which says where it will come from: `‹L002.employee_id›` is
the field `employee_id` of what the listener `L002` returns. A result has the shape of the schema
that the tool's author gave; else that of the last result seen; else what the plan reads of it, for
without that it could not go on at all. A field that is not in a known schema or result is not
imagined: a plan that reads it comes to grief as it would in earnest.

Of a result seen before the texts are placeholders too: a person must not take the id of one order
for that of the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias, assert_never

from holdfast.core.plan.builder import updates_for
from holdfast.core.plan.compiled import CompiledListener, CompiledPlan
from holdfast.core.plan.state import PlanState, TaskFacts
from holdfast.core.repair.samples import Paths, likeness, placeholder, sample
from holdfast.core.run.steps import succeeded
from holdfast.errors import TemplateError
from holdfast.forms.validation import visible_fields
from holdfast.forms.values import allowed_options
from holdfast.language.facts import ROOTS, Path
from holdfast.language.templates import Template
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.plan import HumanAction, PlanInstanceStatus
from holdfast.model.record import lazy
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

ToolsByName: TypeAlias = Callable[[str], c.ToolFacts | None]
Worked: TypeAlias = f.CallTool | f.RunSnippet | f.CallFunction | f.Conclude

IMAGINED: Final = Failure(FailureKind.PERMANENT, "imagined")
_PLACEHOLDER: Final = re.compile("‹[^›]+›")
_WHOLE: Final = re.compile(r"\s*\{\{\s*(result(?:\.[\w-]+)*)\s*\}\}\s*")


class Imagination:
    """Of one plan's work: all of it succeeds but that of the listener `failing`, each time."""

    def __init__(
        self,
        plan: CompiledPlan,
        tools: ToolsByName,
        seen: Mapping[str, Json],
        failing: str | None = None,
    ) -> None:
        self.plan, self.tools, self.seen, self.failing = plan, tools, seen, failing
        self.reads = Reads(plan)

    def outcome(self, effect: Worked, state: PlanState) -> c.PlanOutcome:
        listener = self.plan.listeners[effect.work.step_id]
        fails = listener.id == self.failing and not isinstance(effect, f.Conclude)
        if listener.check is not None:
            # A failure that is none of the check itself leaves open what it would have said.
            return c.Failed(IMAGINED, result={"success": False} if fails else None)
        if fails:
            return c.Failed(IMAGINED)
        if isinstance(effect, f.CallFunction):
            return c.CallReturned(effect.index, self.returned(effect.function, listener.id, ()))
        try:
            result = self._result(effect, listener, state)
            return c.Succeeded(result, updates_for(listener, True, result, state))
        except TemplateError as error:
            return c.OutputBroken({}, str(error))

    def word_of_child(self, listener_id: str) -> tuple[str, Json]:
        """How a child run ends, and its result; an agent that checks the outcome has a verdict."""
        listener, fails = self.plan.listeners[listener_id], listener_id == self.failing
        if listener.verifies:
            return PlanInstanceStatus.DONE, {"verdict": "failed" if fails else "verified"}
        if fails:
            return PlanInstanceStatus.ERROR, None
        try:
            return PlanInstanceStatus.DONE, _read_of(listener_id, self.reads.of_result(listener))
        except TemplateError:  # which its output will meet
            return PlanInstanceStatus.DONE, {}

    def returned(self, tool: str, name: str, paths: Paths) -> Json:
        """What a tool returns, of which the plan reads these paths."""
        facts, seen = self.tools(tool), self.seen.get(tool)
        if facts is not None and facts.returns:
            return sample(facts.returns, name, paths)
        if seen is not None and succeeded(seen):
            return likeness(seen, name, paths)
        return _read_of(name, paths)

    def _result(
        self,
        effect: f.CallTool | f.RunSnippet | f.Conclude,
        listener: CompiledListener,
        state: PlanState,
    ) -> Json:
        match effect:
            case f.Conclude(result=result):
                return result
            case f.CallTool(tool=tool):
                return self.returned(tool, listener.id, self.reads.of_result(listener))
            case f.RunSnippet():
                return self._snippet(listener, state)
            case _:
                assert_never(effect)

    def _snippet(self, listener: CompiledListener, state: PlanState) -> Json:
        """A snippet may leave whatever is read there in its task's context."""
        result = _read_of(listener.id, self.reads.of_result(listener))
        output = listener.listener.success_output
        if output is None:
            return result
        context = listener.success.fill(TaskFacts(state.tasks, {"result": result}))
        known = {*context, *state.context_of(output.task_id)}
        lacking = [one for one in self.reads.of_context(output.task_id) if one[0] not in known]
        if not lacking:
            return result
        return {"context": {**_read_of(listener.id, lacking), **context}}


class Reads:
    """What a plan's templates read, of results and of what results leave in contexts."""

    def __init__(self, plan: CompiledPlan) -> None:
        self.plan = plan

    def of_result(self, listener: CompiledListener) -> Paths:
        """What is read of the listener's result: at once, and later under the name that a context
        has for it."""
        paths = [*(one[1:] for one in listener.success.result_paths), *self._later(listener)]
        return list(dict.fromkeys(paths))

    def of_context(self, task_id: str) -> Paths:
        return self._contexts.get(task_id, ())

    def _later(self, listener: CompiledListener) -> Iterator[Path]:
        output = listener.listener.success_output
        if output is None:
            return
        for name, value in output.context.items():
            if isinstance(value, str) and (whole := _WHOLE.fullmatch(value)):
                _, *part = whole[1].split(".")
                for first, *rest in self.of_context(output.task_id):
                    if rest and first == name:
                        yield (*part, *rest)

    @lazy
    def _contexts(self) -> Mapping[str, Paths]:
        found: dict[str, dict[Path, None]] = {}
        for listener in self.plan.listeners.values():
            for path in (path for one in _templates(listener) for path in one.task_paths):
                if path[0] not in ROOTS and len(path) > 2:
                    found.setdefault(path[0], {})[path[2:]] = None
        return {task_id: list(paths) for task_id, paths in found.items()}


def _templates(listener: CompiledListener) -> Iterator[Template]:
    asks = isinstance(listener.action, HumanAction)
    for name in ("args", "success", "failure", *(["words"] if asks else [])):
        try:
            yield getattr(listener, name)
        except TemplateError:
            continue  # it fails the listener that has it, once that is played


def _read_of(name: str, paths: Paths) -> Json:
    """Where nothing else is known of a result."""
    return sample({}, name, paths) if paths else {}


def is_imagined(value: Json) -> bool:
    """Whether a text has a placeholder in it."""
    return isinstance(value, str) and _PLACEHOLDER.search(value) is not None


def answers_to(form: Form, name: str) -> dict[str, Json]:
    """What a person might fill in: the default, or the first of what there is to choose from."""
    filled = {one.name: _answer(one, name) for one in form.fields}
    return {one.name: filled[one.name] for one in visible_fields(form, filled)}


def _answer(field: Field, name: str) -> Json:
    unknown = placeholder(name, field.name)
    if field.default is not None:
        return field.default
    if field.type is FieldType.BOOLEAN:
        return True
    if options := allowed_options(field):
        first = unknown if options[0].requires_input else options[0].value
        return [first] if field.type is FieldType.MULTISELECT else first
    return field.validation.values[0] if field.validation.values else unknown
