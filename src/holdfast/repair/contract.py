"""The contract with a model that diagnoses: what it is asked, what it may answer, how that is read.

A model proposes nothing by itself. It is shown evidence and candidates, each of which code has
checked and rehearsed, and calls `diagnose`: what is wrong, which evidence says so, and a choice
among the candidates, `wait`, `person` and `none_fits`. All of them are flat enumerations, so that
small models manage.

Only after `none_fits`, and only where the plan's author lets models write, does the next request
offer `write_patch` beside it. Its operations are flat too: `insert_before` names a tool and its
arguments where a patch has a task and a listener, `ask_first` the arguments to be asked. They are
made into those of a patch here, and judged like any other patch.

What happened before a request is told by its complaint alone, which is in the journal: one that
begins with `NONE_FITS` asks for a patch.

Cited evidence must exist. A diagnosis that cites none says nothing: its cause is unknown. What a
model says in its own words is shown as a quotation and steers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, TypeAlias

from holdfast.i18n.message import msg
from holdfast.language.display import visible
from holdfast.language.spelling import nearest
from holdfast.model.message import ModelReply, ToolOffer
from holdfast.model.record import record
from holdfast.model.repair import Diagnosis, Evidence, Proposal
from holdfast.model.retry import Cause
from holdfast.model.values import Json, JsonObject
from holdfast.repair.drafts import insert_before
from holdfast.repair.replies import HandedIn, Signs, Unusable, handed_in, quoted

DIAGNOSE: Final = "diagnose"
WRITE_PATCH: Final = "write_patch"

WAIT: Final = "wait"
PERSON: Final = "person"
NONE_FITS: Final = "none_fits"

MOST_EVIDENCE: Final = 40
MOST_CITED: Final = 3
MOST_CANDIDATES: Final = 5
MOST_WRITTEN: Final = 6
LONGEST_SUMMARY: Final = 300

WRITES: Final = msg("none of the candidates fits, so a patch may be written")
"""A complaint that begins so has the next request offer `write_patch`."""

FLAT: Final = (
    "set_args",
    "set_output",
    "set_retry",
    "use_tool",
    "insert_before",
    "ask_first",
    "skip",
)
"""The operations that a model is offered; `add` draws graphs, which models do badly."""

_FLAT_INSERTION: Final[JsonObject] = {"args": {}, "context": {}, "name": ""}

Judge: TypeAlias = Callable[[tuple[JsonObject, ...], str], "Proposal | tuple[str, ...]"]
"""What becomes of written operations and their reason: a judged proposal, or what is wrong."""


@record
class Asked:
    """What a model is asked about a case. `diagnosis` is the rules', `candidates` are judged and
    sound, best first. `plan` is its summary, a line for each listener. Where models may `write`:
    `tools` are those that a patch may call, `listeners` the ids that it may name, and `taken` ids
    of tasks and listeners that no new one may have."""

    run_id: str
    case_id: str
    number: int
    evidence: tuple[Evidence, ...]
    diagnosis: Diagnosis
    judge: Judge
    candidates: tuple[Proposal, ...] = ()
    write: bool = False
    plan: str = ""
    tools: tuple[ToolOffer, ...] = ()
    listeners: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()

    @property
    def cited(self) -> Mapping[str, Evidence]:
        """The evidence by the ids under which the model knows it."""
        shown = self.evidence[:MOST_EVIDENCE]
        return {f"E{number}": one for number, one in enumerate(shown, 1)}

    @property
    def offered(self) -> Mapping[str, Proposal]:
        """The candidates by the ids under which the model knows them."""
        shown = self.candidates[:MOST_CANDIDATES]
        return {f"k{number}": one for number, one in enumerate(shown, 1)}


@record
class Chosen:
    """`choice` is a candidate's id, `wait`, `person` or `none_fits`."""

    diagnosis: Diagnosis
    choice: str


@record
class Written:
    """Operations of a patch, as far as they have its shape; nothing else is judged yet."""

    diagnosis: Diagnosis
    operations: tuple[JsonObject, ...]


