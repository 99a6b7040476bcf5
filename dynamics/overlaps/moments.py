"""Expectations of products of functions of jointly normal variables.

Three rules lead to closed forms: a Gaussian factor tilts the distribution, a power of a variable is
removed by Stein's identity, and what remains is a mean of at most two error functions. Other
products are integrated by the trapezoidal rule, with a bound in up to two dimensions. No rule
inverts the covariance, so that it may be degenerate. The same code computes in floats and in balls.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from flint import acb, arb
from scipy.special import owens_t

from dynamics.core.balls.exact import above, exact, from_ball
from dynamics.overlaps.functions import SLOPE, Monomial, derivative
from dynamics.overlaps.softmax import Token
from dynamics.overlaps.trapezoid import MOST_CERTIFIED, Rule, rule_of
from dynamics.theory.data import Array

ONE: Monomial = (0, 0, 0)


class Arithmetic:
    """Functions of numbers of one type: floats, or balls that contain the exact value.

    Parameters
    ----------
    certified
        Whether numbers are balls.
    """

    def __init__(self, certified: bool) -> None:
        self.certified = certified

    def mean(self, families: Any, law: Any, monomials: Any) -> Any:
        """Return the formula of a mean without a closed form, or None: it is integrated."""
        return None

    def number(self, value: Any) -> Any:
        """Return an integer or a float as a number."""
        return exact(value) if self.certified else float(value)

    def sqrt(self, x: Any) -> Any:
        """Return the square root."""
        return x.sqrt() if self.certified else math.sqrt(x)

    def exp(self, x: Any) -> Any:
        """Return the exponential."""
        return x.exp() if self.certified else math.exp(x)

    def erf(self, x: Any) -> Any:
        """Return the error function."""
        return x.erf() if self.certified else math.erf(x)

    def mean_of_signs(self, x: Any) -> Any:
        """Return 2 arcsin(x) / pi."""
        if self.certified:
            return 2 * x.asin() / arb.pi()
        return 2.0 * math.asin(min(1.0, max(-1.0, x))) / math.pi

    def shifted_signs(self, x: Any, y: Any, r: Any) -> Any:
        """Return the mean of sign(x + u) sign(y + v), with u and v of variance 1/2, correlation r.

        Floats use Owen's T, balls integrate the derivative in r, which shares no code with it.
        """
        if not self.certified:
            return _owen(math.sqrt(2.0) * x, math.sqrt(2.0) * y, r)
        angle, squares, product = acb(r.asin()), acb(x * x + y * y), acb(2 * x * y)

        def slope(s: acb, _: bool) -> acb:
            return angle * ((product * (angle * s).sin() - squares) / (angle * s).cos() ** 2).exp()

        return x.erf() * y.erf() + 2 * acb.integral(slope, 0, 1).real / arb.pi()

    @property
    def slope(self) -> Any:
        """2 / sqrt(pi)."""
        return 2 / arb.pi().sqrt() if self.certified else SLOPE


def _owen(h: float, k: float, r: float) -> float:
    """Return the mean of sign(h + u) sign(k + v) for standard normal u, v with correlation r."""
    if h == k == 0.0:
        return 2.0 * math.asin(r) / math.pi
    scale, total = math.sqrt((1.0 - r) * (1.0 + r)), 1.0
    for x, y in ((h, k), (k, h)):
        ratio = (y - r * x) / (x * scale) if x else math.copysign(math.inf, y)
        total -= 4.0 * float(owens_t(x, ratio))
    return total - 2.0 * (h * k < 0.0 or (h * k == 0.0 and h + k < 0.0))


FLOATS, BALLS = Arithmetic(False), Arithmetic(True)


class Normal(NamedTuple):
    """A normal distribution.

    Attributes
    ----------
    mean, covariance
        Lists of numbers; covariance as a list of rows.
    centred
        Whether each mean is 0 exactly.
    """

    mean: list[Any]
    covariance: list[list[Any]]
    centred: tuple[bool, ...]


class Moments:
    """Expectations over one normal distribution, each computed once.

    Parameters
    ----------
    families
        Family of each variable (`dynamics.overlaps.functions.FAMILIES`).
    law
        Mean and covariance.
    arithmetic
        Type of the numbers.

    Attributes
    ----------
    log_times
        Nodes in log t of the means of softmax, which are arrays (nodes,).
    """

    def __init__(self, families: Sequence[str], law: Normal, arithmetic: Arithmetic) -> None:
        self.families, self.law, self.arithmetic = tuple(families), law, arithmetic
        self._known: dict[tuple[Monomial, ...], Any] = {}
        self._rules: dict[tuple[int, ...], Rule] = {}
        self._tokens: dict[int, Token] = {}
        self.log_times: Array = np.zeros(0)

    @property
    def scores(self) -> list[tuple[Any, Any]]:
        """Mean and variance of each score of a softmax."""
        mean, covariance, _ = self.law
        used = (k for k, family in enumerate(self.families) if family == "softmax")
        return [(mean[k], covariance[k][k]) for k in used]

    def of(self, monomials: tuple[Monomial, ...]) -> Any:
        """Return the mean of a product of monomials, one for each variable."""
        if monomials not in self._known:
            self._known[monomials] = self._mean(monomials)
        return self._known[monomials]

    def _mean(self, monomials: tuple[Monomial, ...]) -> Any:
        for k, monomial in enumerate(monomials):
            if monomial[0] and not self.families[k]:
                return _without_power(k, monomials, self.families, self.law, self)
        if all(monomial == ONE for monomial in monomials):
            return self.arithmetic.number(1)
        if "step" in self.families:
            return _Orthant(self.families, self.law, self.arithmetic).of(monomials)
        if self._is_closed(monomials):
            return _Closed(self.families, self.law, self.arithmetic).of(monomials)
        return self._integral(monomials)

    def _is_closed(self, monomials: tuple[Monomial, ...]) -> bool:
        """Return whether a product of polynomials in error functions has a closed form."""
        used = [k for k, monomial in enumerate(monomials) if monomial != ONE]
        if any(self.families[k] != "erf" for k in used):
            return False
        return sum(monomials[k][1] for k in used) <= 2

    def is_estimate(self, monomials: tuple[Monomial, ...]) -> bool:
        """Return whether the mean has no bound: softmax, or a rule in too many dimensions."""
        if "softmax" in self.families:
            return True
        used = sum(a > 0 or b > 0 for _, a, b in monomials)
        return (
            used > MOST_CERTIFIED
            and "step" not in self.families
            and not self._is_closed(tuple((0, a, b) for _, a, b in monomials))
        )

    def _integral(self, monomials: tuple[Monomial, ...]) -> Any:
        """Return the mean by the trapezoidal rule."""
        used = tuple(k for k, monomial in enumerate(monomials) if monomial != ONE)
        chosen = tuple(monomials[k] for k in used)
        if self.families[used[0]] == "softmax":
            return self._softmax(used, chosen)
        law = Normal(
            [self.law.mean[k] for k in used],
            [[self.law.covariance[j][k] for k in used] for j in used],
            tuple(self.law.centred[k] for k in used),
        )
        formula = self.arithmetic.mean([self.families[k] for k in used], law, chosen)
        if formula is not None:
            return formula
        if used not in self._rules:
            mean = tuple(_middle(self.law.mean[k]) for k in used)
            covariance = tuple(
                tuple(_middle(self.law.covariance[j][k]) for k in used) for j in used
            )
            self._rules[used] = rule_of(tuple(self.families[k] for k in used), mean, covariance)
        rule = self._rules[used]
        if not self.arithmetic.certified:
            return rule.integral(chosen)
        errors = np.array([_radius(self.law.mean[k]) for k in used])
        spread = np.array([[_radius(self.law.covariance[j][k]) for k in used] for j in used])
        return from_ball(rule.integral(chosen), rule.error(chosen, (errors, spread)))

    def _softmax(self, used: tuple[int, ...], monomials: tuple[Monomial, ...]) -> Any:
        """Return the mean of a product of functions of independent scores, an array (nodes,)."""
        if self.arithmetic.certified:
            return from_ball(0.0, math.inf)
        pairs = zip(used, monomials)
        return math.prod(self._token(k).mean(i, a) for k, (i, a, _) in pairs)

    def _token(self, k: int) -> Token:
        if k not in self._tokens:
            self._tokens[k] = Token(self.law.mean[k], self.law.covariance[k][k], self.log_times)
        return self._tokens[k]

    def power(self, number: int) -> Any:
        """Return the mean of g of one score to a power, an array (nodes,)."""
        return (
            from_ball(0.0, math.inf) if self.arithmetic.certified else self._token(0).power(number)
        )


class _Closed:
    """Means of polynomials in error functions and Gaussians, by the three rules."""

    def __init__(self, families: tuple[str, ...], law: Normal, arithmetic: Arithmetic) -> None:
        self.families, self.law, self.arithmetic = families, law, arithmetic

    def of(self, monomials: tuple[Monomial, ...]) -> Any:
        """Return the mean of a product of monomials."""
        for k, (i, a, b) in enumerate(monomials):
            if b:
                rest = (*monomials[:k], (i, a, 0), *monomials[k + 1 :])
                factor, law = self._tilted(k, b)
                return factor * _Closed(self.families, law, self.arithmetic).of(rest)
        for k, (i, _, _) in enumerate(monomials):
            if i:
                return _without_power(k, monomials, self.families, self.law, self)
        return self._mean_of_error_functions(monomials)

    def _tilted(self, k: int, power: int) -> tuple[Any, Normal]:
        """Return the mean of g^power of variable k, and the distribution tilted by it."""
        mean, covariance, centred = self.law
        size = range(len(mean))
        spread = 1 + 2 * power * covariance[k][k]
        factor = self.arithmetic.slope**power / self.arithmetic.sqrt(spread)
        if not centred[k]:
            factor = factor * self.arithmetic.exp(-power * mean[k] * mean[k] / spread)
        ratio = [2 * power * covariance[j][k] / spread for j in size]
        tilted = [[covariance[i][j] - ratio[i] * covariance[k][j] for j in size] for i in size]
        if centred[k]:
            return factor, Normal(mean, tilted, centred)
        return factor, Normal(
            [mean[j] - ratio[j] * mean[k] for j in size], tilted, (False,) * len(mean)
        )

    def _mean_of_error_functions(self, monomials: tuple[Monomial, ...]) -> Any:
        used = [k for k, (_, a, _) in enumerate(monomials) for _ in range(a)]
        mean, covariance, centred = self.law
        if not used:
            return self.arithmetic.number(1)
        scales = [self.arithmetic.sqrt(1 + 2 * covariance[k][k]) for k in used]
        if len(used) == 1:
            k = used[0]
            if centred[k]:
                return self.arithmetic.number(0)
            return self.arithmetic.erf(mean[k] / scales[0])
        j, k = used
        correlation = 2 * covariance[j][k] / (scales[0] * scales[1])
        if centred[j] and centred[k]:
            return self.arithmetic.mean_of_signs(correlation)
        return self.arithmetic.shifted_signs(mean[j] / scales[0], mean[k] / scales[1], correlation)


class _Orthant:
    """Means of powers of centred variables times steps and derivatives of steps."""

    def __init__(self, families: tuple[str, ...], law: Normal, arithmetic: Arithmetic) -> None:
        self.families, self.law, self.arithmetic = families, law, arithmetic

    def of(self, monomials: tuple[Monomial, ...]) -> Any:
        """Return the mean of a product of monomials."""
        for k, (_, _, b) in enumerate(monomials):
            if b > 1:
                return self._lowered(k, monomials)
        for k, (i, _, b) in enumerate(monomials):
            if b == 1:
                return self.arithmetic.number(0) if i else self._conditional(k, monomials)
        for k, (i, _, _) in enumerate(monomials):
            if i:
                return _without_power(k, monomials, self.families, self.law, self)
        return self._probability([k for k, (_, a, _) in enumerate(monomials) if a])

    def _lowered(self, k: int, monomials: tuple[Monomial, ...]) -> Any:
        """Return a mean by Stein's identity of y_k times the next lower derivative of the step."""
        _, _, b = monomials[k]
        row = self.law.covariance[k]
        total = self.arithmetic.number(0)
        if b > 2:
            lower = (*monomials[:k], (0, 0, b - 2), *monomials[k + 1 :])
            total = total + (b - 2) * self.of(lower)
        rest = (*monomials[:k], (0, 0, b - 1), *monomials[k + 1 :])
        for j, monomial in enumerate(rest):
            if j != k:
                for changed, coefficient in derivative(self.families[j], {monomial: 1}).items():
                    product = (*rest[:j], changed, *rest[j + 1 :])
                    total = total + coefficient * row[j] * self.of(product)
        return -total / row[k]

    def _conditional(self, k: int, monomials: tuple[Monomial, ...]) -> Any:
        """Return the density of y_k at 0 times the mean of the other factors given y_k = 0."""
        mean, covariance, centred = self.law
        size, row = range(len(mean)), covariance[k]
        if not self.arithmetic.certified and row[k] <= 0.0:
            raise OverflowError("the mean of the derivative of relu of a zero vector is undefined")
        given = [[covariance[i][j] - row[i] * row[j] / row[k] for j in size] for i in size]
        rest = (*monomials[:k], ONE, *monomials[k + 1 :])
        density = self.arithmetic.slope / self.arithmetic.sqrt(8 * row[k])
        law = Normal(mean, given, centred)
        return density * _Orthant(self.families, law, self.arithmetic).of(rest)

    def _probability(self, positive: list[int]) -> Any:
        """Return the probability that one to three centred variables are positive."""
        total = self.arithmetic.number(1)
        for j, k in combinations(positive, 2):
            covariance = self.law.covariance
            square = covariance[j][j] * covariance[k][k]
            if self.arithmetic.certified or square > 0.0:
                ratio = covariance[j][k] / self.arithmetic.sqrt(square)
                total = total + self.arithmetic.mean_of_signs(ratio)
        return total / 2 ** len(positive)


def _without_power(
    k: int, monomials: tuple[Monomial, ...], families: Sequence[str], law: Normal, means: Any
) -> Any:
    """Return a mean with the power of variable k lowered by Stein's identity.

    The mean of y_k F is mean_k E[F] plus the sum over j of cov_kj E[d_j F].
    """
    i, a, b = monomials[k]
    rest = (*monomials[:k], (i - 1, a, b), *monomials[k + 1 :])
    total = means.arithmetic.number(0) if law.centred[k] else law.mean[k] * means.of(rest)
    for j, monomial in enumerate(rest):
        if law.covariance[k][j] == 0:
            continue
        for changed, coefficient in derivative(families[j], {monomial: 1}).items():
            product = (*rest[:j], changed, *rest[j + 1 :])
            total = total + coefficient * law.covariance[k][j] * means.of(product)
    return total


def _middle(x: Any) -> float:
    """Return a number, or the middle of a ball, as a float."""
    return float(x.mid()) if isinstance(x, arb) else float(x)


def _radius(x: Any) -> float:
    """Return a bound of the distance of a ball from its middle as a float."""
    return above(abs(x - exact(_middle(x)))) if isinstance(x, arb) else 0.0
