"""Approval: whether a call may run by itself, must wait for a person, or may not run at all.

A tool's author, an agent's author and a session each may have a rule; the one nearest to the call
is the last word, with two bounds. What any of them has disabled stays disabled, so that no session
opens what an author has closed; and a tool without any rule asks a person.
Under four eyes a session is only ever stricter than the authors: its rule is consent beforehand.

A rule may depend on the arguments. Where its condition cannot be judged (see
`core.language.judgement`), the stricter of its two modes holds.

A grant is a remembered approval for one version of one tool. Its pattern binds the arguments that
it names and leaves the others free, inside objects too. Values are compared as JSON: 1 is 1.0,
true is not 1. In a text `*` stands for any text, also none, and `\\*` for a star; no other sign is
special, and inside a list a star is only a star.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from holdfast.errors import AuthorError, ConditionError, InvalidAnswer
from holdfast.forms.from_tools import no_such_argument
from holdfast.i18n.message import msg
from holdfast.language import judgement
from holdfast.language.conditions import equal
from holdfast.model.approval import ApprovalMode, ApprovalRule, Grant, Rules
from holdfast.model.values import Json, JsonObject

EVERY_TOOL: Final = "*"

SPELLINGS: Final = {
    "auto": ApprovalMode.AUTO,
    "require": ApprovalMode.REQUIRE_APPROVAL,
    "require_approval": ApprovalMode.REQUIRE_APPROVAL,
    "true": ApprovalMode.REQUIRE_APPROVAL,
    "disabled": ApprovalMode.DISABLED,
}
RULE_KEYS: Final = ("mode", "when", "otherwise")
SHORT_RULE_KEY: Final = "require_when"
_SHAPES: Final = msg(
    'write auto, require or disabled, or {{mode: require, when: "amount > 1000", '
    'otherwise: auto}}, or {{require_when: "amount > 1000"}}'
)
_STRICTNESS: Final = tuple(ApprovalMode)
_LONGEST_SHOWN: Final = 60
_STAR: Final = re.compile(r"\\\*|\*")


def read_rule(raw: object) -> ApprovalRule:
    """The rule that an author wrote, or AuthorError; its condition is parsed here and now."""
    match raw:
        case ApprovalRule():
            return _checked(raw)
        case Mapping() if raw.keys() == {SHORT_RULE_KEY}:
            return _checked(_conditional(ApprovalMode.REQUIRE_APPROVAL, raw[SHORT_RULE_KEY]))
        case Mapping():
            return _checked(_full_rule(raw))
    return ApprovalRule(_mode(raw))


def rule_to_json(rule: ApprovalRule) -> dict[str, Json]:
    """The one spelling of a rule; without a condition `otherwise` means nothing and is left out."""
    if rule.when is None:
        return {"mode": rule.mode.value}
    return {"mode": rule.mode.value, "when": rule.when, "otherwise": rule.otherwise.value}


def rule_from_json(value: JsonObject) -> ApprovalRule:
    """The rule behind its one spelling; what was once accepted is not judged again."""
    mode = ApprovalMode(value["mode"])
    if "when" not in value:
        return ApprovalRule(mode)
    return ApprovalRule(mode, value["when"], ApprovalMode(value["otherwise"]))


def mode_of(rule: ApprovalRule, args: JsonObject) -> ApprovalMode:
    """What the rule says about a call with these arguments."""
    if rule.when is None:
        return rule.mode
    match _verdict(rule.when, args):
        case True:
            return rule.mode
        case False:
            return rule.otherwise
    return _strictest((rule.mode, rule.otherwise))


def lets_run(rule: ApprovalRule) -> bool:
    """Whether there may be calls that the rule has run unasked."""
    return ApprovalMode.AUTO in (rule.mode, rule.mode if rule.when is None else rule.otherwise)


def mode_for(
    tool: str,
    args: JsonObject,
    *,
    own: ApprovalRule | None,
    agent: Rules,
    session: Rules,
    four_eyes: bool = False,
) -> ApprovalMode:
    """What holds for a call; `own` is what the tool itself says, None if it is not declared."""
    declared = [] if own is None else [mode_of(own, args)]
    authors = [*declared, *_modes_in(agent, (tool,), args)]
    said = _modes_in(session, (tool,), args)
    return _last_word(authors, said, ApprovalMode.REQUIRE_APPROVAL, four_eyes)


def mode_for_helper(
    names: Sequence[str],
    args: JsonObject,
    *,
    agent: Rules,
    session: Rules,
    four_eyes: bool = False,
) -> ApprovalMode:
    """What holds for handing work to another agent, which goes by several names.

    Agents are handed work only where an author said so: without a rule no person is asked.
    """
    authors, said = _modes_in(agent, names, args), _modes_in(session, names, args)
    return _last_word(authors, said, ApprovalMode.AUTO, four_eyes)


def _last_word(
    authors: list[ApprovalMode], session: list[ApprovalMode], unsaid: ApprovalMode, four_eyes: bool
) -> ApprovalMode:
    said = [*authors, *session] or [unsaid]
    if ApprovalMode.DISABLED in said:
        return ApprovalMode.DISABLED
    return _strictest([*(authors or [unsaid])[-1:], *session]) if four_eyes else said[-1]


def fits(grant: Grant, tool: str, version: str, args: JsonObject, now: float) -> bool:
    """Whether the grant covers this call now."""
    return (
        (grant.tool, grant.version) == (tool, version)
        and (grant.expires_at is None or now < grant.expires_at)
        and (grant.uses is None or grant.uses > 0)
        and _matches(grant.pattern, args)
    )


def lapsed(grant: Grant | None, now: float) -> bool:
    """Whether a grant that covered a call covers no further attempt; None for one revoked."""
    return grant is None or (grant.expires_at is not None and grant.expires_at <= now)


def spend(grant: Grant) -> Grant:
    """The grant after one more call."""
    return grant if grant.uses is None else replace(grant, uses=grant.uses - 1)


def best(
    grants: Iterable[Grant], tool: str, version: str, args: JsonObject, now: float
) -> Grant | None:
    """The grant to use for a call: one that costs no use, else the one that lapses first."""
    fitting = (grant for grant in grants if fits(grant, tool, version, args, now))
    return min(fitting, key=_cost, default=None)


def pattern_of(args: JsonObject) -> dict[str, Json]:
    """The pattern that binds all these arguments to their values."""
    return {name: _literally(value) for name, value in args.items()}


def check_pattern(pattern: JsonObject, parameters: JsonObject) -> None:
    """Raises InvalidAnswer if the pattern names arguments that the tool's schema does not have."""
    unknown = dict(_unknown_names(pattern, parameters, ""))
    if unknown:
        raise InvalidAnswer(
            msg("no call could ever fit this pattern: mend {names}", names=", ".join(unknown)),
            unknown,
        )


