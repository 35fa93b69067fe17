"""Thinking: when the model is asked, and what its reply leads to."""

from __future__ import annotations

from holdfast.core.agent.builder import Builder
from holdfast.core.agent.state import THINK
from holdfast.i18n.message import msg
from holdfast.model import agent_events as r
from holdfast.model.message import ModelReply, ToolCall
from holdfast.model.retry import Failure


def start(builder: Builder) -> None:
    state = builder.state
    if state.iteration >= state.agent.max_iterations:
        fail(
            builder,
            msg("no answer after {n} rounds of thinking (max_iterations)", n=state.iteration),
        )
        return
    step = builder.step(THINK)
    builder.emit(r.ThinkingStarted(step.firing, step.attempt + 1))


def replied(builder: Builder, reply: ModelReply) -> None:
    """Calls to be made, or the answer that ends the turn.

    It does not end while a person is being asked, or has said what the model has yet to hear.
    """
    builder.emit(
        r.ModelReplied(
            firing=builder.step(THINK).firing,
            text=reply.text,
            calls=_numbered(builder, reply.calls),
            usage=reply.usage,
            model=reply.model,
            finish=reply.finish,
        )
    )
    if not builder.state.active:
        _answered(builder, reply)


_NAMELESS = "no_name"
"""Only a person's question has no tool; what a model says must never pass for the answer to one."""


def _numbered(builder: Builder, calls: tuple[ToolCall, ...]) -> tuple[r.Call, ...]:
    first = builder.state.numbered + 1
    return tuple(
        r.Call(f"c{number}", call.call_id, call.tool or _NAMELESS, call.args, call.malformed)
        for number, call in enumerate(calls, first)
    )


def _answered(builder: Builder, reply: ModelReply) -> None:
    if reply.text.strip():
        builder.emit(r.TurnCompleted(builder.state.turn, reply.text))
        return
    if reply.finish == "length":
        why = msg("the model gave no answer: its reply was cut off")
    else:
        why = msg("the model gave no answer: it stopped by {reason!r}", reason=reply.finish)
    builder.emit(r.TurnFailed(why))


def fail(builder: Builder, message: str) -> None:
    builder.emit(r.TurnFailed(message, (THINK,)))


def failed(builder: Builder, failure: Failure) -> None:
    """The client has tried often enough; a person may resume when the model is back."""
    fail(builder, msg("the model could not be asked: {reason}", reason=failure.message))
