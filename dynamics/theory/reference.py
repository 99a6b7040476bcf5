"""The emitted function of a user-defined theory in ball arithmetic: proved digits of floats.

The source of the kernel is executed as Python with Arb numbers, so that there is no second
derivation. Literals are exact rationals, and the functions of `dynamics.theory.functions` are
replaced by their definitions. A ball contains the exact value at any working precision.
"""

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from dynamics.core.balls.exact import above, below, exact
from dynamics.core.jit import plain_python
from dynamics.theory import functions
from dynamics.theory.data import Orbits
from dynamics.theory.kernel import columns

#: First and largest working precision in bits; it is doubled until every ball is narrow.
LEAST_BITS, MOST_BITS = 128, 4096
#: Relative width of a narrow ball, far below the spacing of floats.
_NARROW = 2.0**-70
_MOST_POWER = 2**16
#: Largest number of significant digits of a float.
ALL = 16


class Proved(NamedTuple):
    """A float with a proved bound of its relative error; inf if none is proved."""

    value: float
    bound: float

    @property
    def digits(self) -> int:
        """Number of significant decimal digits that are proved to be correct."""
        if self.bound == 0.0:
            return ALL
        return min(ALL, max(0, math.floor(-math.log10(self.bound)))) if self.bound < 1.0 else 0


def proved(
    source: str,
    name: str,
    computed: tuple[float, ArrayLike],
    data: Callable[[], Orbits],
    state: ArrayLike,
    constants: Sequence[float],
) -> tuple[Proved, ...]:
    """Bound the relative errors of risk and gradient computed in floating point.

    Parameters
    ----------
    source, name
        Source and name of the theory's module.
    computed
        Risk and gradient at the state.
    data
        Returns data orbits at the current precision, with probabilities and values that are exact
        floats or balls around the exact numbers.
    state, constants
        Exact floats.

    Returns
    -------
    tuple of Proved
        For the risk and each entry of the gradient. The bound is infinite if a value cannot be
        distinguished from 0 at `MOST_BITS` bits, unless both it and the float are exactly 0.
    """
    floats = [float(computed[0]), *np.asarray(computed[1], float).tolist()]
    bits = LEAST_BITS
    while True:
        with ctx.workprec(bits):
            balls = enclosed(source, name, data(), state, constants)
            if bits >= MOST_BITS or all(map(_is_narrow, balls)):
                return tuple(Proved(x, _error(x, ball)) for x, ball in zip(floats, balls))
        bits *= 2


def enclosed(
    source: str, name: str, data: Orbits, state: ArrayLike, constants: Sequence[float]
) -> tuple[arb, ...]:
    """Return balls around risk and gradient at the current precision."""
    numbers = [exact(x) for x in constants]
    theta = [exact(x) for x in np.asarray(state, float)]
    function, out = _function(source, name), [arb(0)] * len(theta)
    return function(theta, out, numbers, *columns(function, data, exact)), *out


def _is_narrow(ball: arb) -> bool:
    return ball == 0 or bool(ball.rad() < abs(ball) * _NARROW)


def _error(value: float, ball: arb) -> float:
    """Return a bound of the relative error of a float; inf if the error is unknown."""
    if not (math.isfinite(value) and ball.is_finite()):
        return math.inf
    if ball == 0:
        return 0.0 if value == 0.0 else math.inf
    least = exact(below(abs(ball)))
    return above(abs(exact(value) - ball) / least) if least > 0 else math.inf


@cache
def _function(source: str, name: str) -> Callable[..., arb]:
    """Return the function ``mean`` of an emitted module for Arb numbers."""
    return executed(source, name, RULES)


def executed(source: str, name: str, rules: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function ``mean`` of an emitted module with other rules for its functions."""
    tree = ast.fix_missing_locations(_Exactly().visit(ast.parse(source)))
    module: dict[str, Any] = {}
    exec(compile(tree, f"<derived from {name}, in balls>", "exec"), module)
    module.update(rules)
    function: Callable[..., Any] = module["mean"]
    return function


class _Exactly(ast.NodeTransformer):
    """Replace float literals by balls, so that 1.0 / 3.0 encloses one third."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, float):
            return node
        name = ast.Name("_exact", ast.Load())
        return ast.copy_location(ast.Call(name, [node], []), node)


def power(x: Any, exponent: Any) -> arb:
    """Return x^exponent; the base may contain 0 or negative numbers for integer exponents only.

    Integer powers use multiplication, because Arb's power is undefined for a ball around 0.
    """
    x, exponent = arb(x), arb(exponent)
    whole = exponent.unique_fmpz() if exponent.is_exact() else None
    if whole is None or abs(whole) > _MOST_POWER:
        return x**exponent
    result, left = arb(1), abs(int(whole))
    while left:
        result = result * x if left & 1 else result
        x, left = x * x, left >> 1
    return result if whole >= 0 else 1 / result


def sigmoid(x: arb) -> arb:
    """Return 1 / (1 + e^-x)."""
    return 1 / (1 + (-x).exp())


def softplus(x: arb) -> arb:
    """Return log(1 + e^x)."""
    return x.exp().log1p()


def modulus(x: Any) -> arb:
    """Return |x|."""
    return abs(arb(x))


def relu(x: Any) -> arb:
    """Return max(x, 0); for a ball around 0, the hull of 0 and the largest number in it."""
    x = arb(x)
    return arb(0) if x <= 0 else x if x >= 0 else arb(0).union(x.upper())


def sign(x: Any) -> arb:
    """Return the derivative of |x|, 0 at 0; for a ball around 0, the hull of -1 and 1."""
    return arb(x).sgn()


def step(x: Any) -> arb:
    """Return the derivative of max(x, 0), 0 at 0; for a ball around 0, the hull of 0 and 1."""
    if arb(x) == 0:
        return arb(0)
    return (1 + sign(x)) / 2


def shifted_log(norm: Any, top: Any) -> arb:
    """Return top + log(norm)."""
    return arb(top) + arb(norm).log()


def raised(score: Any, top: arb) -> arb:
    """Return e^(score - top)."""
    return (arb(score) - top).exp()


def highest(number: Any, score: Any, others: arb) -> arb:
    """Return an exact number near the largest score of an existing element.

    A softmax does not depend on the number that is subtracted from all scores. A number near the
    largest score needs the least precision.
    """
    score = arb(score).mid()
    return score if number > 0 and score > others else others


#: Names of an emitted module for Arb numbers.
RULES: Mapping[str, Any] = {
    "_exact": exact,
    "_math": SimpleNamespace(
        exp=lambda x: arb(x).exp(),
        log=lambda x: arb(x).log(),
        tanh=lambda x: arb(x).tanh(),
        sqrt=lambda x: arb(x).sqrt(),
        inf=arb.pos_inf(),
    ),
    "_power": power,
    "_sigmoid": sigmoid,
    "_softplus": softplus,
    "_modulus": modulus,
    "_relu": relu,
    "_sign": sign,
    "_step": step,
    "_shifted_log": shifted_log,
    "_raised": raised,
    "_highest": highest,
    "_clear": plain_python(functions.clear),
    "_multiplicity": plain_python(functions.multiplicity),
    "_empty": lambda rows, columns: np.empty((rows, columns), object),
}
