"""Checks of a question: what the journal would not give back unchanged, and ids that mislead.

Python lets a caller put anything anywhere. What JSON would change or lose would come back otherwise
after a restart, or not at all, so every text must be sound text, every flag a flag, and what users
attach strict JSON. The bounds are wide: a call's arguments, twice, are among what is attached.

A client may answer by an option's id alone, so `reject` must not run the call. In a question about
a call the first well-known word of an id counts (`do_not_pay`); elsewhere only an id as a whole,
because `no_sugar` may be a fair choice. Among things to choose from even a bare `no` or `stop` is
fair, and only what speaks of consent is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from holdfast.errors import InvalidValue
from holdfast.forms.values import echo
from holdfast.i18n.message import msg
from holdfast.language.lookalikes import disguised, plain
from holdfast.language.strict import strict_json, strict_text
from holdfast.model.interaction import (
    RUN_AGAIN,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.values import Json

Problems: TypeAlias = Iterator[tuple[str, str]]
"""What is wrong: the field, and the remedy."""

_LARGEST: Final = 8_000_000
_DEEPEST: Final = 80

_TEXTS: Final = ("request_id", "session_id", "title", "message", "details")
_OPTIONAL_TEXTS: Final = ("default_option_id", "role", "escalate_to", "custom_type")
_OPTION_TEXTS: Final = ("option_id", "label", "description", "input_prompt")
_OPTION_FLAGS: Final = ("is_default", "is_dangerous", "requires_input")


def journal_problems(
    request: InteractionRequest, options: tuple[InteractionOption, ...]
) -> Problems:
    """Those of a request, and of such options of it as are to be looked at."""
    yield from _text_problems("", request, _TEXTS)
    given = [one for one in _OPTIONAL_TEXTS if getattr(request, one) is not None]
    yield from _text_problems("", request, given)
    yield from _kind_problems("type", request.type, InteractionType)
    yield from _kind_problems("required", request.required, bool)
    if request.context or type(request.context) is not dict:
        yield from _json_problems("context", request.context)
    for index, option in enumerate(options):
        yield from _option_problems(f"options[{index}].", option)


def kept(attached: Mapping[str, Json]) -> dict[str, Json]:
    """What users attached, as the journal will give it back; InvalidValue if it cannot."""
    plain: dict[str, Json] = strict_json(dict(attached), max_depth=_DEEPEST, max_bytes=_LARGEST)
    return plain


def _option_problems(place: str, option: InteractionOption) -> Problems:
    yield from _text_problems(place, option, _OPTION_TEXTS)
    for name in _OPTION_FLAGS:
        yield from _kind_problems(place + name, getattr(option, name), bool)
    yield from _kind_problems(f"{place}action", option.action, InteractionAction)
    if option.metadata or type(option.metadata) is not dict:
        yield from _json_problems(f"{place}metadata", option.metadata)


def _text_problems(place: str, one: object, names: Iterable[str]) -> Problems:
    for name in names:
        text = getattr(one, name)
        if type(text) is str and text.isascii() and len(text) <= _LARGEST:
            continue
        try:
            strict_text(text, place + name, longest=_LARGEST)
        except InvalidValue as refused:
            yield place + name, str(refused).removeprefix(f"{place}{name}: ")


def _kind_problems(name: str, value: object, kind: type) -> Problems:
    if not isinstance(value, kind):
        yield (
            name,
            msg("must be of {kind}, not {other}", kind=kind.__name__, other=type(value).__name__),
        )


def _json_problems(name: str, value: object) -> Problems:
    if not isinstance(value, Mapping):
        yield name, msg("must be a mapping, not {kind}", kind=type(value).__name__)
        return
    try:
        kept(value)
    except InvalidValue as refused:
        yield name, str(refused)


HAPPENED: Final = "happened"
STOP: Final = "stop"
_OURS: Final = (HAPPENED, RUN_AGAIN)

_CONSENTS: Final = (
    "accept[a-z]*|agree[a-z]*|allow[a-z]*|approv[a-z]*|authori[sz][a-z]*|confirm[a-z]*|"
    "consent[a-z]*|endors[a-z]*|grant[a-z]*|permit[a-z]*|同意|批准|允许|准许|确认|通过|许可|承認"
)
_REFUSES: Final = (
    "abort[a-z]*|block[a-z]*|cancel[a-z]*|declin[a-z]*|den(y|ies|ied|ial)|disagree[a-z]*|"
    "disallow[a-z]*|disapprov[a-z]*|dismiss[a-z]*|forbid[a-z]*|prevent[a-z]*|refus[a-z]*|"
    "reject[a-z]*|terminat[a-z]*|unapprov[a-z]*|veto[a-z]*|withh[eo]ld[a-z]*|"
    "不同意|不批准|不允许|拒绝|拒付|驳回|否决|取消|终止|禁止|却下|免付"
)
_YES: Final = (
    f"{_CONSENTS}|continue|execute|go|ok|okay|proceed|run|sure|true|y|yeah|yep|yes|"
    "是|好|执行|可以|确定|^да$"
)
_NO: Final = (
    f"{_REFUSES}|avoid|do(es)?nt[a-z]*|do(es)?not[a-z]*|false|halt|n|nah|nay|negative|nein|"
    "never|no|no(pay|run|send|call|go)|nope|not|nothing|quit|skip|stop|un|"
    "不|别付|勿|否|拒|停止|跳过|放弃|算了|^нет$"
)
_AGAIN: Final = "reconsider|rethink|retry|revise|重试|重新"
_GOES_ON: Final = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z']+|[^\W\d_a-zA-Z]+")
_CLAIM: Final = rf"(?P<no>{_NO}|{_AGAIN})|(?P<yes>{_YES})"


def id_problems(request: InteractionRequest) -> Problems:
    """The ids that say the opposite of what their options do, or may be taken for others."""
    for index, option in enumerate(request.options):
        problem = _disguised(option) or _opposite(request, option)
        if problem:
            yield f"options[{index}].option_id", problem


def _disguised(option: InteractionOption) -> str:
    if not disguised(option.option_id):
        return ""
    return msg(
        "{name} mixes letters that look alike, or has signs that are not seen; give it another id",
        name=echo(option.option_id),
    )


def reserved_problems(options: tuple[InteractionOption, ...]) -> Problems:
    """Ids by which we ask what became of a call: an author's option must not pass for one."""
    for index, option in enumerate(options):
        if plain(option.option_id) in _OURS:
            name = echo(option.option_id)
            yield (
                f"options[{index}].option_id",
                msg("{name} is an id of ours; give it another one", name=name),
            )


