"""Secrets and patches: none is written down, and no machine moves one.

A patch stands in the journal, and everyone who may see the run is shown it. So nobody writes a
secret into one, nor a reference that stands for a secret: that would hand one to whatever call it
is written into. A person may have a secret argument read from where the run has it. A model, a rule
or a lesson may not write a secret argument at all, nor ask for a secret, nor read one (forbidden
touch 8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.core.plan.state import PlanState
from holdfast.forms.from_tools import form_from_schema
from holdfast.forms.secrets import references_in
from holdfast.i18n.message import msg
from holdfast.language.conditions import equal
from holdfast.language.facts import Path
from holdfast.model.form import FieldType, Form
from holdfast.model.plan import Listener, Plan
from holdfast.model.values import Json, JsonObject
from holdfast.repair.changes import Changed, Changes
from holdfast.repair.parts import data_of, form_of, read_by
from holdfast.repair.readings import lone_path, read
from holdfast.repair.surroundings import Surroundings
from holdfast.repair.touches import Touch

_SECRET: Final = FieldType.SECRET


def written_secrets(
    raw: Sequence[JsonObject], changes: Changes, known: Surroundings
) -> Iterator[Touch]:
    """What no patch may have, whoever wrote it."""
    if references_in(list(raw)):
        yield Touch("", msg("a reference to a secret must not be written into a plan"))
    for one, name, value in _secret_arguments(changes, known):
        if lone_path(value) is None:
            told = msg("the secret {name} of {id} must not be written down", name=name, id=one.id)
            yield Touch(one.id, told)


def moved_secrets(state: PlanState, changes: Changes, known: Surroundings) -> Iterator[Touch]:
    """What only a person may do with secrets."""
    for one, name, _ in _secret_arguments(changes, known):
        yield Touch(
            one.id, msg("only a person may write the secret {name} of {id}", name=name, id=one.id)
        )
    names = _secret_names(changes.before)
    for one in changes.listeners:
        for name in sorted(
            _asked_secrets(form_of(one.after)) - _asked_secrets(form_of(one.before))
        ):
            told = msg(
                "only a person may have {id} ask for the secret {name}", id=one.id, name=name
            )
            yield Touch(one.id, told)
        for path in sorted(read_by(one.after) - read_by(one.before)):
            if names.intersection(path) or _leads_to_secret(path, state):
                place = ".".join(path)
                told = msg(
                    "only a person may have {id} read the secret {path}", id=one.id, path=place
                )
                yield Touch(one.id, told)


def _secret_arguments(changes: Changes, known: Surroundings) -> Iterator[tuple[Changed, str, Json]]:
    """The secret arguments that are new, or other than before."""
    for one in changes.listeners:
        old, new = data_of(one.before), data_of(one.after)
        fresh = [name for name in new if name not in old or not equal(old[name], new[name])]
        for name in fresh:
            if _is_secret(one.after, name, known):
                yield one, name, new[name]


def _is_secret(listener: Listener, name: str, known: Surroundings) -> bool:
    facts = known.facts(listener)
    enrich = (facts.fields if facts else Form(), form_of(listener))
    form = form_from_schema(known.parameters(listener), [name], *enrich)
    return any(one.type is _SECRET for one in form.fields)


def _asked_secrets(form: Form) -> frozenset[str]:
    return frozenset(one.name for one in form.fields if one.type is _SECRET)


def _secret_names(plan: Plan) -> frozenset[str]:
    """What people give the run as secrets, now or later."""
    forms = (plan.inputs, *(form_of(one) for one in plan.listeners))
    return frozenset(name for form in forms for name in _asked_secrets(form))


def _leads_to_secret(path: Path, state: PlanState) -> bool:
    found = read(path, state)
    return found is not None and bool(references_in(found.value))
