"""The console's words about failures and repairs, found by a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.console.words import pt, t

LEVELS: Final[Mapping[str, str]] = {
    "wait": t("To wait, and nothing else"),
    "rename": t("To pass the same values under another name, or read another field of a result"),
    "look": t("To call further tools, which only look"),
    "act": t("To call what acts, or to pass new values"),
}
"""What a repair takes consent for."""

SOURCES: Final[Mapping[str, str]] = {
    "rule": t("A rule"),
    "lesson": t("A lesson from earlier runs"),
    "model": t("A model"),
    "hook": t("This installation's own code"),
    "person": t("A person"),
}
"""Who says what is wrong, or proposes what may help."""

SAID_BY: Final[Mapping[str, str]] = {
    "model": t("The model's own words"),
    "hook": t("Words of this installation's own code"),
    "person": t("A person's own words"),
}
"""Whose words a text about a repair is."""

CASES: Final[Mapping[str, tuple[str, str]]] = {
    "open": ("idle", t("No repair is proposed")),
    "thinking": ("running", t("The application's hooks or a model are asked")),
    "proposed": ("waiting", t("A repair waits for consent")),
    "applied": ("running", t("Repaired; whether that helps is not known yet")),
    "proven": ("done", t("The repair has helped")),
    "closed": ("idle", t("Closed")),
}
"""How a case is: as a condition, and in words."""

REASONS: Final[Mapping[str, str]] = {
    "open": t("Why nothing is proposed"),
    "closed": t("Why it is closed"),
}
"""What the reason that a case gives is about, where it is no note besides."""

MARKS: Final[Mapping[str, tuple[str, str]]] = {
    "added": ("+", t("New:")),
    "changed": ("~", t("Changed:")),
    "removed": ("−", t("Left out:")),
}
"""What an operation does to a plan: the sign, and what a screen reader says for it."""

OUTCOMES: Final[Mapping[str, tuple[str, str]]] = {
    "helped": ("done", t("It has helped")),
    "in_vain": ("failed", t("It has not helped")),
}
"""What came of a repair."""

REPAIRS: Final[Mapping[str, str]] = {
    "APPROVE_AND_EXECUTE": t(
        "Changes the plan of this run as shown, and resumes it. Calls that need approval still ask."
    ),
    "REJECT_WITH_REASON": t("Changes nothing. The run goes on waiting, and can still be resumed."),
}
"""What answers about a repair do, by their actions."""

EVENTS: Final[Mapping[str, str]] = {
    "run started": t("Run started"),
    "started": pt("evidence", "Started"),
    "succeeded": pt("evidence", "Succeeded"),
    "attempt failed": t("A try failed"),
    "failed": pt("evidence", "Failed"),
    "outcome lost": t("Outcome unknown"),
    "skipped": pt("evidence", "Skipped"),
    "asked": t("A person was asked"),
    "answered": t("A person answered"),
    "nobody answered": t("There was no answer in time"),
    "retried": t("Tried again"),
    "gave up": t("Given up"),
    "checked": t("Checked"),
    "tasks edited": t("Tasks edited"),
    "resumed": t("Resumed"),
    "plan patched": t("Plan changed"),
    "patch refused": t("Repair refused"),
    "repair did not help": t("The repair did not help"),
}
"""What a line of evidence is about."""

CLUES: Final[Mapping[str, str]] = {
    "listener": pt("evidence", "step"),
    "listeners": pt("evidence", "steps"),
    "plan": pt("evidence", "plan"),
    "prompt": pt("evidence", "prompt"),
    "values": pt("evidence", "values"),
    "attempt": pt("evidence", "try"),
    "args": pt("evidence", "arguments"),
    "result": pt("evidence", "result"),
    "kind": pt("evidence", "kind"),
    "cause": pt("evidence", "cause"),
    "status": pt("evidence", "status"),
    "code": pt("evidence", "code"),
    "field": pt("evidence", "argument"),
    "reason": pt("evidence", "reason"),
    "why": pt("evidence", "why"),
    "by": pt("evidence", "by"),
    "said": pt("evidence", "said"),
    "option": pt("evidence", "option"),
    "for": pt("evidence", "for"),
    "fields": pt("evidence", "fields"),
    "count": pt("evidence", "times"),
    "verdict": pt("evidence", "verdict"),
    "operations": pt("evidence", "operations"),
}
"""What a line of evidence has values of."""

KINDS_OF_FAILURE: Final[Mapping[str, str]] = {
    "transient": t("may pass by itself"),
    "permanent": t("stays as it is"),
    "forbidden": t("is not allowed"),
    "missing": t("something is missing"),
    "unknown": t("it is not known whether it happened"),
}
"""Whether a failure may pass, by its kind."""
