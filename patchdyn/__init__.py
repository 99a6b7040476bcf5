"""Provable learning dynamics of attention: the public interface.

Importing this package loads none of SymPy, SciPy, Numba, pandas and Matplotlib: each name is
imported from its module when it is first used.

>>> import patchdyn
>>> problem = patchdyn.Problem(D=64, C=4, q=4 / 64, nu=0.01, beta=1.0)
>>> population = patchdyn.Population(problem, tolerance=1e-8)
>>> run = patchdyn.gradient_flow(population, horizon=1e3)

The three papers have their own packages in `dynamics` (numbers), `symbolic` (derivations) and
`simulations` (claims and figures).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamics import Population, Problem, State, gradient_descent, gradient_flow
    from dynamics.masked.diversity import attention_diversity
    from dynamics.positional.events import find_events
    from simulations.falsify import falsify
    from simulations.stated.against import against
    from simulations.stated.user_theory import load_theory
    from simulations.validated import prove
    from symbolic.theory import TheoryError

__all__ = [
    "Population",
    "Problem",
    "State",
    "TheoryError",
    "against",
    "attention_diversity",
    "falsify",
    "find_events",
    "gradient_descent",
    "gradient_flow",
    "load_theory",
    "prove",
]

#: The module that defines each public name.
_MODULES = {
    "Population": "dynamics",
    "Problem": "dynamics",
    "State": "dynamics",
    "TheoryError": "symbolic.theory",
    "against": "simulations.stated.against",
    "attention_diversity": "dynamics.masked.diversity",
    "falsify": "simulations.falsify",
    "find_events": "dynamics.positional.events",
    "gradient_descent": "dynamics",
    "gradient_flow": "dynamics",
    "load_theory": "simulations.stated.user_theory",
    "prove": "simulations.validated",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("patchdyn")
    if name not in _MODULES:
        raise AttributeError(f"module 'patchdyn' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
