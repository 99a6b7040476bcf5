"""Parser of the language of formulas: conjectures, and the observables and events of a theory file.

The text is parsed by Python's parser into a syntax tree; it is not compiled or evaluated. Allowed
are arithmetic with ``+ - * / ^`` (or ``**``), chains of comparisons, ``and``, ``or``, ``not``, and
calls of :data:`FUNCTIONS`. Each part is a number or a statement, and a part of the wrong type is an
error. Errors mark the position of the character.
"""

import ast
import difflib
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, NoReturn

_LONGEST, _DEEPEST, _TERMS = 2000, 50, 200  # characters, levels of nesting, arithmetic operators

#: Type of the arguments and of the result; all take one argument, `min` and `max` any number.
FUNCTIONS = {
    **dict.fromkeys(("abs", "exp", "log", "sqrt", "min", "max", "at_start", "at_end"), "number"),
    **dict.fromkeys(("always", "eventually"), "statement"),
}
_ALIASES = {"final": "at_end", "initial": "at_start"}
_WORDS = ("and", "or", "not")
#: Words that name nothing else.
RESERVED = frozenset({*FUNCTIONS, *_ALIASES, *_WORDS})


class FormulaError(ValueError):
    """A formula is not valid: a sentence, the text, and a caret under the character."""

    def __init__(self, sentence: str, text: str, at: int) -> None:
        self.sentence, self.text, self.at = sentence, text, at
        line = "".join(" " if c.isspace() else c for c in text)
        super().__init__(f"{sentence}\n  {line}\n  {' ' * at}^")


class Token(NamedTuple):
    """A token of type ``number``, ``name``, ``word``, ``sign`` or ``end`` at a position."""

    type: str
    text: str
    at: int

    @property
    def ends_value(self) -> bool:
        """Whether it can be the last token of a value."""
        return self.type in ("number", "name") or self.text == ")"

    @property
    def begins_value(self) -> bool:
        """Whether it can only be the first token of a value."""
        return self.type in ("number", "name") or self.text in ("(", "not")

    @property
    def python(self) -> str:
        """The token in Python; names are replaced, so that none is a keyword."""
        if self.type == "number":
            return repr(float(self.text))
        return "_" if self.type == "name" else self.text.replace("^", "**")


_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<word>(?:and|or|not)(?![\w.]))"
    r"|(?P<name>[^\W\d]\w*(?:\.\w+)*)"
    r"|(?P<sign>\*\*|<=|>=|==|!=|[-+*/^<>(),])"
)


def parse(text: str, names: Collection[str], wanted: str = "statement") -> ast.expr:
    """Parse a formula over the given names.

    Parameters
    ----------
    text
        The formula.
    names
        Names that it may use.
    wanted
        Its type: ``"statement"`` or ``"number"``.

    Returns
    -------
    ast.expr
        Syntax tree with nodes of :mod:`ast`; their ``col_offset`` is the position in ``text``.

    Raises
    ------
    FormulaError
        If the text is not valid, uses an unknown name, or has the other type.
    """
    if len(text) > _LONGEST:
        raise FormulaError(f"{len(text)} characters are longer than {_LONGEST}", "", 0)
    tokens, columns, python = _checked_tokens(text), {}, ""
    for token in tokens:
        columns[len(python)] = token
        python += f"{token.python} "
    try:
        tree = ast.parse(python, mode="eval").body
    except SyntaxError as error:  # `not` after an arithmetic operator or a comparison
        token = columns.get((error.offset or 1) - 1, tokens[0])
        raise FormulaError(f"{token.text!r} is not expected here", text, token.at) from None
    _Check(text, names, columns).require(tree, wanted)
    return tree


