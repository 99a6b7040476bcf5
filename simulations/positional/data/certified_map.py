"""What is drawn in ``figures/certified_map.py``."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import xarray
from scipy import optimize

from dynamics import Problem
from simulations.positional.invariance.box import Box
from simulations.positional.invariance.certified import bounds
from simulations.positional.symmetric_line import line_drift

ANSWERS = ("neither proved", "proved >= 0", "proved < 0")
_ALPHA, _X, _NU, _BETA = 0.4, 0.25, 0.01, 1.0
_SLICES = 4  # of the interval of gamma = rho, bounded one by one
_CURVE = 41  # values of alpha at which the critical qD is computed


def gather(
    D: int, C: int, levels: int, progress: Callable[[float], None] = lambda fraction: None
) -> xarray.Dataset:
    """Divide alpha in [0, 0.4] x qD in [0, C^2], halving boxes of no proved sign ``levels`` times.

    The boxes are columns ``alpha_low, alpha_high, qD_low, qD_high, answer`` (an index of
    `ANSWERS`); the critical qD is a curve over alpha for each end of the interval of gamma = rho.
    """
    waiting = [(0, (0.0, _ALPHA), (0.0, float(C * C)))]
    rows = []
    while waiting:
        level, alpha, density = waiting.pop()
        answer = _answer(D, C, alpha, density)
        if answer == 0 and level < levels:
            halves = [_halves(alpha), _halves(density)]
            waiting += [(level + 1, a, d) for a in halves[0] for d in halves[1]]
        else:
            rows.append((*alpha, *density, answer))
            progress(sum(_area(row) for row in rows) / (_ALPHA * C * C))
    names = ("alpha_low", "alpha_high", "qD_low", "qD_high", "answer")
    alphas, ends = np.linspace(0.0, _ALPHA, _CURVE)[1:], (-_X, _X)
    curves = [[_critical(D, C, alpha, x) for alpha in alphas.tolist()] for x in ends]
    return xarray.Dataset(
        {name: ("box", column) for name, column in zip(names, np.array(rows).T)}
        | {"critical": (("x", "alpha"), curves)},
        coords={"x": list(ends), "alpha": alphas},
        attrs={"D": D, "C": C, "start": math.sqrt(_NU)},
    )


def shares(data: xarray.Dataset) -> dict[str, float]:
    """Return the part of the plane with each answer."""
    areas = (data["alpha_high"] - data["alpha_low"]) * (data["qD_high"] - data["qD_low"])
    return {
        answer: float(areas.where(data["answer"] == index, 0.0).sum() / areas.sum())
        for index, answer in enumerate(ANSWERS)
    }


def _answer(D: int, C: int, alpha: tuple[float, float], density: tuple[float, float]) -> int:
    q = Fraction(density[0]) / D, Fraction(density[1]) / D
    edges = np.linspace(-_X, _X, _SLICES + 1).tolist()
    signs = set()
    for low, high in itertools.pairwise(edges):
        box = Box(D, C, alpha, q, (low, high), (_NU, _NU), (_BETA, _BETA))
        (cell,) = box.cells()  # gamma = rho stays below beta
        least, greatest, _ = bounds(box, cell, precision=64)
        signs.add(1 if least >= 0.0 else 2 if greatest < 0.0 else 0)
    return signs.pop() if len(signs) == 1 else 0


def _halves(interval: tuple[float, float]) -> tuple[tuple[float, float], tuple[float, float]]:
    low, high = interval
    middle = 0.5 * (low + high)
    return (low, middle), (middle, high)


def _area(row: tuple[float, ...]) -> float:
    return (row[1] - row[0]) * (row[3] - row[2])


def _critical(D: int, C: int, alpha: float, x: float) -> float:
    """Return the qD at which the drift changes its sign, nan if it does not."""

    def drift(qD: float) -> float:
        return line_drift(Problem(D=D, C=C, q=qD / D, nu=_NU, beta=_BETA), alpha, x).total

    low, high = 1e-3 * C * C, float(C * C)
    if drift(low) * drift(high) > 0.0:
        return math.nan
    return float(optimize.brentq(drift, low, high, rtol=1e-6))
