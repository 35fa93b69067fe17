"""A session's story: what was said, thought, called and answered, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeAlias, assert_never, cast

from holdfast.core.agent.state import THINK, ReactState
from holdfast.i18n.message import joined, msg, msgid
from holdfast.language.strict import canonical_json
from holdfast.model import agent_events as r
from holdfast.model.approval import Grant
from holdfast.model.recorded import Event
from holdfast.model.values import Json
from holdfast.views.stories.calls import Asked
from holdfast.views.stories.lines import Sentence, Teller, as_child, said_so
from holdfast.views.stories.text import named, visible

_Turn: TypeAlias = r.TurnStarted | r.TurnCompleted | r.TurnFailed | r.TurnResumed
_Call: TypeAlias = r.CallProposed | r.CallStarted | r.StepEnded | r.StepAbandoned

_ENDS: Mapping[str, str] = {
    "done": msgid("{step} returned"),
    "failed": msgid("{step} failed"),
    "refused": msgid("{step} was refused"),
    "rejected": msgid("{step} was rejected and did not run"),
    "retry": msgid("{step} did not run; the agent thinks again"),
    "skipped": msgid("{step} was skipped and did not run"),
    "expired": msgid("{step} did not run: it was not answered in time"),
    "provided": msgid("{step} is answered"),
}


class SessionStory(Teller):
    """Remembers which call is which: later events name it by its number only."""

    itself: ClassVar[str] = msg("agent")

    def __init__(self, state: ReactState, asked: Iterable[Asked] = ()) -> None:
        super().__init__(asked)
        self._tools = {step_id: call.tool for step_id, call in state.calls.items()}
        self._most = state.agent.retry.attempts

    def step(self, step_id: str) -> str:
        if step_id == THINK:
            return msg("the model")
        tool = self._tools.get(step_id)
        if not tool:
            return msg("question {step}", step=step_id)
        return f"{named(tool)} ({step_id})"

    def sentence(self, event: Event) -> Sentence:
        # The journal of a session holds a session's events only.
        return self._sentence(cast(r.ReactEvent, event))

    def _sentence(self, event: r.ReactEvent) -> Sentence:
        match event:
            case r.SessionStarted():
                agent = visible(event.agent_id)
                return event.by or self.itself, msg("opened a chat with {agent}", agent=agent)
            case r.TurnStarted() | r.TurnCompleted() | r.TurnFailed() | r.TurnResumed():
                return self._turn(event)
            case r.ThinkingStarted():
                return self.itself, joined("", (msg("asks the model"), self._try(event.attempt)))
            case r.ModelReplied():
                return self.itself, self._reply(event)
            case r.CallProposed() | r.CallStarted() | r.StepEnded() | r.StepAbandoned():
                return self._call(event)
            case r.ApprovalRemembered(grant=grant):
                return grant.by, self._allows(grant)
            case r.ApprovalRevoked():
                told = msg(
                    "takes the remembered approval {grant} back", grant=visible(event.grant_id)
                )
                return event.by, told
            case _:
                return self.shared(event)

    def _turn(self, event: _Turn) -> Sentence:
        match event:
            case r.TurnStarted():
                return event.by, msg("said: {text}", text=visible(event.text))
            case r.TurnCompleted(text=""):
                return self.itself, msg("answered without a word")
            case r.TurnCompleted():
                return self.itself, msg("answered: {text}", text=visible(event.text))
            case r.TurnFailed():
                return self.itself, self.because(msg("cannot go on by itself"), event.message)
            case r.TurnResumed():
                return event.by, msg("resumed the turn")
            case _:
                assert_never(event)

    def _reply(self, event: r.ModelReplied) -> str:
        for call in event.calls:
            self._tools[call.step_id] = call.tool
        wants = joined(", ", (self.step(call.step_id) for call in event.calls))
        if wants:
            told = msg("wants to call {calls}", calls=wants)
            words = msg(", saying: {text}", text=visible(event.text)) if event.text else ""
            return joined("", (told, words))
        tokens = event.usage.input_tokens + event.usage.output_tokens
        return msg("has a reply ({tokens} tokens)", tokens=tokens)

    def _try(self, n: int) -> str:
        return self.nth_try(n, self._most)

    def _allows(self, grant: Grant) -> str:
        tool = visible(grant.tool)
        if not grant.pattern:
            return msg("always allows {tool}", tool=tool)
        args = visible(spelled(grant.pattern))
        return msg("always allows {tool} with {args}", tool=tool, args=args)

    def _call(self, event: _Call) -> Sentence:
        match event:
            case r.CallProposed(call=call):
                self._tools[call.step_id] = call.tool
                step, args = self.step(call.step_id), visible(spelled(call.args))
                return event.by, msg("proposed {step} {args}", step=step, args=args)
            case r.CallStarted():
                return self.itself, self._started(event)
            case r.StepEnded():
                by = self.calls.confirmed_by(event.step_id)
                return self.itself, ended(event, self.step(event.step_id), by)
            case r.StepAbandoned():
                step = self.step(event.step_id)
                return event.by, msg("goes on without {step}", step=step)
            case _:
                assert_never(event)

    def _started(self, event: r.CallStarted) -> str:
        step, args = self.step(event.step_id), visible(spelled(event.args))
        told = msg("calls {step} {args}", step=step, args=args)
        return joined("", (told, self._try(event.attempt), as_child(event.child_id)))


def spelled(value: Mapping[str, Json]) -> str:
    return canonical_json(dict(value))


def ended(event: r.StepEnded, step: str, by: str = "") -> str:
    """How a call or a question ended, and what the model is told of it; `by` said that the call
    took effect, where nothing else tells."""
    content = event.content
    words = content if isinstance(content, str) else canonical_json(content)
    note = f" {visible(event.note)}" if event.note else ""
    if by and event.how == "done":
        how = said_so(step, by)
    elif phrase := _ENDS.get(event.how):
        how = msg(phrase, step=step)
    else:
        how = f"{step} {visible(event.how)}"
    return msg("{told}: {reason}", told=how, reason=visible(words) + note)
