"""Normal expectations by the trapezoidal rule, with a certified bound.

The variables are y = mean + L xi with L lower triangular and xi standard normal. For a function
analytic in the strip |Im xi_d| < a, whose modulus integrates to at most M along each line of the
strip, the rule with step h errs by at most 2 M / (exp(2 pi a / h) - 1) in dimension d. The bound
also includes the truncation of the sums, and the rounding of L, nodes, functions and sums. In
three dimensions the rule is an estimate without a bound.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dynamics.overlaps.functions import FAMILIES, Monomial, derivative, largest, values
from dynamics.theory.data import Array

#: Nodes beyond this many standard deviations are omitted.
CUT = 9.5
#: The step is chosen such that the relative error is about exp(-_EXPONENT).
_EXPONENT = 52.0
#: Unit of rounding, and the number of units of a product of functions at a node.
_UNIT, _OPERATIONS = 2.0**-53, 64.0
#: Half-widths of strips that are tried for the bound, relative to the one that the step aims at.
_STRIPS = np.linspace(0.5, 1.0, 11)
_MOST_NODES, _MOST_POINTS = 4096, 2**24
#: Largest dimension with a bound.
MOST_CERTIFIED = 2


class Rule:
    """The rule for one normal distribution; each integral and each polynomial is computed once."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._integrals: dict[tuple[Monomial, ...], float] = {}
        self._bounds: dict[tuple[Monomial, ...], _Bounds] = {}

    def integral(self, monomials: tuple[Monomial, ...]) -> float:
        """Return the mean of a product of monomials, one for each variable."""
        if monomials not in self._integrals:
            self._integrals[monomials] = self.grid.integral(monomials)
        return self._integrals[monomials]

    def error(self, monomials: tuple[Monomial, ...], uncertain: tuple[Array, Array]) -> float:
        """Return a certified bound of the error of `integral`; see `Grid.error`."""
        if len(monomials) > MOST_CERTIFIED:
            return math.inf
        if monomials not in self._bounds:
            self._bounds[monomials] = _Bounds(self.grid, monomials)
        return self._bounds[monomials].total(uncertain)


@lru_cache(32)
def rule_of(
    families: tuple[str, ...], mean: tuple[float, ...], covariance: tuple[tuple[float, ...], ...]
) -> Rule:
    """Return the rule for a mean and a covariance (`Grid.of`)."""
    return Rule(Grid.of(families, np.array(mean), np.array(covariance)))


class Grid(NamedTuple):
    """Nodes of the rule in one to three dimensions.

    Attributes
    ----------
    families
        Families of the variables.
    mean, factor
        Mean (n,) and lower triangular factor (n, n) of the covariance.
    steps, strips
        Step, and half-width of the strip, of each dimension.
    nodes, weights
        Standard normal nodes and their weights, one array for each dimension.
    """

    families: tuple[str, ...]
    mean: Array
    factor: Array
    steps: tuple[float, ...]
    strips: tuple[float, ...]
    nodes: tuple[Array, ...]
    weights: tuple[Array, ...]

    @classmethod
    def of(cls, families: tuple[str, ...], mean: Array, covariance: Array) -> Grid:
        """Return the grid for a mean and a covariance, which may be degenerate.

        Raises
        ------
        OverflowError
            If the variances are so large that too many nodes would be needed.
        """
        factor = cholesky(covariance)
        steps, strips = [], []
        nodes: list[Array] = []
        weights: list[Array] = []
        for column in factor.T:
            width, growth = math.inf, 0.5
            for family, entry in zip(families, np.abs(column)):
                if entry:
                    width = min(width, 0.95 * FAMILIES[family].half_width / entry)
                    growth += FAMILIES[family].growth * entry**2
            strip = min(width, math.sqrt(_EXPONENT / growth))
            step = 2.0 * math.pi * strip / (_EXPONENT + growth * strip**2)
            number = math.ceil(CUT / step)
            if not number <= _MOST_NODES:
                raise OverflowError(f"a variance of {np.max(covariance):.3g} needs too many nodes")
            node: Array = step * np.arange(-number, number + 1, dtype=np.float64)
            steps.append(step)
            strips.append(strip)
            nodes.append(node)
            weights.append(step * np.exp(-(node**2) / 2.0) / math.sqrt(2.0 * math.pi))
        if math.prod(node.size for node in nodes) > _MOST_POINTS:
            raise OverflowError(f"a variance of {np.max(covariance):.3g} needs too many nodes")
        return cls(
            families,
            mean,
            factor,
            tuple(steps),
            tuple(strips),
            tuple(nodes),
            tuple(weights),
        )

    def points(self, variable: int) -> Array:
        """Return a variable at the nodes, (nodes,) * (variable + 1)."""
        point = self.mean[variable] + self.factor[variable, 0] * self.nodes[0]
        for d in range(1, variable + 1):
            point = point[..., None] + self.factor[variable, d] * self.nodes[d]
        return np.asarray(point)

    def integral(self, monomials: tuple[Monomial, ...]) -> float:
        """Return the mean of a product of monomials, one for each variable."""
        inner: Any = 1.0
        for k in reversed(range(1, len(monomials))):
            inner = (values(self.families[k], monomials[k], self.points(k)) * inner) @ (
                self.weights[k]
            )
        outer = self.weights[0] * values(self.families[0], monomials[0], self.points(0))
        return float(np.sum(outer * inner))

    def error(
        self, monomials: tuple[Monomial, ...], uncertain: tuple[Array, Array] | None = None
    ) -> float:
        """Return a certified bound of the error of `integral`.

        Parameters
        ----------
        monomials
            The integrand.
        uncertain
            Bounds of the errors of the mean (n,) and of the covariance (n, n).

        Returns
        -------
        float
            Infinite in three dimensions.
        """
        if len(monomials) > MOST_CERTIFIED:
            return math.inf
        return _Bounds(self, monomials).total(uncertain)


