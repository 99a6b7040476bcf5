"""The emitted function of a stated theory in ball arithmetic: what the digits of a float are worth.

The same source, run as plain Python on numbers of Arb: no second derivation that could differ from
the first. Its numbers are read as the rationals that they are written as, its functions are those
of `dynamics.theory.functions`, defined by their formula. A ball holds the exact value whatever
precision it is computed in; too little precision makes it wide, never wrong.
"""

import ast
import math
from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from dynamics.core.balls.exact import above, below, exact
from dynamics.theory.data import Orbits
from dynamics.theory.kernel import columns

#: Precision in bits, doubled from the least until every ball is narrow, or to the most.
LEAST_BITS, MOST_BITS = 128, 4096
#: Relative width of a ball that is narrow: far below the spacing of floats.
_NARROW = 2.0**-70
_MOST_POWER = 2**16
#: Digits that a float can have.
ALL = 16


class Proved(NamedTuple):
    """A float and a bound of its relative error that is proved; inf where nothing is."""

    value: float
    bound: float

    @property
    def digits(self) -> int:
        """How many significant decimal digits are proved to be right; 0: none."""
        if self.bound == 0.0:
            return ALL
        return min(ALL, max(0, math.floor(-math.log10(self.bound)))) if self.bound < 1.0 else 0


def proved(
    source: str,
    name: str,
    found: tuple[float, ArrayLike],
    data: Callable[[], Orbits],
    state: ArrayLike,
    constants: Sequence[float],
) -> tuple[Proved, ...]:
    """Return risk and gradient of a float kernel with bounds of their relative errors.

    Parameters
    ----------
    source, name
        What the kernel was compiled from.
    found
        Risk and gradient at the state, whatever computed them.
    data
        Returns data orbits whose chances and values hold the exact ones, in the precision that is
        set: balls, or floats that are exact.
    state, constants
        Floats, taken as the numbers that they are.

    Returns
    -------
    tuple of Proved
        For the risk and each entry of the gradient. Nothing is proved of a value that is not told
        from 0 at `MOST_BITS` bits, unless it is 0 exactly and so is the float.
    """
    floats = [float(found[0]), *np.asarray(found[1], float).tolist()]
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
    """Return balls around risk and gradient, in the precision that is set."""
    numbers = [exact(x) for x in constants]
    theta = [exact(x) for x in np.asarray(state, float)]
    function, out = _function(source, name), [arb(0)] * len(theta)
    return function(theta, numbers, *columns(function, data, exact), out), *out


def _is_narrow(ball: arb) -> bool:
    return ball == 0 or bool(ball.rad() < abs(ball) * _NARROW)


def _error(found: float, ball: arb) -> float:
    """Return a bound of the relative error of a float; inf if nothing is known."""
    if not (math.isfinite(found) and ball.is_finite()):
        return math.inf
    if ball == 0:
        return 0.0 if found == 0.0 else math.inf
    least = exact(below(abs(ball)))
    return above(abs(exact(found) - ball) / least) if least > 0 else math.inf


@cache
def _function(source: str, name: str) -> Callable[..., arb]:
    """Return the function ``mean`` of an emitted module, its numbers and functions those of Arb."""
    tree = ast.fix_missing_locations(_Exactly().visit(ast.parse(source)))
    module: dict[str, Any] = {}
    exec(compile(tree, f"<derived from {name}, in balls>", "exec"), module)
    module.update(_FUNCTIONS)
    function: Callable[..., arb] = module["mean"]
    return function


class _Exactly(ast.NodeTransformer):
    """Numbers with a point become balls, so that 1.0 / 3.0 is a third."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, float):
            return node
        name = ast.Name("_exact", ast.Load())
        return ast.copy_location(ast.Call(name, [node], []), node)


def power(x: Any, exponent: Any) -> arb:
    """Return x^exponent; of a number that may be 0 or less for whole exponents alone.

    Those are by multiplication: Arb's own power knows nothing of a ball around 0.
    """
    x, exponent = arb(x), arb(exponent)
    whole = exponent.unique_fmpz() if exponent.is_exact() else None
    if whole is None or abs(whole) > _MOST_POWER:
        return x**exponent
    found, left = arb(1), abs(int(whole))
    while left:
        found = found * x if left & 1 else found
        x, left = x * x, left >> 1
    return found if whole >= 0 else 1 / found


def sigmoid(x: arb) -> arb:
    """Return 1 / (1 + e^-x)."""
    return 1 / (1 + (-x).exp())


def softplus(x: arb) -> arb:
    """Return log(1 + e^x)."""
    return x.exp().log1p()


def raised(score: Any, top: arb) -> arb:
    """Return e^(score - top), whatever ``top``."""
    return (arb(score) - top).exp()


def highest(number: Any, score: Any, others: arb) -> arb:
    """Return a number near the largest score of an element that there is.

    A softmax is the same whatever is taken from all scores, so that any exact number will do; near
    the largest it takes the least precision.
    """
    score = arb(score).mid()
    return score if number > 0 and score > others else others


_FUNCTIONS: dict[str, Any] = {
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
    "_raised": raised,
    "_highest": highest,
    "_empty": lambda rows, columns: np.empty((rows, columns), object),
}
