"""From an effect to its outcome, through the driver and the planner that users may replace.

The task that carries a run performs an effect of it; further ones of the same turn have tasks of
their own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Container, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, get_args

from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.i18n.message import msg
from holdfast.language.strict import strict_json
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.commands import Outcome
from holdfast.model.repair import Look, Mend, Thought
from holdfast.model.retry import Advice
from holdfast.model.run import RunStatus
from holdfast.runtime.actor import Actor, Envelope, envelope, report, report_outcome
from holdfast.runtime.clock import Clock
from holdfast.runtime.log_context import CARRIED, Carried
from holdfast.runtime.tracebacks import noted
from holdfast.work.agents import CALL_TIMEOUT, AgentWorker
from holdfast.work.driver import (
    ListenerContext,
    ListenerWork,
    TaskDriver,
    call_tool,
    outcome_of_call,
    outcome_of_listener,
)
from holdfast.work.failed_attempts import ends_from_without, failed
from holdfast.work.tools import GATE, Gate, ToolSpec, kept

if TYPE_CHECKING:
    from holdfast.work.conversations import ConversationWorker


Performed: TypeAlias = (
    f.CallTool | f.RunSnippet | f.CallFunction | f.Conclude | f.AskModel | f.ConversationWork
)
PERFORMED: Final = get_args(Performed)
"""The same as a tuple, which `isinstance` asks at a fifth of the price."""


class Receiver(Protocol):
    """Takes what comes back besides the outcome, and knows what is still wanted."""

    closing: bool

    def wants(self, actor: Actor, work: f.Work) -> bool:
        """Whether the run waits for this work and may send it; any thread may ask."""

    def late(self, work: f.Work, outcome: Outcome) -> None:
        """A result after the time-out."""

    def live(self, work: f.Work, text: str | None) -> None:
        """A piece of a model's reply while it is streamed; None drops the pieces so far."""


class ConcurrencyLimit:
    """Permits: how many tool calls may be in flight at once.

    A step is started, and its start journaled, only with a permit in hand; so a thousand ready
    steps are not a thousand started ones. `waiting` has the runs that could not get one, the
    longest wait first. Calls taken over at recovery count beyond the limit and make `free`
    negative.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("at least one effect must be allowed at a time")
        self.free = limit
        self.waiting: deque[Actor] = deque()

    def granted(self) -> Actor | None:
        """The run that has waited longest, now with a permit; None where nothing is free."""
        if not self.waiting or self.free <= 0:
            return None
        self.free -= 1
        actor = self.waiting.popleft()
        actor.awaits_permit = False
        actor.permits += 1
        return actor


class Planner(Protocol):
    """Judges failures, and is told of every change of a task's status."""

    async def advise(
        self, effect: f.ConsultPlanner, state: PlanState
    ) -> tuple[Advice | Mend, Look | None]: ...

    async def examine(self, effect: f.Diagnose, state: PlanState) -> Look | Thought: ...

    hears_of_tasks: bool

    def tasks_changed(self, before: PlanState, after: PlanState) -> None:
        """Called after each commit, where it `hears_of_tasks`."""


class FaultPoints(Protocol):
    """Named points at which a test may bring the process down."""

    def reach(self, point: str) -> None:
        """Called at `append.before`, `append.after`, `effect.before` and `effect.after`."""


MOST_THREADS: Final = 1_000
"""How many calls that outlasted their waiting are remembered, with their results."""

_LISTENER_WORK: Final = (f.CallTool, f.RunSnippet, f.Conclude)


