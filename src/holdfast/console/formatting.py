"""Values as pages write them: foreign text, addresses, times."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from holdfast.language.display import visible


def seen(text: object) -> str:
    """Text of people and models: line breaks stay, other hidden characters are spelled out."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in str(text).split("\n"))


def query(**members: object) -> str:
    """The query string of the members that have a value, or an empty text."""
    given = {key: value for key, value in members.items() if value not in (None, "", ())}
    return f"?{urlencode(given, doseq=True)}" if given else ""


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
