"""Custom interactions: actions and types of one's own, decided by a handler.

    @app.interactions.action("ask_the_boss")
    async def ask_the_boss(request, response): return Resolution(InteractionAction.SKIP)

A handler only decides: it says to which of the other actions an answer comes, and may
complete its data. It runs before anything is recorded, so two who answer at the same
moment may both have it run; only one answer counts. An option names its handler in
`metadata.handler`, else by its own id; a question of a custom type falls back to that
type's handler. Data that does not fit the question's form reaches no handler. Nothing in
the core knows any of their names.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TypeAlias, TypeVar

from holdfast.core.interactions.filling import for_the_handler
from holdfast.errors import AuthorError, CallerError, InvalidAnswer
from holdfast.i18n.message import msg
from holdfast.language.strict import strict_json
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionResponse,
    InteractionType,
    Resolution,
)

Handler: TypeAlias = Callable[
    [InteractionRequest, InteractionResponse], Resolution | Awaitable[Resolution]
]
H = TypeVar("H", bound=Callable[..., object])


class Handlers:
    def __init__(self) -> None:
        self._actions: dict[str, Handler] = {}
        self._types: dict[str, Handler] = {}

    def action(self, name: str) -> Callable[[H], H]:
        """Register the handler of a custom action under `name`."""
        return self._registering(self._actions, "action", name)

    def type(self, name: str) -> Callable[[H], H]:
        """Register a custom type: questions of it may be asked, and this decides them."""
        return self._registering(self._types, "type", name)

    def check(self, request: InteractionRequest) -> None:
        """Refuse a question of a type that is not registered."""
        known = request.type is not InteractionType.CUSTOM or request.custom_type in self._types
        if not known:
            names = ", ".join(sorted(self._types)) or "none"
            message = msg(
                "no custom type {name!r} is registered (known: {names})",
                name=request.custom_type,
                names=names,
            )
            raise InvalidAnswer(message, {"custom_type": msg("not registered")})

    def missing(self, request: InteractionRequest) -> Iterator[str]:
        """What would have to decide this question and is not registered."""
        for option in request.options:
            if option.action is InteractionAction.CUSTOM and self._handler(request, option) is None:
                yield str(option.metadata.get("handler", option.option_id))

    async def resolve(
        self,
        request: InteractionRequest,
        option: InteractionOption,
        response: InteractionResponse,
    ) -> Resolution | None:
        """What the handler of a custom option makes of the answer; None where it has none."""
        handler = self._handler(request, option)
        if handler is None:
            return None
        data = for_the_handler(request, option, response.data)
        return await _decided(handler, request, replace(response, data=data))

    def _handler(self, request: InteractionRequest, option: InteractionOption) -> Handler | None:
        named = str(option.metadata.get("handler", option.option_id))
        found = self._actions.get(named)
        if found is None and request.custom_type is not None:
            found = self._types.get(request.custom_type)
        return found

    def _registering(self, registry: dict[str, Handler], kind: str, name: str) -> Callable[[H], H]:
        def register(handler: H) -> H:
            if name in registry:
                raise CallerError(f"there already is a handler for the {kind} {name!r}")
            registry[name] = handler  # type: ignore[assignment]
            return handler

        return register


async def _decided(
    handler: Handler, request: InteractionRequest, response: InteractionResponse
) -> Resolution:
    try:
        decided = handler(request, response)
        resolution: object = await decided if inspect.isawaitable(decided) else decided
    except CallerError:
        raise
    except Exception as error:
        raise AuthorError(
            msg(
                "the handler of {title!r} failed: {reason}", title=request.title, reason=repr(error)
            )
        ) from error
    if not isinstance(resolution, Resolution):
        kind = type(resolution).__name__
        raise AuthorError(
            msg(
                "the handler of {title!r} must return a Resolution, not {kind}",
                title=request.title,
                kind=kind,
            )
        )
    data = strict_json(dict(resolution.data))
    return Resolution(InteractionAction(resolution.action), data, resolution.feedback)
