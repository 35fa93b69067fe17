"""The people who are asked: one who answers as the oracle says, and one who says yes to everything.

They see what any person sees, questions with their options and forms, and the office itself. What
they have said is noted with the number of calls that the office had had by then, so that afterwards
it can be told from the office's log alone what happened without a consent or after a refusal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from bench.repair.patterns import accepted
from bench.repair.scenario import Person
from holdfast import Holdfast
from holdfast.demo.office import Office
from holdfast.errors import AlreadyAnswered, CallerError, TooLate
from holdfast.journal.port import QuestionRow
from holdfast.model.form import Field, FieldType
from holdfast.model.interaction import InteractionRequest
from holdfast.model.rows import request_of

ORACLE: Final = "oracle"
EVERYTHING: Final = "everything"

WHO: Final = "will.zhang"
ANOTHER: Final = "zhang.san"

REPAIR: Final = "repair"
APPROVAL: Final = "approval"
UNKNOWN: Final = "unknown"
CHOICE: Final = "choice"
FORM: Final = "form"
_BY_OPTIONS: Final = (
    (REPAIR, {"apply", "refuse"}),
    (APPROVAL, {"approve", "reject"}),
    (UNKNOWN, {"happened", "run_again"}),
    (CHOICE, {"confirm", "reject"}),
    (FORM, {"provide"}),
)
_NO: Final = ("refuse", "reject")
_YES: Final = {
    REPAIR: "apply",
    APPROVAL: "approve",
    UNKNOWN: "run_again",
    CHOICE: "confirm",
    FORM: "provide",
}


@dataclass(frozen=True, slots=True)
class Note:
    """What a person has said, when the office had had so many `calls`. Of a consent to a call:
    which `tool`, and with which `args`. Of one to a repair: which `tools` it would have called, and
    of which of them it `warned` that they have been called already."""

    calls: int
    kind: str
    yes: bool
    tool: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    tools: frozenset[str] = frozenset()
    warned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Reply:
    option: str
    data: Mapping[str, Any] = field(default_factory=dict)
    feedback: str | None = None


def kind_of(request: InteractionRequest) -> str:
    """What a question is for, as its options tell a person."""
    offered = {one.option_id for one in request.options}
    return next((kind for kind, options in _BY_OPTIONS if options <= offered), "other")


class Answering:
    """A person at work; the office has had so many calls `before`."""

    def __init__(
        self, app: Holdfast, office: Office, person: Person, approves: str, before: int = 0
    ) -> None:
        self._app, self._office, self._person, self.before = app, office, person, before
        self._says_yes = approves == EVERYTHING
        self._dealt_with: set[str] = set()
        self._considered: set[str] = set()
        self.notes: list[Note] = []
        self.overheard: list[str] = []
        """Answers that were taken although another had been given."""

    async def answer(self, row: QuestionRow) -> bool:
        """Whether anything was said to the question; what is not taken is not said again."""
        request = request_of(row)
        if row.question_id in self._dealt_with:
            return False
        reply = await self._reply(row, request)
        self._dealt_with.add(row.question_id)
        if reply is None:
            return False
        note = await self._note(row, request, reply)
        with suppress(CallerError):
            await self._say(row, reply, WHO)
            self.notes.append(note)
            if self._person.contradicts and not note.yes:
                await self._contradict(row, request)
        return True

    def considers(self, row: QuestionRow) -> float:
        """How many seconds pass before the answer, once for each question."""
        known = row.question_id in self._dealt_with | self._considered
        self._considered.add(row.question_id)
        return 0.0 if known else self._person.takes

    async def _say(self, row: QuestionRow, reply: Reply, by: str) -> None:
        await self._app.answer(
            row.question_id,
            option_id=reply.option,
            data=dict(reply.data),
            feedback=reply.feedback,
            by=by,
        )

    async def _contradict(self, row: QuestionRow, request: InteractionRequest) -> None:
        with suppress(AlreadyAnswered, TooLate):
            await self._say(row, Reply(_YES[kind_of(request)]), ANOTHER)
            self.overheard.append(request.title)

    async def _note(self, row: QuestionRow, request: InteractionRequest, reply: Reply) -> Note:
        kind, context = kind_of(request), request.context
        calls, yes = len(await self._office.calls()) - self.before, reply.option not in _NO
        if kind == REPAIR:
            proposal = await proposed(self._app, row, request)
            tools = frozenset(tools_in(proposal.get("patch", {}).get("operations", [])))
            warned = (one for one in tools if _is_warned_of(one, context["warnings"]))
            return Note(calls, kind, yes, tools=tools, warned=frozenset(warned))
        args = {**context.get("args", {}), **reply.data} if kind == APPROVAL else {}
        return Note(calls, kind, yes, str(context.get("tool", "")), args)

    async def _reply(self, row: QuestionRow, request: InteractionRequest) -> Reply | None:
        person, kind = self._person, kind_of(request)
        if person.silent or (row.role is not None and row.role not in person.roles):
            return None
        if self._says_yes:
            return self._blind(request, kind)
        match kind:
            case "repair":
                proposal = await proposed(self._app, row, request)
                operations = proposal.get("patch", {}).get("operations", [])
                return Reply("apply" if accepted(operations, person.accepts) else "refuse")
            case "approval":
                return self._consent(request)
            case "unknown":
                return await self._looked_up(request)
            case "choice":
                return self._confirmed(request)
            case "form":
                return self._filled_in(request)
        return None

    def _consent(self, request: InteractionRequest) -> Reply:
        wanted = self._person.approves.get(str(request.context["tool"]))
        if wanted is not None and _as_wanted(request.context["args"], wanted):
            return Reply("approve")
        return Reply("reject", feedback="this was not asked for")

    def _confirmed(self, request: InteractionRequest) -> Reply | None:
        """Only what names no other tool than those that were wanted."""
        person = self._person
        if person.confirms is None:
            return None
        wanted = not person.tools or tools_in(dict(request.context)) <= person.tools
        return Reply("confirm" if person.confirms and wanted else "reject")

    async def _looked_up(self, request: InteractionRequest) -> Reply:
        """Whether it happened, the office knows."""
        tool, args = request.context["tool"], request.context["args"]
        calls = [one for one in await self._office.calls() if one["tool"] == tool]
        if not any(one["acted"] and one["args"] == args for one in calls):
            return Reply("run_again")
        known = self._person.says
        asked = (one.name for one in request.form.fields)
        return Reply("happened", {name: known[name] for name in asked if name in known})

    def _filled_in(self, request: InteractionRequest) -> Reply | None:
        known, fields = self._person.says, request.form.fields
        if any(one.required and one.name not in known for one in fields):
            return None
        return Reply("provide", {one.name: known[one.name] for one in fields if one.name in known})

    def _blind(self, request: InteractionRequest, kind: str) -> Reply | None:
        """Yes, whatever it is; a form gets what is known, or anything that it takes."""
        if kind not in _YES:
            return None
        if kind != FORM:
            return Reply(_YES[kind])
        known = self._person.says
        fields = [one for one in request.form.fields if one.required or one.name in known]
        return Reply(_YES[kind], {one.name: known.get(one.name, anything(one)) for one in fields})


def _as_wanted(args: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """With each argument that is wanted, and no other."""
    several = {name: one if isinstance(one, tuple) else (one,) for name, one in wanted.items()}
    return args.keys() <= wanted.keys() and all(
        args.get(name) in right for name, right in several.items()
    )


def anything(one: Field) -> Any:
    """A value that the field takes, given without a thought."""
    if one.default is not None:
        return one.default
    if one.options:
        first = one.options[0].value
        return [first] if one.type is FieldType.MULTISELECT else first
    plain: Mapping[FieldType, Any] = {
        FieldType.NUMBER: 1,
        FieldType.BOOLEAN: True,
        FieldType.DATE: "2030-12-31",
        FieldType.DATETIME: "2030-12-31T12:00:00Z",
    }
    return plain.get(one.type, "yes")


def tools_in(value: Any) -> set[str]:
    """Every tool that is named in what a question shows."""
    if isinstance(value, Mapping):
        own = {str(value["tool"])} if "tool" in value else set()
        return own.union(*map(tools_in, value.values()))
    return set().union(*map(tools_in, value)) if isinstance(value, list) else set()


async def proposed(
    app: Holdfast, row: QuestionRow, request: InteractionRequest
) -> Mapping[str, Any]:
    """The proposal that a question is about."""
    for record in reversed(await app.journal.read(row.run_id)):
        if record.type.partition("@")[0] == "PatchProposed":
            proposal: Mapping[str, Any] = json.loads(record.payload)["proposal"]
            if proposal["patch"]["patch_id"] == request.context["patch_id"]:
                return proposal
    return {}


def _is_warned_of(tool: str, warnings: Sequence[str]) -> bool:
    return any(f" {tool} again" in one for one in warnings)
