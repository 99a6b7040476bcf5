"""Tokenize and parse sentences with formulas in plain notation.

Recognizes symbols and brackets such as ``alpha^p``, ``A_ij``, ``f*(X)``, ``|rho|``, ``<w, X>``,
``E[...]``, ``T1`` and ``max |rho|``, and converts them to LaTeX. `symbolic.core.prose` combines
these items into formulas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


_GREEK = _split(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
_NAMED = {"ell": r"\ell", "infinity": r"\infty", "eps": r"\varepsilon", "gbar": r"\bar{g}"}
_NAMED |= {"qD": "qD", "yF": "yF"}
#: Functions that need no brackets; other names are functions only before a bracket.
_FUNCTIONS = _split("log exp max min sup")
#: Letters that can be words.
ARTICLES = ("a", "A", "I")
#: Symbols whose attached digit is a subscript, as in T1.
_COUNTED = _split("alpha beta gamma rho nu T t v x n N k D")
_ORDERS = _split("O o Omega omega Theta")
COMPARISONS = _split("<= >= != << >> < > =")
_RELATIONS = {
    "<=": r"\le",
    ">=": r"\ge",
    "!=": r"\ne",
    "<<": r"\ll",
    ">>": r"\gg",
    "->": r"\to",
    "<-": r"\gets",
    "+-": r"\pm",
    "<": "<",
    ">": ">",
    "=": "=",
    "~": r"\sim",
    "+": "+",
    "-": "-",
    "/": "/",
    "|": r"\mid",
    "*": r"\cdot",
}
_COMMAND = re.compile(r"\\[A-Za-z]+$")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_SHOWN = {"{": r"\{", "}": r"\}"}

_TOKEN = re.compile(
    r"(?P<code>``[^`]+``|`[^`]+`)"
    r"|(?P<emphasis>(?<![\w*)])\*[A-Za-z]+\*(?![\w*(]))"
    r"|(?P<space>\s+)"
    r"|(?P<number>\d+(?:,\d{3})+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
    r"|(?P<program>[A-Za-z]\w*_\w+_\w+)"
    r"|(?P<name>[^\W\d_]+)"
    r"|(?P<apart>'s?(?=[A-Za-z]|\b)(?<=\w'|'s))"
    r"|(?P<operator><=|>=|!=|<<|>>|->|<-|\+-|[-+=<>~/|*])"
    r"|(?P<bracket>[()\[\]{}])"
    r"|(?P<other>.)",
    re.DOTALL,
)


class Is(Enum):
    """Type of an item: formula, formula or word, word, operator, or space."""

    MATH, EITHER, WORDS, OPERATOR, SPACE = range(5)


@dataclass(frozen=True)
class Item:
    """A parsed part of a sentence.

    Attributes
    ----------
    source, latex
        Original text, and its LaTeX.
    category
        Whether it can be part of a formula.
    piece
        Markup of items that are not formulas.
    inner
        Items between brackets.
    name
        The symbol, function name or opening bracket.
    """

    source: str
    latex: str
    category: Is
    piece: Literal["words", "code", "emphasis"] = "words"
    inner: tuple[Item, ...] = ()
    name: str = ""


def read(sentence: str) -> tuple[Item, ...]:
    """Parse a sentence into items; the joined sources are the sentence."""
    tokens = [(str(m.lastgroup), m.group()) for m in _TOKEN.finditer(sentence)]
    return _Reader(tokens).level("")


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def escaped(words: str) -> str:
    """Escape LaTeX special characters."""
    return "".join(_SPECIAL.get(character, character) for character in words)


class _Reader:
    """Recursive-descent parser of tokens into items."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens, self.position = tokens, 0

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        """Return type and text of a token without consuming it."""
        at = self.position + ahead
        return self.tokens[at] if at < len(self.tokens) else ("", "")

    def level(self, closing: str) -> tuple[Item, ...]:
        """Parse items up to a closing bracket, or to the end."""
        items: list[Item] = []
        while self.position < len(self.tokens) and self.peek()[1] != closing:
            items.append(self.item(items[-1] if items else None))
        return tuple(items)

    def item(self, before: Item | None) -> Item:
        """Parse one item with its suffixes; ``before`` is the item before it."""
        category, source = self.peek()
        self.position += 1
        if category == "bracket" and source in _CLOSING:
            group = self.group(source)
            whole = self.suffixes(group)
            labels = whole is group and _labels(group)
            return replace(whole, category=Is.WORDS, inner=()) if labels else whole
        if source in ("|", "<") and (pair := self.bars(source, before)) is not None:
            return self.suffixes(pair)
        if category == "number":
            return self.suffixes(_number(source))
        if category == "name":
            return self.suffixes(_name(source, (self.peek(), self.peek(1)), before))
        if category == "operator":
            return Item(source, _RELATIONS[source], Is.OPERATOR)
        if category == "space":
            return Item(source, " ", Is.SPACE)
        if category in ("code", "emphasis"):
            mark = "`" if category == "code" else "*"
            piece: Literal["code", "emphasis"] = "code" if category == "code" else "emphasis"
            return Item(source, source.strip(mark), Is.WORDS, piece)
        return Item(source, source, Is.WORDS)

    def group(self, opening: str) -> Item:
        """Parse a pair of brackets; an opening bracket without a closing one is a word."""
        start, closing = self.position, _CLOSING[opening]
        inner = self.level(closing)
        if self.peek()[1] != closing:
            self.position = start
            return Item(opening, opening, Is.WORDS)
        self.position += 1
        source = opening + "".join(item.source for item in inner) + closing
        left, right = (_SHOWN.get(mark, mark) for mark in (opening, closing))
        item = Item(source, left + as_math(inner) + right, _kind_of(inner), inner=inner)
        return replace(item, name=opening)

    def bars(self, opening: str, before: Item | None) -> Item | None:
        """Parse ``|x|`` or ``<x, y>`` after the opening sign; ``None`` if it is an operator."""
        start, closing = self.position, {"|": "|", "<": ">"}[opening]
        if self.peek()[0] in ("", "space") or (before is not None and before.category is Is.MATH):
            return None
        inner = self.level(closing)
        pair = opening == "|" or any(item.source == "," for item in inner)
        complete = self.peek()[1] == closing and self.peek(-1)[0] != "space"
        if not (pair and complete) or _kind_of(inner) is Is.WORDS:
            self.position = start
            return None
        self.position += 1
        source = opening + "".join(item.source for item in inner) + closing
        left, right = (r"\lvert", r"\rvert") if opening == "|" else (r"\langle", r"\rangle")
        return Item(source, f"{left} {as_math(inner)} {right}", Is.MATH)

    def suffixes(self, item: Item) -> Item:
        """Parse attached subscripts, powers, stars, primes and arguments."""
        while (attached := self.suffix(item)) is not None:
            item = attached
        return item

    def suffix(self, item: Item) -> Item | None:
        """Return an item with the next suffix, or ``None`` if there is none."""
        category, mark = self.peek()
        start = self.position
        if item.category is Is.WORDS and not item.name:
            return None
        if mark in ("_", "^"):
            self.position += 1
            script = self.script()
            if script is None:
                self.position = start
                return None
            source, latex = script
            if mark == "_" and _is_word(item.source) and _is_word(source):
                name = f"{item.source}_{source}"
                shown = rf"\mathrm{{{escaped(name)}}}"
                return Item(name, shown, Is.EITHER)
            if mark == "_" and source == "hat":
                return _math(item, f"_{source}", rf"\hat{{{item.latex}}}")
            base = _base(item)
            if re.search(rf"\{mark}\{{[^{{}}]*\}}$", base):  # a second subscript or power
                base = f"{{{base}}}"
            return _math(item, mark + source, f"{base}{mark}{{{latex}}}")
        if item.category is not Is.MATH and not item.name.isalpha():
            return None
        if category == "number" and mark.isdigit() and item.source == item.name in _COUNTED:
            self.position += 1
            return _math(item, mark, f"{item.latex}_{{{mark}}}")
        if mark == "*" and self.peek(1)[0] != "name" and item.category is Is.MATH:
            self.position += 1
            return _math(item, "*", f"{item.latex}^{{*}}")
        if mark == "'" and (item.category is Is.MATH or self.peek(1)[1] == "("):
            self.position += 1
            return _math(item, "'", f"{_base(item)}'")
        if mark == "~" and item.name == "O" and self.peek(1)[1] == "(":
            self.position += 1
            return _math(item, "~", r"\tilde{O}")
        if category == "bracket" and mark in "([{" and item.name != "(":
            self.position += 1
            group = self.group(mark)
            if item.name == "sqrt" and group.inner:
                return _math(item, group.source, rf"\sqrt{{{as_math(group.inner)}}}")
            if group.source == "(s)" and item.category is Is.WORDS:
                return replace(item, source=item.source + "(s)", latex=item.latex + "(s)", name="")
            if not group.inner or (item.category is not Is.MATH and group.category is Is.WORDS):
                self.position = start
                return None
            return _math(item, group.source, f"{_base(item)}{group.latex}")
        return None

    def script(self) -> tuple[str, str] | None:
        """Parse a subscript or exponent; return its source and LaTeX."""
        category, source = self.peek()
        if category == "bracket" and source in _CLOSING:
            self.position += 1
            group = self.group(source)
            return (group.source, as_math(group.inner)) if group.inner else None
        sign = ""
        if source in ("-", "+") and self.peek(1)[0] in ("name", "number"):
            sign = source
            self.position += 1
            category, source = self.peek()
        if category == "number":
            self.position += 1
            latex = source
            if self.peek()[0] == "name":  # as in Threshold_0.9C
                latex += self.peek()[1]
                self.position += 1
            return sign + latex, sign + latex
        if category == "name":
            self.position += 1
            written, shown = sign + source, sign + _index(source)
            if source in _ORDERS and self.peek()[1] == "(":  # as in D^Omega(1)
                self.position += 1
                group = self.group("(")
                written, shown = written + group.source, shown + group.latex
            return written, shown
        if source in ("+", "-", "*", "#"):
            self.position += 1
            return source, r"\#" if source == "#" else source
        return None


