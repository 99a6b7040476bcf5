"""Sums over the D/C sets, decided for every number of sets by identities of one set.

Given T, a set contributes to a sum over the patches through its own type alone, and T does not
depend on the order parameters. Two expressions in sums over the random sets l = 1, ..., D/C - 1 are
therefore equal for every D/C if they agree outside these sums and their summands agree at a set of
any type (`per_set`). If the contributions of a set instead are an affine function C k_0 + n k_1 of
the sum n of its coefficients, their sum over all sets is D k_0 + T k_1, because the n of the D/C
sets sum to T (`affine_identities`). C, D and T are free symbols in all of these identities.
"""

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.positional import margins
from symbolic.positional.attention import write_out
from symbolic.positional.symbols import C, D, R, T, a, b, n, s

#: Index of a random set, and the numbers of its coefficients +1 and -1.
INDEX = sp.Symbol("l", integer=True)
TYPE = {a: sp.IndexedBase("a")[INDEX], b: sp.IndexedBase("b")[INDEX]}
RANDOM_SETS = sp.Tuple(INDEX, 1, D / C - 1)


def over_random_sets(of_type: sp.Expr) -> sp.Expr:
    """Return the sum of an expression in the type (a, b) over all random sets."""
    return sp.Sum(of_type.subs(TYPE, simultaneous=True), RANDOM_SETS)


def output(row: sp.Expr) -> sp.Expr:
    """Return the sum of an expression in (s, n, T) over all patches, with T = C + R."""
    random_sets = over_random_sets(margins.of_random_set(row).subs(T, C + R))
    return margins.of_signal_set(row).subs(T, C + R) + random_sets


def per_set(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Return the part outside all sums over the random sets, and the common summand.

    The expression vanishes for every number of sets if both do.

    Parameters
    ----------
    expression
        An affine function of sums over the random sets.

    Returns
    -------
    outside, summand : sympy.Expr
        The summand is a function of the type (a, b).

    Raises
    ------
    ValueError
        If there is a sum over another range, or if the expression is not affine in the sums.
    """
    marker = sp.Dummy("sum")

    def marked(term: sp.Expr, limits: sp.Tuple) -> sp.Expr:
        if limits != RANDOM_SETS:
            raise ValueError(f"limits = {limits} is not allowed: a sum runs over {RANDOM_SETS}")
        return marker * term.subs({of_set: x for x, of_set in TYPE.items()})

    whole = expression.replace(sp.Sum, marked)
    summand = sp.diff(whole, marker)
    if summand.has(marker) or summand.has(INDEX):
        raise ValueError(f"expression = {expression} is not allowed: it is not affine in the sums")
    return whole.subs(marker, 0), summand


def affine_identities(label: str, row: sp.Expr, total: sp.Expr = sp.S.Zero) -> dict[str, Identity]:
    """Return the identities that give the sum over all patches, for every number of sets.

    Parameters
    ----------
    label
        Description of the sum.
    row
        Contribution of a patch in (s, n, T).
    total
        The sum over all patches.

    Returns
    -------
    dict
        Mapping from descriptions to identities.
    """
    zero, one_s, one_n = (row.subs({s: x, n: y}, simultaneous=True) for x, y in _UNIT_POINTS)
    k_1 = (one_s - zero) + C * (one_n - zero)
    claims = {
        "one random set": Identity(margins.of_random_set(row), C * zero + (a - b) * k_1),
        "signal set": Identity(margins.of_signal_set(row), C * zero + C * k_1),
        "all sets": Identity(D * zero + T * k_1, total),
    }
    return {f"{label}, {part}": claim.map(write_out) for part, claim in claims.items()}


_UNIT_POINTS = ((0, 0), (1, 0), (0, 1))
