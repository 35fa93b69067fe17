"""Questions that stand before one call of `order`, in a chat and in a plan.

Whatever is asked, the call follows from the answer alone. In a chat the model orders when it hears
an approval or data; in a plan the listener that orders follows on the Done of the task that the
person was asked about. Approvals, and in a plan missing arguments, are asked by the call itself.
In a chat a call that lacks arguments offers to provide or to skip; the other actions stand on a
question of that type which is asked from outside.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from plan_texts import end, load, start, step

from holdfast import (
    AgentSession,
    Holdfast,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionResponse,
    InteractionType,
    PlanInstance,
    Resolution,
)
from holdfast.journal.port import QuestionRow
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import Asking
from holdfast.model.message import ToolReturned, UserSaid
from holdfast.model.rows import request_of
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import RuleModel

OpenApp = Callable[..., Awaitable[Holdfast]]

APPROVE = InteractionAction.APPROVE_AND_EXECUTE
RETRY = InteractionAction.RETRY_WITH_FEEDBACK
REJECT = InteractionAction.REJECT_WITH_REASON
TERMINATE = InteractionAction.TERMINATE
PROVIDE = InteractionAction.PROVIDE_INFO
SKIP = InteractionAction.SKIP
CUSTOM = InteractionAction.CUSTOM

TOOL_APPROVAL = InteractionType.TOOL_APPROVAL
MISSING_INFO = InteractionType.MISSING_INFO

SHOWN, GIVEN = {"x": 5}, {"x": 7}
WORDS = "only the small one"


@dataclass
class Order:
    """The tool that the answers are about."""

    calls: list[dict[str, int]] = field(default_factory=list)

    async def __call__(self, x: int) -> dict[str, int]:
        self.calls.append({"x": x})
        return {"ordered": x}


@dataclass
class Scene:
    app: Holdfast
    order: Order
    run: AgentSession | PlanInstance

    async def question(self) -> QuestionRow:
        [row] = await self.app.inbox()
        return row

    async def answer(self, action: InteractionAction, **given: Any) -> None:
        """Takes the option of that action, with words, and with data where it provides some."""
        row = await self.question()
        [chosen] = [one for one in request_of(row).options if one.action is action]
        data = GIVEN if action is PROVIDE else None
        given = {"data": data, "feedback": WORDS, **given}
        await self.app.answer(row.question_id, option_id=chosen.option_id, by="will", **given)


def metadata(action: InteractionAction) -> dict[str, Any]:
    return SHOWN | ({"handler": "decide"} if action is CUSTOM else {})


def option(action: InteractionAction) -> InteractionOption:
    return InteractionOption(action.lower(), action.capitalize(), action, metadata=metadata(action))


OPTIONS = tuple(option(action) for action in InteractionAction)
FORM = Form((Field("x", FieldType.NUMBER, integer=True),))


def decide(app: Holdfast, action: InteractionAction) -> None:
    """Registers the handler of the custom option: it comes to `action`."""

    @app.interactions.action("decide")
    def handler(request: InteractionRequest, response: InteractionResponse) -> Resolution:
        assert (response.selected_option_id, response.feedback) == ("custom", WORDS)
        return Resolution(action, GIVEN if action is PROVIDE else {}, f"handled: {WORDS}")


def heard(seen: Seen) -> str:
    """The last thing that the model was told."""
    last = seen.messages[-1]
    assert isinstance(last, UserSaid | ToolReturned)
    return last.text if isinstance(last, UserSaid) else json.dumps(last.content)


def orders_what_it_hears(seen: Seen) -> Entry:
    _, _, values = seen.asked.partition("answered: ")
    return call("order", x=json.loads(values)["x"])


def clerk_model(*first: Entry) -> RuleModel:
    """Says `first` when it is greeted; later it orders only on an answer with something in it."""
    return RuleModel(
        [
            (lambda seen: bool(seen.results), "I have heard."),
            ("hello", first[0] if first else "Good day."),
            ("answered: ", orders_what_it_hears),
            ("", "Then not."),
        ]
    )


async def chat(
    open_app: OpenApp, kind: InteractionType, action: InteractionAction | None = None
) -> Scene:
    """A chat that asks a question of that kind, which has an option for `action`."""
    if kind is TOOL_APPROVAL:
        return await chat_about_a_call(open_app)
    if kind is MISSING_INFO and action in (PROVIDE, SKIP):
        return await greeted(open_app, clerk_model(call("order")))
    scene = await greeted(open_app, clerk_model())
    await ask(scene, kind)
    return scene


async def chat_about_a_call(open_app: OpenApp) -> Scene:
    wanted = say("May I?", call("order", **SHOWN))
    return await greeted(
        open_app, clerk_model(wanted), approval="require", asking=Asking(options=OPTIONS)
    )


async def greeted(open_app: OpenApp, model: RuleModel, **agent: Any) -> Scene:
    app, order = await open_app(model=model), Order()
    app.tool(order, name="order")
    app.agent("clerk", tools=["order"], **agent)
    session = await app.sessions.open("clerk")
    await app.sessions.say(session.id, "hello")
    await session.wait_until_settled()
    return Scene(app, order, session)


async def ask(scene: Scene, kind: InteractionType) -> None:
    if kind is InteractionType.CUSTOM:
        scene.app.interactions.type("decision")(refuse_to_decide)
    await scene.app.sessions.request_interaction(scene.run.id, request(kind))


def request(kind: InteractionType) -> InteractionRequest:
    custom_type = "decision" if kind is InteractionType.CUSTOM else None
    return InteractionRequest(
        "", "", kind, "Order one?", options=OPTIONS, form=FORM, custom_type=custom_type
    )


def refuse_to_decide(request: InteractionRequest, response: InteractionResponse) -> Resolution:
    return Resolution(CUSTOM)


def model_of(scene: Scene) -> RuleModel:
    model = scene.app.models.default_model
    assert isinstance(model, RuleModel)
    return model


def written(action: InteractionAction) -> dict[str, Any]:
    return {"option_id": action.lower(), "action": action.value, "metadata": metadata(action)}


WRITTEN = [written(action) for action in InteractionAction]
SETTLED = "003.status == Done or 003.status == Skipped or 002.status == Skipped"


def listeners(kind: InteractionType) -> list[dict[str, Any]]:
    """The question as a plan's author writes it, and the order that depends on its answer."""
    options = {"options": WRITTEN}
    match kind:
        case InteractionType.TOOL_APPROVAL:
            return [step("ORDER", "001", "003", tool="order", args=SHOWN, approval=options)]
        case InteractionType.MISSING_INFO:
            return [step("ORDER", "001", "003", tool="order", missing=options)]
    custom_type = {"custom_type": "decision"} if kind is InteractionType.CUSTOM else {}
    form = {"x": {"type": "number", "integer": True}}
    question: dict[str, Any] = {"type": kind.value, "form": form, **options, **custom_type}
    ordered = {"x": "{{result.x}}"}
    return [
        step("ASK", "001", "002", title="Order one?", context=ordered, **question),
        step("ORDER", "002", "003", tool="order", args={"x": "{002.context.x}"}),
    ]


async def plan(open_app: OpenApp, kind: InteractionType) -> Scene:
    app, order = await open_app(), Order()
    app.tool(order, name="order")
    if kind in (TOOL_APPROVAL, MISSING_INFO):
        condition = SETTLED.removesuffix(" or 002.status == Skipped")
        load(app, *listeners(kind), end("003", when=condition))
    else:
        load(app, *listeners(kind), end("002,003", when=SETTLED))
    instance = await start(app)
    assert await instance.wait_until_settled() == "pause"
    scene = Scene(app, order, instance)
    assert request_of(await scene.question()).type is kind
    return scene
