"""Results of a derivation: the order parameters, and the reduced loss and gradient."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from symbolic.theory.lifted import OPAQUE, RAISED, SHIFTED_LOG, Step
from symbolic.theory.numbers import RANDOM
from symbolic.theory.sets import Ordered
from symbolic.theory.tensors import Tensor


@dataclass(frozen=True)
class OrderParameter:
    """Common value of the entries of a tensor in one orbit.

    Attributes
    ----------
    name
        Name in the paper, or ``orbit`` if the theory gives none.
    orbit
        Derived name, such as ``"A[same set]"``.
    tensor, key
        The tensor, and the orbit in it (`symbolic.theory.orbits.Orbit.key`).
    count
        Number of entries, in the sizes.
    start
        Initial value, in sizes and constants; or `symbolic.theory.normal`.
    """

    name: str
    orbit: str
    tensor: Tensor
    key: tuple[Any, ...]
    count: sp.Expr
    start: sp.Expr

    @property
    def identifier(self) -> str:
        """Name as an identifier, for formulas and options: ``Q_other_feature``.

        Elements of ordered sets are padded with zeros: ``v_01`` followed by a 0, its initial
        value, is not ``v_10``.
        """
        letter, _, orbit = self.name.partition("[")
        fields = orbit.split(",")
        if self.name == self.orbit:
            ordered = [x for x in self.key if isinstance(x[0], Ordered)]
            for k, (part, i, _) in enumerate(ordered):
                number = f"{i:0{len(str(part.count - 1))}}"
                fields[k] = fields[k].replace(str(i), number)
        return re.sub(r"\W+", "_", f"{letter}[{','.join(fields)}").strip("_")

    @property
    def scale(self) -> sp.Expr | None:
        """Standard deviation of a random initial value; ``None`` if it is not random."""
        return self.start.args[0] if self.start.func is RANDOM else None

    @property
    def symbol(self) -> sp.Symbol:
        """Symbol of the value in derived expressions."""
        return sp.Symbol(self.name)


@dataclass(frozen=True)
class Reduced:
    """Loss and gradient for one configuration of the data up to symmetry, for all sizes.

    Sums run over the families of `symbolic.theory.orbit_data`.

    Attributes
    ----------
    loss
        The loss of the configuration.
    gradient
        Mapping from order parameters to the derivative per entry: d loss / d x divided by the
        number of entries. Gradient descent multiplies it by minus the learning rate.
    steps
        Mapping from named intermediate values to their definitions.
    """

    loss: sp.Expr
    gradient: Mapping[str, sp.Expr]
    steps: Mapping[Any, Step]

    def expanded(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression with its intermediate values substituted."""
        steps = {
            x: self.steps[x.func] for x in expression.atoms(AppliedUndef) if x.func in self.steps
        }
        if steps:
            expression = expression.xreplace(
                {
                    x: self.expanded(step.value.xreplace(dict(zip(step.families, x.args))))
                    for x, step in steps.items()
                }
            )
        functions = {OPAQUE[name]: getattr(sp, name) for name in ("exp", "log", "tanh")}
        expression = expression.replace(
            lambda x: x.func is RAISED, lambda x: sp.exp(x.args[0])
        )  # the largest score cancels
        expression = expression.replace(
            lambda x: x.func is SHIFTED_LOG, lambda x: sp.log(x.args[0])
        )
        return expression.replace(
            lambda x: x.func in functions, lambda x: functions[x.func](*x.args)
        )
