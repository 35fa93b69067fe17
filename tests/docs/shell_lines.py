"""Just enough of a shell to read a page's examples, and strict about the rest.

A line is an assignment (`NAME=value`, `NAME=$(command | jq -r .path)`) or a command, which may
end with `<<END` and have its standard input on the lines below. `$NAME` counts in bare words,
between double quotes and in that input. Whatever else a shell knows is refused, so that no
example goes unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_ASSIGNED = re.compile(r"(?P<name>[A-Z]+)=(?P<value>.*)", re.DOTALL)
_CAPTURED = re.compile(r"\$\((?P<command>.*) \| jq -r (?P<path>'[^']+'|\S+)\)", re.DOTALL)
_HERE = re.compile(r"(?P<command>.*) <<END")
_WORD = re.compile(
    r"""(?:'(?P<plain>[^']*)'|"(?P<double>[^"\\`]*)"|(?P<bare>[^\s'"\\`|&;<>()*]+))"""
)
_VARIABLE = re.compile(r"\$([A-Z]+)")
_STEP = re.compile(r"\.(?P<key>\w+)|\[(?P<index>\d+)\]")


@dataclass(frozen=True)
class Line:
    """`name` is what the outcome is assigned to, `path` what `jq` takes from it."""

    text: str
    words: list[str]
    name: str | None = None
    path: str | None = None
    stdin: str | None = None


@dataclass(frozen=True)
class Curl:
    """A command of curl as a request."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    streamed: bool = False


def lines(block: str, variables: Mapping[str, str]) -> Iterator[Line]:
    """Each line with the variables as they are when it is its turn."""
    rest = iter(block.splitlines())
    for text in rest:
        here = _HERE.fullmatch(text)
        stdin = _expanded(_until_end(rest), variables) if here else None
        yield _line(here["command"] if here else text, stdin, variables)


def _until_end(rest: Iterator[str]) -> str:
    found = []
    for text in rest:
        if text == "END":
            return "\n".join(found)
        found.append(text)
    raise AssertionError("<<END without an END")


def _line(text: str, stdin: str | None, variables: Mapping[str, str]) -> Line:
    assigned = _ASSIGNED.fullmatch(text)
    if assigned is None:
        return Line(text, words(text, variables), stdin=stdin)
    captured = _CAPTURED.fullmatch(assigned["value"])
    if captured is None:
        return Line(text, words(assigned["value"], variables), assigned["name"])
    path = captured["path"].strip("'")
    return Line(text, words(captured["command"], variables), assigned["name"], path, stdin)


def words(text: str, variables: Mapping[str, str]) -> list[str]:
    found, at = [""], 0
    while at < len(text):
        if text[at] == " ":
            found.append("")
            at += 1
            continue
        match = _WORD.match(text, at)
        assert match is not None, f"this is not read: {text[at:]}"
        found[-1] += _meant(match, variables)
        at = match.end()
    return [one for one in found if one]


def _meant(match: re.Match[str], variables: Mapping[str, str]) -> str:
    if match["plain"] is not None:
        return match["plain"]
    return _expanded(match["double"] if match["double"] is not None else match["bare"], variables)


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables[found[1]], text)


def curl(given: list[str], stdin: str | None) -> Curl:
    """Reads -s, -N, -X, -H and --json; anything else is refused."""
    url, method, body, headers, streamed = "", "", None, {}, False
    rest = iter(given)
    for word in rest:
        match word:
            case "-s":
                pass
            case "-N":
                streamed = True
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = next(rest).partition(": ")
                headers[name] = value
            case "--json":
                said = next(rest)
                body = stdin if said == "@-" else said
                headers |= {"Content-Type": "application/json", "Accept": "application/json"}
            case _:
                assert not word.startswith("-"), f"curl's {word} is not read"
                assert not url, f"two addresses: {url} {word}"
                url = word
    return Curl(url, method or ("GET" if body is None else "POST"), headers, body, streamed)


def taken(document: Any, path: str) -> Any:
    """What `jq -r PATH` prints, or None."""
    for step in _STEP.finditer(path):
        try:
            document = document[step["key"] or int(step["index"])]
        except (KeyError, IndexError):
            return None
    return document