def _opposite(request: InteractionRequest, option: InteractionOption) -> str:
    if option.action is InteractionAction.CUSTOM:
        return ""
    claim = _claim(request, option.option_id)
    goes_on = option.action in _GOES_ON
    if claim is False and goes_on:
        return msg(
            "{name} says that it does not go on, but {action} does; give it another id",
            name=echo(option.option_id),
            action=option.action,
        )
    if claim is True and not goes_on:
        return msg(
            "{name} says that it goes on, but {action} does not; give it another id",
            name=echo(option.option_id),
            action=option.action,
        )
    return ""


def _claim(request: InteractionRequest, option_id: str) -> bool | None:
    """Whether the id says yes or no; None where it says neither."""
    words = [found.lower().replace("'", "") for found in _WORD.findall(plain(option_id))]
    if request.type is InteractionType.TOOL_APPROVAL or "tool" in request.context:
        return next((said for said in map(_says, words) if said is not None), None)
    chosen = request.type is InteractionType.USER_CHOICE
    if _all_are(words, _REFUSES if chosen else _NO):
        return False
    return _all_are(words, _CONSENTS if chosen else _YES) or None


def _says(word: str) -> bool | None:
    """Chinese is written without spaces: what comes first in it counts."""
    found = (re.fullmatch if word.isascii() else re.search)(_CLAIM, word)
    return None if found is None else found["no"] is None


def _all_are(words: list[str], known: str) -> bool:
    return bool(words) and all(re.fullmatch(known, word) for word in words)
