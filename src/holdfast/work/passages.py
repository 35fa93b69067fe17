"""Passages: what a document is found by, and what is shown of it.

A passage is a paragraph, with the headings right above it, or a piece of one that is too long. It
is cut after a sentence if that leaves at least half, else after a space, else between two
characters of a script without spaces; a Latin word is only cut where it alone fills the passage.

Terms. Chinese, Japanese and Korean are written in runs that no tokenizer can part into words
without a dictionary, and trigrams miss the many words of two characters. So every run is indexed as
its overlapping pairs: 销售额 as 销售, 售额. Its last character stands on its own besides, so that
each character begins some term, and a single one is found as a prefix. Whatever else is a word
goes to SQLite's unicode61 as it is. A query becomes the same terms, any of which may match; the
ranking sees to it that those with more of them, and with rarer ones, come first.

Nothing but letters, digits and `_` of a query reaches SQLite, each term quoted, so that a query has
no syntax at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

LONGEST_PASSAGE: Final = 800
MOST_QUERY_TERMS: Final = 200

_UNSPACED: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\uff66-\uffdc\U00020000-\U000323af"
)
"""Han, kana, bopomofo and hangul, without their punctuation."""

_RUNS: Final = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|[^\W{_UNSPACED}]+")
_INSIDE_RUN: Final = re.compile(rf"(?<=[{_UNSPACED}])[{_UNSPACED}]")
_BLANK_LINES: Final = re.compile(r"\n\s*\n")
_HEADING: Final = re.compile(r"#{1,6}\s+(\S.*)")
_CUTS: Final = (
    re.compile(r"[。！？；!?;\n]|\.\s"),
    re.compile(r"\s"),
    re.compile(rf"[\W{_UNSPACED}]"),
)
"""Where a paragraph may be cut, best first."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage's text, and its terms parted by spaces."""

    text: str
    terms: str


def pieces_of(text: str) -> Iterator[Piece]:
    for paragraph in _paragraphs(unicodedata.normalize("NFC", text)):
        for start, end in _cut(paragraph):
            piece = paragraph[start:end].strip()
            if piece:
                # The pair that the cut parts belongs to the passage in which it begins.
                more = 1 if _INSIDE_RUN.match(paragraph, end) else 0
                yield Piece(piece, index_terms(paragraph[start : end + more]))


def heading_of(text: str) -> str:
    """The first heading of a Markdown text, or nothing."""
    return next((found[1].strip() for line in text.splitlines() if (found := _heading(line))), "")


def index_terms(text: str) -> str:
    return " ".join(term for run in _runs(text) for term in _terms(run))


def match_expression(query: str) -> str:
    """The query in SQLite's words, or nothing where there is no word in it."""
    terms = [term for run in _runs(query) for term in _wanted(run)]
    return " OR ".join(_both_ends(terms))


def _both_ends(terms: Sequence[str]) -> Iterable[str]:
    """Of a long query its beginning and its end, where people say what they want."""
    wanted = dict.fromkeys(terms)
    if len(wanted) <= MOST_QUERY_TERMS:
        return wanted
    half = MOST_QUERY_TERMS // 2
    last = dict.fromkeys(reversed(terms))
    return dict.fromkeys((*islice(wanted, half), *islice(last, half)))


def _runs(text: str) -> Iterator[re.Match[str]]:
    return _RUNS.finditer(unicodedata.normalize("NFKC", text))


def _terms(run: re.Match[str]) -> Iterator[str]:
    word = run[0]
    if run["unspaced"]:
        yield from _pairs(word)
        yield word[-1]
    else:
        yield word


def _wanted(run: re.Match[str]) -> Iterator[str]:
    word = run[0]
    if run["unspaced"] and len(word) == 1:
        yield f'"{word}"*'
    elif run["unspaced"]:
        yield from (f'"{pair}"' for pair in _pairs(word))
    else:
        yield f'"{word}"'


def _pairs(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run) - 1))


def _paragraphs(text: str) -> Iterator[str]:
    headings: list[str] = []
    for block in filter(None, map(str.strip, _BLANK_LINES.split(text))):
        headings.append(block)
        if not _heading(block):
            yield "\n\n".join(headings)
            headings.clear()
    if headings:
        yield "\n\n".join(headings)


def _heading(block: str) -> re.Match[str] | None:
    return _HEADING.fullmatch(block)


def _cut(paragraph: str) -> Iterator[tuple[int, int]]:
    start = 0
    while len(paragraph) - start > LONGEST_PASSAGE:
        end = _end_of_passage(paragraph, start)
        yield start, end
        start = end
    yield start, len(paragraph)


def _end_of_passage(paragraph: str, start: int) -> int:
    half, end = start + LONGEST_PASSAGE // 2, start + LONGEST_PASSAGE
    for place in _CUTS:
        ends = [found.end() for found in place.finditer(paragraph, half, end)]
        if ends:
            return ends[-1]
    return end
