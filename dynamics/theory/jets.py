"""The emitted function of a user-defined theory on Taylor series in balls, with derivatives.

The source of the kernel is executed as Python on power series with Arb coefficients
(`flint.arb_series`), so that there is no second derivation. A `Jet` is a series together with the
series of its partial derivatives. Functions with a kink raise `KinkError` unless the sign of their
argument is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from flint import arb, arb_series, ctx

from dynamics.core.balls.exact import ball, exact, from_ball
from dynamics.core.balls.series import Series
from dynamics.theory import reference
from dynamics.theory.data import Orbits
from dynamics.theory.kernel import columns
from dynamics.theory.risk import TheoryRisk

_MOST_POWER = 64


class KinkError(ArithmeticError):
    """A function is not differentiable at some number of a ball."""


class Jet:
    """A power series and its partial derivatives.

    Parameters
    ----------
    value
        The series.
    slopes
        Mapping from the number of a variable to the derivative; missing derivatives are 0.
    """

    __slots__ = ("slopes", "value")

    def __init__(self, value: arb_series, slopes: dict[int, arb_series]) -> None:
        self.value, self.slopes = value, slopes

    def chained(self, value: arb_series, slope: Any) -> Jet:
        """Return a function of this number, given its value and its derivative."""
        return Jet(value, {k: x * slope for k, x in self.slopes.items()})

    def __neg__(self) -> Jet:
        return Jet(-self.value, {k: -x for k, x in self.slopes.items()})

    def __add__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.slopes)
        slopes = dict(self.slopes)
        for k, x in other.slopes.items():
            slopes[k] = slopes[k] + x if k in slopes else x
        return Jet(self.value + other.value, slopes)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Jet:
        return self + -other

    def __rsub__(self, other: Any) -> Jet:
        return -self + other

    def __mul__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return self.chained(self.value * other, other)
        first = self.chained(self.value * other.value, other.value)
        for k, x in other.slopes.items():
            term = x * self.value
            first.slopes[k] = first.slopes[k] + term if k in first.slopes else term
        return first

    __rmul__ = __mul__

    def inverse(self) -> Jet:
        """Return the reciprocal."""
        value = 1 / self.value
        return self.chained(value, -(value * value))

    def __truediv__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return self * other.inverse()
        return Jet(self.value / other, {k: x / other for k, x in self.slopes.items()})

    def __rtruediv__(self, other: Any) -> Jet:
        return self.inverse() * other


def constant_term(x: Any) -> arb:
    """Return the value of a number at the centre of its series."""
    series = x.value if isinstance(x, Jet) else x
    return series[0] if isinstance(series, arb_series) else arb(series)


def exp(x: Any) -> Any:
    """Return e^x."""
    if isinstance(x, Jet):
        value = x.value.exp()
        return x.chained(value, value)
    return _plain(x).exp()


def log(x: Any) -> Any:
    """Return the natural logarithm."""
    if isinstance(x, Jet):
        return x.chained(x.value.log(), 1 / x.value)
    return _plain(x).log()


def sqrt(x: Any) -> Any:
    """Return the square root."""
    if isinstance(x, Jet):
        value = x.value.sqrt()
        return x.chained(value, 1 / (2 * value))
    return _plain(x).sqrt()


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + e^-x)."""
    return 1 / (1 + exp(-x))


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    return 2 * sigmoid(2 * x) - 1


def softplus(x: Any) -> Any:
    """Return log(1 + e^x)."""
    if constant_term(x) > 0:
        return x + log(1 + exp(-x))
    return log(1 + exp(x))


def power(x: Any, exponent: Any) -> Any:
    """Return x^exponent for an exponent that is no series."""
    if not isinstance(x, (Jet, arb_series)):
        return reference.power(x, exponent)
    exponent = arb(exponent)
    whole = exponent.unique_fmpz() if exponent.is_exact() else None
    if whole is None or abs(whole) > _MOST_POWER:
        return exp(log(x) * exponent)
    result: Any = arb(1)
    for _ in range(abs(int(whole))):
        result = result * x
    return result if whole >= 0 else 1 / result


def sign(x: Any) -> Any:
    """Return the derivative of the modulus; raise `KinkError` for a series that may be 0."""
    if not isinstance(x, (Jet, arb_series)):
        return reference.sign(x)
    first = constant_term(x)
    if not (first > 0 or first < 0):
        raise KinkError(f"a function with a kink at 0 is evaluated at {first}")
    return arb(1) if first > 0 else arb(-1)


def step(x: Any) -> Any:
    """Return the derivative of max(x, 0)."""
    return (1 + sign(x)) / 2 if isinstance(x, (Jet, arb_series)) else reference.step(x)


def modulus(x: Any) -> Any:
    """Return the modulus of x."""
    return x * sign(x) if isinstance(x, (Jet, arb_series)) else reference.modulus(x)


def relu(x: Any) -> Any:
    """Return max(x, 0)."""
    return x * step(x) if isinstance(x, (Jet, arb_series)) else reference.relu(x)


