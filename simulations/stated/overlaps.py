"""A theory in overlaps at given sizes and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import arb, ctx, fmpq

from dynamics.core.checks import finite
from dynamics.overlaps.algebra import Algebra, Blocks
from dynamics.overlaps.formula import Coefficients, Component, Formula
from dynamics.overlaps.risk import BITS, OverlapRisk
from dynamics.theory.risk import TheoryProblem
from symbolic.overlaps import OverlapTheory, Vectors
from symbolic.overlaps.gram import Pair
from symbolic.theory import TheoryError

if TYPE_CHECKING:
    from simulations.stated.overlap_check import OverlapCheck

#: Decimal digits of numbers that are not rational.
_DIGITS = 50


@dataclass(frozen=True)
class UserOverlapTheory:
    """A theory in overlaps that is stated in one file.

    Attributes
    ----------
    statement
        What the file states: vectors, data and loss.
    """

    statement: OverlapTheory

    @property
    def name(self) -> str:
        """Its name."""
        return self.statement.name

    @property
    def order_parameters(self) -> dict[str, sp.Expr]:
        """The number of pairs of vectors of each order parameter, in the sizes."""
        return self.statement.order_parameters

    @property
    def start(self) -> dict[str, sp.Expr]:
        """The initial value of each order parameter, in sizes and constants."""
        return self.statement.start

    @property
    def defaults(self) -> Mapping[str, float]:
        """Default values of sizes and constants."""
        return self.statement.defaults

    def check(self) -> OverlapCheck:
        """Compare descent on overlaps with descent on vectors at small sizes."""
        from simulations.stated.overlap_check import check

        return check(self.statement)

    def risk(self, **values: Any) -> OverlapRisk:
        """Return the risk at given sizes and constants, for the solvers.

        Parameters
        ----------
        values
            Sizes and constants; by default those of ``defaults``.

        Raises
        ------
        TheoryError
            If a value is missing or not allowed, or if the theory fails its check.
        """
        from simulations.stated.overlap_check import require_agreement

        theory = self.statement
        require_agreement(theory)
        used = {x.name for x in theory.sizes} | theory.free_constants.keys()
        defaults = {name: x for name, x in theory.defaults.items() if name in used}
        return risk(theory, theory.checked({**defaults, **values}))


def risk(
    theory: OverlapTheory,
    values: Mapping[str, float],
    start: Mapping[str, float] | None = None,
) -> OverlapRisk:
    """Return the risk of a theory at checked sizes and constants.

    Parameters
    ----------
    theory, values
        The theory, and its sizes and constants.
    start
        Initial overlaps; by default those of the theory.
    """
    numbers = Numbers(values)
    require_dimension(theory, numbers)
    pairs = [x for x in theory.entries if numbers.integer(x.number)]
    entries = {pair: k for k, pair in enumerate(pairs)}
    orders = [pair for pair in theory.overlaps if pair in entries]
    names = [theory.names[pair] for pair in orders]
    if start is None:
        start = {name: finite(name, numbers.float(theory.start[name])) for name in names}
    problem = TheoryProblem(theory.name, dict(values), dict(start))
    fixed = [value for x in pairs if (value := theory.fixed(x)) is not None]
    with ctx.workprec(BITS):
        formula = _formula(theory, numbers, entries)
        return OverlapRisk(
            problem, formula, tuple(map(numbers.ball, fixed)), algebra(theory, numbers, entries)
        )


def require_dimension(theory: OverlapTheory, numbers: Numbers) -> None:
    """Raise `TheoryError` if a space has fewer dimensions than vectors."""
    for space in {x.space for x in theory.vectors}:
        dimension = numbers.float(space.dimension)
        count = sum(numbers.integer(x.number) for x in theory.vectors if x.space is space)
        if not dimension >= count:
            raise TheoryError(
                f"{space.name}: {space.dimension} = {dimension:g} dimensions for {count} vectors "
                "are not allowed: overlaps are independent only if the dimension is at least the "
                "number of vectors",
                theory.location,
            )


class Numbers:
    """Values of expressions in the sizes and constants of a theory.

    Parameters
    ----------
    values
        Mapping from names to values, which are taken as exact.
    """

    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = {
            sp.Symbol(name): sp.Rational(*Fraction(x).as_integer_ratio())
            for name, x in values.items()
        }

    def exact(self, expression: sp.Expr) -> sp.Expr:
        """Return the exact value of an expression."""
        return sp.sympify(expression, strict=True).subs(self._values)

    def integer(self, expression: sp.Expr) -> int:
        """Return the value of a number of elements."""
        return int(self.exact(expression))

    def float(self, expression: sp.Expr) -> float:
        """Return the value as a float."""
        return float(self.exact(expression))

    def ball(self, expression: sp.Expr) -> arb:
        """Return a ball around the value."""
        value = self.exact(expression)
        if value.is_Rational:
            return arb(fmpq(int(value.p), int(value.q)))
        middle = arb(str(value.evalf(_DIGITS)))
        return middle + abs(middle) * arb(0, 10.0 ** (5 - _DIGITS))


def _formula(theory: OverlapTheory, numbers: Numbers, entries: Mapping[Pair, int]) -> Formula:
    """Return the loss at given sizes and constants."""

    def coefficients(pairs: tuple[tuple[Pair, sp.Expr], ...]) -> Coefficients:
        values = ((entries[x], numbers.ball(c)) for x, c in pairs if x in entries)
        return tuple((entry, c) for entry, c in values if c != 0)

    components = []
    for x in theory.reduced.components:
        constants = tuple(numbers.ball(constant) for constant, _ in x.mean)
        mean = tuple(coefficients(pairs) for _, pairs in x.mean)
        covariance = tuple(tuple(map(coefficients, row)) for row in x.covariance)
        components.append(Component(x.functions, constants, mean, covariance))
    terms = ((numbers.ball(c), parts) for c, parts in theory.reduced.terms)
    return Formula(tuple(components), tuple(x for x in terms if x[0] != 0))


def algebra(theory: OverlapTheory, numbers: Numbers, entries: Mapping[Pair, int]) -> Algebra:
    """Return the equivariant matrices of a theory at given sizes."""
    pairs = [pair for pair in theory.pairs if pair.unordered in entries]
    stored = {theory.pairs.index(pair): k for k, pair in enumerate(pairs)}
    index = {pair: k for k, pair in enumerate(pairs)}
    products = []
    for result, left, right, count in theory.multiplication():
        if {result, left, right} <= stored.keys() and (number := numbers.integer(count)):
            products.append((stored[result], stored[left], stored[right], number))

    def on_sphere(pair: Pair) -> bool:
        return pair.is_diagonal and isinstance(pair.first, Vectors) and pair.first.sphere

    orders = [pair for pair in entries if theory.fixed(pair) is None]
    return Algebra(
        products=tuple(products),
        entry=tuple(entries[pair.unordered] for pair in pairs),
        transposed=tuple(index[pair.transposed] for pair in pairs),
        diagonal=tuple(pair.is_diagonal for pair in pairs),
        trained=tuple(isinstance(pair.first, Vectors) for pair in pairs),
        sphere=tuple(map(on_sphere, pairs)),
        number=tuple(numbers.integer(pair.number) for pair in entries),
        representative=tuple(index[pair] for pair in orders),
        blocks=_blocks(theory, numbers, index),
    )


def _blocks(theory: OverlapTheory, numbers: Numbers, index: Mapping[Pair, int]) -> Blocks:
    """Return the irreducible blocks of the Gram matrix."""
    standard = []
    for over in {family.over for family in theory.vectors if family.over is not None}:
        if numbers.integer(over.size) < 2:
            continue
        for space in {family.space for family in theory.vectors if family.over is over}:
            members = [x for x in theory.vectors if x.over is over and x.space is space]
            orbits = [
                [[index[Pair(x, y, relation)] for y in members] for x in members]
                for relation in ("same", "other")
            ]
            standard.append(tuple(orbits))
    rows = []
    for x in theory.vectors:
        row = []
        for y in theory.vectors:
            shared = x.over is not None and x.over is y.over
            same = index.get(Pair(x, y, "same" if shared else ""), -1)
            other = index.get(Pair(x, y, "other"), -1) if shared else -1
            row.append((same, other, numbers.float(x.number), numbers.float(y.number)))
        rows.append(tuple(row))
    return Blocks(tuple(standard), tuple(rows))  # type: ignore[arg-type]