def _math(item: Item, source: str, latex: str) -> Item:
    name = item.name if item.name.isalpha() else "f"
    return Item(item.source + source, latex, Is.MATH, name=name)


def _base(item: Item) -> str:
    """Return the LaTeX of the base of a power or of a function call, with words upright."""
    if item.category is Is.WORDS or (item.name.isalpha() and len(item.name) > 1):
        operators = {"sum": r"\sum", "prod": r"\prod", **{f: f"\\{f}" for f in _FUNCTIONS}}
        if item.latex.isalpha():
            return operators.get(item.latex, rf"\mathrm{{{item.latex}}}")
    return item.latex


def _is_word(name: str) -> bool:
    """Return whether a name is a word; two words joined by ``_`` are a program identifier."""
    return len(name) > 2 and name.isalpha() and name not in _GREEK and name not in _NAMED


def _index(name: str) -> str:
    """Return the LaTeX of a subscript, with words upright."""
    if name in _GREEK or name in _NAMED:
        return _symbol(name)
    if len(name) == 1 or (len(name) == 2 and name.islower()):
        return name
    return rf"\mathrm{{{name}}}"


def _symbol(name: str) -> str:
    return f"\\{name}" if name in _GREEK else _NAMED.get(name, name)


def _number(source: str) -> Item:
    if "e" not in source:
        return Item(source, source.replace(",", "{,}"), Is.EITHER)
    mantissa, _, power = source.partition("e")
    shown = f"10^{{{int(power)}}}"
    latex = shown if mantissa == "1" else rf"{mantissa} \times {shown}"
    return Item(source, latex, Is.MATH)


