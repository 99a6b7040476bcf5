"""Systems: what sweeps, maps and the search for counterexamples know about a theory.

A system is a module here with a constant ``SYSTEM`` (:class:`simulations.theory.System`)
and its name in :mod:`simulations.theories.names`; :func:`load` imports it when it is asked for. Its
regime maps are in the module of the same name with ``_maps`` behind it (``maps_of(sweep)``).
"""

from __future__ import annotations

from importlib import import_module

from simulations.systems.names import DEFAULT, NAMES
from simulations.theory import Case, Parameter, Quantity, System

__all__ = ["DEFAULT", "NAMES", "Case", "Parameter", "Quantity", "System", "load"]


def load(name: str) -> System:
    """Return the system with this name.

    Raises
    ------
    ParameterError
        If there is none.
    """
    from dynamics.positional.problem import require

    require(name in NAMES, "system", repr(name), f"one of {', '.join(NAMES)}")
    system: System = import_module(f"simulations.theories.{name}").SYSTEM
    return system
