"""Asking a model: one request, as many attempts as it needs, one reply.

    client = ModelClient.from_environment()
    reply = await client.request(
        "openai:gpt-4o", system="…", messages=[UserSaid("…")], tools=[], on_text=show
    )

A model is asked through pydantic-ai's direct API, so any of its providers will do, and the loop
around it stays ours. Attempts are counted here alone: the provider's own retries are turned off.
Between two attempts the client waits as long as the provider asks (up to a bound), or backs off
with jitter. What finally fails is `ModelUnavailable` or `ModelRefused` (`model_wire`).

With `on_text` the reply is streamed and its text handed over piece by piece. Those pieces are for
eyes only: when a stream breaks and is begun again, `on_restart` says that they are void. Only the
returned reply counts.

Names:

    openai:gpt-4o            any provider pydantic-ai knows; its key from its own variable
    gpt-4o + base URL        any server that speaks OpenAI's chat protocol, with or without a key

With a base URL every name goes to that server, whatever stands before a colon (`qwen2.5:7b` is a
model, not a provider); only `openai:` and `openai-chat:` are taken off. A key meant for OpenAI is
never sent to another server.

Importing pydantic-ai blocks for more than a second; it happens at the first request, in a thread.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.run.steps import retry_delay
from holdfast.errors import ContextTooLong, ModelNotConfigured, ModelRefused, ModelUnavailable
from holdfast.i18n.message import msg
from holdfast.model.message import Message, ModelReply, ToolOffer
from holdfast.model.retry import Failure, FailureKind, RetryPolicy
from holdfast.settings.sources import Sources, in_effect
from holdfast.work.model_wire import (
    call_ids,
    declined,
    from_wire,
    read_failure,
    to_parameters,
    to_wire,
)

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.providers import Provider
    from pydantic_ai.settings import ModelSettings

__all__ = [
    "ContextTooLong",
    "ModelClient",
    "ModelNotConfigured",
    "ModelRefused",
    "ModelUnavailable",
    "resolve_model",
]

DEFAULT_RETRY: Final = RetryPolicy(attempts=4, initial=1.0, factor=2.0, maximum=30.0, jitter=0.3)
DEFAULT_TIMEOUT: Final = 120.0
LONGEST_WAIT: Final = 60.0

# Prices are looked up by this name too, and only a name that is like no provider's finds none:
# what a server of the user's own costs is not known.
_OWN_SERVER: Final = "own-server"
_CHAT_PREFIXES: Final = ("openai-chat:", "openai:")
_EXTRA: Final = re.compile(r"pydantic-ai-slim\[([\w-]+)\]")


class ModelClient:
    """Asks models; `timeout` is for each attempt, `longest_wait` bounds what a provider may ask."""

    def __init__(
        self,
        *,
        default_model: str | Model | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
        timeout: float = DEFAULT_TIMEOUT,
        longest_wait: float = LONGEST_WAIT,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.default_model = default_model
        self._base_url = base_url
        self._api_key = api_key
        self._retry = retry
        self._timeout = timeout
        self._longest_wait = longest_wait
        self._sleep = sleep
        self._jitter = jitter
        self._resolved: dict[str, Model] = {}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> ModelClient:
        """As HOLDFAST_MODEL, HOLDFAST_MODEL_BASE_URL and HOLDFAST_MODEL_API_KEY say, or the file
        of settings."""
        said = in_effect() if environ is None else Sources(environ)
        return cls(
            default_model=said.value("model"),
            base_url=said.value("model_base_url"),
            api_key=said.value("model_api_key"),
        )

    async def request(
        self,
        model: str | Model,
        *,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolOffer],
        on_text: Callable[[str], None] | None = None,
        on_restart: Callable[[], None] | None = None,
    ) -> ModelReply:
        """The model's next turn; `usage.seconds` includes failed attempts and waits."""
        chosen = await self._find(model)
        began = time.monotonic()
        listener = _Listener(on_text, on_restart)
        question = _Question(
            chosen, to_wire(messages), to_parameters(system, tools), self._settings(chosen)
        )
        response = await self._answered(question, listener)
        reply = from_wire(response, call_ids(messages))
        if reply.finish == "content_filter" and not (reply.text or reply.calls):
            details = response.provider_details or {}
            raise declined(chosen.model_name, str(details.get("refusal", "")))
        seconds = time.monotonic() - began
        return replace(
            reply,
            model=reply.model or chosen.model_name,
            usage=replace(reply.usage, seconds=seconds),
        )

    async def aclose(self) -> None:
        """Closes the connections to the models this client has found by name."""
        while self._resolved:
            _, model = self._resolved.popitem()
            # A model closes its connections when it has been left as often as entered.
            async with model:
                pass

    def add(self, name: str, model: Model) -> None:
        """Know a model of one's own by a name that agents may use."""
        self._resolved[name] = model

    async def _find(self, model: str | Model) -> Model:
        if not isinstance(model, str):
            return model
        if (known := self._resolved.get(model)) is not None:
            return known
        found = await asyncio.to_thread(resolve_model, model, self._base_url, self._api_key)
        return self._resolved.setdefault(model, found)

    def _settings(self, model: Model) -> ModelSettings:
        settings: ModelSettings = {"request_timeout": self._timeout}
        if "max_retries" not in model.unsupported_settings:
            settings["max_retries"] = 0
        return settings

    async def _answered(self, question: _Question, listener: _Listener) -> ModelResponse:
        attempt = 1
        while True:
            try:
                return await question.ask(listener)
            except Exception as error:
                failure = read_failure(error, question.model.model_name)
                if failure is None or listener.failed:
                    raise
                wait = self._wait(failure, attempt)
                if wait is None:
                    raise _with_count(failure, attempt) from error
            listener.restart()
            await self._sleep(wait)
            attempt += 1

    def _wait(self, failure: ModelUnavailable | ModelRefused, attempt: int) -> float | None:
        """Seconds until the next attempt, or None to give up."""
        if isinstance(failure, ModelRefused):
            return None
        told = Failure(FailureKind.TRANSIENT, str(failure))
        delay = retry_delay(self._retry, told, attempt, self._jitter())
        if delay is None or failure.retry_after is None:
            return delay
        # All clients were told the same moment, so the jitter is added, never taken off.
        return min(failure.retry_after, self._longest_wait) + delay * self._retry.jitter


