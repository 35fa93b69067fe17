"""Rules of approval as authors write them and as JSON has them."""

from __future__ import annotations

from holdfast.core.approval import lets_run, read_rule, rule_to_json

__all__ = ["lets_run", "read_rule", "rule_to_json"]
