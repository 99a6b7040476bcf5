"""Section 4.1: at A(0) the model is a generalized linear one, and its risk is high."""

import math

import numpy as np
import pandas as pd
from scipy import optimize

from dynamics import Population, Problem, SlowManifold, State
from dynamics.positional.baselines.linear_models import LEVEL, uniform_error
from dynamics.positional.random_sets import sum_of_signs
from simulations.positional import theorem_4_1 as theorem

#: q = C^k / D at D = 16 C^2.
SET_SIZES, POWERS = (4, 8, 16), (1.0, 1.5, 2.0)
QUICK_SET_SIZES, QUICK_POWERS = (4, 8), (1.0, 2.0)
#: log(1 + e^-m) >= log 2 where m <= 0: an error of 1/8 (Theorem 3.1) makes a risk of this much.
HIGH = LEVEL * math.log(2.0)
TOLERANCE = 1e-8


def measure(quick: bool) -> pd.DataFrame:
    """Return one row per problem: error and least risk of the linear predictor and of F at A(0)."""
    rows = [
        row(C, k)
        for k in (QUICK_POWERS if quick else POWERS)
        for C in (QUICK_SET_SIZES if quick else SET_SIZES)
    ]
    return pd.DataFrame(rows).set_index(["k", "C"])


def least_linear_risk(problem: Problem) -> float:
    """Return min over a of E log(1 + exp(-a T)), T = C + R the sum of all coefficients."""
    law, _ = sum_of_signs(problem.D - problem.C, problem.q)
    T = problem.C + np.arange(law.size) - law.size // 2

    def risk(log_a: float) -> float:
        return float(law @ np.logaddexp(0.0, -math.exp(log_a) * T))

    return float(optimize.minimize_scalar(risk, bounds=(-12.0, 5.0), method="bounded").fun)


def row(C: int, k: float) -> dict[str, object]:
    """Return the measurements at q = C^k / D."""
    D = 16 * C * C
    problem = Problem.parametrization_3_1(D, C, q=C**k / D)
    population = Population(problem, tolerance=TOLERANCE)
    alpha = SlowManifold(population).alpha(0.0, 0.0)
    value, linear = population.evaluate(State(alpha, 0.0, 0.0)), uniform_error(problem)
    return {
        "k": k,
        "C": C,
        "D": D,
        "within": not theorem.hypotheses(problem).broken,
        "model_error": value.test_error,
        "linear_error": linear.literal,
        "allowed": value.test_error_bound + linear.bound,
        "linear_risk": least_linear_risk(problem),
        "model_risk": value.loss,
    }


STRICT = {
    "F errs where the linear predictor does": lambda t: (
        (t["model_error"] - t["linear_error"]).abs() <= t["allowed"] + 1e-12
    )
}
PREDICATES = {
    "error at least 1/8": lambda t: t["linear_error"] >= LEVEL,
    "risk at least log(2)/8 at every scale of v": lambda t: (
        (t["linear_risk"] >= HIGH) & (t["model_risk"] >= HIGH)
    ),
}
