"""Displayed equations of a derivation, each tested against the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sympy as sp

from symbolic.core.derivation import Equation
from symbolic.core.proof import Proof, ProofBuilder
from symbolic.core.sums import vanishes
from symbolic.core.zero import NotRationalError, decide

POINTS = 6


def at_points(expression: sp.Expr) -> bool:
    """Return whether an expression is zero at random rational points; False if it has no value."""
    try:
        return decide(expression, points=POINTS).zero
    except NotRationalError:
        return False


@dataclass(frozen=True)
class Displays:
    """Right-hand sides of displayed equations, and a test of each.

    Attributes
    ----------
    equations
        Mapping from names of equations to right-hand sides.
    residual
        Function of a name and a right-hand side, displayed or not, that returns an expression that
        vanishes if and only if the equation holds.
    zero
        Test whether a residual vanishes: for all lengths and values (`vanishes`) or at random
        rational points (`at_points`).
    """

    equations: Mapping[str, sp.Expr]
    residual: Callable[[str, sp.Expr], sp.Expr]
    zero: Callable[[sp.Expr], bool] = vanishes

    def holds(self, name: str, right: sp.Expr) -> bool:
        """Return whether the equation ``name`` holds with this right-hand side."""
        return self.zero(self.residual(name, right))

    def labelled(
        self, table: Mapping[str, tuple[sp.Expr, str]], evaluates: bool = True
    ) -> list[Equation]:
        """Return the equations with left-hand sides and notes.

        Parameters
        ----------
        table
            Mapping from names to left-hand sides and notes.
        evaluates
            Whether the equations can be exported as Python functions. Equations with an
            expectation or a sum cannot.
        """
        abstract = sp.Function("E"), sp.Sum
        return [
            Equation(
                name,
                left,
                right,
                note,
                evaluates=evaluates and not (left.has(*abstract) or right.has(*abstract)),
                justification=f"decided: {name}, as displayed",
            )
            for name, (left, note), right in ((x, table[x], self.equations[x]) for x in table)
        ]

    def prove(self, claim: str, **parameters: int) -> Proof:
        """Test every displayed equation.

        Parameters
        ----------
        claim
            What the equations belong to.
        **parameters
            Sizes at which they are tested.
        """
        builder = ProofBuilder(f"{claim}: what is displayed", **parameters)
        for name, right in self.equations.items():
            builder.equal(f"{name}, as displayed", self.holds(name, right), True)
        builder.points = POINTS if self.zero is at_points else 0
        return builder.build()
