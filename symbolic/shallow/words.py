"""Polynomials in matrices of unspecified size, as sums of words (noncommutative monomials).

A matrix is a noncommutative symbol, so identities are proved for all sizes. Traces are equal if one
word is a rotation of the other or of its transpose, because tr(XY) = tr(YX) and tr(X^T) = tr(X).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import sympy as sp

Word = tuple[sp.Symbol, ...]
#: Mapping from two adjacent letters to their replacement.
Rules = Mapping[tuple[sp.Symbol, sp.Symbol], sp.Expr]
Blocks = Sequence[Sequence[sp.Expr]]

_TRANSPOSED: dict[sp.Symbol, sp.Symbol] = {}


def letter(name: str, *, symmetric: bool = False) -> sp.Symbol:
    """Return a matrix symbol; its transpose is named ``name^T``."""
    matrix = sp.Symbol(name, commutative=False)
    transposed = matrix if symmetric else sp.Symbol(f"{name}^T", commutative=False)
    _TRANSPOSED.update({matrix: transposed, transposed: matrix})
    return matrix


def terms(expression: sp.Expr, rules: Rules | None = None) -> dict[Word, sp.Expr]:
    """Return the coefficient of each word after exhaustive application of the rules."""
    total: dict[Word, sp.Expr] = {}
    pending = [sp.expand(expression)]
    while pending:
        for term in sp.Add.make_args(sp.expand(pending.pop())):
            numbers, factors = term.args_cnc()
            word: Word = tuple(x for factor in factors for x in _letters(factor))
            pairs = pairwise(word)
            index = next((k for k, pair in enumerate(pairs) if pair in (rules or {})), None)
            if index is None:
                total[word] = sp.expand(total.get(word, sp.S.Zero) + sp.Mul(*numbers))
            else:
                replacement = (rules or {})[word[index], word[index + 1]]
                left, right = sp.Mul(*numbers, *word[:index]), sp.Mul(*word[index + 2 :])
                pending.append(left * replacement * right)
    return {word: number for word, number in total.items() if number != 0}


def _letters(factor: sp.Expr) -> list[sp.Symbol]:
    """Return a power of a letter as a list of letters."""
    base, power = factor.as_base_exp()
    return [base] * int(power)


def vanishes(expression: sp.Expr, rules: Rules | None = None) -> bool:
    """Return whether a polynomial in matrices is zero for all sizes and all entries."""
    return not terms(expression, rules)


def transpose(expression: sp.Expr) -> sp.Expr:
    """Return the transpose of a polynomial."""
    return sp.Add(
        *(
            number * sp.Mul(*(_TRANSPOSED[x] for x in reversed(word)))
            for word, number in terms(expression).items()
        )
    )


def trace(expression: sp.Expr, rules: Rules | None = None) -> sp.Expr:
    """Return the trace as a sum of symbols tr(word), equal for rotations and transposes."""
    words = terms(expression, rules).items()
    return sp.Add(*(number * sp.Symbol(f"tr({_canonical(word)})") for word, number in words))


def _canonical(word: Word) -> str:
    """Return the first of all rotations of a word and of its transpose."""
    transposed = tuple(_TRANSPOSED[x] for x in reversed(word))
    rotations = [w[k:] + w[:k] for w in (word, transposed) for k in range(max(1, len(word)))]
    return min(" ".join(x.name for x in rotation) for rotation in rotations)


def product(left: Blocks, right: Blocks) -> list[list[sp.Expr]]:
    """Return the product of two block matrices."""
    return [
        [sp.expand(sum((x * y for x, y in zip(row, column)), sp.S.Zero)) for column in zip(*right)]
        for row in left
    ]


def block_trace(blocks: Blocks) -> sp.Expr:
    """Return the trace of a block matrix."""
    return sp.Add(*(trace(blocks[k][k]) for k in range(len(blocks))))
