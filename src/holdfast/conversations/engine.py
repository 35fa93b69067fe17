"""`ConversationEngine`: a goal is decomposed into tasks, scheduled and executed, event by event.

    engine = ConversationEngine(coordinator=coordinator, llm=llm)
    async for event in engine.run("帮我分析销售数据"):
        print(f"[{event.event_type}] {event.data}")

It is pull-driven: nothing but work that has started goes on between two events, and a task starts
when its start is asked for. Every event is recorded before it is yielded; those that follow one
another without a task in between are recorded together.

By itself an engine keeps its record in memory. Opened on a journal (`await
ConversationEngine.open(journal, "sales")`), or given an application whose tools, agents and plans
its tasks may name, it survives its process, and the same call goes on where it stopped.

`pause`, `resume`, `reset` and `cancel` show at once in the engine's properties, in every thread.
They are recorded in order as soon as the consumer's loop turns; without a consumer, by the next
`run`. One that the conversation has overtaken changes nothing.

An engine has one consumer. One that was closed or forgotten, or whose turn was reset, gives way to
the next; when it goes, its work is broken off and the turn stays resumable.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Self

from holdfast.app import Holdfast
from holdfast.conversations.arguments import (
    after_failure,
    checked_on_failure,
    count,
    goal,
    known_types,
    new_id,
)
from holdfast.conversations.consumer import (
    Asking,
    Consumer,
    ConsumerSession,
    heard_before,
    to_the_end,
)
from holdfast.conversations.events import asked
from holdfast.conversations.projection import OVER, Projection, is_cancelled
from holdfast.conversations.shared_app import SharedApp
from holdfast.conversations.workers import worker_of
from holdfast.core.conversation import snapshot as snapshots
from holdfast.core.conversation.decide import blank, decide, replay
from holdfast.core.conversation.phases import rests
from holdfast.core.conversation.state import CONTEXT, ConversationState
from holdfast.core.conversation.tables import PAUSABLE, THINKING, VALID_STATE_TRANSITIONS
from holdfast.core.run.state import RunState
from holdfast.errors import (
    CallerError,
    JournalUnavailable,
    NotAllowed,
    NotFound,
    OperatorError,
)
from holdfast.journal.codec import decode
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Journal, questions_below
from holdfast.model import commands as c
from holdfast.model.conversation import (
    AfterFailure,
    ConversationSettings,
    EngineEvent,
    EngineEventType,
    EngineState,
    OnFailure,
    SubTask,
)
from holdfast.model.retry import RetryPolicy
from holdfast.runtime.engine import Engine
from holdfast.runtime.executor import Worker
from holdfast.runtime.identity import LOCAL
from holdfast.runtime.machines import as_conversation, pinned_settings
from holdfast.work.conversations import Coordinator, GoalDecomposer, TaskExecutor, one_thread_each

__all__ = [
    "VALID_STATE_TRANSITIONS",
    "ConversationEngine",
    "Coordinator",
    "EngineEvent",
    "EngineEventType",
    "EngineState",
    "GoalDecomposer",
    "SubTask",
]


class ConversationEngine(Projection):
    def __init__(
        self,
        coordinator: Coordinator | None = None,
        llm: GoalDecomposer | None = None,
        *,
        app: Holdfast | None = None,
        executors: Mapping[str, TaskExecutor] | None = None,
        once: Sequence[str] = (),
        max_parallel: int = 1,
        retry: RetryPolicy | None = None,
        on_failure: OnFailure | str = OnFailure.ERROR,
        confirm_tasks: bool = False,
        by: str = LOCAL,
    ) -> None:
        """`executors` are callables by task type; those named in `once` are never repeated
        after a crash without asking a person. With `confirm_tasks` a person sees the tasks
        before the first one runs. With an application that has a default model,
        coordinator and llm are by default its own."""
        settings = ConversationSettings(
            count(max_parallel),
            retry or RetryPolicy(),
            checked_on_failure(on_failure),
            confirm_tasks,
        )
        super().__init__(pinned_settings(settings), by)
        self.coordinator = coordinator
        self.llm = llm
        self._given = app
        self._journal: Journal = MemoryJournal()
        self._executors = one_thread_each(executors or {})
        self._once = known_types(once, self._executors)
        self._consumer: Consumer | None = None
        self._session: ConsumerSession | None = None

    @classmethod
    async def open(cls, where: Journal | Holdfast, conversation_id: str, **options: Any) -> Self:
        """The conversation of that id, as far as it has come; a new one if there is none.

        `where` is an open application, or a journal that conversations alone use. A
        conversation is pinned to the settings it was begun with.
        """
        engine = cls(app=where if isinstance(where, Holdfast) else None, **options)
        engine.id = conversation_id
        if not isinstance(where, Holdfast):
            engine._journal = where
        engine._see(blank(conversation_id, engine._definition))
        async with AsyncExitStack() as closing:
            app = await engine._application(closing)
            engine._see(await engine._loaded(app))
            await engine._find_unheard(app.engine)
        return engine

    def pause(self, *, when_possible: bool = False) -> bool:
        """Start nothing more; True only where there is something to pause. While it still thinks
        `when_possible` keeps the pause, which takes hold before the first task."""
        thinks = when_possible and self.state in THINKING
        possible = (thinks or self.state in PAUSABLE) and not self._overtaken()
        return possible and self._give(c.Hold(when_possible))

    def resume(self, failed: AfterFailure | str | None = None) -> bool:
        """Go on from where it was paused; after an error `failed` says how: `retry` what failed,
        `skip` it with whatever depends on it, or `stop` the turn. `run()` then goes on."""
        if failed is None:
            paused = self.state is EngineState.PAUSED or self.will_pause
            return paused and self._give(c.Unhold())
        command = c.GoOn(after_failure(failed), self._by)
        if self.state is not EngineState.ERROR:
            return False
        self._refuse_cancelled()
        decide(self._with_pending(), command, c.Moment(0.0))
        return self._give(command)

    def reset(self) -> None:
        """Back to the beginning, from whatever state; the work under way is broken off."""
        self._refuse_cancelled()
        if self._consumer is not None:
            self._consumer.dismissed = True
        self._give(c.StartOver(self._by))

    async def cancel(self) -> bool:
        """End the turn: its consumer hears ENGINE_ERROR with `error: cancelled`."""
        return not self._overtaken() and self.state not in OVER and self._give(c.Abort())

    def restore_from_snapshot(self, snapshot: Mapping[str, Any]) -> bool:
        """Take a snapshot's place; `run()` then goes on with what is left."""
        self._refuse_cancelled()
        body = snapshots.checked(snapshot)
        if self._consumer is not None and not self._consumer.gone:
            raise NotAllowed("a conversation that is running cannot be replaced; reset() it first")
        if self.state not in OVER:
            self.reset()
        return self._give(c.RestoreSnapshot(body))

    async def answer(
        self,
        question_id: str,
        *,
        option_id: str | None = None,
        data: Mapping[str, Any] | None = None,
        feedback: str | None = None,
        by: str = LOCAL,
    ) -> None:
        """Answer what this conversation, or a run below it, has asked; `Holdfast.answer`."""
        async with AsyncExitStack() as closing:
            app = await self._application(closing)
            row = await app.journal.question(question_id)
            if row is None or not self._is_below(row.run_id):
                raise NotFound(f"{self.id or 'this conversation'} has not asked {question_id!r}")
            given: dict[str, Any] = {"option_id": option_id, "data": data, "feedback": feedback}
            await app.answer(question_id, by=by, **given)
            self._note(await self._loaded(app))

    def run(self, user_input: str | None = None) -> AsyncGenerator[EngineEvent, None]:
        """The events of one turn, or of what is left of it; one consumer at a time.

        A consumer that leaves breaks the conversation's own work off. Plans and agents that its
        tasks have begun are durable runs: they go on, and the next `run()` finds their results.
        """
        consumer = Consumer()
        return consumer.of(self._consume(consumer, user_input))

    async def _consume(
        self, consumer: Consumer, user_input: str | None
    ) -> AsyncGenerator[EngineEvent, None]:
        await self._former_gone()
        self._consumer = consumer
        leaving = AsyncExitStack()
        try:
            here = await self._attend(leaving, consumer)
            await self._begin(here, user_input)
            while not (consumer.dismissed or self._ended()):
                if self._untold:
                    event, self._view = self._untold.popleft()
                    yield event
                    here.heard = self._view.version
                else:
                    await self._pull(here)
        finally:
            await to_the_end(self._gone(consumer, leaving))

    async def _former_gone(self) -> None:
        while self._consumer is not None:
            if not self._consumer.gone:
                raise NotAllowed(
                    "this engine has a consumer already: let that one go on, close it or reset()"
                )
            await self._consumer.leave()

    def _ended(self) -> bool:
        state = self._latest
        told = self._view.version == state.version and not self._pending and not self._untold
        over = state.phase in OVER and not state.pending
        return told and (over or is_cancelled(state))

    async def _pull(self, here: ConsumerSession) -> None:
        """The next events; waits until there is one, or until a command is given."""
        here.woken.clear()
        if here.engine.hub.closed:
            raise JournalUnavailable("the application was closed; the conversation can be resumed")
        with here.asking:
            await self._grant(here)
            await self._fresh(here)
            before = self._latest
            if self._untold or self._ended():
                return
            # What comes of work is heard before more is asked for.
            if not rests(before):
                await self._submit(here.engine, c.Advance())
                await self._fresh(here)
            if not self._untold and self._latest.version == before.version:
                await here.woken.wait()

    async def _begin(self, here: ConsumerSession, user_input: str | None) -> None:
        """What the consumer hears first: what was not heard before, and open questions."""
        if await self._opened(here, user_input):
            return
        engine = here.engine
        self._note(as_conversation(await engine.state(self.id)))
        await self._submit(engine, c.Recover())
        self._untold.clear()
        await self._fresh(here)
        await self._grant(here)
        state = self._latest
        self._refuse_cancelled()
        if here.consumer.dismissed:
            return
        if state.phase is EngineState.ERROR:
            self._refuse_failed()
            return
        if state.phase not in OVER or state.pending:
            self._refuse_other(state, user_input)
        elif user_input is None and not self._untold:
            raise NotAllowed("there is nothing left to go on with; say what is wanted")
        elif user_input is not None and not self._repeats(state, user_input):
            with here.asking:
                await self._submit(engine, c.Converse(goal(user_input), self._by))
        await self._tell_open_questions(here)

    async def _opened(self, here: ConsumerSession, user_input: str | None) -> bool:
        """A new one begins with its goal, unless a command was given before that."""
        if await here.engine.journal.version(self.id):
            return False
        here.engine.worker.unrecovered.discard(self.id)
        self._see(blank(self.id, self._definition))
        first: list[c.Command] = []
        if user_input is not None and not self._pending:
            first.append(c.Converse(goal(user_input), self._by))
        command = c.OpenConversation(by=self._by)
        if first and not here.coordinated:
            first += self._without_context(command, first[0])
        with here.asking:
            await here.engine.begin(self.id, self._definition, command, further=first)
        return bool(first)

    def _without_context(self, *begun: c.Command) -> list[c.Command]:
        """Without a coordinator there is nothing to wait for: that the context is empty is recorded
        with the goal."""
        state, ahead = self._latest, c.Advance(ahead=True)
        for command in (*begun, ahead):
            state = decide(state, command, c.Moment(0.0)).state
        step = state.steps[CONTEXT]
        return [ahead, c.ReportOutcome(CONTEXT, step.firing, step.claim, c.Fetched())]

    async def _grant(self, here: ConsumerSession) -> None:
        """Record the pending commands, in order, until it is reset under its consumer."""
        async with here.order:
            while not here.reset and (command := self._pending.begin()) is not None:
                with suppress(CallerError):
                    await self._carry_out(here.engine, command)
                self._pending.done()
                here.note_granted(command)

    async def _carry_out(self, engine: Engine, command: c.Command) -> None:
        await self._submit(engine, command)
        self._granted = self._latest.version
        if isinstance(command, c.StartOver | c.RestoreSnapshot):
            self._see(self._latest)
        if isinstance(command, c.StartOver | c.Abort):
            await engine.abandon(self.id)

    async def _submit(self, engine: Engine, command: c.Command) -> ConversationState:
        state = as_conversation(await engine.submit(self.id, command))
        self._note(state)
        return self._latest

    async def _fresh(self, here: ConsumerSession) -> None:
        """What was recorded since the last event, as the consumer is to be told."""
        known = self._view.version
        if self._latest.version > known:
            self._hear(await here.records(self.id, known), here.is_news)
        if self._latest.paused_children:
            await self._tell_open_questions(here)

    async def _find_unheard(self, engine: Engine) -> None:
        """What was recorded and perhaps not heard, because its process ended before."""
        worker, latest = engine.worker, self._latest
        if not latest.version or self.id in worker.conversations:
            return
        heard = await heard_before(engine, self.id)
        if heard is not None:
            records = await engine.journal.read(self.id)
            told = ((one.at, decode(one)) for one in records[:heard])
            self._view = replay(blank(self.id, latest.definition), told)  # type: ignore[arg-type]
            self._hear(records[heard:], lambda _: True)
            # A pause shows from the moment it was recorded.
            self._granted = latest.version if latest.phase is EngineState.PAUSED else 0

    async def _tell_open_questions(self, here: ConsumerSession) -> None:
        """Questions of this conversation and of the runs below it that were not shown yet."""
        rows = questions_below(here.engine.journal, self.id, self._latest.root_id)
        mine = [asked(one) async for one in rows]
        state = self._untold[-1][1] if self._untold else self._view
        self._untold.extend((one, state) for one in mine if here.is_news(one))

    def _give(self, command: c.Command) -> bool:
        self._pending.add(command)
        here = self._session
        if here is not None:
            # The loop may have ended; the command is kept all the same.
            with suppress(RuntimeError):
                here.loop.call_soon_threadsafe(self._stir, here)
        return True

    def _stir(self, here: ConsumerSession) -> None:
        """Wake the consumer; between two events the commands are recorded without it."""
        here.woken.set()
        if self._session is here and (here.granter is None or here.granter.done()):
            here.granter = here.loop.create_task(self._grant_meanwhile(here))

    async def _grant_meanwhile(self, here: ConsumerSession) -> None:
        with suppress(OperatorError):
            await self._grant(here)
        here.woken.set()

    async def _application(self, closing: AsyncExitStack) -> Holdfast:
        """The application that was given, or one of our own for as long as it is needed."""
        if self._given is not None:
            return self._given
        return await closing.enter_async_context(SharedApp(self._journal))

    async def _attend(self, leaving: AsyncExitStack, consumer: Consumer) -> ConsumerSession:
        """From now on its work is done, until the consumer leaves."""
        app = await self._application(leaving)
        engine, worker = app.engine, app.engine.worker
        self.id = self.id or f"conv_{await engine.journal.next_number('conv'):06d}"
        if self.id in worker.conversations:
            raise NotAllowed(f"another engine consumes {self.id} already")
        work = worker.conversations[self.id] = worker_of(
            self._given, self.coordinator, self.llm, self._executors, self._once
        )
        try:  # from here on any other engine is refused, also while a shared journal is asked
            await engine.attend(self.id)
        except BaseException:
            del worker.conversations[self.id]
            raise
        leaving.push_async_callback(engine.leave, self.id)
        asking = Asking(worker.asking, self.id)
        worker.unrecovered.add(self.id)
        here = self._session = ConsumerSession(engine, consumer, asking, self._view.version)
        here.coordinated = work.coordinator is not None
        leaving.callback(engine.hub.watch(self.id, self._moved))
        leaving.callback(engine.hub.take(self.id, here.taken.extend))
        leaving.callback(engine.hub.accompany(self.id, here.along))
        leaving.callback(engine.hub.when_stirred(self.id, here.woken.set))
        leaving.push_async_callback(self._leave, here, worker)
        return here

    async def _leave(self, here: ConsumerSession, worker: Worker) -> None:
        """Break its work off, and record the pending commands."""
        del worker.conversations[self.id]
        worker.unrecovered.discard(self.id)
        here.heard = self._view.version
        with suppress(NotFound, OperatorError):
            await here.engine.abandon(self.id)
        here.leave()
        with suppress(OperatorError):
            await self._grant(here)
            await here.keep_heard(self._view.version, self._latest.version)
        self._session = None
        if here.granter is not None:
            await here.granter

    async def _gone(self, consumer: Consumer, leaving: AsyncExitStack) -> None:
        try:
            await leaving.aclose()
        finally:
            self._consumer = None
            consumer.left.set()

    def _moved(self, state: RunState) -> None:
        self._latest = as_conversation(state)
        if self._session is not None:
            self._session.woken.set()

    async def _loaded(self, app: Holdfast) -> ConversationState:
        try:
            state = await app.engine.state(self.id)
        except NotFound:
            return blank(new_id(self.id), self._definition)
        return as_conversation(state)
