r"""Sentences with formulas in plain notation, taken apart: what is words, what is a formula.

Statements are written as people type them, ``gamma(t+1) = gamma(t) + eta alpha^p G^(p-1)``. Here
they are read back: `pieces` returns words, code and formulas in the order of the sentence, each
formula in LaTeX. Nothing is lost: the sources of the pieces are the sentence.

A formula is the longest stretch of symbols, numbers, operators and brackets without an English word
that holds a symbol or an operator. Words inside the brackets of a function stay words there.
"""

import re
from dataclasses import replace
from itertools import zip_longest
from typing import Literal, NamedTuple

from symbolic.core.notation import ARTICLES, COMPARISONS, Is, Item, as_math, escaped, read


class Piece(NamedTuple):
    """A stretch of a sentence: ``source`` as it was written, ``shown`` without the marks.

    ``shown`` is LaTeX for math, and what is between the marks of code and emphasis.
    """

    kind: Literal["words", "math", "code", "emphasis"]
    source: str
    shown: str


def pieces(sentence: str) -> list[Piece]:
    """Take a sentence apart; the sources of the pieces, joined, are the sentence."""
    return _merged(_split(read(sentence)))


_MARKS = {"math": "${}$", "code": r"\texttt{{{}}}", "emphasis": r"\emph{{{}}}", "words": "{}"}
_AT_ITS_END = re.compile(r"^[)\].,;:?!\"]+")


def latex(sentence: str, *, widest: int | None = None) -> str:
    """Return a sentence in LaTeX: formulas between dollars, words with nothing left to expand.

    Formulas of more than ``widest`` characters stand on lines of their own, with the marks that
    follow them.
    """
    found, marks = "", ""
    taken = pieces(sentence)
    for one, after in zip_longest(taken, taken[1:]):
        shown = one.shown if one.kind == "math" else escaped(one.shown.removeprefix(marks))
        marks = ""
        if one.kind == "math" and widest is not None and len(one.shown) > widest:
            words = after.shown if after is not None and after.kind == "words" else ""
            marks = end.group() if (end := _AT_ITS_END.match(words)) else ""
            end_of_line = rf"\text{{{escaped(marks)}}}" if marks else ""
            found += (
                f"\n\\begin{{equation*}}\n\\fitted{{{shown}{end_of_line}}}\n\\end{{equation*}}\n"
            )
        else:
            found += _MARKS[one.kind].format(shown)
    return found


def _split(items: tuple[Item, ...]) -> list[Piece]:
    """Cut the items of a level into formulas and the words between them."""
    found: list[Piece] = []
    run: list[Item] = []
    for one in (*items, None):
        if one is not None and one.kind is not Is.WORDS and not _apart(run, one):
            run.append(one)
            continue
        at_start = not found or found[-1].source.rstrip()[-1:] in (".", "?", "!")
        found += _formula(run, at_start=at_start)
        run = []
        if one is not None and one.kind is Is.WORDS:
            found += _words(one)
        elif one is not None:
            run = [one]
    return found


def _apart(run: list[Item], number: Item) -> bool:
    """Tell whether a number follows a symbol after a space, ``d 0.07``: that is no product."""
    spaced = len(run) > 1 and run[-1].kind is Is.SPACE and run[-2].kind is Is.MATH
    return spaced and number.kind is Is.EITHER and number.source not in ARTICLES


def _words(item: Item) -> list[Piece]:
    """Return what is no formula: brackets are taken apart, their inside may hold formulas."""
    if item.inner:
        inside = _split(item.inner)
        opening, closing = item.source[0], item.source[-1]
        return [Piece("words", opening, opening), *inside, Piece("words", closing, closing)]
    return [Piece(item.piece, item.source, item.latex if item.piece != "words" else item.source)]


def _formula(run: list[Item], at_start: bool) -> list[Piece]:
    """Return a stretch without words as a formula, less what does not belong to it at its ends."""
    first, last = 0, len(run)
    while first < last and not _opens(run, first, at_start):
        first += 1
    while last > first and not _closes(run, last - 1):
        last -= 1
    inside = run[first:last]
    if _counts(inside) or not any(
        one.kind in (Is.MATH, Is.OPERATOR) or one.source in ARTICLES for one in inside
    ):
        inside, last = [], first
    pieces = [piece for one in run[:first] for piece in _words(one)]
    if inside:
        source = "".join(one.source for one in inside)
        pieces.append(Piece("math", source, as_math(_times(inside))))
    return pieces + [piece for one in run[last:] for piece in _words(one)]


def _counts(run: list[Item]) -> bool:
    """Tell whether a stretch is a number with a letter, as in Figure 1b."""
    return len(run) == 2 and run[0].source.isdigit() and run[1].source.isalpha()


def _opens(run: list[Item], at: int, at_start: bool) -> bool:
    """Tell whether a formula may begin with an item."""
    one = run[at]
    following = run[at + 1] if at + 1 < len(run) else None
    if one.kind is Is.OPERATOR and one.source in COMPARISONS:
        return any(later.kind in (Is.MATH, Is.EITHER) for later in run[at + 1 : at + 3])
    if one.kind is Is.OPERATOR:  # a sign stands at its number
        return (
            one.source in "+-" and following is not None and following.kind in (Is.MATH, Is.EITHER)
        )
    if one.kind is Is.EITHER and one.source in ARTICLES:
        return _is_symbol(run, at, at_start)
    return one.kind in (Is.MATH, Is.EITHER)


def _is_symbol(run: list[Item], at: int, at_start: bool) -> bool:
    """Tell a symbol a, A or I from the word: by an operator beside it, or its place."""
    beside = [one for one in run[at + 1 : at + 3] if one.kind is not Is.SPACE][:1]
    beside += [one for one in run[max(at - 2, 0) : at] if one.kind is not Is.SPACE][-1:]
    if any(one.kind is Is.OPERATOR for one in beside):
        return True
    first = all(one.kind is Is.SPACE for one in run[:at])
    return run[at].source == "A" and not (at_start and first)


def _closes(run: list[Item], at: int) -> bool:
    """Tell whether a formula may end with an item."""
    one = run[at]
    if one.kind is Is.EITHER and one.source in ARTICLES:
        return _is_symbol(run, at, at_start=False)
    return one.kind in (Is.MATH, Is.EITHER)


def _times(run: list[Item]) -> tuple[Item, ...]:
    """Return a formula with the x of ``D x D`` as a sign."""
    solid = [at for at, one in enumerate(run) if one.kind is not Is.SPACE]
    signs = {
        at
        for left, at, right in zip(solid, solid[1:], solid[2:])
        if run[at].source == "x" and run[left].source == run[right].source
    }
    return tuple(
        replace(one, latex=r"\times ") if at in signs else one for at, one in enumerate(run)
    )


def _merged(found: list[Piece]) -> list[Piece]:
    """Return the pieces with neighbouring words joined."""
    joined: list[Piece] = []
    for one in found:
        if joined and one.kind == joined[-1].kind == "words":
            joined[-1] = Piece(
                "words", joined[-1].source + one.source, joined[-1].shown + one.shown
            )
        else:
            joined.append(one)
    return joined
