"""Output that needs no layout: JSON for programs, and notes beside it. What it takes is loaded at
once, so that a command which only complains, or prints JSON, is quick; `screen` has the rest."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON allows in a string as it is, and a terminal obeys; C0 it escapes by itself."""


def note(text: str) -> None:
    """A word beside the output, which scripts do not read."""
    sys.stderr.write(f"{text}\n")


def print_json(value: Any) -> None:
    sys.stdout.write(json_text(value, indent=2) + "\n")
    sys.stdout.flush()


def print_json_line(value: Any) -> None:
    sys.stdout.write(json_text(value) + "\n")
    sys.stdout.flush()


def json_text(value: Any, indent: int | None = None) -> str:
    """Readable JSON without a character that a terminal would obey."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