def _full_rule(raw: Mapping[object, object]) -> ApprovalRule:
    if "mode" not in raw or not raw.keys() <= {*RULE_KEYS}:
        raise AuthorError(
            msg("approval has {keys}: {shapes}", keys=_shown(sorted(map(str, raw))), shapes=_SHAPES)
        )
    mode = _mode(raw["mode"])
    if "when" in raw:
        return _conditional(mode, raw["when"], _mode(raw.get("otherwise", "auto")))
    if "otherwise" in raw:
        raise AuthorError(
            msg("approval says otherwise without when: add the condition, or drop it")
        )
    return ApprovalRule(mode)


def _conditional(
    mode: ApprovalMode, when: object, otherwise: ApprovalMode = ApprovalMode.AUTO
) -> ApprovalRule:
    if not isinstance(when, str):
        raise AuthorError(
            msg("approval's condition is {value}: write it as text", value=_shown(when))
        )
    if mode is otherwise:
        raise AuthorError(
            msg(
                "approval is {mode} whether or not {condition}: say in otherwise what else holds",
                mode=mode.value,
                condition=when,
            )
        )
    return ApprovalRule(mode, when, otherwise)


def _mode(raw: object) -> ApprovalMode:
    if raw is True:
        return ApprovalMode.REQUIRE_APPROVAL
    if isinstance(raw, str) and raw.lower() in SPELLINGS:
        return SPELLINGS[raw.lower()]
    raise AuthorError(msg("approval is {value}: {shapes}", value=_shown(raw), shapes=_SHAPES))


def _checked(rule: ApprovalRule) -> ApprovalRule:
    if rule.when is not None:
        judgement.parse(rule.when)
    return rule


def _shown(raw: object) -> str:
    text = repr(raw)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def _verdict(condition: str, args: JsonObject) -> bool | None:
    try:
        return judgement.parse(condition).judge(args)
    except ConditionError:
        # Kept from a time when the language could read it: caution, not a broken run.
        return None


def _strictest(modes: Iterable[ApprovalMode]) -> ApprovalMode:
    return max(modes, key=_STRICTNESS.index)


def _modes_in(rules: Rules, names: Sequence[str], args: JsonObject) -> list[ApprovalMode]:
    """What one's rules say of something with several names: the strictest, if anything."""
    named = [rules[name] for name in names if name in rules]
    found = named or [rules[EVERY_TOOL]] if EVERY_TOOL in rules else named
    return [_strictest(mode_of(rule, args) for rule in found)] if found else []


def _cost(grant: Grant) -> tuple[bool, float, str]:
    lapses = inf if grant.expires_at is None else grant.expires_at
    return (grant.uses is not None, lapses, grant.grant_id)


def _matches(pattern: Json, value: Json) -> bool:
    match pattern:
        case str():
            return isinstance(value, str) and _text_matches(pattern, value)
        case Mapping():
            return isinstance(value, Mapping) and all(
                name in value and _matches(part, value[name]) for name, part in pattern.items()
            )
    return equal(pattern, value)


def _text_matches(pattern: str, text: str) -> bool:
    """Finds the pieces between the stars in their order, each as early as it can be.

    Not a regular expression: many stars would take one ages over a long text.
    """
    first, *rest = _pieces(pattern)
    if not rest:
        return text == first
    *middle, last = rest
    position = len(first)
    if not text.startswith(first):
        return False
    for piece in middle:
        found = text.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    return len(text) - position >= len(last) and text.endswith(last)


def _pieces(pattern: str) -> list[str]:
    """What stands between the stars, with escaped stars made plain."""
    pieces, position = [""], 0
    for star in _STAR.finditer(pattern):
        pieces[-1] += pattern[position : star.start()]
        position = star.end()
        if star[0] == "*":
            pieces.append("")
        else:
            pieces[-1] += "*"
    pieces[-1] += pattern[position:]
    return pieces


def _literally(value: Json) -> Json:
    match value:
        case str():
            return value.replace("*", r"\*")
        case Mapping():
            return pattern_of(value)
    return value


def _unknown_names(
    pattern: JsonObject, schema: JsonObject, place: str
) -> Iterator[tuple[str, str]]:
    known = schema.get("properties", {})
    closed = schema.get("additionalProperties", False) is False and (known or not place)
    for name, part in pattern.items():
        if name in known:
            if isinstance(part, Mapping) and isinstance(known[name], Mapping):
                yield from _unknown_names(part, known[name], f"{place}{name}.")
        elif closed:
            yield f"{place}{name}", no_such_argument(name, known)
