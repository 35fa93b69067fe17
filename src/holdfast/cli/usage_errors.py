"""Wrong usage, in our own words."""

from __future__ import annotations

import re

import typer

_IN_OUR_WORDS = [
    (re.compile(theirs), ours)
    for theirs, ours in (
        ("Value error, ", ""),
        (r"'\[(\w+)\]'", r"'\1'"),
        ("Input should be greater than or equal to", "it must be at least"),
        ("Input should be less than or equal to", "it must be at most"),
        (r"Input should be a valid integer.*", "it is no whole number"),
        (r"Input should be a valid number.*", "it is no number"),
    )
]
"""What the libraries that read the options say about a value."""


def plain_words(error: typer.TyperException) -> str:
    """A usage error in one line, with the way to the help."""
    message = getattr(error, "format_message", lambda: str(error))()
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "holdfast"
    sentence = " ".join(message.split()).rstrip(".")
    for theirs, ours in _IN_OUR_WORDS:
        sentence = theirs.sub(ours, sentence)
    return f"{sentence}. Try: {where} --help"