@dataclass(frozen=True, slots=True)
class _Question:
    """A request as pydantic-ai wants it, to be asked as often as necessary."""

    model: Model
    messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings

    async def ask(self, listener: _Listener) -> ModelResponse:
        if listener.on_text is None:
            return await self._ask_at_once()
        return await self._ask_streaming(listener)

    async def _ask_at_once(self) -> ModelResponse:
        from pydantic_ai.direct import model_request

        return await model_request(
            self.model,
            self.messages,
            model_settings=self.settings,
            model_request_parameters=self.parameters,
        )

    async def _ask_streaming(self, listener: _Listener) -> ModelResponse:
        from pydantic_ai.direct import model_request_stream

        async with model_request_stream(
            self.model,
            self.messages,
            model_settings=self.settings,
            model_request_parameters=self.parameters,
        ) as stream:
            async for event in stream:
                listener.hear(event)
            return stream.get()


class _Listener:
    """Hands a stream's text on, and remembers whether there is anything to take back."""

    def __init__(
        self, on_text: Callable[[str], None] | None, on_restart: Callable[[], None] | None
    ) -> None:
        self.on_text = on_text
        self._on_restart = on_restart
        self.failed = False
        self._told = False

    def hear(self, event: ModelResponseStreamEvent) -> None:
        text = _text_in(event)
        if not text or self.on_text is None:
            return
        self._told = True
        try:
            self.on_text(text)
        except Exception:
            self.failed = True
            raise

    def restart(self) -> None:
        if self._told and self._on_restart is not None:
            self._on_restart()
        self._told = False


def _text_in(event: ModelResponseStreamEvent) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


def _with_count(
    failure: ModelUnavailable | ModelRefused, attempts: int
) -> ModelUnavailable | ModelRefused:
    if isinstance(failure, ModelRefused) or attempts == 1:
        return failure
    return ModelUnavailable(
        msg("{problem} (after {n} attempts)", problem=str(failure), n=attempts), failure.retry_after
    )


def resolve_model(name: str, base_url: str | None = None, api_key: str | None = None) -> Model:
    """The model called `name`, or ModelNotConfigured saying what is missing."""
    try:
        if base_url is not None:
            return _compatible_model(name, base_url, api_key)
        return _known_model(name, api_key)
    except ImportError as error:
        raise ModelNotConfigured(_missing_package(name, error)) from error


def _compatible_model(name: str, base_url: str, api_key: str | None) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    if not base_url.startswith(("http://", "https://")):
        raise ModelNotConfigured(
            msg(
                "the model server's address {url!r} is no URL; set HOLDFAST_MODEL_BASE_URL to "
                "something like {example}",
                url=base_url,
                example="http://127.0.0.1:8000/v1",
            )
        )
    for prefix in _CHAT_PREFIXES:
        name = name.removeprefix(prefix)
    return OpenAIChatModel(
        name,
        provider=OpenAICompatibleProvider(_OWN_SERVER, base_url=base_url, api_key=api_key),
        # A stream that merely stops would otherwise pass for a finished answer.
        profile=OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True),
    )


def _known_model(name: str, api_key: str | None) -> Model:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider, infer_provider_class

    def provider_with_key(provider: str) -> Provider[Any]:
        made: Any = infer_provider_class(provider)
        return made(api_key=api_key)  # type: ignore[no-any-return]

    try:
        return infer_model(name, infer_provider if api_key is None else provider_with_key)
    except (UserError, ValueError) as error:
        raise ModelNotConfigured(_unusable(name, str(error))) from error


def _unusable(name: str, reason: str) -> str:
    return msg(
        "model {model!r} cannot be used: {reason}; name it provider:model "
        "(HOLDFAST_MODEL=openai:gpt-4o) with the provider's key, or set "
        "HOLDFAST_MODEL_BASE_URL for a server of your own",
        model=name,
        reason=reason.rstrip("."),
    )


def _missing_package(name: str, error: ImportError) -> str:
    named = _EXTRA.search(str(error))
    extra = named.group(1) if named else name.partition(":")[0]
    package = f"'pydantic-ai-slim[{extra}]'"
    return msg(
        "model {model!r} needs a package: pip install {package}", model=name, package=package
    )