class Worker:
    """Carries out effects. `conversations` has what does the work of a conversation, by its run,
    while it has a consumer; `asking` the runs whose consumer waits for the next event;
    `unrecovered` those whose consumer is about to send `Recover`: what is started before would be
    taken for lost."""

    def __init__(self, driver: TaskDriver, agents: AgentWorker) -> None:
        self.driver = driver
        self.agents = agents
        self.conversations: dict[str, ConversationWorker] = {}
        self.asking: set[str] = set()
        self.unrecovered: set[str] = set()
        self._facts: dict[str, tuple[ToolSpec, c.ToolFacts]] = {}
        self._outlasting: set[asyncio.Future[c.Outcome]] = set()
        self._threads: OrderedDict[str, tuple[f.CallTool, asyncio.Future[c.Outcome]]]
        self._threads = OrderedDict()
        self._closed = False

    async def close(self) -> None:
        """Stop waiting for calls that have outlasted their time-outs."""
        self._closed = True
        left = tuple(self._outlasting)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def tool_facts(self, name: str) -> c.ToolFacts | None:
        """What the core must know of a tool, or None when there is none of that name."""
        find = self.driver.tools.find  # an attribute, which Python reads slowly as a method
        tool = find(name)
        if tool is None:
            return None
        spec, known = tool.spec, self._facts.get(name)
        if known is None or known[0] is not spec:
            self._facts[name] = known = (spec, _facts_of(spec))
        return known[1]

    def perform(
        self, effect: Performed, actor: Actor, receiver: Receiver
    ) -> Coroutine[Any, Any, c.Outcome]:
        """One attempt; what it raises is a failure of the work, and a result that comes after the
        time-out goes to `receiver.late`."""
        state = actor.builder.state
        if isinstance(effect, f.CallTool):
            name = effect.tool
        elif isinstance(effect, f.CallFunction):
            name = effect.function
        elif isinstance(effect, f.AskModel):
            return self._ask(effect, partial(receiver.live, effect.work))
        elif isinstance(effect, _LISTENER_WORK):
            return self._work(effect, state)
        else:
            return self._in_turn(effect, state, actor, receiver)
        find, timeout = self.driver.tools.find, effect.work.timeout
        tool = find(name)
        if timeout is None and tool is not None:
            timeout = tool.spec.timeout
        if timeout is None and not isinstance(state, PlanState):
            timeout = CALL_TIMEOUT
        # A thread cannot be stopped, and must not run twice at once.
        blocks = getattr(tool, "blocks", False)
        if timeout is None and not blocks:
            return self._work(effect, state)
        work = partial(self._work, effect, state)
        if blocks:
            work = partial(self._in_turn, effect, state, actor, receiver)
        if timeout is None:
            return work()
        late = partial(receiver.late, effect.work)
        if blocks and isinstance(effect, f.CallTool) and not effect.idempotent:
            former = self._after_former(effect, work)
            return self._within(timeout, former, late, effect.work, effect)
        return self._within(timeout, work(), late, effect.work)

    def conclude(self, effect: f.Conclude, state: RunState) -> c.Outcome | None:
        """What a result that is at hand comes to; None where a driver of the user's own may take
        its time over it. Ours never waits then, so one step of its coroutine is all."""
        execute = getattr(self.driver.execute_listener, "__func__", None)
        if execute is not TaskDriver.execute_listener:
            return None
        try:
            self._work(effect, state).send(None)
        except StopIteration as done:
            outcome: c.Outcome = done.value
            return outcome
        except BaseException as error:
            if ends_from_without(error, None):
                raise
            return failed(error)
        raise AssertionError("a conclusion waited for something")

    async def _after_former(
        self, call: f.CallTool, work: Callable[[], Awaitable[c.Outcome]]
    ) -> c.Outcome:
        """Where the former thread of the same firing still runs, it is waited for: if that call
        went well, even while this one was on its way, it is not made again."""
        if (known := self._threads.pop(_firing(call), None)) is not None:
            former, thread = known
            await asyncio.wait((thread,))
            ended = None if thread.cancelled() else thread.result()
            if isinstance(ended, c.Succeeded) and former.args == call.args:
                return ended
        return await work()

    async def _in_turn(
        self,
        effect: f.CallTool | f.CallFunction | f.ConversationWork,
        state: RunState,
        actor: Actor,
        receiver: Receiver,
    ) -> c.Outcome:
        """As `_work`, where that may wait for a thread: what is not wanted by then is not sent."""
        gate = Gate(partial(receiver.wants, actor, effect.work))
        token = GATE.set(gate)
        try:
            outcome = await self._work(effect, state)
        except Exception:
            if not gate.held:
                raise
        finally:
            GATE.reset(token)
        return c.NotSent() if gate.held else outcome

    async def _work(
        self, effect: ListenerWork | f.CallFunction | f.ConversationWork, state: RunState
    ) -> c.Outcome:
        if isinstance(state, PlanState) and isinstance(effect, _LISTENER_WORK):
            listener = state.plan.listeners[effect.work.step_id]
            context, driver = ListenerContext(effect, listener, state), self.driver
            execution = await driver.execute_listener(listener.listener, context)
            # What our own driver says, without overrides, needs no second check.
            ours = type(driver) is TaskDriver and not driver.__dict__
            bounded = ours and listener.bounded
            return outcome_of_listener(execution, effect, self.tool_facts, ours, bounded)
        match effect:
            case f.CallTool():
                result = kept(effect.tool, await call_tool(self.driver.tools, effect))
                return outcome_of_call(effect, result, self.tool_facts)
            case f.CallFunction():
                result = strict_json(await self.driver.call_function(effect))
                return c.CallReturned(effect.index, result)
            case f.RunSnippet() | f.Conclude():
                raise AssertionError("only the listener of a plan runs code, or concludes")
            case _:
                work = self.conversations.get(effect.work.run_id)
                return c.NotSent() if work is None else await work.perform(effect)

    async def _ask(self, effect: f.AskModel, live: Callable[[str | None], None]) -> c.Outcome:
        return c.Replied(await self.agents.ask(effect, live, partial(live, None)))

    async def _within(
        self,
        timeout: float,
        work: Awaitable[c.Outcome],
        late: Callable[[c.Outcome], None],
        of: f.Work,
        thread: f.CallTool | None = None,
    ) -> c.Outcome:
        """Wait for the work, but not for ever: a call once sent cannot be called back. A `thread`
        goes on when it is not waited for any more, and then its result is late as well."""
        task = asyncio.ensure_future(_settled(work, of))
        try:
            done, _ = await asyncio.wait((task,), timeout=timeout)
        except asyncio.CancelledError:
            if thread is None or self._closed:
                task.cancel()
            else:
                self._outlast(task, late, thread)
            raise
        if done:
            return task.result()
        self._outlast(task, late, thread)
        return c.Lost(msg("no answer within {n:g} s", n=timeout))

    def _outlast(
        self,
        task: asyncio.Future[c.Outcome],
        late: Callable[[c.Outcome], None],
        thread: f.CallTool | None,
    ) -> None:
        self._outlasting.add(task)
        if thread is not None:
            self._threads[_firing(thread)] = (thread, task)
            if len(self._threads) > MOST_THREADS:
                self._threads.popitem(last=False)
        task.add_done_callback(self._outlasting.discard)
        task.add_done_callback(lambda one: None if one.cancelled() else late(one.result()))


