"""Event I (Lemma D.2): only v moves until alpha reaches its threshold, and alpha increases."""

import math

import numpy as np
import pandas as pd

from dynamics import Population, Problem, gradient_flow
from dynamics.core.crossing import every_step
from dynamics.positional.events import find_events
from simulations.positional import theorem_4_1 as theorem

SIZES, QUICK_SIZES = (256, 1024, 4096, 16384, 65536, 262144, 1048576), (256, 4096, 65536)
FEATURES, QUICK_FEATURES = (4, 8, 16), (4,)
TOLERANCE = 1e-8
#: Flow time that is followed; alpha settles within a flow time of the order D^(-2/3).
HORIZON = 10.0
#: Largest |gamma| and |rho| at T0 that count as "only v updates": A enters as exp(A).
STILL = 0.01


def measure(quick: bool) -> pd.DataFrame:
    """Return one row per problem: alpha and the speeds of v and A on [0, T0]."""
    rows = [
        row(Problem.parametrization_3_1(D, 4, q=features / D))
        for features in (QUICK_FEATURES if quick else FEATURES)
        for D in (QUICK_SIZES if quick else SIZES)
    ]
    return pd.DataFrame(rows).set_index(["qD", "D"])


def row(problem: Problem) -> dict[str, object]:
    """Return the measurements of one problem."""
    population = Population(problem, method="fourier", tolerance=TOLERANCE)
    path = gradient_flow(population, horizon=HORIZON, rtol=1e-8, records=100)
    events = find_events(path, population)
    steps = every_step(path)
    during = steps.states[steps.time <= events.T0.time]
    gradients = np.abs([population.gradient(path.state(state)) for state in during])
    arrival = path.at(events.T0.time) if events.T0.happens else path.final
    return {
        "qD": round(problem.q * problem.D),
        "D": problem.D,
        "within": not theorem.hypotheses(problem).broken,
        "start": problem.initial_state.alpha / events.alpha_star,
        "T0": events.T0.time,
        "alpha": arrival.alpha if events.T0.happens else math.nan,
        "least_step": float(np.diff(during[:, 0]).min()) if len(during) > 1 else math.nan,
        "faster": float((gradients[:, 0] / gradients[:, 1:].max(axis=1)).min()),
        "moved": max(abs(arrival.gamma), abs(arrival.rho)),
    }


PREDICATES = {
    "alpha reaches a threshold at T0 > 0": lambda t: t["T0"] > 0.0,
    "alpha increases until T0": lambda t: (t["start"] < 1.0) & (t["least_step"] > 0.0),
    "v moves faster than each A_ij until T0": lambda t: t["faster"] > 1.0,
    "A stays at its start until T0": lambda t: t["moved"] <= STILL,
}
