"""Whether JSON from elsewhere has the shape of a record, so that `core.storing`, which trusts, may
read it.

A model or a person may have written it, so anything may stand anywhere. What each key may hold is
said by the annotation of the attribute that it fills, as in `core.storing`. The value as a whole is
strict JSON already. References, templates and numbers are judged later, with the whole plan; a form
is judged here, because the plan's checker takes forms to be sound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING
from enum import StrEnum
from functools import cache, partial
from types import UnionType
from typing import Any, Final, TypeAlias, get_args, get_origin

from holdfast.core.storing import attributes, record_from_json
from holdfast.errors import FormRejected
from holdfast.forms.problems import Problems
from holdfast.forms.rules import rule_problem
from holdfast.forms.schemas import RULE_KEYS, dump_form
from holdfast.forms.shapes import parse_form
from holdfast.forms.values import echo
from holdfast.i18n.message import msg
from holdfast.language.spelling import LONGEST_NAME_SHOWN, remedy
from holdfast.model import form
from holdfast.model.interaction import Asking, InteractionOption
from holdfast.model.plan import Action, HumanAction, Listener, Task, ToolAction
from holdfast.model.values import Json, JsonObject

Check: TypeAlias = Callable[[Json, Problems], object]
"""Reports what is wrong with a value."""

LONGEST_ID: Final = 100

_ID: Final = re.compile(rf"[\w-]{{1,{LONGEST_ID}}}")
_ACTIONS: Final[Mapping[str, type]] = {each.kind: each for each in get_args(Action)}


def check_record(kind: type, raw: Json, problems: Problems) -> None:
    """Its keys, and what stands at each."""
    if check_object(raw, problems):
        check_keys(raw, _checks_of(kind), _required(kind), problems)


def check_listener(raw: Json, problems: Problems) -> None:
    """A listener has the keys of its action beside its own."""
    if not check_object(raw, problems):
        return
    action = _ACTIONS.get(str(raw.get("listener_type")))
    known: dict[str, Check] = {
        "listener_type": partial(check_word, _ACTIONS),
        **_checks_of(Listener),
    }
    needed = {"listener_type", *_required(Listener)}
    if action is None:  # then the keys of every type are welcome
        known = dict.fromkeys(raw, _anything) | known
    else:
        known, needed = known | _checks_of(action), needed | _required(action)
    check_keys(raw, known, needed, problems)


def check_keys(
    raw: JsonObject, known: Mapping[str, Check], required: Collection[str], problems: Problems
) -> None:
    problems.known_keys(raw, known)
    for key, check in known.items():
        if key in raw:
            check(raw[key], problems.at(key))
        elif key in required:
            problems.at(key).add(msg("is required"))


def check_items(check: Check, raw: Json, problems: Problems) -> None:
    if _is_a(msg("a list"), raw, problems, list):
        for index, item in enumerate(raw):
            check(item, problems.at(index))


def check_object(raw: Json, problems: Problems) -> bool:
    return _is_a(msg("an object"), raw, problems, dict)


def check_id(raw: Json, problems: Problems) -> None:
    if check_text(raw, problems) and not _ID.fullmatch(raw):
        key = str(problems.path[-1])
        problems.add(msg("a {key} has letters, digits, _ and - only, at most 100", key=key))


def check_name(raw: Json, problems: Problems) -> None:
    """Text that says something."""
    if check_text(raw, problems) and not raw.strip():
        problems.add(msg("is empty"))


def check_text(raw: Json, problems: Problems) -> bool:
    return _is_a(msg("text"), raw, problems, str)


def check_number(raw: Json, problems: Problems) -> bool:
    return _is_a(msg("a number"), raw, problems, int, float)


def check_word(known: Collection[str], raw: Json, problems: Problems) -> bool:
    if not check_text(raw, problems):
        return False
    if raw not in known:
        hint = remedy(raw[:LONGEST_NAME_SHOWN], known, msg("use {names}", names=", ".join(known)))
        problems.add(msg("there is no {name}: {hint}", name=echo(raw), hint=hint))
    return raw in known


def or_null(check: Check, raw: Json, problems: Problems) -> None:
    if raw is not None:
        check(raw, problems)


def check_form(raw: Json, problems: Problems, *, enriches: bool = False) -> None:
    """A list of fields; one that `enriches` a tool's may leave out what the tool's schema says."""
    before = len(problems.found)
    check_items(partial(check_record, form.Field), raw, problems)
    if len(problems.found) > before:
        return
    names = [one["name"] for one in raw]
    numbers = dict(zip(reversed(names), reversed(range(len(names))), strict=True))
    for index, name in enumerate(names):
        if numbers[name] != index:
            again = msg("this field has the name {name!r} again", name=name)
            problems.at(index, "name").add(again)
    try:
        parse_form(dump_form(form_of(raw)), enriches=enriches)
    except FormRejected as rejected:
        for problem in rejected.problems:
            # A form's own reports call a field by its name; here it stands under its number.
            name, *rest = problem.path or ("",)
            place = (numbers[name], *rest) if name in numbers else ()
            problems.at(*place).add(problem.message)


def form_of(raw: Json) -> form.Form:
    """The form of which `check_form` has nothing to report."""
    return record_from_json(HumanAction, {"form": raw}).form


@cache
def _checks_of(kind: type) -> dict[str, Check]:
    without = _WITHOUT.get(kind, ())
    own = {one.key: _check_of(one.hint) for one in attributes(kind) if one.name not in without}
    asking = _checks_of(Asking) if kind is HumanAction else {}
    return {**own, **asking, **_OTHERWISE.get(kind, {})}


@cache
def _required(kind: type) -> frozenset[str]:
    needed = (one.name for one in attributes(kind) if one.usual is MISSING)
    return frozenset(needed).difference(_WITHOUT.get(kind, ()), _OPTIONAL.get(kind, ()))


def _check_of(hint: Any) -> Check:
    if hint in _BY_HINT:
        return _BY_HINT[hint]
    if get_origin(hint) is UnionType:
        return partial(or_null, _check_of(get_args(hint)[0]))
    if get_origin(hint) is tuple:
        return partial(_items_or_one, _check_of(get_args(hint)[0]))
    if issubclass(hint, StrEnum):
        return partial(check_word, tuple(one.value for one in hint))
    return partial(check_record, hint)


def _items_or_one(check: Check, raw: Json, problems: Problems) -> None:
    """One trigger needs no list around it, and is read as any lone text is."""
    check_items(check, [raw] if isinstance(raw, str) else raw, problems)


def _is_a(wanted: str, raw: Json, problems: Problems, *kinds: type) -> bool:
    """Strict JSON has exact types, so true is no number."""
    if type(raw) in kinds:
        return True
    problems.add(msg("must be {wanted}, not {sort}", wanted=wanted, sort=echo(raw)))
    return False


def _anything(raw: Json, problems: Problems) -> None:
    pass


def _flag(raw: Json, problems: Problems) -> None:
    _is_a(msg("true or false"), raw, problems, bool)


def _whole(raw: Json, problems: Problems) -> None:
    _is_a(msg("a whole number"), raw, problems, int)


def _escalation(raw: Json, problems: Problems) -> None:
    if check_object(raw, problems):
        check_keys(raw, {"after": check_number, "role": check_name}, ("after", "role"), problems)


def _json_type(raw: Json, problems: Problems) -> None:
    if type(raw) is not bool:
        check_word(get_args(form.JsonType), raw, problems)


def _option(raw: Json, problems: Problems) -> None:
    """Its other keys are extras, which are shown and never interpreted."""
    if check_object(raw, problems):
        known = {**dict.fromkeys(raw, _anything), "requires_input": _flag}
        check_keys(raw, {**known, "value": check_name, "label": check_text}, _OPTION, problems)


def _validation(raw: Json, problems: Problems) -> None:
    if check_object(raw, problems):
        rules = {key: partial(_rule, key) for key in RULE_KEYS}
        check_keys(raw, {**rules, "type": partial(check_word, ("enum",))}, (), problems)


def _rule(key: str, raw: Json, problems: Problems) -> None:
    if wrong := rule_problem(key, raw):
        problems.add(wrong)


_BY_HINT: Final[Mapping[Any, Check]] = {
    str: check_text,
    bool: _flag,
    int: _whole,
    float: check_number,
    Any: _anything,
    JsonObject: check_object,
    form.Form: check_form,
    form.Option: _option,
    form.Validation: _validation,
    bool | form.JsonType: _json_type,
}
_WITHOUT: Final[Mapping[type, Collection[str]]] = {
    Listener: ("action",),
    HumanAction: ("asking",),
    Asking: ("escalate_after", "escalate_to"),
}
"""Attributes that no key fills alone, as in `core.storing`."""
_OTHERWISE: Final[Mapping[type, Mapping[str, Check]]] = {
    Listener: {"listener_id": check_id},
    Task: {"task_id": check_id},
    Asking: {"escalate": _escalation},
    ToolAction: {"fields": partial(check_form, enriches=True)},
    form.Field: {"name": check_name},
}
_OPTIONAL: Final[Mapping[type, Collection[str]]] = {InteractionOption: ("label",)}
_OPTION: Final = ("value", "label")
