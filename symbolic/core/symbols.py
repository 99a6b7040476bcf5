"""Symbols of the core: the odd degree ``p`` of powers and the temperature ``tau`` of softmax.

``x_name`` stands for e^{name/tau} as an independent unknown (`symbolic.core.zero`).
"""

import sympy as sp

p = sp.Symbol("p", integer=True, odd=True, positive=True)
tau = sp.Symbol("tau", positive=True)


def exponential_symbol(name: sp.Symbol) -> sp.Symbol:
    """Return the symbol for e^{name/tau}, such as ``x_beta`` for ``beta``."""
    return sp.Symbol(f"x_{name.name}", positive=True)
