"""From a model's name to a model that can be asked.

    openai:gpt-4o            any provider pydantic-ai knows; its key from its own variable
    gpt-4o + base URL        any server that speaks OpenAI's chat protocol, with or without a key

With a base URL every name goes to that server, whatever stands before a colon (`qwen2.5:7b` is a
model, not a provider); only `openai:` and `openai-chat:` are taken off. A key meant for OpenAI is
never sent to another server.

pydantic-ai takes more than a second to import, so nothing here imports it before it is needed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import ModelNotConfigured
from holdfast.i18n.message import msg

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

# Prices are looked up by this name too, and only a name that is like no provider's finds none:
# what somebody's own server costs is not known.
_OWN_SERVER: Final = "own-server"
_CHAT_PREFIXES: Final = ("openai-chat:", "openai:")
_EXTRA: Final = re.compile(r"pydantic-ai-slim\[([\w-]+)\]")


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
