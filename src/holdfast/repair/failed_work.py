"""What rules may look at: a listener that failed, what it was given and sent, and the tools.

Three sources only: the run's plan, the schemas of tools as they are now, and the run's own data. A
failure's words choose among these (`mentions`) and add nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final

from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import NEW_STEP, StepState
from holdfast.forms.from_tools import form_from_schema
from holdfast.forms.secrets import references_in
from holdfast.forms.shapes import answer_problem, default_problem
from holdfast.language.facts import Path
from holdfast.model.approval import ApprovalMode, ToolFacts
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.plan import Plan, PlanAction, ToolAction
from holdfast.model.retry import Failure
from holdfast.model.values import Json, JsonObject
from holdfast.repair.mentions import accused, disowned, field_names, mentioned, named, said
from holdfast.repair.parts import tools_called
from holdfast.repair.readings import data_of_task, read, rendered
from holdfast.repair.surroundings import Surroundings

_NO_FIELDS: Final = Form()


class FailedWork:
    """`args` are the templates that the plan has for the call, `sent` the values that they came
    to, as far as they came to any; `words` are what others said of the failure."""

    def __init__(
        self, state: PlanState, listener_id: str, failure: Failure, surroundings: Surroundings
    ) -> None:
        self.state = state
        self.listener: CompiledListener = state.plan.listeners[listener_id]
        self.id = listener_id
        self.failure = failure
        self.surroundings = surroundings
        self.plan: Plan = state.plan.plan
        self.words = said(failure.message)
        self.step: StepState = state.steps.get(listener_id, NEW_STEP)
        self.args: JsonObject = {}
        self.tool, self.own_fields = "", _NO_FIELDS
        match self.listener.action:
            case ToolAction(tool=tool, args=args, fields=fields):
                self.tool, self.args, self.own_fields = tool, args, fields
            case PlanAction(values=values):
                self.args = values
            case _:
                pass
        self.facts: ToolFacts | None = surroundings.tools.get(self.tool)

    @cached_property
    def sent(self) -> Mapping[str, Json]:
        """The very arguments of the call, or those it would have had."""
        if self.step.args is not None:
            return self.step.args
        found = ((name, rendered(one, self.state)) for name, one in self.args.items())
        return {**{name: one[0] for name, one in found if one}, **self.step.provided}

    @cached_property
    def schema(self) -> JsonObject:
        return self.facts.parameters if self.facts else {}

    @cached_property
    def properties(self) -> Mapping[str, Field]:
        """What the tool takes, each as a form has it."""
        return fields_of(self.facts) if self.facts else {}

    @cached_property
    def unknown(self) -> list[str]:
        """Arguments of the plan that the tool does not take; as the plan's checker sees it, a
        schema that says nothing of further ones has none."""
        schema = self.schema
        told = "properties" in schema or "additionalProperties" in schema
        if not told or schema.get("additionalProperties", False) is not False:
            return []
        return [name for name in self.args if name not in self.properties]

    @cached_property
    def disowned(self) -> list[str]:
        """Arguments that the service says it does not know, though the tool's declaration lets them
        pass."""
        words = f"{self.failure.code}: {self.words}"
        found = disowned(self.failure.field, words, self.args)
        return [one for one in found if one not in self.unknown]

    @cached_property
    def not_taken(self) -> list[str]:
        """By the declaration, or as the service says itself."""
        return [*self.unknown, *self.disowned]

    @cached_property
    def required(self) -> frozenset[str]:
        return self.facts.required if self.facts else frozenset()

    @cached_property
    def lacking(self) -> list[str]:
        """Arguments that the tool requires and the plan does not give."""
        return [one for one in self.properties if one in self.required and one not in self.args]

    @cached_property
    def accused(self) -> list[str]:
        """The arguments that the failure is about. None where its field is in no schema: too little
        is known of that service."""
        field = field_names(self.failure.field)
        if field and not any(one in self.args or one in self.properties for one in field):
            return []
        sent = {name: self.sent.get(name) for name in self.args}
        return accused(self.failure.field, self.words, sent)

    @cached_property
    def suspects(self) -> list[str]:
        """These; or, where nothing that the tool takes is named, those that are mentioned, or the
        only one."""
        names = list(self.args)
        if self.accused or self.failure.field or self.named(self.properties):
            return self.accused
        return list(mentioned(self.words, names)) or (names if len(names) == 1 else [])

    def named(self, names: Iterable[str]) -> tuple[str, ...]:
        return named(self.failure.field, self.words, names)

    def asked(self, name: str) -> Field:
        """The field by which a person gives an argument."""
        assert self.facts is not None
        enrich = (self.facts.fields, self.own_fields)
        (field,) = form_from_schema(self.schema, [name], *enrich).fields
        return replace(field, required=True, visible_if=None)

    def sources(self, name: str) -> Iterator[Path]:
        """Where the run has a value of that name: the main task first, which has the inputs."""
        for task_id in self.task_ids:
            if name in data_of_task(self.state, task_id):
                yield task_id, "context", name

    def source(self, name: str, field: Field) -> Path | None:
        """The first of them whose value the field takes."""
        found = ((path, read(path, self.state)) for path in self.sources(name))
        fits = (path for path, one in found if one and answer_problem(field, one.value) is None)
        return next(fits, None)

    @cached_property
    def task_ids(self) -> list[str]:
        main = self.state.plan.main
        return [main, *(one.task_id for one in self.plan.tasks if one.task_id != main)]

    def fits(self, name: str, value: Json) -> bool:
        """Whether the tool takes the value there, as far as a form can tell."""
        field = self.properties.get(name)
        return field is not None and answer_problem(field, value) is None

    @cached_property
    def callable(self) -> Mapping[str, ToolFacts]:
        """The tools that a repair may call: the plan's own and those that its author names."""
        named = (*tools_of(self.plan), *self.plan.repair.tools)
        tools = self.surroundings.tools
        known = {one: tools[one] for one in named if one in tools}
        return {name: one for name, one in known.items() if one.mode is not ApprovalMode.DISABLED}


def fields_of(facts: ToolFacts) -> Mapping[str, Field]:
    names = list(facts.parameters.get("properties", {}))
    return {one.name: one for one in form_from_schema(facts.parameters, names).fields}


def with_default(field: Field, default: Json) -> Field:
    """Prefilled with what is at hand, where that may stand in a form; no secret does."""
    if default is None or references_in(default) or field.type is FieldType.SECRET:
        return field
    if default_problem(field, default) is not None:
        return field
    return replace(field, default=default)


def tools_of(plan: Plan) -> Iterator[str]:
    """Every tool that a plan calls, in its order."""
    for one in plan.listeners:
        yield from tools_called(one)
    yield from (check.tool for check in plan.verify)