def writes(asked: Asked, complaint: str) -> bool:
    """Whether a patch may be written in this request."""
    return asked.write and complaint.startswith(WRITES)


def offers(asked: Asked, complaint: str) -> tuple[ToolOffer, ...]:
    offered = (_diagnose_offer(asked),)
    return (*offered, _patch_offer(asked)) if writes(asked, complaint) else offered


def read_reply(reply: ModelReply, asked: Asked, complaint: str) -> Chosen | Written | Unusable:
    """What the model chose or wrote, or all that is wrong with its reply."""
    signs: Signs = {DIAGNOSE: "choice"}
    if writes(asked, complaint):
        signs = {**signs, WRITE_PATCH: "operations"}
    found = handed_in(reply, signs)
    return found if isinstance(found, Unusable) else _Reading(asked, reply.model).read(found)


def _diagnose_offer(asked: Asked) -> ToolOffer:
    properties = {
        **_findings_schema(asked),
        "choice": {"type": "string", "enum": _choices(asked)},
    }
    return ToolOffer(
        DIAGNOSE,
        "Say what is wrong, which evidence shows it, and which candidate may help.",
        _object(properties, ("cause", "because", "choice")),
    )


def _patch_offer(asked: Asked) -> ToolOffer:
    operations = {
        "type": "array",
        "items": _operation_schema(asked),
        "minItems": 1,
        "maxItems": MOST_WRITTEN,
    }
    return ToolOffer(
        WRITE_PATCH,
        "Write a patch of the plan, where no candidate fits: it will be checked, rehearsed and "
        "shown to a person.",
        _object(
            {**_findings_schema(asked), "operations": operations},
            ("cause", "because", "operations"),
        ),
    )


def _findings_schema(asked: Asked) -> dict[str, Json]:
    cited: dict[str, Json] = {"type": "string"}
    if asked.cited:
        cited["enum"] = list(asked.cited)
    return {
        "cause": {"type": "string", "enum": [cause.value for cause in Cause]},
        "because": {"type": "array", "items": cited, "maxItems": MOST_CITED},
        "summary": {"type": "string", "maxLength": LONGEST_SUMMARY},
    }


def _operation_schema(asked: Asked) -> dict[str, Json]:
    arguments = {"type": "object"}
    names = {"type": "array", "items": {"type": "string"}}
    return _object(
        {
            "op": {"type": "string", "enum": list(FLAT)},
            "listener_id": _one_of(asked.listeners, "The listener that it changes."),
            "set": {**arguments, "description": "set_args: arguments and their values."},
            "drop": {**names, "description": "set_args: arguments that go."},
            "context": {**arguments, "description": "set_output: fields of the task's context."},
            "retry": {**arguments, "description": "set_retry: attempts, initial, factor."},
            "tool": _one_of(
                [one.name for one in asked.tools], "use_tool, insert_before: what is called."
            ),
            "args": {**arguments, "description": "use_tool, insert_before: its arguments."},
            "name": {"type": "string", "description": "insert_before: what is done then."},
            "fields": {**names, "description": "ask_first: arguments that a person gives."},
        },
        ("op", "listener_id"),
    )


def _one_of(known: Sequence[str], description: str) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": "string", "description": description}
    return {**schema, "enum": list(known)} if known else schema


def _object(properties: JsonObject, required: tuple[str, ...]) -> dict[str, Json]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _choices(asked: Asked) -> list[str]:
    return [*asked.offered, WAIT, PERSON, NONE_FITS]


