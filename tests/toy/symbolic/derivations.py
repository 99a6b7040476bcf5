"""The gradient of (a b - s)^2 / 2, and the balance a^2 - b^2."""

import sympy as sp

from symbolic.core.derivation import Derivation, Equation
from symbolic.core.proof import decide_all
from tests.toy.symbolic.contents import TITLES

a, b = sp.symbols("a b", real=True)
s = sp.Symbol("s", positive=True)
RISK = (a * b - s) ** 2 / 2


def _gradient(name):
    title, place = TITLES[name]
    slopes = [sp.diff(RISK, x) for x in (a, b)]
    equations = [
        Equation(f"d{x}", sp.Derivative(sp.Symbol("L"), x), slope)
        for x, slope in zip((a, b), slopes)
    ]
    balance = 2 * a * slopes[0] - 2 * b * slopes[1]
    return Derivation(
        name,
        title,
        place,
        "The flow conserves a^2 - b^2.",
        tuple(equations),
        lambda: [decide_all("Balance", {"d(a^2 - b^2)/dt": balance})],
    )


BUILDERS = {"toy-gradient": _gradient}
