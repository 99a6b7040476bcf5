"""The language of conjectures: text to a syntax tree, with errors that point at the character.

Nothing is evaluated as Python. A tokenizer and a parser by precedence read, from weakest to
strongest binding::

    or    and    not    < <= > >= == != (chains allowed)    + -    * /    - (sign)    ^ or **

and the calls in :data:`FUNCTIONS`. Every part of a conjecture is either a number or a statement;
mixing the two is an error at the place where it happens.
"""

import difflib
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from dynamics import ParameterError

COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
_LONGEST, _DEEPEST, _TERMS = 2000, 50, 200  # characters, levels of nesting, operators


class Function(NamedTuple):
    """What a call takes and gives; ``most`` is ``None`` if it takes any number of arguments."""

    least: int
    most: int | None
    takes: str  # "number" or "statement"
    gives: str
    meaning: str


FUNCTIONS = {
    "abs": Function(1, 1, "number", "number", "absolute value"),
    "exp": Function(1, 1, "number", "number", "exponential"),
    "log": Function(1, 1, "number", "number", "natural logarithm"),
    "sqrt": Function(1, 1, "number", "number", "square root"),
    "min": Function(1, None, "number", "number", "of the run, or of several numbers"),
    "max": Function(1, None, "number", "number", "of the run, or of several numbers"),
    "at_start": Function(1, 1, "number", "number", "value at time 0"),
    "at_end": Function(1, 1, "number", "number", "value at the end of the run"),
    "always": Function(1, 1, "statement", "statement", "true at every time of the run"),
    "eventually": Function(1, 1, "statement", "statement", "true at some time of the run"),
}  # fmt: skip
_ALIASES = {"final": "at_end", "initial": "at_start"}


class ConjectureError(ParameterError):
    """A conjecture that cannot be read: one sentence, the text, and a caret under the character."""

    def __init__(self, sentence: str, text: str, at: int) -> None:
        self.sentence, self.text, self.at = sentence, text, at
        shown = "".join(" " if c.isspace() else c for c in text)
        super().__init__(f"{sentence}\n  {shown}\n  {' ' * at}^")


@dataclass(frozen=True)
class Node:
    """A part of a conjecture and the character at which it begins."""

    at: int


@dataclass(frozen=True)
class Number(Node):
    """A literal."""

    value: float


@dataclass(frozen=True)
class Name(Node):
    """An observable, an event or a constant of the problem."""

    name: str


@dataclass(frozen=True)
class Negative(Node):
    """Minus a number."""

    operand: Node


@dataclass(frozen=True)
class Arithmetic(Node):
    """Two numbers joined by ``+ - * / ^``."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Call(Node):
    """A function of :data:`FUNCTIONS`."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Comparison(Node):
    """Numbers joined by comparisons: a chain holds where each neighbouring pair does."""

    operands: tuple[Node, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True)
class Not(Node):
    """The negation of a statement."""

    operand: Node


@dataclass(frozen=True)
class Joined(Node):
    """Statements joined by ``and`` or ``or``."""

    operator: str
    parts: tuple[Node, ...]


class Token(NamedTuple):
    """A piece of text: its kind is ``number``, ``name``, ``sign`` or ``end``."""

    kind: str
    text: str
    at: int


_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d]\w*(?:\.\w+)*)"
    r"|(?P<sign>\*\*|<=|>=|==|!=|[-+*/^<>(),])"
)


def parse(text: str, names: Collection[str]) -> Node:
    """Return the tree of a statement over the given names.

    Raises
    ------
    ConjectureError
        If it cannot be read, uses an unknown name, or is a number instead of a statement.
    """
    if not isinstance(text, str):
        raise ParameterError(f"conjecture = {text!r} is not allowed: it must be text")
    if len(text) > _LONGEST:
        raise ParameterError(f"a conjecture of {len(text)} characters is longer than {_LONGEST}")
    parser = _Parser(text, names)
    tree = parser.expression(0)
    if parser.token.kind != "end":
        parser.fail(f"{parser.token.text!r} is not expected here", parser.token.at)
    parser.need(tree, "statement")
    return tree


def kind(node: Node) -> str:
    """Return ``"number"`` or ``"statement"``."""
    if isinstance(node, Call):
        return FUNCTIONS[node.function].gives
    return "statement" if isinstance(node, (Comparison, Not, Joined)) else "number"


