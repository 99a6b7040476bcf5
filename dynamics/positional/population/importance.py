"""Proposal distributions of the importance sampling.

The loss of a trained model comes from rare images: those with a nonpositive sum T of all
coefficients, and those with a random set of (nearly) only -1, a negated signal set. Three proposals
are exponential tilts of the sum of a set, with mean T = 0, -C/2 and -C. Two proposals make one or
two sets of an image (nearly) all -1.
"""

import math
from bisect import bisect_left

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from dynamics.positional.population.truncation import Neglected, expected_sets
from dynamics.positional.problem import Problem
from dynamics.positional.random_sets import set_types


def proposal_laws(problem: Problem) -> list[np.ndarray]:
    """Return the proposal distributions of one set.

    Each is an array of the probabilities of the types of
    :func:`~dynamics.positional.random_sets.set_types`, with the empty type last.
    """
    types = set_types(problem)
    law = np.append(types.probability, types.empty)
    law /= law.sum()
    total = np.append(types.plus - types.minus, 0)
    laws = []
    for share in (1.0, 1.5, 2.0):
        theta = _tilt(problem, share)
        tilted = law * np.exp(-theta * (total + problem.C))
        if not tilted.sum() > 0.0:  # everything underflows for very rare features
            with np.errstate(divide="ignore"):
                logs = np.log(law) - theta * (total + problem.C)
            tilted = np.exp(logs - logs.max())
        laws.append(tilted / tilted.sum())
    for level, number in ((problem.C, 1.0), (problem.C - 1, 2.0)):
        extreme = total <= -level
        probability, target = float(law[extreme].sum()), min(0.5, number / (problem.L - 1))
        if 0.0 < probability < target:
            factors = target / probability, (1 - target) / (1 - probability)
            laws.append(law * np.where(extreme, *factors))
    return laws


def _tilt(problem: Problem, share: float) -> float:
    """Return theta >= 0 with ``E[R] = -share C`` under signs tilted by e^(-theta sign).

    E[R] is at least nine tenths of the smallest possible R.
    """
    goal = min(share * problem.C / (problem.D - problem.C), 0.9)

    def excess(theta: float) -> float:
        down, up = problem.q / 2.0, problem.q / 2.0 * math.exp(-2.0 * theta)
        whole = down + up + (1.0 - problem.q) * math.exp(-theta)
        return (down - up) / whole - goal if whole > 0.0 else 1.0 - goal  # the limit

    return float(optimize.brentq(excess, 0.0, 800.0, xtol=1e-6))


def unsampled(problem: Problem, samples: int, laws: list[np.ndarray]) -> Neglected:
    """Return the images with more features than a sample is expected to contain, in groups.

    The mixture of all proposals has fewer than 3 expected images there (the rule of three). The
    probabilities are SciPy's, without certified errors. The L_p norm of T, a sum of signs, is at
    most ``C + sqrt((p - 1) k)`` (hypercontractivity).

    Parameters
    ----------
    problem
        Constants of data and model.
    samples
        Number of images.
    laws
        Proposal distributions, from :func:`proposal_laws`.
    """
    types = set_types(problem)
    size = np.append(types.plus + types.minus, 0)
    trials, q = problem.D - problem.C, problem.q
    spread = math.sqrt(trials * q * (1.0 - q)) + 1.0
    means = [(problem.L - 1) * float(law @ size) for law in laws] or [trials * q]
    # k beyond which the proposal with the most features has fewer than three expected images
    widest = min(1.0, max(means) / trials)
    part = samples / (2.0 * max(1, len(laws)))
    few = min(1.0, 3.0 / part)
    k = bisect_left(range(trials), -few, key=lambda k: -float(_above(k, trials, widest)))
    steps = k + np.ceil(0.25 * spread * np.arange(1, 80))
    edges = np.append(steps[steps < trials], trials).astype(float)
    starts = np.concatenate([[float(k)], edges[:-1]])
    above = _above(starts, trials, q) - _above(edges, trials, q)
    norm = np.minimum(problem.C + np.sqrt((problem.p - 1.0) * edges), problem.C + edges)
    sets = expected_sets(trials, problem.C, edges) * (problem.L - 1)
    return Neglected(np.maximum(above, 0.0), norm, sets)


def _above(k: npt.ArrayLike, trials: int, q: float) -> np.ndarray:
    """Return P[N > k] for binomial N, an incomplete beta function."""
    k = np.asarray(k, float)
    mass = special.betainc(k + 1.0, np.maximum(trials - k, 1.0), q)
    return np.where(k < trials, mass, 0.0)
