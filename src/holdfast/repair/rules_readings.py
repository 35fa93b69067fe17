"""Rules about what is read: from a task that lacks it, or that has another value than is meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from holdfast.i18n.message import joined, msg
from holdfast.language.facts import Path
from holdfast.repair.drafts import Draft, Rank, ask_first, set_args
from holdfast.repair.failed_work import FailedWork
from holdfast.repair.readings import Reading, absent, instead, lone_path, read, redirected, written

_MOST_SOURCES: Final = 2


def misread(work: FailedWork) -> Iterator[Draft]:
    """A template names what its task lacks: nothing was sent, and the plan itself shows why."""
    found = {path: _instead(work, path) for path in _absent(work)}
    if not found:
        return
    best = {path: readings[0] for path, readings in found.items() if readings}
    sure = all(len(readings) == 1 for readings in found.values())
    yield from _redirecting(work, best, found, sure)
    for path, readings in found.items():
        for other in readings[1:_MOST_SOURCES]:
            yield from _redirecting(work, {**best, path: other}, found, False)


def _absent(work: FailedWork) -> list[Path]:
    return list(
        dict.fromkeys(path for one in work.args.values() for path in absent(one, work.state))
    )


def _instead(work: FailedWork, path: Path) -> list[Reading]:
    """What may stand in its place wherever it stands alone."""
    alone = [name for name, one in work.args.items() if lone_path(one) == path]
    judged = [name for name in alone if name in work.properties]
    found = instead(path, work.state)
    return [one for one in found if all(work.fits(name, one.value) for name in judged)]


def _redirecting(
    work: FailedWork, best: Mapping[Path, Reading], wanted: Iterable[Path], sure: bool
) -> Iterator[Draft]:
    """Reads elsewhere what is elsewhere, and asks for the rest."""
    changes = {path: one.path for path, one in best.items()}
    lost = {path for path in wanted if path not in best}
    reading = {name: paths for name, one in work.args.items() if (paths := absent(one, work.state))}
    asked = [name for name, paths in reading.items() if lost.intersection(paths)]
    given = {name: redirected(work.args[name], changes) for name in reading if name not in asked}
    if any(name not in work.properties for name in asked):
        return
    operations = (
        *set_args(work.id, given),
        *ask_first(work.id, [work.asked(name) for name in asked]),
    )
    told = [_told(path, one.path) for path, one in best.items()]
    told += [msg("nothing in this run has {name}", name=written(path)) for path in lost]
    rank = Rank.ASK if asked else Rank.EVIDENT
    yield Draft("other_reading", rank, operations, joined("; ", told), sure, not sure)


def _told(old: Path, new: Path) -> str:
    return msg("{old} is not there, but {new} is", old=written(old), new=written(new))


def elsewhere(work: FailedWork, names: Iterable[str]) -> Iterator[Draft]:
    """Another task has a value of that name, and a different one."""
    for name in names:
        own = lone_path(work.args[name])
        readings = list(_others(work, name, own))[:_MOST_SOURCES]
        lone = len(readings) == 1
        for one in readings:
            reason = msg(
                "{new} has another value for {name} than was sent", new=written(one.path), name=name
            )
            operations = set_args(work.id, {name: written(one.path)})
            yield Draft("other_task", Rank.OTHER_VALUE, operations, reason, lone, not lone)


def _others(work: FailedWork, name: str, own: Path | None) -> Iterator[Reading]:
    wanted = dict.fromkeys([name, own[-1]] if own else [name])
    for path in (path for one in wanted for path in work.sources(one)):
        found = read(path, work.state)
        assert found is not None
        if path != own and found.value != work.sent.get(name) and work.fits(name, found.value):
            yield found
