"""An emitted function in as many digits as asked for: mpmath instead of floats, nothing else."""

from types import SimpleNamespace

import mpmath
import numpy as np

from dynamics.theory.kernel import columns


def with_digits(text, constants, theta, data, digits):
    """Return risk and gradient of an emitted function, rounded from so many digits."""
    module: dict = {}
    exec(text, module)
    one = mpmath.mpf(1)
    module["_math"] = SimpleNamespace(
        exp=mpmath.exp, log=mpmath.log, tanh=mpmath.tanh, sqrt=mpmath.sqrt, inf=mpmath.inf
    )
    module["_power"] = mpmath.power
    module["_sigmoid"] = lambda x: one / (one + mpmath.exp(-x))
    module["_softplus"] = lambda x: mpmath.log1p(mpmath.exp(x))
    module |= {"_modulus": abs, "_sign": mpmath.sign, "_relu": lambda x: max(x, 0 * one)}
    module |= {"_step": lambda x: one * (x > 0), "_shifted_log": lambda x, y: y + mpmath.log(x)}
    module["_raised"] = lambda score, top: mpmath.exp(score - top)
    module["_highest"] = lambda number, score, others: max(score, others) if number > 0 else others
    module["_empty"] = lambda rows, columns: np.empty((rows, columns), object)
    with mpmath.workdps(digits):
        numbers, at = [[mpmath.mpf(x) for x in row] for row in (constants, theta)]
        out, function = [None] * len(at), module["mean"]
        risk = function(at, out, numbers, *columns(function, data, mpmath.mpf))
        return float(risk), [float(x) for x in out]
