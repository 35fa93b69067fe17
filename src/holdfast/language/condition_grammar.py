"""The language of conditions: from a text to nodes, or to a mistake with its place.

A word with dots is one token, so that `002.status` is a path and never the number 2. A number may
not start with a needless zero: `002` alone is a task id whose `.status` was forgotten. The tree is
built while the parser reads, without recursion, so that no text can exhaust the stack.

The same grammar serves conditions over the arguments of a call, where a bare word is an argument:
`amount` is read as `args.amount`. There are no tasks there, and no status words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from holdfast.i18n.message import msg
from holdfast.language.condition_nodes import (
    ARGUMENTS,
    MAX_LENGTH,
    STATUSES,
    Both,
    Compare,
    Either,
    Items,
    Literal,
    Misread,
    Node,
    Not,
    Read,
    Status,
)
from holdfast.language.facts import split_path
from holdfast.language.spelling import nearest
from holdfast.model.values import Json

_LITERALS: Final[dict[str, Json]] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
_KEYWORDS: Final = ("and", "or", "not", "in")
_ESCAPES: Final = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_REMEDIES: Final = {
    "=": msg("compare with =="),
    "&": msg("write && or and"),
    "|": msg("write || or or"),
    ".": msg("single dots join the words of a path"),
    "'": msg("this quote is never closed"),
    '"': msg("this quote is never closed"),
}

_GRAMMAR: Final = r"""
    ?start: either
    ?either: both (("or" | "||") both)*
    ?both: negation (("and" | "&&") negation)*
    ?negation: ("not" | "!") negation -> negate
             | comparison
    ?comparison: value
               | value operator value -> compare
    !operator: "==" | "!=" | "<=" | ">=" | "<" | ">" | "in" | "not" "in"
    ?value: atom
          | "(" either ")"
    ?atom: PATH -> path
         | NUMBER -> number
         | TEXT -> text
         | WORD -> word
         | OPENING (atom ("," atom)* ","?)? "]" -> items

    OPENING: "["
    PATH.2: /(?:(?:result|values)(?![\w-])|[\w-]+\.(?:status|context)(?![\w-]))(?:\.[\w-]+)*/
    NUMBER.1: /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.-])/
    TEXT: /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/s
    WORD: /[\w-]+(?:\.[\w-]+)*/
    %ignore /\s+/
"""


def read_nodes(text: str, *, of_arguments: bool) -> Node:
    builder = _ArgumentBuilder if of_arguments else _Builder
    if len(text) > MAX_LENGTH:
        raise Misread(msg("longer than {n:,} characters: split it", n=MAX_LENGTH), MAX_LENGTH + 1)
    try:
        return cast("Node", _parser(builder).parse(text))
    except (UnexpectedToken, UnexpectedCharacters) as problem:
        raise _misread(problem, text) from None


@lru_cache(maxsize=2)
def _parser(builder: type[_Builder]) -> Lark:
    return Lark(_GRAMMAR, parser="lalr", lexer="basic", transformer=builder())


@v_args(inline=True)
class _Builder(Transformer[Token, Node]):
    """Called by the parser for each rule, innermost first."""

    def path(self, token: Token) -> Node:
        try:
            return Read(split_path(token), _column(token))
        except ValueError as problem:
            raise Misread(str(problem), _column(token)) from None

    def number(self, token: Token) -> Node:
        kind: Callable[[str], float] = float if re.search("[.eE]", token) else int
        return Literal(kind(token), _column(token))

    def text(self, token: Token) -> Node:
        return Literal(_unescaped(token), _column(token))

    def word(self, token: Token) -> Node:
        if token in STATUSES:
            return Status(str(token), _column(token))
        if token in _LITERALS:
            return Literal(_LITERALS[token], _column(token))
        raise Misread(_about_word(token), _column(token))

    def items(self, opening: Token, *items: Node) -> Node:
        return Items(items, _column(opening))

    def operator(self, *signs: Token) -> str:
        return " ".join(signs)

    def compare(self, left: Node, operator: str, right: Node) -> Node:
        return Compare(left, operator, right, left.column)

    def negate(self, operand: Node) -> Node:
        return Not(operand, operand.column)

    def both(self, *operands: Node) -> Node:
        return Both(operands, operands[0].column)

    def either(self, *operands: Node) -> Node:
        return Either(operands, operands[0].column)


@v_args(inline=True)
class _ArgumentBuilder(_Builder):
    """Reads words as the names of arguments."""

    def path(self, token: Token) -> Node:
        parts = tuple(token.split("."))
        return Read(parts if parts[0] == ARGUMENTS else (ARGUMENTS, *parts), _column(token))

    def word(self, token: Token) -> Node:
        if token in _LITERALS:
            return super().word(token)
        if token in STATUSES or token.split(".")[0].isdecimal():
            reason = msg(
                "{word} names no argument: put text in quotes, or write args.{word}", word=token
            )
            raise Misread(reason, _column(token))
        return self.path(token)


def _column(token: Token) -> int:
    # Not the token's own column, which starts again on every line of a folded text.
    return cast("int", token.start_pos) + 1


def _unescaped(token: Token) -> str:
    def replaced(found: re.Match[str]) -> str:
        try:
            return _ESCAPES[found[1]]
        except KeyError:
            column = _column(token) + 1 + found.start()
            raise Misread(
                msg("{text} means nothing: write \\\\ for a backslash", text=found[0]), column
            ) from None

    return re.sub(r"\\(.)", replaced, token[1:-1], flags=re.DOTALL)


def _about_word(word: str) -> str:
    if "." in word:
        return msg("{word} is no path: after a task's id comes .status or .context", word=word)
    if word.isdecimal():
        return msg(
            "{word} is neither a number nor a path: for the task write {word}.status", word=word
        )
    if meant := nearest(word, (*STATUSES, *_LITERALS, *_KEYWORDS)):
        return msg("unknown word {word}; did you mean {meant}?", word=word, meant=meant)
    return msg("unknown word {word}: put text in quotes, and ask about a task by a path", word=word)


def _misread(problem: UnexpectedToken | UnexpectedCharacters, text: str) -> Misread:
    if isinstance(problem, UnexpectedCharacters):
        remedy = _REMEDIES.get(problem.char, msg("put text in quotes, and write signs in ASCII"))
        column = cast("int", problem.pos_in_stream) + 1
        return Misread(
            msg("{sign!r} does not fit here: {remedy}", sign=problem.char, remedy=remedy), column
        )
    token = problem.token
    if token.type == "$END":
        missing = msg("something is missing at the end") if text.strip() else msg("it is empty")
        told = msg("not a whole condition: {missing}", missing=missing)
        return Misread(told, len(text.rstrip()) + 1)
    wanted = msg("a value") if "PATH" in problem.expected else msg("&&, || or the end")
    return Misread(
        msg("{token} does not fit here: expected {wanted}", token=token, wanted=wanted),
        _column(token),
    )
