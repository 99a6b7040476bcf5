"""Numbers of one small problem, from the reduced expressions and from the full model.

D = 8, C = 2, q = 0.3, p = 3, nu = 0.01, beta = 1, tau = 1.3, kappa = D, alpha = 0.37, gamma = 0.2,
rho = -0.03: all 3^6 patterns of the random sets, each of the four signal sets.
"""

from itertools import combinations_with_replacement, product
from math import comb, factorial, prod

import mpmath
import sympy as sp

from symbolic.positional import attention, margins
from symbolic.positional import symbols as sym
from symbolic.positional.full_model import FullModel
from tests.closeness import close

D, C, p = 8, 2, 3
VALUES = {
    sym.q: "0.3",
    sym.nu: "0.01",
    sym.beta: "1",
    sym.tau: "1.3",
    sym.kappa: "8",
    sym.alpha: "0.37",
    sym.gamma: "0.2",
    sym.rho: "-0.03",
}
LOSS = 0.19523298425368842
D_ALPHA = -0.23712811189972516
SAME_SET = -0.003931929555507072
DIFFERENT_SETS = 0.001489724841890816
#: The numbers above carry 16 digits; a sum of doubles rounds once more.
TOLERANCE = 2e-15


def exact_values() -> dict[sp.Symbol, sp.Rational]:
    return {name: sp.Rational(value) for name, value in VALUES.items()}


def test_reduced_expressions() -> None:
    """Sum over the 56 multisets of set types, at 30 digits."""
    size = {sym.D: D, sym.C: C, sym.p: p}
    rows = [margins.activation(margins.MARGIN), *margins.row_gradient()]
    values = exact_values() | size

    def compiled(total: sp.Expr) -> sp.Expr:
        expression = attention.write_out(total).subs(values)
        return sp.lambdify([sym.a, sym.b, sym.T], expression, "mpmath")

    signal = [compiled(margins.of_signal_set(row)) for row in rows]
    random_set = [compiled(margins.of_random_set(row)) for row in rows]
    types = [(a, b) for a in range(C + 1) for b in range(C + 1 - a)]
    with mpmath.workdps(30):
        q = mpmath.mpf(3) / 10
        loss, gradient = mpmath.mpf(0), [mpmath.mpf(0)] * 3
        for key in combinations_with_replacement(types, D // C - 1):
            T = C + sum(a - b for a, b in key)
            F, *dF = (
                f(0, 0, T) + sum(g(a, b, T) for a, b in key) for f, g in zip(signal, random_set)
            )
            nonzero = sum(a + b for a, b in key)
            orders = factorial(len(key)) // prod(factorial(key.count(t)) for t in set(key))
            patterns = orders * prod(comb(C, a) * comb(C - a, b) for a, b in key)
            mass = patterns * (q / 2) ** nonzero * (1 - q) ** (D - C - nonzero)
            loss += mass * mpmath.log1p(mpmath.exp(-F))
            gradient = [t - mass * x / (1 + mpmath.exp(F)) for t, x in zip(gradient, dF)]
    close(float(loss), LOSS, rel=TOLERANCE)
    close(float(gradient[0]), D_ALPHA, rel=TOLERANCE)
    close(float(gradient[1]) / (D * (C - 1)), SAME_SET, rel=TOLERANCE)
    close(float(gradient[2]) / (D * (D - C)), DIFFERENT_SETS, rel=TOLERANCE)


def test_full_model() -> None:
    """Differentiate the 8 x 8 model, restrict, and enumerate 4 x 729 data points in doubles."""
    model = FullModel(D, p)
    values = exact_values()
    manifold: dict[sp.Symbol, sp.Expr] = {model.v[0]: values[sym.alpha], model.v[1]: sp.Integer(0)}
    manifold |= {xi: sp.Integer(0) for row in model.noise for xi in row}
    for i, j in product(range(D), repeat=2):
        same = sym.beta if i == j else sym.gamma if i // C == j // C else sym.rho
        manifold[model.A[i, j]] = values[same]
    entries = [model.A[0, 1], model.A[0, 2], model.v[0]]
    outputs = [model.F, *(sp.diff(model.F, entry) for entry in entries)]
    constants = {name: values[name] for name in (sym.kappa, sym.nu, sym.tau)}
    restricted = [output.xreplace(manifold | constants) for output in outputs]
    function = sp.lambdify(model.signs, [sp.N(x, 17) for x in restricted], "math", cse=True)
    q = 0.3
    totals = [0.0] * 4
    for signal in range(D // C):
        for pattern in product((-1, 0, 1), repeat=D - C):
            signs = list(pattern)
            signs[C * signal : C * signal] = [1] * C
            F, *dF = function(*signs)
            nonzero = sum(map(abs, pattern))
            mass = (q / 2) ** nonzero * (1 - q) ** (D - C - nonzero) * C / D
            weight = float(1 / (1 + mpmath.exp(F)))
            totals[0] += mass * float(mpmath.log1p(mpmath.exp(-F)))
            totals[1:] = [t - mass * weight * x for t, x in zip(totals[1:], dF)]
    # 2916 terms in double precision: about 1e-14 of rounding, relative.
    expected = [LOSS, SAME_SET, DIFFERENT_SETS, D_ALPHA]
    close(totals, expected, rel=2e-14)
