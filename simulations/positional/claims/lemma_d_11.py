"""Event III (Lemma D.11): once gamma exceeds the largest |rho|, alpha increases again."""

import math

import numpy as np
import pandas as pd

from dynamics.core.crossing import every_step
from dynamics.positional.slow_manifold import SlowManifold
from simulations.positional import large_D as large
from simulations.positional import theorem_4_1 as theorem
from simulations.positional.large_D import FIXED, Case, Run

#: alpha is compared at T1 and at this many times T1.
AFTER = 1.01
#: Records after T1 at which the drift of the quasi-steady alpha is evaluated.
RECORDS = 40


def row(case: Case, run: Run) -> dict[str, object]:
    """Return whether alpha increases at T1, and for how much of the decay of the risk after it."""
    path, T1 = run.path, run.events.T1.time
    found = {**case.place, "within": case.scaling != FIXED and not theorem.hypotheses(
        path.problem).broken, "T1": T1}
    if not math.isfinite(T1):
        return found
    manifold = SlowManifold(run.population)
    later = np.geomspace(T1, path.time[-1], RECORDS)
    drift = np.array([manifold.drift(path.at(float(t))).alpha for t in later])
    risk = np.interp(np.log(later), np.log(path.time[1:]), np.log(path.loss[1:]))
    weight = np.maximum(-np.diff(risk), 0.0)
    rising = (drift[:-1] > 0.0) & (drift[1:] > 0.0)
    alpha = [path.at(float(min(t, path.time[-1]))).alpha for t in (T1, AFTER * T1)]
    return found | {
        "drift": drift[0] * T1 / alpha[0],
        "difference": (alpha[1] / alpha[0] - 1.0) / (AFTER - 1.0),
        "risk_T1": math.exp(risk[0]),
        "rising": float(weight[rising].sum() / weight.sum()),
        "growth": float(path.alpha[path.time >= T1].max() / alpha[0]),
        "final": float(path.final.alpha / alpha[0]),
    }


PREDICATES = {
    "T1 exists": lambda t: t["T1"].notna(),
    "alpha increases at T1": lambda t: (t["drift"] > 0.0) & (t["difference"] > 0.0),
    "alpha increases from T1 until the risk is 1e-3": lambda t: t["rising"] > 0.999,
}
