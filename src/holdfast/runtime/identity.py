"""Who acts: the person or service on whose behalf this code gives commands to runs.

A surface that admits people enters `acting` around each request; the engine reads it when a command
is handed in. What the engine does afterwards it does on its own behalf (`background`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from holdfast.core.run.state import CLOCK as CLOCK
from holdfast.language.strict import strict_text

LOCAL: Final = "local"
"""The name under which a process acts that admits no one from outside."""


@dataclass(slots=True, eq=False)
class Claim:
    """A request that must not be served twice; `fingerprint` tells it from another one.

    It is `held` once something that the request asked for is on disk: what else it asks for goes on
    under the same claim.
    """

    key: str
    fingerprint: str
    held: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """`who` is the principal's id, the same text as `by`; `origin` the client's address or
    "cli"; `via` what let them in: a token's id, "jwt" or "cookie"."""

    who: str
    origin: str = ""
    via: str = ""
    claim: Claim | None = None


ACTING: Final[ContextVar[Identity | None]] = ContextVar("holdfast_acting", default=None)

current: Final = ACTING.get
"""The identity under which this code runs, or None."""


@contextmanager
def acting(one: Identity) -> Iterator[None]:
    """InvalidValue for a name that no record could hold: an audit record must not fail halfway."""
    for name in ("who", "origin", "via"):
        strict_text(getattr(one, name), name)
    token = ACTING.set(one)
    try:
        yield
    finally:
        ACTING.reset(token)
