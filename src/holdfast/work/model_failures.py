"""What it means that a model gave no answer: wait and ask again, or tell somebody.

Providers fail in a hundred ways; a run needs to know only two. `ModelUnavailable`: the same
request may succeed later (rate limits, server errors, lost connections, replies that broke off or
make no sense). `ModelRefused`: it cannot, until a person changes something, and the message says
what. `read_failure` sorts; what it does not know is a mistake of ours and passes unchanged.

The texts name the model and repeat what the provider said, shortened. They never hold the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from holdfast.errors import ContextTooLong, ModelRefused, ModelUnavailable
from holdfast.i18n.message import msg

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError

_LONGEST_REASON: Final = 300
# What the adapters trip over when an answer has a shape they did not foresee.
_TRIPPED: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_WORTH_ANOTHER: Final = frozenset({408, 409, 425, 429})
_TOO_LARGE: Final = 413

_CHECK_KEY: Final = msg(
    "check the key (HOLDFAST_MODEL_API_KEY or the provider's own variable) and its rights"
)
_CHECK_NAME: Final = msg("check the model's name (HOLDFAST_MODEL) and the base URL")
_SHORTEN: Final = msg("shorten the conversation or choose a model with a larger context window")
_TOP_UP: Final = msg("the account's quota is used up: raise it or choose another model")
_REPHRASE: Final = msg(
    "the provider's filter stopped it: change the request or choose another model"
)
_LOOK: Final = msg("the same request will be refused again: change it or choose another model")


def read_failure(error: Exception, model: str) -> ModelUnavailable | ModelRefused | None:
    """What `error` means for a request to `model`; None if it is no failure of the model's."""
    import httpx
    import httpx2
    from pydantic_ai import exceptions as theirs

    match error:
        case theirs.ModelAPIError():
            return _read_provider_error(error, model)
        case theirs.ContentFilterError():
            return _refused(model, str(error), _REPHRASE)
        case theirs.UnexpectedModelBehavior():
            return ModelUnavailable(
                msg(
                    "model {model!r} answered nonsense: {text}",
                    model=model,
                    text=_shorten(str(error)),
                )
            )
        case theirs.UserError():
            return _refused(model, str(error), _CHECK_NAME)
        # Some adapters let a connection that breaks within a stream through as it is.
        case (
            httpx.TransportError()
            | httpx2.TransportError()
            | httpx.StreamError()
            | httpx2.StreamError()
        ):
            return ModelUnavailable(
                msg("model {model!r}: the connection broke: {text}", model=model, text=_told(error))
            )
        case _ if isinstance(error, _TRIPPED):
            return ModelUnavailable(
                msg("model {model!r} answered nonsense: {text}", model=model, text=_told(error))
            )
        case _:
            return None


def declined(model: str, reason: str) -> ModelRefused:
    """The model itself, or a filter around it, would not answer."""
    return _refused(model, reason or msg("no reason given"), _REPHRASE)


def _read_provider_error(error: ModelAPIError, model: str) -> ModelUnavailable | ModelRefused:
    from pydantic_ai import exceptions as theirs

    status = error.status_code if isinstance(error, theirs.ModelHTTPError) else None
    reason = _said(error) if status is None else f"{status}: {_said(error)}"
    match error:
        case theirs.ModelContextWindowExceededError():
            return ContextTooLong(_sentence(model, reason, _SHORTEN))
        case theirs.ModelAuthenticationError():
            return _refused(model, reason, _CHECK_KEY)
        case theirs.ModelNotFoundError():
            return _refused(model, reason, _CHECK_NAME)
        case theirs.ModelQuotaExceededError():
            return _refused(model, reason, _TOP_UP)
        case theirs.ModelRequestRejectedError():
            return _refused(model, reason, _LOOK)
        case _ if status == _TOO_LARGE:
            return ContextTooLong(_sentence(model, reason, _SHORTEN))
        case _ if status is None or status >= 500 or status in _WORTH_ANOTHER:
            return ModelUnavailable(
                msg("model {model!r}: {reason}", model=model, reason=reason), error.retry_after
            )
        case _:
            return _refused(model, reason, _BY_STATUS.get(status, _LOOK))


_BY_STATUS: Final = {401: _CHECK_KEY, 403: _CHECK_KEY, 404: _CHECK_NAME, 402: _TOP_UP}


def _refused(model: str, reason: str, remedy: str) -> ModelRefused:
    return ModelRefused(_sentence(model, reason, remedy))


def _sentence(model: str, reason: str, remedy: str) -> str:
    return msg(
        "model {model!r} refused: {reason}; {remedy}",
        model=model,
        reason=_shorten(reason),
        remedy=remedy,
    )


def _said(error: ModelAPIError) -> str:
    """The provider's own sentence, without the envelope that differs from one to the next."""
    body = error.body
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, Mapping) else inner
        return _shorten(str(message or body))
    return _shorten(str(body) if body else error.message)


def _told(error: Exception) -> str:
    return _shorten(f"{type(error).__name__}: {error}")


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"