def names_in(node: ast.AST) -> set[str]:
    """Return the names a formula uses."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - set(FUNCTIONS)


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise FormulaError(_unknown_character(text, at), text, at)
        yield Token(str(match.lastgroup), match.group(), at)
        at = match.end()
    yield Token("end", "", len(text))


def _checked_tokens(text: str) -> list[Token]:
    """Return the tokens if values and operators alternate, within the limits of size and nesting.

    These checks come before Python's parser, because the positions of its errors depend on the
    version of Python.
    """
    tokens: list[Token] = []
    opened: list[Token] = []
    prefixes = operators = 0  # prefixes: signs and `not` since the last value
    for token in _tokens(text):
        if sentence := _misplaced(token, tokens, opened):
            raise FormulaError(sentence, text, token.at)
        if token.text == "(":
            opened.append(token)
        elif token.text == ")":
            opened.pop()
        after_value = bool(tokens) and tokens[-1].ends_value
        prefixes = 0 if after_value else prefixes + (token.text in ("+", "-", "not"))
        operators += after_value and token.text in ("+", "-", "*", "/", "^", "**")
        if len(opened) + prefixes > _DEEPEST:
            raise FormulaError(f"more than {_DEEPEST} levels of nesting", text, token.at)
        if operators > _TERMS:
            raise FormulaError(f"more than {_TERMS} operators", text, token.at)
        tokens.append(token)
    if opened:
        raise FormulaError("this parenthesis is not closed", text, opened[-1].at)
    return tokens


def _misplaced(token: Token, before: list[Token], opened: list[Token]) -> str | None:
    """Return why a token cannot follow those before it, or None."""
    previous = before[-1] if before else Token("sign", "", 0)
    unexpected = f"{token.text!r} is not expected here"
    if token.text == ")" and not opened:
        return unexpected
    if previous.ends_value:
        call = previous.type == "name" and token.text == "("
        wanted = "an operator or ')' is" if opened else "an operator is"
        return f"{unexpected}: {wanted}" if token.begins_value and not call else None
    if token.type == "number" and not math.isfinite(float(token.text)):
        return "this number is too large"
    if token.begins_value or token.text in ("+", "-"):
        return None
    if token.type == "end":
        return "the formula ends where a value is expected"
    if token.type == "word":
        return f"{token.text!r} needs a statement before it"
    no_arguments = previous.text == "(" and len(before) > 1 and before[-2].type == "name"
    return None if token.text == ")" and no_arguments else f"{unexpected}: a value is"


class _Check:
    """Type checker that also restores the names and positions of the text in each node."""

    def __init__(self, text: str, names: Collection[str], tokens: Mapping[int, Token]) -> None:
        self.text, self.names, self.tokens = text, names, tokens

    def require(self, node: ast.expr, wanted: str) -> None:
        """Raise FormulaError unless a node has a type."""
        if (actual := self.type_of(node)) != wanted:
            hint = " such as gamma >= rho" if wanted == "statement" else ""
            sentence = f"a {wanted} is needed here{hint}, this is a {actual}"
            self._fail(sentence, node.col_offset)

    def type_of(self, node: ast.expr) -> str:
        """Return ``"number"`` or ``"statement"``, or raise."""
        token = self.tokens[node.col_offset]
        node.col_offset = token.at
        match node:
            case ast.Constant(value=float()):
                return "number"
            case ast.Name():
                node.id = self._name(token)
                return "number"
            case ast.Call(func=ast.Name() as function, args=arguments, keywords=[]):
                function.id, function.col_offset = self._function(token, len(arguments)), token.at
                parts, wanted, result = arguments, FUNCTIONS[function.id], FUNCTIONS[function.id]
            case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
                parts, wanted, result = [operand], "number", "number"
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow()):
                parts, wanted, result = [node.left, node.right], "number", "number"
            case ast.Compare(left=left, comparators=others):
                parts, wanted, result = [left, *others], "number", "statement"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                parts, wanted, result = [operand], "statement", "statement"
            case ast.BoolOp(values=statements):
                parts, wanted, result = statements, "statement", "statement"
            case _:  # a tuple
                self._fail("',' is allowed only between the arguments of a function", token.at)
        for part in parts:
            self.require(part, wanted)
        return result

    def _name(self, token: Token) -> str:
        if token.text in FUNCTIONS or token.text in _ALIASES:
            self._fail(f"{token.text} is a function: write {token.text}(...)", token.at)
        if token.text not in self.names:
            hint = _nearest(token.text, self.names)
            self._fail(f"unknown name {token.text!r}{hint}", token.at)
        return token.text

    def _function(self, token: Token, arguments: int) -> str:
        name = _ALIASES.get(token.text, token.text)
        if name not in FUNCTIONS:
            hint = _nearest(token.text, [*FUNCTIONS, *_ALIASES])
            self._fail(f"unknown function {token.text!r}{hint}", token.at)
        several = name in ("min", "max")
        if arguments == 0 or (arguments > 1 and not several):
            count = "at least one value" if several else "one value"
            self._fail(f"{token.text} takes {count}, not {arguments}", token.at)
        return name

    def _fail(self, sentence: str, at: int) -> NoReturn:
        raise FormulaError(sentence, self.text, at)


def _unknown_character(text: str, at: int) -> str:
    hints = {
        "=": "equality is written ==",
        "!": "negation is written not",
        "&": "conjunction is written and",
        "|": "disjunction is written or",
        "≥": "write >=",
        "≤": "write <=",
        "[": "use ( and )",
        "{": "use ( and )",
    }
    hint = hints.get(text[at])
    return f"{text[at]!r} has no meaning here" + (f": {hint}" if hint else "")


def _nearest(word: str, known: Collection[str]) -> str:
    """Return a hint: the most similar known names, else all of them."""
    folded = {name.casefold(): name for name in sorted(known)}
    close = difflib.get_close_matches(word.casefold(), folded, n=3, cutoff=0.5)
    if close:
        return f": did you mean {' or '.join(folded[name] for name in close)}?"
    return f": known are {', '.join(sorted(known))}"