def _plain(x: Any) -> Any:
    return x if isinstance(x, arb_series) else arb(x)


def _highest(number: Any, score: Any, others: arb) -> arb:
    return reference.highest(number, constant_term(score), others)


RULES: Mapping[str, Any] = {
    **reference.RULES,
    "_math": SimpleNamespace(exp=exp, log=log, tanh=tanh, sqrt=sqrt, inf=arb.pos_inf()),
    "_power": power,
    "_sigmoid": sigmoid,
    "_softplus": softplus,
    "_modulus": modulus,
    "_relu": relu,
    "_sign": sign,
    "_step": step,
    "_shifted_log": lambda norm, top: log(norm) + arb(top),
    "_raised": lambda score, top: exp(score - top),
    "_highest": _highest,
}
#: Errors of an operation that is undefined for some number of a ball.
UNDEFINED = (ArithmeticError, ValueError)


@contextmanager
def truncated(order: int) -> Iterator[None]:
    """Compute with power series up to an order."""
    before = ctx.cap
    ctx.cap = order + 1
    try:
        yield
    finally:
        ctx.cap = before


class EmittedFunction:
    """Loss and gradient of a theory on balls, power series and jets.

    Parameters
    ----------
    source, name
        Source and name of the theory's module.
    data
        Data orbits with exact probabilities and values, or balls around them.
    constants
        Sizes and constants as balls, power series or jets.
    """

    def __init__(self, source: str, name: str, data: Orbits, constants: Sequence[Any]) -> None:
        self._function: Callable[..., Any] = reference.executed(source, name, RULES)
        self._columns = columns(self._function, data, exact)
        self._constants = list(constants)

    def __call__(self, theta: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Return the loss and the derivative in one entry of each order parameter."""
        out: list[Any] = [arb(0)] * len(theta)
        return self._function(theta, out, self._constants, *self._columns), out


@dataclass(frozen=True, eq=False)
class TheoryField:
    """Velocity of gradient flow of a user-defined theory, for `dynamics.core.tube`.

    Attributes
    ----------
    function
        Loss and gradient in balls.
    risk
        The same in floats.
    """

    function: EmittedFunction
    risk: TheoryRisk

    def velocity(self, theta: Series) -> Series:
        """Return the Taylor series of the velocity along a curve (n lanes)."""
        n = theta.mid.shape[1]
        return self._evaluated(theta, n, lambda: self.function(power_series(theta))[1])

    def jacobian(self, theta: Series) -> Series:
        """Return the Taylor series of the Jacobian, by rows (n^2 lanes)."""
        n = theta.mid.shape[1]

        def entries() -> list[Any]:
            gradient = self.function(variables(power_series(theta)))[1]
            slopes = (x.slopes if isinstance(x, Jet) else {} for x in gradient)
            return [row.get(k, arb(0)) for row in slopes for k in range(n)]

        return self._evaluated(theta, n * n, entries)

    def neglected(self, box: Series) -> np.ndarray:
        """Return the neglected part of the velocity, 0: all data are summed."""
        return np.zeros(box.mid.shape[1])

    def velocity_at(self, theta: np.ndarray) -> np.ndarray:
        """Return the velocity (n,) in floats."""
        return -np.asarray(self.risk.gradient(theta))

    def jacobian_at(self, theta: np.ndarray) -> np.ndarray:
        """Return the Jacobian (n, n) in floats."""
        return -self.risk.jacobian(theta)

    @staticmethod
    def _evaluated(theta: Series, lanes: int, entries: Callable[[], list[Any]]) -> Series:
        """Return minus the series of some entries; not finite if they are undefined."""
        mid, rad = np.zeros((2, theta.order + 1, lanes))
        with truncated(theta.order):
            try:
                results = entries()
            except UNDEFINED:
                return Series(mid + np.inf, rad + np.inf)
            for lane, entry in enumerate(results):
                for k, coefficient in enumerate(coefficients(entry)):
                    middle, rad[k, lane] = ball(coefficient)
                    mid[k, lane] = -middle
        return Series(mid, rad)


def power_series(theta: Series) -> list[arb_series]:
    """Return the lanes of a series as power series."""
    return [
        arb_series([from_ball(*pair) for pair in zip(mid, rad)], prec=theta.order + 1)
        for mid, rad in zip(theta.mid.T.tolist(), theta.rad.T.tolist())
    ]


def variables(series: Sequence[arb_series]) -> list[Jet]:
    """Return series as independent variables: each has the derivative 1 in itself."""
    return [Jet(x, {k: arb_series([1], prec=ctx.cap)}) for k, x in enumerate(series)]


def coefficients(x: Any) -> list[arb]:
    """Return the coefficients of a number; trailing zeros may be missing."""
    series = x.value if isinstance(x, Jet) else x
    return list(series.coeffs()) if isinstance(series, arb_series) else [arb(series)]
