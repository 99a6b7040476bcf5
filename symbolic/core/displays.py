"""What a derivation displays, held against the model: each equation by name, and what it lacks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sympy as sp

from symbolic.core.derivation import Equation
from symbolic.core.proof import Ledger, Proof
from symbolic.core.sums import vanishes
from symbolic.core.zero import NotRationalError, decide

POINTS = 6


def at_points(expression: sp.Expr) -> bool:
    """Whether the expression is zero at random rational points; what has no value there is not."""
    try:
        return decide(expression, points=POINTS).zero
    except NotRationalError:
        return False


@dataclass(frozen=True)
class Displays:
    """The right-hand sides that are displayed, and what decides them.

    ``lacks`` takes a name and a right-hand side, which may be another than the displayed one, and
    returns an expression that vanishes only if it holds; ``zero`` says whether it does: for every
    length and value (`vanishes`) or at random rational points (`at_points`).
    """

    equations: Mapping[str, sp.Expr]
    lacks: Callable[[str, sp.Expr], sp.Expr]
    zero: Callable[[sp.Expr], bool] = vanishes

    def holds(self, name: str, right: sp.Expr) -> bool:
        """Whether this right-hand side of the equation of that name holds."""
        return self.zero(self.lacks(name, right))

    def beside(
        self, table: Mapping[str, tuple[sp.Expr, str]], evaluates: bool = True
    ) -> list[Equation]:
        """Return the equations with the left-hand sides and remarks of a table.

        What holds an expectation or a sum cannot be turned into a function of numbers.
        """
        abstract = sp.Function("E"), sp.Sum
        return [
            Equation(
                name,
                left,
                right,
                note,
                evaluates=evaluates and not (left.has(*abstract) or right.has(*abstract)),
                ground=f"decided: {name}, as displayed",
            )
            for name, (left, note), right in ((x, table[x], self.equations[x]) for x in table)
        ]

    def prove(self, claim: str, **parameters: int) -> Proof:
        """Decide every displayed equation; ``parameters`` are the sizes at which that is done."""
        ledger = Ledger(f"{claim}: what is displayed", **parameters)
        for name, right in self.equations.items():
            ledger.equal(f"{name}, as displayed", self.holds(name, right), True)
        ledger.points = POINTS if self.zero is at_points else 0
        return ledger.close()
