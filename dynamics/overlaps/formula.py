"""A loss as a sum of products of expectations, with its derivatives in the Gram entries."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

from dynamics.overlaps.functions import Monomial, derivative
from dynamics.overlaps.moments import Arithmetic, Moments, Normal

#: Pairs of the number of a Gram entry and its coefficient.
Coefficients = tuple[tuple[int, Any], ...]


class Component(NamedTuple):
    """An expectation of powers of functions of jointly normal variables.

    Attributes
    ----------
    functions
        Family and power of each variable; the family "" is the identity.
    constants, mean
        The mean of each variable: a constant and coefficients of Gram entries.
    covariance
        Coefficients of Gram entries for each pair of variables.
    """

    functions: tuple[tuple[str, int], ...]
    constants: tuple[Any, ...]
    mean: tuple[Coefficients, ...]
    covariance: tuple[tuple[Coefficients, ...], ...]

    def converted(self, convert: Callable[[Any], Any]) -> "Component":
        """Return the component with its numbers converted."""

        def each(entries: Coefficients) -> Coefficients:
            return tuple((entry, convert(x)) for entry, x in entries)

        rows = tuple(tuple(map(each, row)) for row in self.covariance)
        constants = tuple(map(convert, self.constants))
        return Component(self.functions, constants, tuple(map(each, self.mean)), rows)


class Formula(NamedTuple):
    """The loss: coefficients times products of the expectations with the given numbers."""

    components: tuple[Component, ...]
    terms: tuple[tuple[Any, tuple[int, ...]], ...]

    def converted(self, convert: Callable[[Any], Any]) -> "Formula":
        """Return the formula with its numbers converted."""
        terms = tuple((convert(x), numbers) for x, numbers in self.terms)
        return Formula(tuple(x.converted(convert) for x in self.components), terms)

    def at(self, gram: Sequence[Any], unknown: int, arithmetic: Arithmetic) -> "Derivatives":
        """Return loss and derivatives at Gram entries, of which the first ``unknown`` vary."""
        return Derivatives(self, gram, unknown, arithmetic)


class _Expectation:
    """A component at given Gram entries."""

    def __init__(self, component: Component, gram: Sequence[Any], arithmetic: Arithmetic) -> None:
        self.component = component
        self.families = [family for family, _ in component.functions]
        zero = arithmetic.number(0)

        def value(entries: Coefficients) -> Any:
            return sum((x * gram[entry] for entry, x in entries), zero)

        mean = [c + value(entries) for c, entries in zip(component.constants, component.mean)]
        centred = tuple(
            c == 0 and not entries for c, entries in zip(component.constants, component.mean)
        )
        covariance = [[value(entries) for entries in row] for row in component.covariance]
        self.moments = Moments(self.families, Normal(mean, covariance, centred), arithmetic)
        self._derived: dict[tuple[int, int], dict[Monomial, int]] = {}
        self._operators: dict[int, dict[tuple[int, ...], Any]] = {}

    def derived(self, k: int, order: int) -> dict[Monomial, int]:
        """Return a derivative of the function of variable k."""
        if (k, order) not in self._derived:
            family, power = self.component.functions[k]
            if order:
                polynomial = derivative(family, self.derived(k, order - 1))
            else:
                polynomial = {(0, power, 0) if family else (power, 0, 0): 1}
            self._derived[k, order] = polynomial
        return self._derived[k, order]

    def mean(self, orders: tuple[int, ...]) -> Any:
        """Return the mean of a partial derivative of the product."""
        polynomials = (self.derived(k, order).items() for k, order in enumerate(orders))
        total = self.moments.arithmetic.number(0)
        for choice in product(*polynomials):
            coefficient = prod(c for _, c in choice)
            if coefficient:
                total = total + coefficient * self.moments.of(tuple(x for x, _ in choice))
        return total

    def operator(self, entry: int) -> dict[tuple[int, ...], Any]:
        """Return the derivative in a Gram entry as coefficients of derivatives of the product.

        The derivative in a mean is the mean of the first derivative; in a covariance, the mean of
        the mixed derivative, halved on the diagonal (Price's theorem).
        """
        if entry in self._operators:
            return self._operators[entry]
        result: dict[tuple[int, ...], Any] = {}
        n = len(self.families)
        for j in range(n):
            parts: list[tuple[tuple[int, ...], int, Coefficients]]
            parts = [((j,), 1, self.component.mean[j])]
            parts += [((j, k), 1 + (j == k), self.component.covariance[j][k]) for k in range(j, n)]
            for variables, divisor, entries in parts:
                orders = tuple(variables.count(k) for k in range(n))
                for number, coefficient in entries:
                    if number == entry:
                        result[orders] = result.get(orders, 0) + coefficient / divisor
        self._operators[entry] = result
        return result

    @cached_property
    def value(self) -> Any:
        """The expectation."""
        return self.mean((0,) * len(self.families))

    def slope(self, *entries: int) -> Any:
        """Return the derivative in one Gram entry, or the second one in two."""
        operators: dict[tuple[int, ...], Any] = {(0,) * len(self.families): 1}
        for entry in entries:
            combined: dict[tuple[int, ...], Any] = {}
            for (left, a), (right, b) in product(operators.items(), self.operator(entry).items()):
                orders = tuple(x + y for x, y in zip(left, right))
                combined[orders] = combined.get(orders, 0) + a * b
            operators = combined
        zero = self.moments.arithmetic.number(0)
        return sum((x * self.mean(orders) for orders, x in operators.items()), zero)


class Derivatives:
    """The loss and its derivatives in Gram entries at one state; each is computed when needed."""

    def __init__(
        self, formula: Formula, gram: Sequence[Any], unknown: int, arithmetic: Arithmetic
    ) -> None:
        self.formula, self.unknown, self.zero = formula, unknown, arithmetic.number(0)
        self.parts = [_Expectation(x, gram, arithmetic) for x in formula.components]

    @property
    def loss(self) -> Any:
        """The loss."""
        values = (
            prod((self.parts[k].value for k in numbers), start=coefficient)
            for coefficient, numbers in self.formula.terms
        )
        return sum(values, self.zero)

    @cached_property
    def _slopes(self) -> list[list[Any]]:
        """First derivatives of each component."""
        entries = range(self.unknown)
        return [
            [part.slope(e) if part.operator(e) else self.zero for e in entries]
            for part in self.parts
        ]

    @property
    def gradient(self) -> list[Any]:
        """The derivative of the loss in each varying Gram entry."""
        total = [self.zero] * self.unknown
        for coefficient, numbers in self.formula.terms:
            for position, k in enumerate(numbers):
                others = (self.parts[j].value for i, j in enumerate(numbers) if i != position)
                factor = prod(others, start=coefficient)
                total = [x + factor * slope for x, slope in zip(total, self._slopes[k])]
        return total

    @property
    def hessian(self) -> list[list[Any]]:
        """The second derivatives of the loss in the varying Gram entries."""
        n = self.unknown
        total = [[self.zero] * n for _ in range(n)]
        second = [
            [
                [
                    part.slope(e, f) if part.operator(e) and part.operator(f) else self.zero
                    for f in range(n)
                ]
                for e in range(n)
            ]
            for part in self.parts
        ]
        for coefficient, numbers in self.formula.terms:
            for i, k in enumerate(numbers):
                rest = [self.parts[j].value for position, j in enumerate(numbers) if position != i]
                factor = prod(rest, start=coefficient)
                for e, f in product(range(n), repeat=2):
                    total[e][f] = total[e][f] + factor * second[k][e][f]
                for j, m in enumerate(numbers):
                    if j == i:
                        continue
                    rest = [
                        self.parts[x].value
                        for position, x in enumerate(numbers)
                        if position not in (i, j)
                    ]
                    factor = prod(rest, start=coefficient)
                    for e, f in product(range(n), repeat=2):
                        mixed = self._slopes[k][e] * self._slopes[m][f]
                        total[e][f] = total[e][f] + factor * mixed
        return total
