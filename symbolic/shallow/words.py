"""Polynomials in matrices of unspecified size: sums of words, their transposes and traces.

A matrix is a letter, a noncommutative symbol; sizes are never named, so that what is decided here
holds for all of them. Two traces are one where a word is a rotation of the other or of its
transpose, as tr(XY) = tr(YX) and tr(X^T) = tr(X).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import sympy as sp

Word = tuple[sp.Symbol, ...]
#: Two adjacent letters -> what stands for them.
Rules = Mapping[tuple[sp.Symbol, sp.Symbol], sp.Expr]
Blocks = Sequence[Sequence[sp.Expr]]

_TRANSPOSED: dict[sp.Symbol, sp.Symbol] = {}


def letter(name: str, *, symmetric: bool = False) -> sp.Symbol:
    """Return a matrix; its transpose is named ``name^T``."""
    one = sp.Symbol(name, commutative=False)
    other = one if symmetric else sp.Symbol(f"{name}^T", commutative=False)
    _TRANSPOSED.update({one: other, other: one})
    return one


def terms(expression: sp.Expr, rules: Rules | None = None) -> dict[Word, sp.Expr]:
    """Return the coefficient of each word once the rules have been applied to the end."""
    total: dict[Word, sp.Expr] = {}
    pending = [sp.expand(expression)]
    while pending:
        for term in sp.Add.make_args(sp.expand(pending.pop())):
            numbers, factors = term.args_cnc()
            word: Word = tuple(x for factor in factors for x in _letters(factor))
            pairs = pairwise(word)
            at = next((k for k, pair in enumerate(pairs) if pair in (rules or {})), None)
            if at is None:
                total[word] = sp.expand(total.get(word, sp.S.Zero) + sp.Mul(*numbers))
            else:
                middle = (rules or {})[word[at], word[at + 1]]
                pending.append(sp.Mul(*numbers, *word[:at]) * middle * sp.Mul(*word[at + 2 :]))
    return {word: number for word, number in total.items() if number != 0}


def _letters(factor: sp.Expr) -> list[sp.Symbol]:
    base, power = factor.as_base_exp()
    return [base] * int(power)


def vanishes(expression: sp.Expr, rules: Rules | None = None) -> bool:
    """Whether a polynomial in matrices is zero, for every size and every entry."""
    return not terms(expression, rules)


def transpose(expression: sp.Expr) -> sp.Expr:
    """Return the transpose."""
    return sp.Add(
        *(
            number * sp.Mul(*(_TRANSPOSED[x] for x in reversed(word)))
            for word, number in terms(expression).items()
        )
    )


def trace(expression: sp.Expr, rules: Rules | None = None) -> sp.Expr:
    """Return the trace as a sum of numbers tr(word), one for all rotations and transposes."""
    found = terms(expression, rules).items()
    return sp.Add(*(number * sp.Symbol(f"tr({_first(word)})") for word, number in found))


def _first(word: Word) -> str:
    back = tuple(_TRANSPOSED[x] for x in reversed(word))
    turns = [turned[k:] + turned[:k] for turned in (word, back) for k in range(max(1, len(word)))]
    return min(" ".join(x.name for x in turn) for turn in turns)


def product(left: Blocks, right: Blocks) -> list[list[sp.Expr]]:
    """Return the product of matrices of blocks."""
    return [
        [sp.expand(sum((x * y for x, y in zip(row, column)), sp.S.Zero)) for column in zip(*right)]
        for row in left
    ]


def block_trace(blocks: Blocks) -> sp.Expr:
    """Return the trace of a matrix of blocks."""
    return sp.Add(*(trace(blocks[k][k]) for k in range(len(blocks))))
