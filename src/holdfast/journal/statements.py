"""The named SQL of `sql/`: each query has a name, its purpose in one line, and its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

_HEADING = re.compile(r"^-- name: (\w+)\n-- .+\n", re.MULTILINE)
_CHECKSUM = re.compile(r"\b(\w+\.)?crc(_after)?\b")


def load_script(name: str) -> str:
    """The text of one file in `sql/`."""
    return files("holdfast.journal").joinpath("sql", name).read_text(encoding="utf-8")


def load_queries(name: str) -> Mapping[str, str]:
    """The queries of one file, by name."""
    _, *parts = _HEADING.split(load_script(name))
    bodies = (body.strip().rstrip(";") for body in parts[1::2])
    return MappingProxyType(dict(zip(parts[0::2], bodies, strict=True)))


def without_checksums(queries: Mapping[str, str]) -> Mapping[str, str]:
    """The same for a database of a schema that has no checksums yet: they are NULL."""
    return {name: _CHECKSUM.sub("NULL", text) for name, text in queries.items()}
