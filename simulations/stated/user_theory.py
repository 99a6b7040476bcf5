"""A theory in one file as a Python object: its equations, its check and its risk."""

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
    """A theory that is stated in one file.

    Attributes
    ----------
    statement
        What the file states: sizes, data, parameters and loss.
    """

    statement: Theory

    @property
    def name(self) -> str:
        """Its name."""
        return self.statement.name

    @property
    def order_parameters(self) -> dict[str, sympy.Expr]:
        """The number of entries of each order parameter, in the sizes."""
        return self.statement.order_parameters

    @property
    def start(self) -> dict[str, sympy.Expr]:
        """The initial value of each order parameter, in sizes and constants."""
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

    def risk(self, *, remainder: float = 0.0, **values: Any) -> TheoryRisk:
        """Return the risk at given sizes and constants, for the solvers.

        Parameters
        ----------
        remainder
            Probability of data that may be left out, the least likely first; 0 for none.
        values
            Sizes and constants; by default those of ``defaults`` where the file has them. For a
            theory with a random start, also ``seed`` (default 0).

        Raises
        ------
        TheoryError
            If a value is missing or not allowed, or if the theory fails its check.
        ParameterError
            If there are too many configurations of the data.

        Examples
        --------
        >>> theory = load_theory("simulations/stated/examples/look_up.py")
        >>> risk = theory.risk(K=4, N=3)
        >>> risk.order_parameters
        ('A', 'B')
        """
        known = {x.name for x in self.statement.sizes} | self.statement.free_constants.keys()
        defaults = {name: x for name, x in self.statement.defaults.items() if name in known}
        return risk_of_theory(self.statement, remainder=remainder, **{**defaults, **values})

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
    """Run a user's file and return the theory that it names ``THEORY``.

    Parameters
    ----------
    path
        The file. It is the user's own program and is run as one.

    Raises
    ------
    TheoryError
        One sentence with the line of the file.
    """
    statement = load_statement(path)
    if isinstance(statement, OverlapTheory):
        return UserOverlapTheory(statement)
    return UserTheory(statement)
