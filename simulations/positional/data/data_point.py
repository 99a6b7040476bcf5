"""What is drawn in ``figures/data_point.py``."""

from __future__ import annotations

import numpy as np
import xarray

from dynamics import Problem
from dynamics.positional.samples.data import labelling_function, sample
from dynamics.positional.samples.partitions import set_of, squares

_MAX_DRAWS = 10_000


def gather(problem: Problem, seed: int) -> xarray.Dataset:
    """Draw data points until one with y = +1 has more patches "-1" than "+1"; return it.

    X (D, d) on a square grid, sets being squares. ``draws`` counts the data points with y = +1
    that were drawn, ``outvoted`` is their share with more "-1" than "+1" among `_MAX_DRAWS`.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(36,)))
    sets = squares(problem)
    w = rng.normal(size=problem.dimension)
    w /= np.linalg.norm(w)
    X, y = sample(problem, _MAX_DRAWS, rng, sets, w)
    X = X[y > 0.0]
    coefficients = np.rint(X @ w).astype(int)
    outvoted = coefficients.sum(axis=1) < 0
    chosen = int(np.argmax(outvoted))
    s, owner = coefficients[chosen], set_of(problem, sets)
    whole = [bool(np.all(s[patches] == 1)) for patches in sets]
    return xarray.Dataset(
        {"X": (("patch", "entry"), X[chosen]), "coefficient": ("patch", s),
         "set": ("patch", owner), "w_star": ("entry", w)},
        attrs={
            "signal_set": int(np.argmax(whole)),
            "whole_sets": int(sum(whole)),
            "f_star": float(labelling_function(problem, X[chosen : chosen + 1], sets, w)[0]),
            "draws": chosen + 1,
            "outvoted": float(outvoted.mean()),
            "images": int(outvoted.size),
            "residual": float(np.abs(X @ w - coefficients).max()),
            "C": problem.C,
        },
    )  # fmt: skip
