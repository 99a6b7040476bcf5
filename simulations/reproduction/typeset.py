"""Sentences of a claim as HTML, with their formulas as MathML.

Browsers draw MathML without scripts and fonts of the page. `symbolic.core.prose` extracts the
formulas of a sentence as LaTeX.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from symbolic.core.prose import Piece, pieces

if TYPE_CHECKING:
    from markupsafe import Markup

#: A long formula may be broken before these operators, outside brackets.
_BREAK = re.compile(r" (?=(?:=|\\le|\\ge|\\ll|\\gg|\\to|\+|-) )")
#: Number of characters from which a formula is long.
_LONG = 30
#: A word that latex2mathml writes letter by letter.
_UPRIGHT = re.compile(r'(?:<mi mathvariant="normal">\w</mi>){2,}')
#: Bars, slashes and angle brackets that must not stretch.
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
    """Return the sentences of a text, or the clauses of its only sentence.

    Text in brackets is not divided.
    """
    sentences = _divided(text, ".!?")
    parts = sentences if len(sentences) > 1 else _divided(text, ";")
    return [f"{_capitalized(part).rstrip(';.')}." for part in parts]


def first_point(text: str) -> str:
    """Return the first of the `points` of a text, "" if it is empty."""
    return next(iter(points(text)), "")


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, "" if it is empty."""
    return next(iter(_divided(text, ".!?")), "")


def _capitalized(text: str) -> str:
    """Return a text with a capital first letter, unless it starts with a formula."""
    return text[0].upper() + text[1:] if pieces(text)[0].category == "words" else text


def _divided(text: str, marks: str) -> list[str]:
    """Return the parts of a text that end with ``marks``; a full stop only before a capital."""
    parts, depth = [""], 0
    for word in re.split(r"(?<=\s)(?=\S)", text.strip()):
        last = parts[-1].rstrip()[-1:]
        if depth == 0 and last and last in marks and (last == ";" or word[0].isupper()):
            parts.append("")
        parts[-1] += word
        depth = max(0, depth + sum(map(word.count, "([")) - sum(map(word.count, ")]")))
    return [part.strip() for part in parts if part.strip(" ;.")]


@cache
def typeset(text: str) -> Markup:
    """Return a sentence as HTML: formulas are MathML, everything else is escaped.

    Brackets and punctuation next to a formula stay on its line.
    """
    from markupsafe import Markup, escape

    tags = {"code": "code", "emphasis": "em"}
    html, parts = Markup(), pieces(text)
    for number, (category, source, shown) in enumerate(parts):
        before = parts[number - 1] if number else None
        after = parts[number + 1] if number + 1 < len(parts) else None
        if category == "math":
            html += _formula(shown, source, _edge(_BEFORE, before), _edge(_AFTER, after))
        elif category == "words":
            if before is not None and before.category == "math":
                source = _AFTER.sub("", source)
            if after is not None and after.category == "math":
                source = _BEFORE.sub("", source)
            html += escape(source)
        else:
            html += Markup("<{0}>{1}</{0}>").format(tags[category], shown)
    return html


def displayed(latex: str) -> Markup:
    """Return a formula on a line of its own as MathML; as LaTeX if it cannot be converted."""
    from markupsafe import Markup

    try:
        formula = _mathml(latex, continues=False)
    except Exception:  # any error of the library: the page is written nevertheless
        return Markup("<pre>{}</pre>").format(latex)
    return Markup(str(formula).replace("<math", '<math display="block"', 1))


def _edge(pattern: re.Pattern[str], piece: Piece | None) -> str:
    """Return the brackets or punctuation of neighbouring words next to a formula."""
    if piece is None or piece.category != "words":
        return ""
    match = pattern.search(piece.source)
    return match.group() if match else ""


def _formula(latex: str, source: str, opening: str, closing: str) -> Markup:
    """Return a formula in MathML, or its source if its LaTeX cannot be converted."""
    from markupsafe import Markup, escape

    try:
        parts = [_mathml(part, continues=number > 0) for number, part in enumerate(_parts(latex))]
    except Exception:  # latex2mathml raises many types; the page must still be written
        return escape(opening + source + closing)
    if opening:
        parts[0] = Markup('<span class="line">{}{}</span>').format(opening, parts[0])
    if closing:
        parts[-1] = Markup('<span class="line">{}{}</span>').format(parts[-1], closing)
    return Markup("<wbr>").join(parts)


def _parts(latex: str) -> list[str]:
    """Return a long formula in parts between which a line may be broken."""
    if len(latex) < _LONG:
        return [latex]
    parts, start = [], 0
    for operator in _BREAK.finditer(latex):
        head = latex[: operator.start()]
        if operator.start() > start and all(
            head.count(left) == head.count(right)
            for left, right in ("()", "[]", "{}", (r"\lvert", r"\rvert"))
        ):
            parts.append(latex[start : operator.start()])
            start = operator.end()
    return [*parts, latex[start:]]


@cache
def _mathml(latex: str, continues: bool) -> Markup:
    """Return a formula in MathML; ``continues``: it starts with an operator of a longer one."""
    from latex2mathml.converter import convert
    from markupsafe import Markup, escape

    html = re.sub(r' (xmlns|display)="[^"]*"', "", convert(latex))
    html = _UPRIGHT.sub(lambda word: f"<mi>{re.sub('<[^>]+>', '', word[0])}</mi>", html)
    if continues:
        html = html.replace("<mo>", "<mo form=infix>", 1)
    for pattern, replacement in _SMALLER:
        html = pattern.sub(replacement, html)
    return Markup(_ENTITY.sub(lambda entity: escape(chr(int(entity[1], 16))), html))
