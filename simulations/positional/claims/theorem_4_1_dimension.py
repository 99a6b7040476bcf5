"""Theorem 4.1 with d = poly(D) different from D (Assumption 2): d = D^c."""

import math
from collections.abc import Iterator

import pandas as pd

from dynamics import Problem
from simulations.positional import runs
from simulations.positional import theorem_4_1 as theorem

#: c of d = D^c. C = 8: at C = 4 the labelling function errs too often for d > D.
EXPONENTS, QUICK_EXPONENTS = (0.5, 1.0, 1.5, 2.0), (0.5, 2.0)
SIZES, QUICK_SIZES = (256, 512), (256,)
C = 8
#: Flow times D^k at which conclusions must hold, and what counts as o(1): D^(-1). Both are powers
#: of D for every c: poly(d) and poly(D) are the same, and so the rows differ by nu and beta alone.
HORIZONS = (2, 3, 4)
SUFFICIENT = 3


def problems(quick: bool) -> Iterator[tuple[float, Problem]]:
    """Yield c and the problem with d = D^c in the paper's parametrization, q = C/D."""
    for c in QUICK_EXPONENTS if quick else EXPONENTS:
        for D in QUICK_SIZES if quick else SIZES:
            yield c, Problem.parametrization_3_1(D, C, q=C / D, d=round(D**c))


def rows(c: float, problem: Problem) -> Iterator[dict[str, object]]:
    """Yield the conclusions at each of `HORIZONS`."""
    D = problem.D
    path = runs.flow(problem, theorem.TOLERANCE, float(D) ** HORIZONS[-1], records=300)
    population = runs.population(problem, theorem.TOLERANCE)
    for power in HORIZONS:
        values = theorem.conclusions(path, population, float(D) ** power)
        yield {
            "c": c,
            "D": D,
            "power": power,
            "d": problem.dimension,
            "within": not theorem.hypotheses(problem).broken,
            "associates": values.associates,
            "disagreement": values.disagreement,
            "risk": values.risk,
            "small": 1.0 / D,
        }


def measure(quick: bool) -> pd.DataFrame:
    """Return one row per c, D and flow time."""
    found = [row for c, problem in problems(quick) for row in rows(c, problem)]
    return pd.DataFrame(found).set_index(["c", "D", "power"])


#: Conclusions at one time; evaluated from D^`SUFFICIENT` on.
PREDICATES = {
    "item 1: patch association": lambda t: t["associates"] == True,  # noqa: E712
    "item 2: P[f* F <= 0] at most 1/D": lambda t: t["disagreement"] <= t["small"],
    "population risk at most 1/D": lambda t: t["risk"] <= t["small"],
}