class _Bounds:
    """Bounds of an integrand by polynomials in |xi_1|, |xi_2| with coefficients at least 0."""

    def __init__(self, grid: Grid, monomials: tuple[Monomial, ...]) -> None:
        self.grid, self.monomials = grid, monomials
        self.rows = np.abs(grid.factor)
        degree = 2 + sum(i for i, _, _ in monomials) + 8
        self.full = [_moments(*pair, degree) for pair in zip(grid.nodes, grid.weights)]
        self.tails = [_tails(nodes[-1], degree) for nodes in grid.nodes]

    def total(self, uncertain: tuple[Array, Array] | None) -> float:
        """Return the bound of quadrature, truncation, rounding and uncertain moments."""
        return 1.01 * (self._quadrature + self.rounding(uncertain)) + 1e-300

    @cached_property
    def _quadrature(self) -> float:
        return sum(self.rule(d) for d in range(len(self.full))) + self.truncation()

    def growth(self, monomials: tuple[Monomial, ...], widths: Array) -> Array:
        """Return the polynomial that bounds a product, with |Im y| at most ``widths``."""
        result = np.ones((1, 1))
        for k, monomial in enumerate(monomials):
            constant = largest(self.grid.families[k], monomial, float(widths[k]))
            linear = self.linear(k, float(widths[k]))
            result = constant * result
            for _ in range(monomial[0]):
                result = _times(result, linear)
        return result

    def linear(self, k: int, width: float = 0.0) -> Array:
        """Return the bound of |y_k|."""
        row = self.rows[k]
        second = row[1] if row.size == 2 else 0.0
        return np.array([[abs(self.grid.mean[k]) + width, second], [row[0], 0.0]])

    def integral(self, polynomial: Array, moments: list[Array]) -> float:
        """Return the mean of a polynomial bound with given moments in each dimension."""
        second = moments[1] if len(moments) == 2 else np.ones(1)
        rows, columns = polynomial.shape
        if len(moments) == 1:
            columns = 1
        return float(moments[0][:rows] @ polynomial[:, :columns] @ second[:columns])

    def rule(self, d: int) -> float:
        """Return the error of the rule in dimension d."""
        best = math.inf
        for part in _STRIPS:
            a = float(part) * self.grid.strips[d]
            exponent = 2.0 * math.pi * a / self.grid.steps[d]
            with np.errstate(over="ignore", invalid="ignore"):
                bound = self.growth(self.monomials, a * self.rows[:, d])
                total = self.integral(bound, self.full)
            if math.isfinite(total):
                best = min(best, 2.0 * total * math.exp(a * a / 2.0) / math.expm1(exponent))
        return best

    def truncation(self) -> float:
        """Return a bound of the omitted part of the sums."""
        bound, total = self.growth(self.monomials, np.zeros(len(self.rows))), 0.0
        for d in range(len(self.full)):
            moments = [self.tails[e] if e == d else self.full[e] for e in range(len(self.full))]
            total += self.integral(bound, moments)
        return total

    def rounding(self, uncertain: tuple[Array, Array] | None) -> float:
        """Return the effect of rounding, and of uncertain means and covariances.

        The computed factor L is exact for a covariance that differs by a few units, so that its
        error enters through derivatives in the covariance (Price), not through its entries.
        """
        n, (nodes, points, slopes, curvatures) = len(self.rows), self._derivatives
        sizes = self.rows @ self.rows.T
        mean_error = 8.0 * _UNIT * np.abs(self.grid.mean)
        covariance_error = 16.0 * _UNIT * sizes
        if uncertain is not None:
            mean_error, covariance_error = (
                mean_error + uncertain[0],
                covariance_error + uncertain[1],
            )
        terms = sum(line.size for line in self.grid.nodes)  # sums in any order
        total = (_OPERATIONS + terms) * _UNIT * nodes
        for k in range(n):
            total += 8.0 * _UNIT * points[k] + 2.0 * mean_error[k] * slopes[k]
            for j in range(n):  # twice what Price's theorem gives
                total += covariance_error[k, j] * curvatures[k][j]
        return total

    @cached_property
    def _derivatives(self) -> tuple[float, list[float], list[float], list[list[float]]]:
        """Bounds of the means of |F|, |y_k d_k F|, |d_k F| and |d_k d_j F|."""
        n, zero = range(len(self.rows)), np.zeros(len(self.rows))
        slopes = [self.slope((k,)) for k in n]
        return (
            self.integral(self.growth(self.monomials, zero), self.full),
            [
                self.integral(_times(slope, self.linear(k)), self.full)
                for k, slope in zip(n, slopes)
            ],
            [self.integral(slope, self.full) for slope in slopes],
            [[self.integral(self.slope((k, j)), self.full) for j in n] for k in n],
        )

    def slope(self, variables: tuple[int, ...]) -> Array:
        """Return a polynomial that bounds a derivative of the integrand on the real axis."""
        parts: list[dict[Monomial, int]] = [{monomial: 1} for monomial in self.monomials]
        for k in variables:
            parts[k] = derivative(self.grid.families[k], parts[k])
        result, zero = np.zeros((1, 1)), np.zeros(len(self.rows))
        for choice in product(*(part.items() for part in parts)):
            monomials = tuple(monomial for monomial, _ in choice)
            factor = math.prod(abs(coefficient) for _, coefficient in choice)
            result = _plus(result, factor * self.growth(monomials, zero))
        return result


