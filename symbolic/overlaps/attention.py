"""Softmax over tokens: weights, and the independent tokens of a product of weights.

With Z the sum of exp(score) over all tokens, Z^-p is the integral of t^(p-1) exp(-t Z) / (p-1)!
over t > 0. The integrand is a product of functions of one token each: f^n g with
f = t exp(score) and g = exp(-f), and dt / t as the measure.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import factorial
from typing import Any

import sympy as sp

from symbolic.overlaps.language import Expression, expression
from symbolic.overlaps.terms import TOKEN, Factor, Score, Term
from symbolic.theory.errors import require


def softmax(*scores: Expression) -> Any:
    """Return the weights of attention exp(score) / Z, normalized over all tokens.

    Parameters
    ----------
    scores
        Score of a token, or of the tokens of a set if it has a free index: a linear combination of
        fields of these tokens.

    Returns
    -------
    Expression or tuple of Expression
        The weight for each score; not a tuple if there is one.

    Raises
    ------
    TheoryError
        If a score is not a linear combination of fields of its own tokens.
    """
    require(bool(scores), "softmax() is not allowed: give the score of each token")
    values = tuple(map(expression, scores))
    own = tuple(map(_score, values))
    families = [x.family for score in own for x in score.linear.data]
    require(
        len(families) == len(set(families)),
        "softmax of scores that share data is not allowed: the tokens must be independent",
    )
    weights = tuple(
        Expression(
            (Term(sp.Integer(1), (Factor("softmax", value.linear, 1, own),)),),  # type: ignore[arg-type]
            value.free,
        )
        for value in values
    )
    return weights if len(weights) > 1 else weights[0]


def _score(value: Expression) -> Score:
    """Return a checked score with the index of the tokens renamed."""
    labels = {x.label for x in value.linear.data} if value.linear is not None else set()
    require(
        value.linear is not None and len(labels) == 1 and labels >= set(value.free),
        "a score of softmax is not allowed: it must be a linear combination of fields of one "
        'token, as in k @ x, or of the tokens of one set, as in k @ x["l"]',
        value.location,
    )
    assert value.linear is not None
    (over,) = value.free.values() or (None,)
    return Score(value.linear.at(dict.fromkeys(value.free, TOKEN)), over)


def tokens(factors: tuple[Factor, ...]) -> tuple[list[Factor], list[tuple[Factor, sp.Expr]], int]:
    """Return the functions of single tokens of which a product of weights is an integral.

    Returns
    -------
    list of Factor
        The function f^0 g of each token that occurs in the product, but not with a weight.
    list of tuple
        The function f^0 g of tokens that do not occur, and their number.
    int
        The factorial by which the integral is divided.
    """
    weights = [x for x in factors if x.scores]
    if not weights:
        return [], [], 1
    scores = weights[0].scores
    require(
        all(x.scores == scores for x in weights),
        "a product of softmax over different scores is not allowed: each has its own "
        "normalization; use one softmax",
    )
    weighted = {x.linear for x in weights}
    data = {datum for x in factors for datum in x.linear.data}
    present: list[Factor] = []
    absent: list[tuple[Factor, sp.Expr]] = []
    for score in scores:
        families = {x.family for x in score.linear.data}
        labels = {x.label for x in data if x.family in families}
        linears: Iterable[Any] = (score.at(label) for label in labels)
        present += [Factor("softmax", x, 0, scores) for x in linears if x not in weighted]
        rest = score.number - len(labels)
        if rest != 0:
            absent.append(
                (Factor("softmax", score.at(None if score.over is None else 0), 0, scores), rest)
            )
    return present, absent, factorial(sum(x.power for x in weights) - 1)
