"""The two symbols that the core itself works with: the degree of powers, the temperature.

``p`` is odd in every theory that uses it; ``tau`` divides the exponents of softmax weights, and
``x_name`` stands for e^{name/tau} as an unknown of its own (`symbolic.core.zero`).
"""

import sympy as sp

p = sp.Symbol("p", integer=True, odd=True, positive=True)
tau = sp.Symbol("tau", positive=True)


def unknown_of(name: sp.Symbol) -> sp.Symbol:
    """Return the unknown that stands for e^{name/tau}, such as ``x_beta`` for ``beta``."""
    return sp.Symbol(f"x_{name.name}", positive=True)
