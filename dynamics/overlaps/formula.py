"""A loss as a sum of products of expectations, with its derivatives in the Gram entries."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from math import perm, prod
from typing import Any, NamedTuple

from dynamics.overlaps.functions import Monomial, derivative
from dynamics.overlaps.moments import FLOATS, Arithmetic, Moments, Normal
from dynamics.overlaps.softmax import integrated, log_times

#: Pairs of the number of a Gram entry and its coefficient.
Coefficients = tuple[tuple[int, Any], ...]


class Law:
    """Jointly normal variables, whose means and covariances are linear in Gram entries.

    Parameters
    ----------
    families
        Family of functions of each variable.
    constants, mean
        The mean of each variable: a constant and coefficients of Gram entries.
    covariance
        Coefficients of Gram entries for each pair of variables.
    """

    def __init__(
        self,
        families: tuple[str, ...],
        constants: tuple[Any, ...],
        mean: tuple[Coefficients, ...],
        covariance: tuple[tuple[Coefficients, ...], ...],
    ) -> None:
        self.families, self.constants = families, constants
        self.mean, self.covariance = mean, covariance
        self.centred = tuple(c == 0 and not entries for c, entries in zip(constants, mean))
        self._operators: dict[int, dict[tuple[int, ...], Any]] = {}

    def converted(self, convert: Callable[[Any], Any]) -> "Law":
        """Return the law with its numbers converted."""

        def each(entries: Coefficients) -> Coefficients:
            return tuple((entry, convert(x)) for entry, x in entries)

        rows = tuple(tuple(map(each, row)) for row in self.covariance)
        constants = tuple(map(convert, self.constants))
        return Law(self.families, constants, tuple(map(each, self.mean)), rows)

    def at(self, gram: Sequence[Any], arithmetic: Arithmetic) -> Moments:
        """Return the moments at Gram entries."""
        zero = arithmetic.number(0)

        def value(entries: Coefficients) -> Any:
            return sum((x * gram[entry] for entry, x in entries), zero)

        mean = [c + value(entries) for c, entries in zip(self.constants, self.mean)]
        covariance = [[value(entries) for entries in row] for row in self.covariance]
        return Moments(self.families, Normal(mean, covariance, self.centred), arithmetic)

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
            parts = [((j,), 1, self.mean[j])]
            parts += [((j, k), 1 + (j == k), self.covariance[j][k]) for k in range(j, n)]
            for variables, divisor, entries in parts:
                orders = tuple(variables.count(k) for k in range(n))
                for number, coefficient in entries:
                    if number == entry:
                        result[orders] = result.get(orders, 0) + coefficient / divisor
        self._operators[entry] = result
        return result


class Expectations(NamedTuple):
    """Means of products of monomials of jointly normal variables.

    Attributes
    ----------
    laws
        The distributions.
    members
        For each mean the number of its law, the monomial of each variable
        (`dynamics.overlaps.functions`), and its power.
    """

    laws: tuple[Law, ...]
    members: tuple[tuple[int, tuple[Monomial, ...], int], ...]

    @property
    def is_estimate(self) -> bool:
        """Whether one of the means has no bound."""
        laws = [Moments(x.families, Normal([], [], x.centred), FLOATS) for x in self.laws]
        return any(laws[k].is_estimate(monomials) for k, monomials, _ in self.members)

    @property
    def uncertified_rule(self) -> str:
        """Name of the rule without a bound of an estimate."""
        is_softmax = any("softmax" in law.families for law in self.laws)
        return "rule for softmax over tokens" if is_softmax else "tensor rule in three dimensions"

    def converted(self, convert: Callable[[Any], Any]) -> "Expectations":
        """Return the expectations with their numbers converted."""
        return self._replace(laws=tuple(law.converted(convert) for law in self.laws))

    def at(self, gram: Sequence[Any], arithmetic: Arithmetic) -> "list[_Expectation]":
        """Return the expectations at Gram entries."""
        moments = [law.at(gram, arithmetic) for law in self.laws]
        scores = [score for own in moments for score in own.scores]
        if scores and not arithmetic.certified:
            nodes = log_times(scores, max(power for _, _, power in self.members))
            for own in moments:
                own.log_times = nodes
        return [
            _Expectation(self.laws[k], x, moments[k])
            if power == 1
            else _Power(self.laws[k], x, moments[k], power)
            for k, x, power in self.members
        ]


Terms = tuple[tuple[Any, tuple[int, ...]], ...]


class Formula(NamedTuple):
    """Sums of coefficients times products of expectations with the given numbers.

    Attributes
    ----------
    expectations
        The expectations.
    sums
        The terms of each sum.
    """

    expectations: Expectations
    sums: tuple[Terms, ...]

    def converted(self, convert: Callable[[Any], Any]) -> "Formula":
        """Return the formula with its numbers converted."""
        sums = (tuple((convert(x), numbers) for x, numbers in terms) for terms in self.sums)
        return Formula(self.expectations.converted(convert), tuple(sums))

    def at(self, gram: Sequence[Any], unknown: int, arithmetic: Arithmetic) -> list["Derivatives"]:
        """Return each sum at Gram entries, of which the first ``unknown`` vary."""
        parts = self.expectations.at(gram, arithmetic)
        return [Derivatives(terms, parts, unknown, arithmetic) for terms in self.sums]


class _Expectation:
    """The mean of a product of monomials at given Gram entries."""

    def __init__(self, law: Law, monomials: tuple[Monomial, ...], moments: Moments) -> None:
        self.law, self.monomials, self.moments = law, monomials, moments
        self._derived: dict[tuple[int, int], dict[Monomial, int]] = {}
        self._slopes: list[Any] | None = None

    def derived(self, k: int, order: int) -> dict[Monomial, int]:
        """Return a derivative of the function of variable k."""
        if (k, order) not in self._derived:
            self._derived[k, order] = (
                derivative(self.law.families[k], self.derived(k, order - 1))
                if order
                else {self.monomials[k]: 1}
            )
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

    @cached_property
    def value(self) -> Any:
        """The expectation."""
        return self.moments.of(self.monomials)

    def slopes(self, unknown: int) -> list[Any]:
        """Return the derivatives in the first Gram entries."""
        if self._slopes is None:
            zero = self.moments.arithmetic.number(0)
            entries = range(unknown)
            self._slopes = [self.slope(e) if self.law.operator(e) else zero for e in entries]
        return self._slopes

    def slope(self, *entries: int) -> Any:
        """Return the derivative in one Gram entry, or the second one in two."""
        operators: dict[tuple[int, ...], Any] = {(0,) * len(self.law.families): 1}
        for entry in entries:
            combined: dict[tuple[int, ...], Any] = {}
            for (left, a), (right, b) in product(
                operators.items(), self.law.operator(entry).items()
            ):
                orders = tuple(x + y for x, y in zip(left, right))
                combined[orders] = combined.get(orders, 0) + a * b
            operators = combined
        zero = self.moments.arithmetic.number(0)
        return sum((x * self.mean(orders) for orders, x in operators.items()), zero)


class _Power(_Expectation):
    """A power of the mean of g of one score (`dynamics.overlaps.softmax`)."""

    def __init__(
        self, law: Law, monomials: tuple[Monomial, ...], moments: Moments, power: int
    ) -> None:
        super().__init__(law, monomials, moments)
        self.power = power

    @cached_property
    def value(self) -> Any:
        """The power of the mean."""
        return self.moments.power(self.power)

    def slope(self, *entries: int) -> Any:
        """Return the derivative in one Gram entry, or the second one in two."""
        total = self._outer(1) * super().slope(*entries)
        if len(entries) == 2:
            slopes = (super(_Power, self).slope(entry) for entry in entries)
            total = total + self._outer(2) * prod(slopes)
        return total

    def _outer(self, order: int) -> Any:
        """Return a derivative of the power in the mean."""
        return perm(self.power, order) * self.moments.power(max(self.power - order, 0))


class Derivatives:
    """A sum and its derivatives in Gram entries at one state; each is computed when needed."""

    def __init__(
        self,
        terms: Terms,
        parts: Sequence[_Expectation],
        unknown: int,
        arithmetic: Arithmetic,
    ) -> None:
        self.terms, self.parts, self.unknown = terms, parts, unknown
        self.zero = arithmetic.number(0)

    @property
    def value(self) -> Any:
        """The sum, such as the loss."""
        values = (
            integrated(prod((self.parts[k].value for k in numbers), start=coefficient))
            for coefficient, numbers in self.terms
        )
        return sum(values, self.zero)

    @property
    def gradient(self) -> list[Any]:
        """The derivative of the loss in each varying Gram entry."""
        total = [self.zero] * self.unknown
        for coefficient, numbers in self.terms:
            for position, k in enumerate(numbers):
                others = (self.parts[j].value for i, j in enumerate(numbers) if i != position)
                factor = prod(others, start=coefficient)
                total = [
                    x + integrated(factor * slope)
                    for x, slope in zip(total, self.parts[k].slopes(self.unknown))
                ]
        return total

    @property
    def hessian(self) -> list[list[Any]]:
        """The second derivatives of the loss in the varying Gram entries."""
        n = self.unknown
        total = [[self.zero] * n for _ in range(n)]
        second = [
            [
                [
                    part.slope(e, f) if part.law.operator(e) and part.law.operator(f) else self.zero
                    for f in range(n)
                ]
                for e in range(n)
            ]
            for part in self.parts
        ]
        for coefficient, numbers in self.terms:
            for i, k in enumerate(numbers):
                rest = [self.parts[j].value for position, j in enumerate(numbers) if position != i]
                factor = prod(rest, start=coefficient)
                for e, f in product(range(n), repeat=2):
                    total[e][f] = total[e][f] + integrated(factor * second[k][e][f])
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
                        mixed = self.parts[k].slopes(n)[e] * self.parts[m].slopes(n)[f]
                        total[e][f] = total[e][f] + integrated(factor * mixed)
        return total