class _Reading:
    """One reply's arguments, and what is wrong with them."""

    def __init__(self, asked: Asked, model: str) -> None:
        self.asked = asked
        self.model = model
        self.findings: list[str] = []

    def read(self, found: HandedIn) -> Chosen | Written | Unusable:
        diagnosis = self.diagnosis(found.args)
        read: Chosen | Written
        if found.tool == DIAGNOSE:
            read = Chosen(diagnosis, self.word(found.args, "choice", _choices(self.asked)))
        else:
            read = Written(diagnosis, self.operations(found.args.get("operations")))
        return Unusable(tuple(self.findings)) if self.findings else read

    def diagnosis(self, args: JsonObject) -> Diagnosis:
        cause = self.word(args, "cause", [one.value for one in Cause])
        evidence = self.evidence(args.get("because"))
        summary = self.summary(args.get("summary"))
        known = Cause(cause) if cause and evidence else Cause.UNKNOWN
        return Diagnosis(known, summary, evidence, f"model:{self.model}")

    def word(self, args: JsonObject, name: str, known: Sequence[str]) -> str:
        """One of the words that are known, or none."""
        given = args.get(name)
        if isinstance(given, str) and given in known:
            return given
        if given is None:
            self.note(msg("{name} is missing: {known}", name=name, known=", ".join(known)))
        else:
            self.note(_no_such(name, given, known))
        return ""

    def evidence(self, because: Json) -> tuple[Evidence, ...]:
        if because is None:
            return ()
        if not isinstance(because, list) or len(because) > MOST_CITED:
            self.note(msg("because: a list of at most {n} ids of evidence", n=MOST_CITED))
            return ()
        known = self.asked.cited
        for one in because:
            if not isinstance(one, str) or one not in known:
                self.note(_no_such("because", one, list(known)))
        return tuple(known[one] for one in dict.fromkeys(filter(_is_text, because)) if one in known)

    def summary(self, said: Json) -> str:
        if not isinstance(said, str | None):
            self.note(msg("summary: a text of at most {n} characters", n=LONGEST_SUMMARY))
        elif words := _as_quotation(said or ""):
            return msg("The model says: “{words}”", words=words)
        return msg("The model does not say why.")

    def operations(self, raw: Json) -> tuple[JsonObject, ...]:
        if not isinstance(raw, list) or not 1 <= len(raw) <= MOST_WRITTEN:
            self.note(msg("operations: a list of 1 to {n} objects", n=MOST_WRITTEN))
            return ()
        for index, one in enumerate(raw):
            if not isinstance(one, dict):
                self.note(msg("operations[{index}]: an object with its op", index=index))
        return tuple(patch_operations([one for one in raw if isinstance(one, dict)], self.asked))

    def note(self, finding: str) -> None:
        self.findings.append(finding)


def patch_operations(flat: Sequence[JsonObject], asked: Asked) -> Iterator[JsonObject]:
    """Those of a patch; what is no flat operation is left as it is, for the patch's judge."""
    ids = _free_ids(asked)
    for one in flat:
        match {**_FLAT_INSERTION, **one}:
            case {
                "op": "insert_before",
                "listener_id": str(listener),
                "tool": str(tool),
                "args": dict(args),
                "context": dict(context),
                "name": str(name),
                **beside,
            } if not beside.keys() & {"task", "listener"}:
                [made] = insert_before(listener, next(ids), name or tool, tool, args, context)
                yield {**beside, **made}
            case {"op": "ask_first", "fields": [*names]} if all(map(_is_text, names)):
                yield {**one, "fields": [{"name": name} for name in names]}
            case _:
                yield one


def _free_ids(asked: Asked) -> Iterator[str]:
    return (f"R{number}" for number in count(1) if f"R{number}" not in asked.taken)


def _no_such(name: str, given: Json, known: Sequence[str]) -> str:
    meant = nearest(given, known) if isinstance(given, str) else None
    if meant is not None:
        return msg(
            "{name}: there is no {given}; did you mean {meant}?",
            name=name,
            given=quoted(given),
            meant=meant,
        )
    listed = ", ".join(known)
    return msg(
        "{name}: there is no {given}; known: {known}", name=name, given=quoted(given), known=listed
    )


def _as_quotation(text: str) -> str:
    """One printable line without the quotation marks that are to stand around it."""
    plain = visible(" ".join(text.split())).replace("“", "'").replace("”", "'")
    return plain if len(plain) <= LONGEST_SUMMARY else f"{plain[: LONGEST_SUMMARY - 1]}…"


def _is_text(value: Json) -> bool:
    return isinstance(value, str)
