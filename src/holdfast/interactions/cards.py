"""What is shown of a question beside its own words, and questions as JSON.

`consequence` says what an option does, `call_of` which call a question is about, `takes_the_form`
and `needs_all_of_it` how an option and the form go together, `spoken_field` and `spoken_secret`
which field bare words fill in.
"""

from __future__ import annotations

from holdfast.core.interactions.filling import (
    needs_all_of_it,
    spoken_field,
    spoken_secret,
    takes_the_form,
)
from holdfast.core.interactions.listing import shown_context
from holdfast.core.interactions.requests import CONFIRM_OPTIONS, PROVIDE_OPTION, SKIP_OPTION
from holdfast.core.interactions.wire import (
    call_of,
    camel,
    consequence,
    request_from_wire,
    request_to_wire,
)

__all__ = [
    "CONFIRM_OPTIONS",
    "PROVIDE_OPTION",
    "SKIP_OPTION",
    "call_of",
    "camel",
    "consequence",
    "needs_all_of_it",
    "request_from_wire",
    "request_to_wire",
    "shown_context",
    "spoken_field",
    "spoken_secret",
    "takes_the_form",
]
