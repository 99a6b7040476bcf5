"""Identities with both sides as they were written, and derivatives with their variable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sp


@dataclass(frozen=True)
class Identity:
    """The statement left = right, or d left / d variable = right.

    Attributes
    ----------
    left, right
        The two sides.
    variable
        Symbol in which ``left`` is differentiated; ``None`` if it is not.
    """

    left: sp.Expr
    right: sp.Expr = sp.S.Zero
    variable: sp.Symbol | None = None

    @property
    def difference(self) -> sp.Expr:
        """An expression that vanishes if and only if the statement holds."""
        left = self.left if self.variable is None else sp.diff(self.left, self.variable)
        return sp.Add(left, -self.right)

    def map(self, function: Callable[[sp.Expr], Any]) -> Identity:
        """Apply a function that commutes with the derivative to both sides."""
        return Identity(function(self.left), function(self.right), self.variable)
