"""Writes docs/diagrams from the tables of the machines: `python docs/make_diagrams.py`.

In a picture states are solid and moves are dashed: a move that leads to one state from
several others is drawn once. Moves that leave a state as it is are named in its note. Tasks
may move almost anywhere and commands have no arrows at all: those two are grids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from holdfast.core.agent.tables import COMMANDS as SESSION_COMMANDS
from holdfast.core.agent.tables import SESSION
from holdfast.core.plan.tables import COMMANDS, TASK
from holdfast.core.repair.tables import CASE
from holdfast.core.run.tables import INSTANCE, QUESTION, STEP, Verdict
from holdfast.drawing.graph import INSTANCES, STEPS
from holdfast.drawing.picture import Condition, Edge, Node, Picture
from holdfast.drawing.svg import draw
from holdfast.model.interaction import InteractionStatus
from holdfast.model.plan import TaskStatus
from holdfast.model.repair import CaseStatus
from holdfast.model.run import RunStatus

DIAGRAMS: Final = Path(__file__).parent / "diagrams"

State = TypeVar("State", bound=StrEnum)
Move = TypeVar("Move", bound=StrEnum)

_QUESTIONS: Final[Mapping[InteractionStatus, Condition]] = {
    InteractionStatus.OPEN: Condition.WAITING,
    InteractionStatus.ANSWERED: Condition.DONE,
    InteractionStatus.EXPIRED: Condition.FAILED,
    InteractionStatus.WITHDRAWN: Condition.CANCELLED,
}
_CASES: Final[Mapping[CaseStatus, Condition]] = {
    CaseStatus.OPEN: Condition.IDLE,
    CaseStatus.THINKING: Condition.RUNNING,
    CaseStatus.PROPOSED: Condition.WAITING,
    CaseStatus.APPLIED: Condition.RETRYING,
    CaseStatus.PROVEN: Condition.DONE,
    CaseStatus.CLOSED: Condition.CANCELLED,
}
_MARKS: Final[Mapping[Verdict, str]] = {
    Verdict.ACCEPT: "✓",
    Verdict.IGNORE: "ignored",
    Verdict.REFUSE: "–",
}


def documents() -> dict[str, str]:
    """Every generated file by its name."""
    steps = {status: condition for status, (condition, _) in STEPS.items()}
    return {
        "instance.svg": _drawn(_machine("An instance", INSTANCE, INSTANCES)),
        "session.svg": _drawn(_machine("A session", SESSION, INSTANCES)),
        "step.svg": _drawn(_machine("A step", STEP, steps)),
        "question.svg": _drawn(_questions()),
        "case.svg": _drawn(_machine("A case", CASE, _CASES)),
        "machines.md": _machines_page(),
    }


def _drawn(picture: Picture) -> str:
    return draw(picture, reach_back=0)


def _machine(
    title: str,
    table: Mapping[State, Mapping[Move, State]],
    conditions: Mapping[State, Condition],
) -> Picture:
    places = {state: place for place, state in enumerate(table)}
    nodes = [_state(state, moves, conditions[state]) for state, moves in table.items()]
    edges: list[Edge] = []
    for (move, target), sources in _arrivals(table).items():
        place = len(nodes)
        nodes.append(Node(move.value, move.value, classes="move", dashed=True))
        edges.extend(Edge(places[source], place) for source in sources)
        edges.append(Edge(place, places[target]))
    moves = sum(len(leaving) for leaving in table.values())
    return Picture(title, f"{len(table)} states, {moves} moves", tuple(nodes), tuple(edges))


def _questions() -> Picture:
    """A question closes without a move of another name."""
    states = list(QUESTION)
    nodes = [_state(one, {to: to for to in QUESTION[one]}, _QUESTIONS[one]) for one in states]
    edges = [
        Edge(states.index(one), place)
        for one in states
        for place, closed in enumerate(states)
        if closed in QUESTION[one]
    ]
    return Picture("A question", f"{len(states)} states", tuple(nodes), tuple(edges))


def _state(state: State, moves: Mapping[Move, State], condition: Condition) -> Node:
    loops = [move.value for move, target in moves.items() if target == state]
    note = f"stays on {', '.join(loops)}" if loops else "" if moves else "final"
    return Node(state.value, state.value, note, "state", condition=condition)


def _arrivals(
    table: Mapping[State, Mapping[Move, State]],
) -> dict[tuple[Move, State], list[State]]:
    found: dict[tuple[Move, State], list[State]] = {}
    for source, moves in table.items():
        for move, target in moves.items():
            if target != source:
                found.setdefault((move, target), []).append(source)
    return found


def _machines_page() -> str:
    return "\n".join(
        [
            "# The machines",
            "",
            "Generated from the `tables.py` of `core/run`, `core/plan`, `core/repair` and"
            " `core/agent` by `docs/make_diagrams.py`; do not edit.",
            "",
            *_section("Instance of a plan", "instance.svg", _moves_grid(INSTANCE)),
            *_section("Session with an agent", "session.svg", _moves_grid(SESSION)),
            *_section("Step", "step.svg", _moves_grid(STEP)),
            *_section("Question", "question.svg", _grid(QUESTION, InteractionStatus)),
            *_section("Case", "case.svg", _moves_grid(CASE)),
            *_section("Task", None, _grid(TASK, TaskStatus)),
            *_section("Commands to a plan", None, _commands_grid(COMMANDS)),
            *_section("Commands to a session", None, _commands_grid(SESSION_COMMANDS)),
        ]
    )


def _section(name: str, drawing: str | None, grid: Sequence[str]) -> list[str]:
    picture = [f"![{name}]({drawing})", ""] if drawing else []
    return [f"## {name}", "", *picture, *grid, ""]


def _moves_grid(table: Mapping[State, Mapping[Move, State]]) -> list[str]:
    """Where each move leads, one row per state; only moves that exist have a column."""
    moves = list(dict.fromkeys(move for leaving in table.values() for move in leaving))
    rows = [
        [f"**{state}**", *(str(leaving.get(move, "")) for move in moves)]
        for state, leaving in table.items()
    ]
    return _table(["from", *moves], rows)


def _grid(table: Mapping[State, frozenset[State]], states: Iterable[State]) -> list[str]:
    columns = list(states)
    rows = [
        [f"**{state}**", *("✓" if column in table[state] else "" for column in columns)]
        for state in columns
    ]
    return _table(["from \\ to", *columns], rows)


def _commands_grid(table: Mapping[type, Mapping[RunStatus, Verdict]]) -> list[str]:
    statuses = list(RunStatus)
    rows = [
        [f"**{command.__name__}**", *(_MARKS[verdicts[status]] for status in statuses)]
        for command, verdicts in table.items()
    ]
    return _table(["command", *statuses], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    DIAGRAMS.mkdir(exist_ok=True)
    for name, content in documents().items():
        (DIAGRAMS / name).write_text(content, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
