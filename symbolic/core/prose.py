r"""Find formulas in plain notation in sentences, and convert them to LaTeX.

Statements are plain text such as ``gamma(t+1) = gamma(t) + eta alpha^p G^(p-1)``. `pieces` splits a
sentence into words, code and formulas; the joined sources of the pieces are the sentence.

A formula is a maximal sequence of symbols, numbers, operators and brackets without an English word
that contains a symbol or an operator. Words in the brackets of a function are part of the formula.
"""

import re
from dataclasses import replace
from itertools import zip_longest
from typing import Literal, NamedTuple

from symbolic.core.notation import ARTICLES, COMPARISONS, Is, Item, as_math, escaped, read


class Piece(NamedTuple):
    """A part of a sentence.

    Attributes
    ----------
    category
        Type of the piece.
    source
        Original text.
    shown
        LaTeX of a formula, text without markup otherwise.
    """

    category: Literal["words", "math", "code", "emphasis"]
    source: str
    shown: str


def pieces(sentence: str) -> list[Piece]:
    """Split a sentence into words, formulas, code and emphasis."""
    return _merged(_split(read(sentence)))


_MARKS = {"math": "${}$", "code": r"\texttt{{{}}}", "emphasis": r"\emph{{{}}}", "words": "{}"}
_AT_ITS_END = re.compile(r"^[)\].,;:?!\"]+")


def latex(sentence: str, *, widest: int | None = None) -> str:
    """Return a sentence in LaTeX.

    Parameters
    ----------
    sentence
        Plain text with formulas.
    widest
        Formulas with more characters of LaTeX are displayed, together with the punctuation that
        follows.
    """
    text, marks = "", ""
    parts = pieces(sentence)
    for item, after in zip_longest(parts, parts[1:]):
        shown = item.shown if item.category == "math" else escaped(item.shown.removeprefix(marks))
        marks = ""
        if item.category == "math" and widest is not None and len(item.shown) > widest:
            words = after.shown if after is not None and after.category == "words" else ""
            marks = end.group() if (end := _AT_ITS_END.match(words)) else ""
            end_of_line = rf"\text{{{escaped(marks)}}}" if marks else ""
            text += (
                f"\n\\begin{{equation*}}\n\\fitted{{{shown}{end_of_line}}}\n\\end{{equation*}}\n"
            )
        else:
            text += _MARKS[item.category].format(shown)
    return text


def _split(items: tuple[Item, ...]) -> list[Piece]:
    """Split the items of a level into formulas and words."""
    parts: list[Piece] = []
    run: list[Item] = []
    for item in (*items, None):
        if item is not None and item.category is not Is.WORDS and not _apart(run, item):
            run.append(item)
            continue
        at_start = not parts or parts[-1].source.rstrip()[-1:] in (".", "?", "!")
        parts += _formula(run, at_start=at_start)
        run = []
        if item is not None and item.category is Is.WORDS:
            parts += _words(item)
        elif item is not None:
            run = [item]
    return parts


def _apart(run: list[Item], number: Item) -> bool:
    """Return whether a number follows a symbol and a space, as in ``d 0.07``: not a product."""
    spaced = len(run) > 1 and run[-1].category is Is.SPACE and run[-2].category is Is.MATH
    return spaced and number.category is Is.EITHER and number.source not in ARTICLES


def _words(item: Item) -> list[Piece]:
    """Return the pieces of an item outside formulas; brackets can contain formulas."""
    if item.inner:
        inside = _split(item.inner)
        opening, closing = item.source[0], item.source[-1]
        return [Piece("words", opening, opening), *inside, Piece("words", closing, closing)]
    return [Piece(item.piece, item.source, item.latex if item.piece != "words" else item.source)]


def _formula(run: list[Item], at_start: bool) -> list[Piece]:
    """Return a sequence without words as a formula, with unrelated items at its ends split off."""
    first, last = 0, len(run)
    while first < last and not _opens(run, first, at_start):
        first += 1
    while last > first and not _closes(run, last - 1):
        last -= 1
    inside = run[first:last]
    if _counts(inside) or not any(
        item.category in (Is.MATH, Is.OPERATOR) or item.source in ARTICLES for item in inside
    ):
        inside, last = [], first
    pieces = [piece for item in run[:first] for piece in _words(item)]
    if inside:
        source = "".join(item.source for item in inside)
        pieces.append(Piece("math", source, as_math(_times(inside))))
    return pieces + [piece for item in run[last:] for piece in _words(item)]


def _counts(run: list[Item]) -> bool:
    """Return whether a sequence is a number with a letter, as in Figure 1b."""
    return len(run) == 2 and run[0].source.isdigit() and run[1].source.isalpha()


def _opens(run: list[Item], at: int, at_start: bool) -> bool:
    """Return whether a formula can begin with an item."""
    item = run[at]
    following = run[at + 1] if at + 1 < len(run) else None
    if item.category is Is.OPERATOR and item.source in COMPARISONS:
        return any(later.category in (Is.MATH, Is.EITHER) for later in run[at + 1 : at + 3])
    if item.category is Is.OPERATOR:  # a sign is attached to its number
        return (
            item.source in "+-"
            and following is not None
            and following.category in (Is.MATH, Is.EITHER)
        )
    if item.category is Is.EITHER and item.source in ARTICLES:
        return _is_symbol(run, at, at_start)
    return item.category in (Is.MATH, Is.EITHER)


def _is_symbol(run: list[Item], at: int, at_start: bool) -> bool:
    """Distinguish the symbols a, A and I from words, by adjacent operators or position."""
    adjacent = [item for item in run[at + 1 : at + 3] if item.category is not Is.SPACE][:1]
    adjacent += [item for item in run[max(at - 2, 0) : at] if item.category is not Is.SPACE][-1:]
    if any(item.category is Is.OPERATOR for item in adjacent):
        return True
    first = all(item.category is Is.SPACE for item in run[:at])
    return run[at].source == "A" and not (at_start and first)


def _closes(run: list[Item], at: int) -> bool:
    """Return whether a formula can end with an item."""
    item = run[at]
    if item.category is Is.EITHER and item.source in ARTICLES:
        return _is_symbol(run, at, at_start=False)
    return item.category in (Is.MATH, Is.EITHER)


def _times(run: list[Item]) -> tuple[Item, ...]:
    """Return a formula with the x of ``D x D`` as a multiplication sign."""
    solid = [at for at, item in enumerate(run) if item.category is not Is.SPACE]
    signs = {
        at
        for left, at, right in zip(solid, solid[1:], solid[2:])
        if run[at].source == "x" and run[left].source == run[right].source
    }
    return tuple(
        replace(item, latex=r"\times ") if at in signs else item for at, item in enumerate(run)
    )


def _merged(parts: list[Piece]) -> list[Piece]:
    """Join adjacent words."""
    joined: list[Piece] = []
    for item in parts:
        if joined and item.category == joined[-1].category == "words":
            joined[-1] = Piece(
                "words", joined[-1].source + item.source, joined[-1].shown + item.shown
            )
        else:
            joined.append(item)
    return joined
