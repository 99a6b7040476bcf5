"""Numerical laws of sequences: for data orbits, and for the full model by another formula."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import exp, lgamma

import numpy as np
import sympy as sp

from dynamics.core.errors import ParameterError
from dynamics.theory.sequences import Listed, SequenceLaw, States, Steps, Tokens
from symbolic.theory.loop_tables import Layout, layout
from symbolic.theory.theory import Theory
from symbolic.theory.words import Chain, Joint, Words


def sequence_law(theory: Theory, values: Mapping[str, float], *, in_balls: bool) -> SequenceLaw:
    """Return the data of a theory on ordered positions at sizes and constants.

    Raises
    ------
    ParameterError
        If a number of the law is not rational at these values.
    """
    arrays = layout(theory)
    sets = tuple(
        (arrays.blocks(part) > 0, most, int(_rational(part.size, values)))
        for part, most in zip(arrays.sets, arrays.representatives)
    )
    relations = tuple(tuple(map(_fraction, x.values)) for x in arrays.relations)
    law = None if arrays.source is None else _law(arrays, values)
    return SequenceLaw(law, sets, relations, in_balls)


def _law(arrays: Layout, values: Mapping[str, float]) -> Tokens | States | Steps:
    """Return the law of a sequence."""
    source = arrays.source
    assert isinstance(source, (Chain, Words))
    numbers = [_rational(x, values) for x in source.numbers]
    if isinstance(source, Chain):
        law = Steps if arrays.is_transferred else States
        return law(int(source.over.count), *numbers)
    size = int(_rational(source.token.size, values))
    if source.joint.name == "stay" and size == 1:
        raise ParameterError(f"a chain of one {source.token} is not allowed: give at least 2")
    return Tokens(source.joint.name, size, numbers[0], source.parent)


def some_sequences(
    theory: Theory, values: Mapping[str, float]
) -> tuple[SequenceLaw, dict[tuple[int, ...], float]]:
    """Return a law of a few data orbits, and the weights of their sequences.

    Data orbits have 1, 2, 3 and any number of different tokens. For a transfer matrix, the law has
    a row for each position of each sequence.
    """
    known, arrays = sequence_law(theory, values, in_balls=False), layout(theory)
    law = known.law
    if isinstance(law, Steps):
        law = States(law.length, law.p, law.q)
    assert isinstance(law, (Tokens, States))
    rng = np.random.default_rng(0)
    rows = [law.sample(rng) for _ in range(4)]
    if isinstance(law, Tokens):
        most = (1, 2, 3, law.size)
        rows = [(tuple(min(x, n - 1) for x in row), min(n, b)) for n, (row, b) in zip(most, rows)]
    rows = list(dict.fromkeys(rows))
    weight = Fraction(1, len(rows))
    sequences: Counter[tuple[int, ...]] = Counter()
    for row, blocks in rows:
        own = [row] if isinstance(law, States) else _named(row, blocks, law.size)
        sequences.update({x: float(weight) / len(own) for x in own})
    if arrays.is_transferred:
        rows = [(x, 0) for row, _ in rows for x in _steps(row)]
    return replace(known, law=Listed(tuple(rows), weight)), dict(sequences)


def _named(row: tuple[int, ...], blocks: int, size: int) -> list[tuple[int, ...]]:
    """Return all sequences of tokens with given blocks."""
    return [tuple(names[x] for x in row) for names in permutations(range(size), blocks)]


def _steps(row: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield position, state, next state and number of ones at each position of a sequence."""
    for t, state in enumerate(row):
        yield t, state, row[t + 1] if t + 1 < len(row) else 0, sum(row[: t + 1])


def _rational(expression: sp.Expr, values: Mapping[str, float]) -> Fraction:
    """Return an expression at sizes and constants, which are exact floats."""
    exact = {sp.Symbol(name): sp.Rational(Fraction(x)) for name, x in values.items()}
    number = expression.subs({x: exact[x] for x in expression.free_symbols})
    if not number.is_Rational:
        raise ParameterError(
            f"{expression} = {number} in the law of a sequence is not allowed: it must be rational"
        )
    return _fraction(number)


def _fraction(x: sp.Rational) -> Fraction:
    return Fraction(int(x.p), int(x.q))


def probability(source: Joint, values: Mapping[str, float]) -> Callable[[tuple[int, ...]], float]:
    """Return the probability of a sequence as a function of its tokens, for the full model.

    It shares no formula with the data orbits: a random transition matrix is integrated with the
    Dirichlet-multinomial formula of all transitions at once.
    """
    numbers = [float(_rational(x, values)) for x in source.numbers]
    if isinstance(source, Chain):
        p, q = numbers
        initial, matrix = [q / (p + q), p / (p + q)], [[1 - p, p], [q, 1 - q]]
        return lambda row: _markov(row, range(-1, len(row) - 1), initial, matrix)
    assert isinstance(source, Words)
    size, (number,) = int(_rational(source.token.size, values)), numbers
    parent = [-1 if x is None else x for x in source.parent]
    uniform = [1.0 / size] * size
    if source.joint.name == "polya":
        return lambda row: _polya(row, parent, size, number)
    matrix = [uniform] * size
    if source.joint.name == "stay":
        matrix = [
            [number if a == b else (1.0 - number) / (size - 1) for b in range(size)]
            for a in range(size)
        ]
    return lambda row: _markov(row, parent, uniform, matrix)


def _markov(
    row: Sequence[int],
    parent: Sequence[int],
    initial: Sequence[float],
    matrix: Sequence[Sequence[float]],
) -> float:
    """Return the probability of states, given that of each by that of its parent (-1: none)."""
    result = 1.0
    for state, before in zip(row, parent):
        result *= initial[state] if before < 0 else matrix[row[before]][state]
    return result


def _polya(row: Sequence[int], parent: Sequence[int], size: int, alpha: float) -> float:
    """Return the mean probability of tokens over matrices with Dirichlet rows."""
    steps = Counter((row[before], x) for x, before in zip(row, parent) if before >= 0)
    starts = Counter(row[before] for before in parent if before >= 0)
    total = sum(lgamma(n + alpha) - lgamma(alpha) for n in steps.values())
    total += sum(lgamma(size * alpha) - lgamma(n + size * alpha) for n in starts.values())
    return exp(total) / size ** sum(before < 0 for before in parent)
