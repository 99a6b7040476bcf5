"""Emitted functions of theories in high precision, with mpmath numbers instead of floats."""

from types import SimpleNamespace

import mpmath
import numpy as np

from dynamics.theory.kernel import columns


def high_precision_mean(text, constants, state, data, digits):
    """Return risk and gradient of an emitted module, computed with a number of decimal digits."""
    module: dict = {}
    exec(text, module)
    unit = mpmath.mpf(1)
    module["_math"] = SimpleNamespace(
        exp=mpmath.exp, log=mpmath.log, tanh=mpmath.tanh, sqrt=mpmath.sqrt, inf=mpmath.inf
    )
    module["_power"] = mpmath.power
    module["_sigmoid"] = lambda x: unit / (unit + mpmath.exp(-x))
    module["_softplus"] = lambda x: mpmath.log1p(mpmath.exp(x))
    module |= {"_modulus": abs, "_sign": mpmath.sign, "_relu": lambda x: max(x, 0 * unit)}
    module |= {"_step": lambda x: unit * (x > 0), "_shifted_log": lambda x, y: y + mpmath.log(x)}
    module["_raised"] = lambda score, top: mpmath.exp(score - top)
    module["_highest"] = lambda number, score, others: max(score, others) if number > 0 else others
    module["_empty"] = lambda rows, columns: np.empty((rows, columns), object)
    with mpmath.workdps(digits):
        numbers, theta = [[mpmath.mpf(x) for x in row] for row in (constants, state)]
        out, function = [None] * len(theta), module["mean"]
        risk = function(theta, out, numbers, *columns(function, data, mpmath.mpf))
        return float(risk), [float(x) for x in out]
