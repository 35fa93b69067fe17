"""The values that travel through a run: strict JSON, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys.

`core.strict.strict_json` is the one gate through which a foreign value becomes one.
"""

JsonObject: TypeAlias = Mapping[str, Any]
