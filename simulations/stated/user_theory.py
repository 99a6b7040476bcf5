"""User-defined theory as a Python object: equations, check and risk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.stated.check import Check, agreement, require_agreement
from simulations.stated.overlaps import UserOverlapTheory
from simulations.stated.runs import risk as risk_of_theory
from symbolic.overlaps import OverlapTheory
from symbolic.theory import Theory
from symbolic.theory.load import load_statement

if TYPE_CHECKING:
    import sympy

    from dynamics.theory.risk import TheoryRisk


@dataclass(frozen=True)
class UserTheory:
    """A theory from a file.

    Attributes
    ----------
    statement
        Content of the file: sizes, data, parameters and loss.
    """

    statement: Theory

    @property
    def name(self) -> str:
        """Name of the theory."""
        return self.statement.name

    @property
    def order_parameters(self) -> dict[str, sympy.Expr]:
        """Number of entries of each order parameter, as expressions in the sizes."""
        return self.statement.order_parameters

    @property
    def start(self) -> dict[str, sympy.Expr]:
        """Initial value of each order parameter, as expressions in sizes and constants."""
        return self.statement.start

    @property
    def defaults(self) -> Mapping[str, float]:
        """Default values of sizes and constants."""
        return self.statement.defaults

    def check(self) -> Check:
        """Compare the derived loss and gradient with the full model at small sizes.

        Raises
        ------
        TheoryError, ParameterError
            If the theory cannot be derived, or no sizes are small enough for the full model.
        """
        return agreement(self.statement)

    def risk(self, *, remainder: float = 0.0, samples: float = 0, **values: Any) -> TheoryRisk:
        """Return the risk at given sizes and constants, for the solvers.

        Parameters
        ----------
        remainder
            Probability of data that may be omitted, the least probable first; 0 omits none.
        samples
            Number of random sequences if there are too many to enumerate, for an estimate; 0 raises
            an error instead.
        values
            Sizes and constants; missing ones are taken from ``defaults``. For a theory with a
            random start, also ``seed`` (default 0).

        Raises
        ------
        TheoryError
            If a value is missing or not allowed, or if the theory fails its check.
        ParameterError
            If there are too many configurations of the data.

        Examples
        --------
        >>> from patchdyn import load_theory
        >>> theory = load_theory("simulations/stated/examples/look_up.py")
        >>> risk = theory.risk(K=4, N=3)
        >>> risk.order_parameters
        ('A', 'B')
        """
        known = {x.name for x in self.statement.sizes} | self.statement.free_constants.keys()
        defaults = {name: x for name, x in self.statement.defaults.items() if name in known}
        given = {**defaults, **values}
        return risk_of_theory(self.statement, remainder=remainder, samples=samples, **given)

    def export(self, form: str = "text") -> str:
        """Return the derived risk and gradient for all sizes (`symbolic.theory.Theory.export`).

        Raises
        ------
        TheoryError
            If the theory fails its check, or for an unknown format.
        """
        require_agreement(self.statement)
        return self.statement.export(form)


def load_theory(path: str | Path) -> UserTheory | UserOverlapTheory:
    """Run a theory file and return its ``THEORY``.

    Parameters
    ----------
    path
        Python file. It is executed, so load only files that you trust.

    Raises
    ------
    TheoryError
        If the file or its theory is not valid; the message names the line.
    """
    statement = load_statement(path)
    if isinstance(statement, OverlapTheory):
        return UserOverlapTheory(statement)
    return UserTheory(statement)
