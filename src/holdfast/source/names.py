"""Names in sources: ids that are well made, and references to what there is."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from holdfast.i18n.message import msg, term
from holdfast.language.display import clip
from holdfast.language.spelling import nearest
from holdfast.source.locations import Finding, Path

READ_ONLY_PREFIXES: Final = ("query_", "check_")

_MOST_NAMES_COMPARED: Final = 200
_LONGEST_LIST: Final = 200


def unknown(kind: str, name: str, known: Collection[str]) -> str:
    if meant := meant_by(name, known):
        return msg(
            "there is no {kind} {name!r}; did you mean {meant!r}?",
            kind=kind,
            name=name,
            meant=meant,
        )
    return msg("there is no {kind} {name!r}", kind=kind, name=name)


def no_argument(tool: str, name: str, known: Collection[str]) -> str:
    """A tool that does not take what it is called with, and what it takes."""
    told = {"tool": tool, "name": name}
    if meant := meant_by(name, known):
        return msg(
            "{tool} takes no argument {name!r}; did you mean {meant!r}?", **told, meant=meant
        )
    names = clip(", ".join(known), _LONGEST_LIST) if known else msg("no arguments at all")
    return msg("{tool} takes no argument {name!r}; it takes {names}", **told, names=names)


def meant_by(name: str, known: Collection[str]) -> str | None:
    """Which of the known names was surely meant, if any is near."""
    # Likeness costs time for each known name, and an unknown name may stand in every listener.
    return nearest(name, known) if len(known) <= _MOST_NAMES_COMPARED else None


def not_known(kind: str, name: str, known: Collection[str] | None, path: Path) -> Iterator[Finding]:
    """That `name` is not among what is known; nothing when that is not known."""
    if known is not None and name not in known:
        yield Finding(path, unknown(term(kind), name, known))


def only_looks(tool: str, read_only: Collection[str]) -> bool:
    """Whether a tool changes nothing: its name says so, or its author has."""
    return tool.startswith(READ_ONLY_PREFIXES) or tool in read_only


def not_looking(tool: str, path: Path) -> Finding:
    return Finding(
        path, msg("{tool} may change something; verify with a tool that only reads", tool=tool)
    )
