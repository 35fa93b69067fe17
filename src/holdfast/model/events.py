"""Events: what has happened, in past tense, for ever.

An event carries every decision that was made, so that replaying it never decides
again: which task moved where, which listeners that move fired, when the next
attempt is due. `PlanEvent` is closed: `core.plan.reducers` has a reducer for each.

A *step* is one piece of work of a run, `firing` counts how often it was fired. In a
plan it is a listener, named as there (`L002`). The events that speak of a `step_id`
belong to every machine, as do those of questions, child runs and cancelling; those of
sessions stand in `agent_events`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from holdfast.model.fork import Fork
from holdfast.model.interaction import InteractionAction, InteractionRequest, Waiting
from holdfast.model.message import Usage
from holdfast.model.plan import TaskStatus
from holdfast.model.record import record
from holdfast.model.repair import Diagnosis, Proposal
from holdfast.model.retry import Failure
from holdfast.model.run import Parent
from holdfast.model.values import Json, JsonObject


@record
class Move:
    """One task's move, and the listeners that it fired.

    `context` is merged into the task's context; the names in `drop` leave it.
    """

    task_id: str
    status: TaskStatus
    reason: str = ""
    context: Mapping[str, Json] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    fired: tuple[str, ...] = ()


@record
class TaskUpdate:
    """A move that is wanted of one task: its new status, and what its context gains."""

    task_id: str
    status: TaskStatus
    context: Mapping[str, Json] = field(default_factory=dict)
    reason: str = ""


@record
class RunStarted:
    """`usage` is what it cost to have a model find the plan, and its inputs, in the prompt."""

    plan_id: str
    digest: str
    prompt: str
    root_id: str
    values: Mapping[str, Json] = field(default_factory=dict)
    parent: Parent | None = None
    by: str = ""
    moves: tuple[Move, ...] = ()
    fired: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    usage: Usage | None = None


@record
class RunForked:
    """A new run goes on from where another one once stood. What was done there counts as done."""

    fork: Fork
    digest: str
    root_id: str
    by: str = ""


@record
class ListenerStarted:
    """A permit is held and the work may now reach the outside world.

    `args` are the very bytes that will be sent. `pure` work touches nothing
    outside and may simply run again; `idempotent` work may run again under the
    same key. `child_id` names the child run that does the work, `consent` what a
    person agreed to.
    """

    listener_id: str
    firing: int
    attempt: int = 1
    generation: int = 0
    args: Mapping[str, Json] | None = None
    idempotent: bool = False
    pure: bool = False
    child_id: str | None = None
    moves: tuple[Move, ...] = ()
    consent: str | None = None


@record
class ListenerSucceeded:
    listener_id: str
    firing: int
    result: Json = None
    moves: tuple[Move, ...] = ()


@record
class AttemptFailed:
    """The driver will try the same firing again at `retry_at`."""

    step_id: str
    firing: int
    failure: Failure
    retry_at: float
    why: str = ""


@record
class ListenerFailed:
    """The driver gave up. A `handled` failure is a branch of the plan, not an error.

    `result` is kept when the work itself succeeded and only its output could not
    be determined: that work never runs again.
    """

    listener_id: str
    firing: int
    failure: Failure
    handled: bool = False
    final: bool = False
    kept: bool = False
    result: Json = None
    moves: tuple[Move, ...] = ()


@record
class StepWoken:
    """The backoff is over: the step is ready for its next attempt."""

    step_id: str
    firing: int


@record
class StepReleased:
    """Started, but never handed over: it is ready again as if it had not started."""

    step_id: str
    firing: int


@record
class ListenerSkipped:
    listener_id: str
    firing: int
    by: str
    reason: str = ""
    moves: tuple[Move, ...] = ()


@record
class OutcomeLost:
    """The work was sent, and it is not known whether it took effect."""

    step_id: str
    firing: int
    reason: str


@record
class LateResultKept:
    """A result that came under an old claim: kept for audit, without effect.

    Only in a conversation whose turn has failed is it of use: it need not be done again, unless
    it is `stale`, of another turn or another attempt.
    """

    step_id: str
    firing: int
    result: Json = None
    stale: bool = False


@record
class WaitStarted:
    """The listener goes on at `until`."""

    listener_id: str
    firing: int
    until: float
    moves: tuple[Move, ...] = ()


@record
class WaitEnded:
    listener_id: str
    firing: int
    until: float


@record
class FunctionCalled:
    """A snippet asked for an external function; the call is an effect of its own."""

    listener_id: str
    firing: int
    index: int
    function: str
    args: Mapping[str, Json]
    idempotent: bool = False


@record
class FunctionReturned:
    listener_id: str
    firing: int
    index: int
    result: Json = None


@record
class QuestionOpened:
    """`purpose` says what the answer is for: missing, human, approval, unknown, secret or repair.

    `args` and `consent` are what an approval would consent to. Under four eyes `wanted_by` says
    who wants the call, and how they said so: another person approves it.
    """

    request: InteractionRequest
    step_id: str
    firing: int
    purpose: str
    deadline: float | None = None
    args: Mapping[str, Json] | None = None
    consent: str | None = None
    moves: tuple[Move, ...] = ()
    wanted_by: Mapping[str, str] | None = None


@record
class QuestionAnswered:
    """`data` is what the person sent; `values` is what the work receives.

    `action` is what the handler of a CUSTOM option decided. `args` and `consent` are set
    where the person has changed what is consented to. Under four eyes that is no consent but a
    `wish`: the call is asked again with those arguments, of another person.
    """

    question_id: str
    option_id: str
    by: str
    data: Mapping[str, Json] = field(default_factory=dict)
    values: Mapping[str, Json] = field(default_factory=dict)
    feedback: str | None = None
    action: InteractionAction | None = None
    args: Mapping[str, Json] | None = None
    consent: str | None = None
    wish: bool = False


@record
class QuestionExpired:
    """The deadline passed; `option_id` is the default that the clock took, if any."""

    question_id: str
    option_id: str | None = None
    values: Mapping[str, Json] = field(default_factory=dict)


@record
class QuestionWithdrawn:
    question_id: str
    reason: str


@record
class QuestionReminded:
    """There is no answer yet; `count` says how often that was noticed."""

    question_id: str
    count: int


@record
class QuestionEscalated:
    """The question belongs to another role from now on."""

    question_id: str
    role: str


@record
class DraftKept:
    """What a person has filled in so far; it is no answer yet."""

    question_id: str
    by: str
    data: Mapping[str, Json] = field(default_factory=dict)


@record
class PlannerRetried:
    """The planner fires the failed listener again: at once, or at `retry_at`."""

    listener_id: str
    firing: int
    retry_count: int
    max_retries: int
    moves: tuple[Move, ...] = ()
    retry_at: float | None = None
    why: str = ""


@record
class PlannerGaveUp:
    """The main task is in Error and the run waits for a person to resume it."""

    message: str
    failed: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    why: str = ""


@record
class RunResumed:
    """`anew` are those of the `refired` whose values, which were refused, are asked for again."""

    by: str
    refired: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    anew: tuple[str, ...] = ()


@record
class VerificationStarted:
    fired: tuple[str, ...]


@record
class CheckConcluded:
    """One check of the outcome: verified, unable_to_verify or failed."""

    listener_id: str
    firing: int
    verdict: str
    message: str = ""
    result: Json = None


@record
class RunCompleted:
    verification: Mapping[str, str] = field(default_factory=dict)
    moves: tuple[Move, ...] = ()


@record
class TasksEdited:
    """A person set tasks by hand; `closed` are the listeners this settles, fired or not."""

    by: str
    reason: str
    moves: tuple[Move, ...] = ()
    closed: tuple[str, ...] = ()


@record
class ListenersReset:
    """A person runs the plan again from `fired`; what follows it may fire anew."""

    by: str
    fired: tuple[str, ...]
    forgotten: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()


@record
class SecretsRenewed:
    """What opens only in the run that this one was forked from was entered anew: the references
    that stand for it from here on, by name."""

    listener_id: str
    values: Mapping[str, Json] = field(default_factory=dict)


@record
class CaseOpened:
    """A listener failed for good, or (`listener_id` empty) the plan came to nothing."""

    case_id: str
    listener_id: str = ""
    firing: int = 0
    failure: Failure | None = None


@record
class CaseDiagnosed:
    """What rules and lessons say is wrong."""

    case_id: str
    diagnosis: Diagnosis


@record
class DiagnosisRequested:
    """A model is asked, for the `number`th time about this case; on disk before the request is.

    `complaint` is what was wrong with the last reply, `meanwhile` what is proposed if none helps.
    """

    case_id: str
    number: int
    complaint: str = ""
    meanwhile: Proposal | None = None


@record
class DiagnosisReceived:
    """A diagnosis, or the `reason` why there is none. `lost`: the process went down meanwhile, and
    the case is looked at anew."""

    case_id: str
    number: int
    diagnosis: Diagnosis | None = None
    reason: str = ""
    usage: Usage = Usage()
    lost: bool = False


@record
class PatchProposed:
    case_id: str
    proposal: Proposal


@record
class PatchRefused:
    case_id: str
    patch_id: str
    by: str
    reason: str = ""


@record
class PlanPatched:
    """The run's plan is another from here on, and `digest` is its name.

    `fired` are new listeners whose condition holds already, `forgotten` those that wait for their
    trigger anew, `consent` what was agreed to, and `by` who did: a person, or the author's policy.
    """

    patch_id: str
    case_id: str
    base: str
    digest: str
    operations: tuple[JsonObject, ...]
    fired: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    consent: str = ""
    by: str = ""
    moves: tuple[Move, ...] = ()


@record
class RepairProven:
    case_id: str
    patch_id: str


@record
class RepairDisproven:
    """The listener failed for good in spite of the patch; the case is about that failure now."""

    case_id: str
    patch_id: str
    listener_id: str
    firing: int
    failure: Failure | None = None
    reason: str = ""


@record
class CaseClosed:
    case_id: str
    reason: str = ""


@record
class ChildHeard:
    """A word from a child run; `seq` makes hearing it twice harmless.

    `waits_for` is what it asks a person, if it does; `provided` what a person gave last, and when.
    """

    child_id: str
    seq: int
    step_id: str
    firing: int
    status: str
    message: str = ""
    result: Json = None
    waits_for: Waiting | None = None
    provided: Mapping[str, Json] = field(default_factory=dict)
    continued_at: float | None = None


@record
class RunRecovered:
    """The process that owned this run went down; counts without progress."""

    count: int


@record
class CancelRequested:
    """`everything`: the runs that wait for this one are to end as well."""

    by: str
    reason: str = ""
    grace_until: float = 0.0
    everything: bool = False


@record
class RunCancelled:
    moves: tuple[Move, ...] = ()


RunEvent: TypeAlias = (
    AttemptFailed
    | StepWoken
    | StepReleased
    | OutcomeLost
    | LateResultKept
    | QuestionOpened
    | QuestionAnswered
    | QuestionExpired
    | QuestionWithdrawn
    | QuestionReminded
    | QuestionEscalated
    | DraftKept
    | ChildHeard
    | RunRecovered
    | CancelRequested
    | RunCancelled
)
"""What may happen in every run."""

PlanEvent: TypeAlias = (
    RunEvent
    | RunStarted
    | RunForked
    | SecretsRenewed
    | ListenerStarted
    | ListenerSucceeded
    | ListenerFailed
    | ListenerSkipped
    | WaitStarted
    | WaitEnded
    | FunctionCalled
    | FunctionReturned
    | PlannerRetried
    | PlannerGaveUp
    | RunResumed
    | VerificationStarted
    | CheckConcluded
    | RunCompleted
    | TasksEdited
    | ListenersReset
    | CaseOpened
    | CaseDiagnosed
    | DiagnosisRequested
    | DiagnosisReceived
    | PatchProposed
    | PatchRefused
    | PlanPatched
    | RepairProven
    | RepairDisproven
    | CaseClosed
)
