"""Displayed equations of a derivation, each tested against the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

from symbolic.core.derivation import Equation
from symbolic.core.identity import Identity
from symbolic.core.proof import Proof, ProofBuilder
from symbolic.core.sums import vanishes
from symbolic.core.zero import NotRationalError, decide

POINTS = 6


def at_points(identity: Identity) -> bool:
    """Return whether an identity holds at random rational points; False if a side has no value."""
    try:
        return decide(identity, points=POINTS).zero
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
        Function of a name and a right-hand side, displayed or not, that returns what holds if and
        only if the equation holds: an identity, or an expression that must vanish.
    zero
        Test of a residual: of an expression for all lengths and values (`vanishes`), or of an
        identity at random rational points (`at_points`).
    """

    equations: Mapping[str, sp.Expr]
    residual: Callable[[str, sp.Expr], Any]
    zero: Callable[[Any], bool] = vanishes

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
            label = f"{name}, as displayed"
            if self.zero is at_points:
                builder.decide(label, self.residual(name, right), points=POINTS)
            else:
                builder.equal(label, self.holds(name, right), True)
        return builder.build()
