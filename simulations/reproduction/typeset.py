"""What people read of a claim: sentences with their formulas as MathML, short ones first.

MathML is drawn by browsers without scripts or fonts of the page's own. Formulas are taken out of
plain sentences by `symbolic.core.prose`, and turned from LaTeX into MathML.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from symbolic.core.prose import Piece, pieces

if TYPE_CHECKING:
    from markupsafe import Markup

#: A long formula may be broken before these, as far as brackets let it.
_BREAK = re.compile(r" (?=(?:=|\\le|\\ge|\\ll|\\gg|\\to|\+|-) )")
_LONG = 30
_UPRIGHT = re.compile(r'(?:<mi mathvariant="normal">\w</mi>){2,}')
#: What the library leaves to be said in fewer words, or as operators.
_SMALLER = (
    (
        re.compile(r"<mo[^>]*>(&#x0007C;|&#x0002F;)</mo>"),
        r"<mo stretchy=false lspace=0 rspace=0>\1</mo>",
    ),
    (re.compile(r"<mi>(&#x027E[89];)</mi>"), r"<mo stretchy=false>\1</mo>"),
)
_ENTITY = re.compile(r"&#x([0-9A-F]+);")
_BEFORE = re.compile(r"[(\[\"]+$")
_AFTER = re.compile(r"^[)\].,;:%?!]+")


def points(text: str) -> list[str]:
    """Return a text point by point: its sentences, or the clauses of the only one.

    Nothing is cut inside brackets.
    """
    sentences = _cut(text, ".!?")
    found = sentences if len(sentences) > 1 else _cut(text, ";")
    return [f"{_begun(one).rstrip(';.')}." for one in found]


def _begun(text: str) -> str:
    """Return a text with its first letter as at a beginning: gamma stays gamma."""
    return text[0].upper() + text[1:] if pieces(text)[0].category == "words" else text


def _cut(text: str, marks: str) -> list[str]:
    """Return a text cut after these marks: a full stop only before a capital."""
    parts, depth = [""], 0
    for word in re.split(r"(?<=\s)(?=\S)", text.strip()):
        ends = parts[-1].rstrip()[-1:]
        if depth == 0 and ends and ends in marks and (ends == ";" or word[0].isupper()):
            parts.append("")
        parts[-1] += word
        depth = max(0, depth + sum(map(word.count, "([")) - sum(map(word.count, ")]")))
    return [part.strip() for part in parts if part.strip(" ;.")]


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    return next(iter(_cut(text, ".!?")), "")


def short(text: str) -> str:
    """Return the finding of a text that was not written as one: the first thing that it says."""
    return next(iter(points(text)), "")


@cache
def typeset(text: str) -> Markup:
    """Return a sentence as HTML, its formulas as MathML; everything else is escaped.

    What stands at a formula, brackets and commas, stays on its line.
    """
    from markupsafe import Markup, escape

    tags = {"code": "code", "emphasis": "em"}
    found, rest = Markup(), pieces(text)
    for number, (category, source, shown) in enumerate(rest):
        before = rest[number - 1] if number else None
        after = rest[number + 1] if number + 1 < len(rest) else None
        if category == "math":
            opening = _edge(_BEFORE, before)
            found += _formula(shown, source, opening, _edge(_AFTER, after))
        elif category == "words":
            if before is not None and before.category == "math":
                source = _AFTER.sub("", source)
            if after is not None and after.category == "math":
                source = _BEFORE.sub("", source)
            found += escape(source)
        else:
            found += Markup("<{0}>{1}</{0}>").format(tags[category], shown)
    return found


def displayed(latex: str) -> Markup:
    """Return a formula on a line of its own as MathML; as LaTeX if it cannot be converted."""
    from markupsafe import Markup

    try:
        formula = _mathml(latex, goes_on=False)
    except Exception:  # any error of the library: the page is written nevertheless
        return Markup("<pre>{}</pre>").format(latex)
    return Markup(str(formula).replace("<math", '<math display="block"', 1))


def _edge(pattern: re.Pattern[str], piece: Piece | None) -> str:
    """Return the part of neighbouring words that stands at a formula."""
    if piece is None or piece.category != "words":
        return ""
    match = pattern.search(piece.source)
    return match.group() if match else ""


def _formula(latex: str, source: str, opening: str, closing: str) -> Markup:
    """Return a formula in MathML; as it was typed where its LaTeX cannot be read."""
    from markupsafe import Markup, escape

    try:
        parts = [_mathml(part, goes_on=number > 0) for number, part in enumerate(_parts(latex))]
    except Exception:  # whatever the library makes of it, the page is written
        return escape(opening + source + closing)
    if opening:
        parts[0] = Markup('<span class="line">{}{}</span>').format(opening, parts[0])
    if closing:
        parts[-1] = Markup('<span class="line">{}{}</span>').format(parts[-1], closing)
    return Markup("<wbr>").join(parts)


def _parts(latex: str) -> list[str]:
    """Return a long formula in parts between which a line may end."""
    if len(latex) < _LONG:
        return [latex]
    parts, start = [], 0
    for place in _BREAK.finditer(latex):
        head = latex[: place.start()]
        if place.start() > start and all(
            head.count(left) == head.count(right)
            for left, right in ("()", "[]", "{}", (r"\lvert", r"\rvert"))
        ):
            parts.append(latex[start : place.start()])
            start = place.end()
    return [*parts, latex[start:]]


@cache
def _mathml(latex: str, goes_on: bool) -> Markup:
    """Return a formula, or the part of one that goes on after an operator, in MathML."""
    from latex2mathml.converter import convert
    from markupsafe import Markup, escape

    found = re.sub(r' (xmlns|display)="[^"]*"', "", convert(latex))
    found = _UPRIGHT.sub(lambda word: f"<mi>{re.sub('<[^>]+>', '', word[0])}</mi>", found)
    if goes_on:
        found = found.replace("<mo>", "<mo form=infix>", 1)
    for pattern, replacement in _SMALLER:
        found = pattern.sub(replacement, found)
    return Markup(_ENTITY.sub(lambda one: escape(chr(int(one[1], 16))), found))
