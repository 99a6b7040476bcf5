"""Conjectures in the language of `symbolic.core.grammar`; errors are those of bad input."""

import ast
from collections.abc import Collection

from dynamics import ParameterError
from symbolic.core import grammar


class ConjectureError(grammar.FormulaError, ParameterError):
    """A conjecture is not valid: a sentence, the text, and a caret under the character."""


def parse(text: str, names: Collection[str]) -> ast.expr:
    """Parse a statement over the given names (`symbolic.core.grammar.parse`).

    Raises
    ------
    ConjectureError
        If the text is not valid, uses an unknown name, or is a number instead of a statement.
    """
    if not isinstance(text, str):
        raise ParameterError(f"conjecture = {text!r} is not allowed: it must be text")
    try:
        return grammar.parse(text, names)
    except grammar.FormulaError as error:
        raise ConjectureError(error.sentence, error.text, error.at) from None