def _name(source: str, following: tuple[tuple[str, str], ...], before: Item | None) -> Item:
    """Classify a name as a symbol, a differential, a function or a word."""
    if source in _GREEK or source in _NAMED:
        return Item(source, _symbol(source), Is.MATH, name=source)
    mark = following[0][1][:1]
    if len(source) == 1 and source.isascii():
        attached = mark in ("_", "^", "(") or following[0][1] == "'"
        either = source in ARTICLES and not attached
        return Item(source, source, Is.EITHER if either else Is.MATH, name=source)
    if source in _FUNCTIONS and following[0][0] == "space" and _is_argument(following[1]):
        return Item(source, f"\\{source}", Is.MATH, name="f")
    rest = source[1:]
    in_quotient = mark == "/" or (before is not None and before.source == "/")
    if source[0] == "d" and (
        rest in _GREEK or (len(rest) == 1 and (in_quotient or rest.isupper()))
    ):
        return Item(source, f"d{_symbol(rest)}", Is.MATH, name="d")
    return Item(source, source, Is.WORDS, name=source)


def _is_argument(token: tuple[str, str]) -> bool:
    category, source = token
    letter = len(source) == 1 and source not in ARTICLES
    symbol = letter or source in _GREEK or source in _FUNCTIONS
    return category == "number" or source in ("|", "(") or (category == "name" and symbol)


def _labels(group: Item) -> bool:
    """Return whether brackets contain a single letter, as in panel (b) or equation (P)."""
    return len(group.inner) == 1 and len(group.inner[0].source) == 1


def _kind_of(inner: tuple[Item, ...]) -> Is:
    """Return the type of brackets: a formula if they contain no word."""
    solid = [item for item in inner if item.category is not Is.SPACE]
    binding = [item for item in solid if item.source not in (",", ";")]
    if not binding or any(item.category is Is.WORDS for item in binding):
        return Is.WORDS
    if any(item.category is Is.OPERATOR and item.source in COMPARISONS for item in binding):
        return Is.WORDS  # (x > 0) is a remark
    if all(item.category is Is.EITHER and not item.source.isalpha() for item in binding):
        return Is.WORDS  # (2) is a count
    return Is.MATH


def _times(left: Item | None, right: Item | None) -> bool:
    """Return whether a space means a product or a function application."""
    if left is None or right is None or left.source in ("Delta", "d"):
        return False
    return all(
        item.category in (Is.MATH, Is.EITHER) and item.source != "x" for item in (left, right)
    )


def as_math(items: tuple[Item, ...]) -> str:
    """Return items as one LaTeX formula, with words upright."""
    shown: list[str] = []
    words: list[str] = []

    def flush(following: Item | None) -> None:
        text = "".join(words)
        words.clear()
        if text.strip():
            shown.append(rf"\text{{{text}}}")
        elif text:
            shown.append(r"\, " if _times(before, following) else " ")

    before = None
    for item in items:
        if item.category is Is.SPACE:
            words.append(" ")
        elif item.category is Is.WORDS and not item.inner and item.source not in ",;.:":
            words.append(escaped(item.latex))
        else:
            flush(item)
            shown.append(item.latex)
            before = item
    while words and words[-1] == " ":
        words.pop()
    flush(None)
    joined = ""
    for part in shown:  # separate a command from a following letter
        joined += " " if _COMMAND.search(joined) and part[:1].isalpha() else ""
        joined += part
    return re.sub(r" +", " ", joined).strip()
