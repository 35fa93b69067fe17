"""Repairs of a plan within a run: what is wrong, what is proposed, what it would do, who consents.

The operations of a patch are JSON objects that name ids, never positions; `core.repair.operations`
reads and applies them. They have the same shape in events, over HTTP and in files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.model.message import Usage
from holdfast.model.record import TextEnum, record
from holdfast.model.retry import Cause
from holdfast.model.values import Json, JsonObject

MOST_OPERATIONS: Final = 12
MOST_NEW_LISTENERS: Final = 8
MOST_PATCHES: Final = 8
MOST_CASES: Final = 16
MOST_LOOKS: Final = 64
MOST_REQUESTS: Final = 6
MOST_REQUESTS_OF_A_CASE: Final = 3
MOST_TOKENS: Final = 40_000
LONGEST_AUTOMATIC_WAIT: Final = 3_600.0
"""A plan may lower those of `RepairLimits`; only the installation raises any of them."""

LONGEST_REQUEST: Final = 60.0
LONGEST_DIAGNOSIS: Final = 300.0
"""Seconds that one request to a model may take, and all those about a case together."""


class RepairMode(TextEnum):
    OFF = "off"
    PROPOSE = "propose"
    AUTO = "auto"


class Level(TextEnum):
    """Who must consent: nobody to a wait, an operator to another name or a further look, an
    approver to whatever acts or brings in a new value."""

    WAIT = "wait"
    RENAME = "rename"
    LOOK = "look"
    ACT = "act"


LEVELS: Final = tuple(Level)


class CaseStatus(TextEnum):
    OPEN = "open"
    THINKING = "thinking"
    PROPOSED = "proposed"
    APPLIED = "applied"
    PROVEN = "proven"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class RepairLimits:
    """Per run, in seconds where it is a wait."""

    patches: int = MOST_PATCHES
    requests: int = MOST_REQUESTS
    tokens: int = MOST_TOKENS
    wait: float = LONGEST_AUTOMATIC_WAIT


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """What an author lets repairs do. `auto` names what is applied without a person where the mode
    is auto: `rename`, `look`, `lesson`. `write` lets a model write operations of its own; `tools`
    are those that repairs may call beside the plan's; `role` is who answers proposals."""

    mode: RepairMode = RepairMode.PROPOSE
    auto: tuple[str, ...] = ()
    write: bool = False
    tools: tuple[str, ...] = ()
    role: str | None = None
    most: RepairLimits = RepairLimits()


@record
class Evidence:
    """What the event `seq` of the run's journal says of a failure, in one line."""

    seq: int
    text: str


@record
class Diagnosis:
    """What is wrong; `source` is `rule:…`, `lesson:…` or `model:…`."""

    cause: Cause
    summary: str
    evidence: tuple[Evidence, ...] = ()
    source: str = ""


@record
class PlanPatch:
    """A change of a run's plan. `base` is the digest of the plan that it changes; `source` is
    `rule:…`, `lesson:…`, `model:…` or `person`, and `by` that person."""

    patch_id: str
    base: str
    operations: tuple[JsonObject, ...]
    reason: str = ""
    case_id: str = ""
    source: str = ""
    by: str = ""


@record
class RehearsedCall:
    """A call that a rehearsal would make, with its arguments as far as they are known. `asks`: a
    person approves it first. `acts`: the tool does more than look. `times`: how often this tool has
    succeeded in this run, or is in doubt, where calling it again repeats an effect."""

    step_id: str
    tool: str
    args: Mapping[str, Json] = field(default_factory=dict)
    asks: bool = False
    acts: bool = False
    times: int = 0


@record
class Rehearsal:
    """How a plan would go on, nothing of it having been called."""

    calls: tuple[RehearsedCall, ...] = ()
    questions: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    """Listeners that are done and would not run again."""
    reached: bool = False
    """Whether the main task is Done in the end."""
    stopped: tuple[str, ...] = ()
    """What fails by itself, and why: a template reads what is not there, a tool is disabled."""
    open_conditions: tuple[str, ...] = ()
    status: str = ""
    cut: bool = False
    """Whether it was broken off after too many steps."""


@record
class Verdict:
    """What is to be said of a patch. `digest` names the plan that results, `problems` are why it is
    refused; `versions` are those of all tools that it names, and `consent` binds all of it.

    `fresh` are the tools that it would have called, whose effects cannot be had twice, and that
    nothing in the tree of runs had called, `repeats` are those that something had; `values` is the
    digest of what stood at the paths that it `reads`.
    """

    digest: str
    level: Level = Level.ACT
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    success: Rehearsal | None = None
    failure: Rehearsal | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    consent: str = ""
    fresh: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    values: str = ""
    repeats: tuple[str, ...] = ()


@record
class Proposal:
    """A patch that a person may consent to, and what is shown with it."""

    patch: PlanPatch
    verdict: Verdict
    shown: Mapping[str, Json] = field(default_factory=dict)


@record
class Look:
    """What rules and lessons, which ask no model, made of a failure. `thinks`: a model is to be
    asked before anything is proposed."""

    diagnosis: Diagnosis
    proposal: Proposal | None = None
    thinks: bool = False


@record
class Mend:
    """The planner's advice to repair the plan now, as its author's policy allows."""

    diagnosis: Diagnosis
    proposal: Proposal
    why: str = ""


@record
class Thought:
    """What became of one request to a model: a diagnosis and perhaps a proposal, or why there is
    none; `again` says that another request may do better, with `complaint`."""

    diagnosis: Diagnosis | None = None
    proposal: Proposal | None = None
    reason: str = ""
    usage: Usage = Usage()
    again: bool = False
    complaint: str = ""


class LessonState(TextEnum):
    TRIAL = "trial"
    PROVEN = "proven"
    RETIRED = "retired"
    PINNED = "pinned"


@record
class Lesson:
    """Operations that repaired a failure. `key` names where they fit: plan id, content of the
    listener, tool with its version, fingerprint. Ids of a run stand relative in them."""

    key: str
    operations: tuple[JsonObject, ...]
    wins: int = 0
    losses: int = 0
    state: LessonState = LessonState.TRIAL
    level: Level = Level.ACT
    runs: tuple[str, ...] = ()