async def _settled(work: Awaitable[c.Outcome], of: f.Work) -> c.Outcome:
    """What came of work, whatever it raised: not even SystemExit ends more than the work."""
    carried = Carried()  # it may outlast its call, and then still logs as what it was
    carried.work = of
    CARRIED.set(carried)
    task = asyncio.current_task()
    try:
        return await work
    except BaseException as error:
        if ends_from_without(error, task):
            raise
        return failed(error)


def _facts_of(spec: ToolSpec) -> c.ToolFacts:
    return c.ToolFacts(
        spec.parameters,
        spec.version,
        spec.idempotent or spec.read_only,
        spec.approval,
        spec.fields,
        spec.read_only,
        spec.returns,
    )


def _firing(call: f.CallTool) -> str:
    """The key without its last part, which a person who has it run again makes another."""
    return call.work.key.rpartition(":")[0]


_NOT_SENT: Final = c.NotSent()
_CANCELLING: Final = RunStatus.CANCELLING
_FAILURES: Final = (c.Failed, c.Lost)


class Executor:
    """Performs effects for actors: an effect in, an envelope with its outcome out."""

    def __init__(
        self,
        worker: Worker,
        planner: Planner,
        limit: ConcurrencyLimit,
        clock: Clock,
        faults: FaultPoints | None,
    ) -> None:
        self._worker = worker
        self._planner = planner
        self._limit = limit
        self._clock = clock
        self._faults = faults
        self.strained: Container[str] = ()
        self.earns: Callable[[str], None] = lambda tool: None
        """Hears of each success of a tool that is `strained`: its retries are bounded by them."""

    async def perform(
        self, actor: Actor, effect: Performed, task: asyncio.Task[Any], receiver: Receiver
    ) -> Envelope:
        """One attempt, made by `task`. Frees the permit of a tool call."""
        work = effect.work
        key = (work.step_id, work.claim)
        actor.in_flight[key] = task
        called = isinstance(effect, f.CallTool)
        faults = self._faults
        outcome: c.Outcome = _NOT_SENT
        # The last look before the call: a run that is cancelled sends nothing more.
        sends = not receiver.closing and actor.builder.state.status is not _CANCELLING
        try:
            if sends:
                if faults is not None:
                    faults.reach("effect.before")
                outcome = await self._worker.perform(effect, actor, receiver)
        except BaseException as error:
            if ends_from_without(error, task):
                raise
            outcome = failed(error)
        finally:
            if called:
                self._limit.free += 1
        if sends and faults is not None:
            faults.reach("effect.after")
        # Not in `finally`: what was cut off may have happened, and is never taken for unsent.
        actor.in_flight.pop(key, None)
        if called and type(outcome) not in _FAILURES:
            assert isinstance(effect, f.CallTool)
            if effect.tool in self.strained and type(outcome) is not c.NotSent:
                self.earns(effect.tool)
            return envelope(report_outcome(work.step_id, work.firing, work.claim, outcome))
        return self.reported(work, outcome, lazy=is_pure(effect))

    def reported(self, work: f.Work, outcome: c.Outcome, *, lazy: bool = False) -> Envelope:
        """The outcome as an envelope to the run, with the traceback to keep."""
        attached = noted(work, outcome, self._clock.now())
        return Envelope(report(work, outcome), lazy=lazy, attached=attached)

    def failed(self, effect: Performed, error: BaseException) -> Envelope:
        """The outcome of an attempt that ended with `error`."""
        return self.reported(effect.work, failed(error))

    async def consult(self, actor: Actor, effect: f.ConsultPlanner) -> Envelope:
        """The planner's advice on a failed listener."""
        committed = actor.committed
        assert isinstance(committed, PlanState)
        advice, look = await self._planner.advise(effect, committed)
        actor.in_flight.pop(consulting(effect), None)
        return Envelope(c.Advise(effect.listener_id, effect.firing, advice, look))

    async def diagnose(self, actor: Actor, effect: f.Diagnose) -> Envelope:
        """What rules, lessons or a model make of a case."""
        committed = actor.committed
        assert isinstance(committed, PlanState)
        found = await self._planner.examine(effect, committed)
        return Envelope(c.ReportDiagnosis(effect.case_id, effect.number, found))


def consulting(effect: f.ConsultPlanner) -> tuple[str, int]:
    """The key of a consultation among what a run has in flight."""
    return f"consult:{effect.listener_id}", effect.firing


def diagnosing(case_id: str, number: int) -> tuple[str, int]:
    """The same of a case that is looked at."""
    return f"diagnose:{case_id}", number


def is_pure(effect: f.Effect) -> bool:
    """Whether the work touches nothing outside, so that it can be repeated at no cost."""
    if isinstance(effect, f.RunSnippet):
        return not effect.functions
    return isinstance(effect, f.Conclude)
