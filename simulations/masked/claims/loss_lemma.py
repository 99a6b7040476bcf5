"""Huang et al., Lemmas A.8 to A.10: the loss in terms of attention, its floor, and its gap."""

import numpy as np
import pandas as pd

from dynamics.masked import MaskedProblem
from dynamics.masked.oracle import FullMaskedModel
from simulations.masked import runs

#: Scales of random correlations; the last states have a nearly one-hot attention.
SCALES = (0.3, 1.0, 3.0, 10.0)
#: Correlation with p's own areas at which the loss is compared with its floor.
ALIGNED = 40.0
#: Rounding of the two ways to compute a loss, relative to z^2.
ROUNDING = 1e-12


def row(number: int, problem: MaskedProblem, seed: int) -> dict[str, object]:
    """Return loss, floor and the two bounds of Lemma A.10 at the worst of the random states."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    model, population = FullMaskedModel(problem), runs.population(problem)
    columns, square = runs.columns_of(problem), problem.z_low**2
    masked = problem.masked / problem.P
    difference, above_floor, lower, upper = [], [], [], []
    for scale in SCALES:
        state = scale * rng.normal(size=len(problem.order_parameters))
        Q = rng.normal(size=(model.dimension,) * 2)
        Q[problem.patch] = state[columns]
        raw = float(model.evaluate(Q)[0][problem.patch])
        value = population.evaluate(state)
        gap, short = (raw - problem.floor) / square, float(np.mean(value.shortfall))
        difference.append(abs(raw - value.loss) / square)
        above_floor.append(gap)
        lower.append(gap - 0.5 * masked * short)
        upper.append(masked * short + problem.floor / square - gap)
    aligned = np.zeros(len(problem.order_parameters))
    for areas in problem.layout.clusters:
        aligned[areas.own_slot] = ALIGNED / problem.z_low
    return {
        "problem": number,
        "P": problem.P,
        "K": problem.K,
        "difference": max(difference),
        "above_floor": min(above_floor),
        "lower": min(lower),
        "upper": min(upper),
        "aligned": (population.evaluate(aligned).loss - problem.floor) / square,
    }


def measure(count: int, seed: int) -> pd.DataFrame:
    """Return one row per random problem."""
    problems = runs.random_problems(count, seed)
    rows = [row(number, problem, seed) for number, problem in enumerate(problems)]
    return pd.DataFrame(rows).set_index("problem")


STRICT = {
    "A.8: the raw loss is that of the attention": lambda t: t["difference"] <= ROUNDING,
    "A.9: no attention is below the floor": lambda t: t["above_floor"] >= -ROUNDING,
    "A.9: the floor is approached": lambda t: t["aligned"].abs() <= ROUNDING,
    "A.10: lower bound": lambda t: t["lower"] >= -ROUNDING,
    "A.10: upper bound": lambda t: t["upper"] >= -ROUNDING,
}