def cholesky(covariance: Array) -> Array:
    """Return L with L L^T = covariance, also of a degenerate covariance."""
    factor = np.zeros_like(covariance)
    for k, row in enumerate(covariance):
        pivot = math.sqrt(max(row[k] - np.sum(factor[k, :k] ** 2), 0.0))
        factor[k, k] = pivot
        if pivot:
            factor[k + 1 :, k] = (
                covariance[k + 1 :, k] - factor[k + 1 :, :k] @ factor[k, :k]
            ) / pivot
    return factor


def _moments(nodes: Array, weights: Array, degree: int) -> Array:
    """Return upper bounds of the moments of |xi|, as integrals and as sums over the nodes."""
    sums = np.array([weights @ np.abs(nodes) ** p for p in range(degree + 1)])
    exact = [
        2.0 ** (p / 2.0) * math.gamma((p + 1) / 2.0) / math.sqrt(math.pi) for p in range(degree + 1)
    ]
    return 1.0001 * np.maximum(sums, exact)


def _tails(last: float, degree: int) -> Array:
    """Return upper bounds of the moments of |xi| beyond the last node, as integrals and as sums.

    For x >= X, x^p phi(x) decreases faster than exp(-(X - p/X)(x - X)); h times the sum is at most
    the integral.
    """
    density = math.exp(-last * last / 2.0) / math.sqrt(2.0 * math.pi)
    powers = np.arange(degree + 1)
    return 2.0 * density * last**powers / np.maximum(last - powers / last, 1e-3)


def _times(left: Array, right: Array) -> Array:
    """Return the product of two polynomials in two variables."""
    rows, columns = (x + y - 1 for x, y in zip(left.shape, right.shape))
    result = np.zeros((rows, columns))
    for i, row in enumerate(left):
        for j, other in enumerate(right):
            result[i + j, :] += np.convolve(row, other)
    return result


def _plus(left: Array, right: Array) -> Array:
    """Return the sum of two polynomials in two variables."""
    shape = tuple(map(max, left.shape, right.shape))
    result = np.zeros(shape)
    result[: left.shape[0], : left.shape[1]] += left
    result[: right.shape[0], : right.shape[1]] += right
    return result
