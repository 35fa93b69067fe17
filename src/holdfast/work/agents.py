"""Asking the model of an agent.

A model is offered the agent's tools, each agent that it may hand work to as a tool
`ask_…`, and `ask_person` where it may ask people itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from holdfast.errors import ModelNotConfigured
from holdfast.forms.from_tools import form_from_schema
from holdfast.i18n.message import msg
from holdfast.model import effects as f
from holdfast.model.agent import ASK_PERSON, Agent, helper_name
from holdfast.model.form import FieldType
from holdfast.model.message import ModelReply, ToolOffer
from holdfast.model.values import JsonObject
from holdfast.work.models import ModelClient
from holdfast.work.tools import ToolRegistry, ToolSpec

CALL_TIMEOUT: Final = 300.0
"""Seconds that an agent's call may take where its tool names no time of its own."""

_TASK: Final = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What is to be done, in full."}},
    "required": ["task"],
}
_QUESTION: Final = {
    "type": "object",
    "properties": {
        "question": {"type": "string"},
        "options": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Leave out to let the person answer in words.",
        },
    },
    "required": ["question"],
}
_NOT_YOURS: Final = {
    "description": "A secret. Leave it out: the person is asked for it. Only a reference "
    "(secret:…) that you were given may be passed on."
}


class AgentWorker:
    def __init__(
        self, tools: ToolRegistry, models: ModelClient, agent: Callable[[str], Agent]
    ) -> None:
        self.tools = tools
        self.models = models
        self._agent = agent
        self._offered: dict[str, tuple[ToolSpec, ToolOffer]] = {}

    async def ask(
        self,
        effect: f.AskModel,
        on_text: Callable[[str], None],
        on_restart: Callable[[], None],
    ) -> ModelReply:
        model = effect.model or self.models.default_model
        if model is None:
            raise ModelNotConfigured(
                msg(
                    "no model is named: set HOLDFAST_MODEL (such as openai:gpt-4o), or give the "
                    "agent a `model`"
                )
            )
        return await self.models.request(
            model,
            system=effect.system,
            messages=effect.messages,
            tools=tuple(self._offers(effect)),
            on_text=on_text,
            on_restart=on_restart,
        )

    def _offers(self, effect: f.AskModel) -> Iterator[ToolOffer]:
        for name in effect.tools:
            if name in self.tools:
                yield self._tool(self.tools.get(name).spec)
        for agent_id in effect.agents:
            yield self._helper(agent_id)
        if effect.asks_people:
            words = "Ask the person you work for, and wait for the answer."
            yield ToolOffer(ASK_PERSON, words, _QUESTION)

    def _tool(self, spec: ToolSpec) -> ToolOffer:
        known = self._offered.get(spec.name)
        if known is None or known[0] is not spec:
            offer = ToolOffer(spec.name, spec.description, offered_parameters(spec))
            self._offered[spec.name] = known = (spec, offer)
        return known[1]

    def _helper(self, agent_id: str) -> ToolOffer:
        agent = self._agent(agent_id)
        words = agent.description or f"Hand work to {agent.name or agent_id}."
        return ToolOffer(helper_name(agent_id), words, _TASK)


def offered_parameters(spec: ToolSpec) -> JsonObject:
    """A tool's parameters as a model sees them: secrets are left to the person."""
    parameters = spec.parameters
    asked = form_from_schema(parameters, list(parameters.get("properties", {})), spec.fields)
    names = [one.name for one in asked.fields if one.type is FieldType.SECRET]
    if not names:
        return parameters
    told = {name: {**parameters["properties"][name], **_NOT_YOURS} for name in names}
    required = [name for name in parameters.get("required", ()) if name not in names]
    return {
        **parameters,
        "properties": {**parameters["properties"], **told},
        "required": required,
    }