def children(node: Node) -> tuple[Node, ...]:
    """Return the parts of a node, in order."""
    match node:
        case Negative(operand=part) | Not(operand=part):
            return (part,)
        case Arithmetic(left=left, right=right):
            return left, right
        case Call(arguments=parts) | Comparison(operands=parts) | Joined(parts=parts):
            return parts
    return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it."""
    yield node
    for part in children(node):
        yield from walk(part)


def names_in(node: Node) -> set[str]:
    """Return the names a conjecture uses."""
    return {part.name for part in walk(node) if isinstance(part, Name)}


#: How strongly an infix operator binds.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER = range(1, 9)
_STRENGTH = {"or": _OR, "and": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT,
             "^": _POWER, "**": _POWER} | dict.fromkeys(COMPARISONS, _COMPARE)  # fmt: skip


class _Parser:
    """Reads one conjecture from left to right; ``token`` is the next piece."""

    def __init__(self, text: str, names: Collection[str]) -> None:
        self.text, self.names = text, names
        self.depth = self.operators = 0
        self.tokens = self._split()
        self.token = next(self.tokens)

    def fail(self, sentence: str, at: int) -> NoReturn:
        raise ConjectureError(sentence, self.text, at)

    def need(self, node: Node, wanted: str) -> Node:
        """Return a node of the wanted kind."""
        if kind(node) != wanted:
            hint = " such as gamma >= rho" if wanted == "statement" else ""
            self.fail(f"a {wanted} is needed here{hint}, this is a {kind(node)}", node.at)
        return node

    def expression(self, strength: int) -> Node:
        """Read an expression whose operators all bind more strongly than ``strength``."""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"more than {_DEEPEST} levels of nesting", self.token.at)
        left = self._prefix()
        while (found := _STRENGTH.get(self.token.text, 0)) > strength:
            self.operators += 1
            if self.operators > _TERMS:
                self.fail(f"more than {_TERMS} operators", self.token.at)
            left = self._infix(left, found)
        self.depth -= 1
        return left

    def _split(self) -> Iterator[Token]:
        at = 0
        while at < len(self.text):
            if self.text[at].isspace():
                at += 1
                continue
            match = _TOKEN.match(self.text, at)
            if match is None:
                self.fail(_unknown_character(self.text, at), at)
            yield Token(str(match.lastgroup), match.group(), at)
            at = match.end()
        while True:
            yield Token("end", "", len(self.text))

    def _next(self) -> Token:
        token, self.token = self.token, next(self.tokens)
        return token

    def _prefix(self) -> Node:
        token = self._next()
        match token.kind, token.text:
            case "number", _:
                if not math.isfinite(value := float(token.text)):
                    self.fail("this number is too large", token.at)
                return Number(token.at, value)
            case _, "not":
                return Not(token.at, self.need(self.expression(_NOT - 1), "statement"))
            case _, "and" | "or":
                self.fail(f"{token.text!r} needs a statement before it", token.at)
            case "name", _:
                return self._call(token) if self.token.text == "(" else self._name(token)
            case _, "-":
                return Negative(token.at, self.need(self.expression(_SIGN), "number"))
            case _, "+":
                return self.need(self.expression(_SIGN), "number")
            case _, "(":
                inside = self.expression(0)
                self._close(token)
                return inside
            case "end", _:
                self.fail("the conjecture ends where a value is expected", token.at)
        self.fail(f"{token.text!r} is not expected here: a value is", token.at)

    def _infix(self, left: Node, strength: int) -> Node:
        if strength == _COMPARE:
            return self._comparison(left)
        if strength in (_OR, _AND):
            return self._joined(left, strength)
        token = self._next()
        # powers associate to the right, and their exponent may carry a sign
        right = self.expression(_POWER - 1 if strength == _POWER else strength)
        operator = "^" if token.text == "**" else token.text
        return Arithmetic(left.at, operator, self.need(left, "number"), self.need(right, "number"))

    def _comparison(self, left: Node) -> Node:
        operands, operators = [self.need(left, "number")], []
        while self.token.text in COMPARISONS:
            operators.append(self._next().text)
            operands.append(self.need(self.expression(_COMPARE), "number"))
        return Comparison(left.at, tuple(operands), tuple(operators))

    def _joined(self, left: Node, strength: int) -> Node:
        word = "or" if strength == _OR else "and"
        parts = [self.need(left, "statement")]
        while self.token.text == word:
            self._next()
            parts.append(self.need(self.expression(strength), "statement"))
        return Joined(left.at, word, tuple(parts))

    def _call(self, token: Token) -> Node:
        name = _ALIASES.get(token.text, token.text)
        if name not in FUNCTIONS:
            known = [*FUNCTIONS, *_ALIASES]
            self.fail(f"unknown function {token.text!r}{_nearest(token.text, known)}", token.at)
        opening = self._next()
        arguments = [] if self.token.text == ")" else [self.expression(0)]
        while self.token.text == ",":
            self._next()
            arguments.append(self.expression(0))
        self._close(opening)
        wanted = FUNCTIONS[name]
        if len(arguments) < wanted.least or len(arguments) > (wanted.most or len(arguments)):
            count = "one value" if wanted.most == 1 else "at least one value"
            self.fail(f"{token.text} takes {count}, not {len(arguments)}", token.at)
        for argument in arguments:
            self.need(argument, wanted.takes)
        return Call(token.at, name, tuple(arguments))

    def _close(self, opening: Token) -> None:
        if self.token.kind == "end":
            self.fail("this parenthesis is not closed", opening.at)
        if self.token.text != ")":
            self.fail(f"{self.token.text!r} is not expected here: an operator or ')' is",
                      self.token.at)  # fmt: skip
        self._next()

    def _name(self, token: Token) -> Node:
        if token.text in FUNCTIONS or token.text in _ALIASES:
            self.fail(f"{token.text} is a function: write {token.text}(...)", token.at)
        if token.text not in self.names:
            self.fail(f"unknown name {token.text!r}{_nearest(token.text, self.names)}", token.at)
        return Name(token.at, token.text)


def _unknown_character(text: str, at: int) -> str:
    hints = {"=": "equality is written ==", "!": "negation is written not",
             "&": "conjunction is written and", "|": "disjunction is written or",
             "≥": "write >=", "≤": "write <=", "[": "use ( and )", "{": "use ( and )"}  # fmt: skip
    hint = hints.get(text[at])
    return f"{text[at]!r} has no meaning here" + (f": {hint}" if hint else "")


def _nearest(word: str, known: Collection[str]) -> str:
    """Return a hint: the most similar known names, else all of them."""
    folded = {name.casefold(): name for name in sorted(known)}
    close = difflib.get_close_matches(word.casefold(), folded, n=3, cutoff=0.5)
    if close:
        return f": did you mean {' or '.join(folded[name] for name in close)}?"
    return f": known are {', '.join(sorted(known))}"
