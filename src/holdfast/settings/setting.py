"""The record of a setting: its option, its environment variable, its key in the file, what it may
be, what it is by default, and what it is for.

A secret has neither option nor key: a command line is seen by every process, and files are copied
and committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.settings.kinds import Kind, Limits, Value

EVERY: Final = "every command"
SERVE: Final = "serve"
WORKER: Final = "worker"
MIGRATE: Final = "migrate"


@dataclass(frozen=True, slots=True)
class Setting:
    """`default_means` says what holds without a value. `scope` has the commands that it is for;
    those that it names have the option, or else all of them. `by_hand` says why it may not stand in
    the file."""

    name: str
    purpose: str
    kind: Kind = Kind.TEXT
    default: Value = None
    scope: tuple[str, ...] = (SERVE,)
    flag: str = ""
    metavar: str = ""
    variable: str = ""
    limits: Limits = Limits()
    default_means: str = ""
    secret: bool = False
    by_hand: str = ""

    @property
    def key(self) -> str:
        """Its key in the file; empty where it may not stand there."""
        return "" if self.secret or self.by_hand else self.name

    @property
    def default_text(self) -> str:
        if self.default_means:
            return self.default_means
        match self.default:
            case None | ():
                return "none"
            case bool():
                return "yes" if self.default else "no"
            case tuple():
                return " ".join(self.default)
            case _:
                return str(self.default)

    @property
    def help(self) -> str:
        """What an option's help says."""
        default = "" if self.kind is Kind.SWITCH else f" Default: {self.default_text}."
        also = f" Also ${self.variable}." if self.variable else ""
        return f"{self.purpose}{default}{also}"


def variable(name: str) -> str:
    return f"HOLDFAST_{name.upper()}"


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def at_least(least: float, most: float | None = None) -> Limits:
    return Limits(least=least, most=most)


def served(
    name: str, purpose: str, kind: Kind, default: Value, metavar: str = "", **more: object
) -> Setting:
    """A setting of `serve` whose option, variable and key are all its name."""
    named = {"flag": flag(name), "variable": variable(name), **more}
    return Setting(name, purpose, kind, default, metavar=metavar, **named)  # type: ignore[arg-type]
