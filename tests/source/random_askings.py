"""Askings of every kind, for whatever stores them."""

from __future__ import annotations

from hypothesis import strategies as st

from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
)

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_seconds = st.floats(0, 100) | st.integers(0, 100)
_options = st.builds(
    InteractionOption,
    option_id=_texts,
    label=_texts,
    action=st.sampled_from(InteractionAction),
    description=_texts,
    is_default=st.booleans(),
    is_dangerous=st.booleans(),
    requires_input=st.booleans(),
    input_prompt=_texts,
    metadata=st.dictionaries(_texts, _texts | st.booleans(), max_size=2),
)
ASKINGS = st.just(Asking()) | st.builds(
    Asking,
    title=_texts,
    message=_texts,
    details=_texts,
    type=st.none() | st.sampled_from(InteractionType),
    custom_type=st.none() | _texts,
    options=st.lists(_options, max_size=2).map(tuple),
    required=st.booleans(),
    role=st.none() | _texts,
    timeout_seconds=st.none() | _seconds,
    default_option_id=st.none() | _texts,
    reminders=st.lists(_seconds, max_size=2).map(tuple),
    escalate_after=st.none() | _seconds,
    escalate_to=st.none() | _texts,
)
