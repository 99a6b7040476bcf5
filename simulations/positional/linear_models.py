"""Errors of generalized linear models (Theorem 3.1), as rows of tables."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynamics import Problem
from dynamics.positional.baselines import linear_models as models
from dynamics.positional.samples.data import draw_coefficients, labels_of_coefficients, sample
from dynamics.positional.samples.partitions import contiguous
from simulations.seeds import rng_at

#: Values of qD/C^2 at which errors are also sampled, and largest D of these problems.
SAMPLED, _LARGEST_SAMPLED = (0.25, 0.5, 1.0, 2.0, 4.0), 256
_IMAGES_AT_ONCE = 20_000

Size = tuple[int, int]
Case = tuple[int, int, float]


def error_at(D: int, C: int, ratio: float) -> float:
    """Return the exact error of uniform weights at a qD/C^2, ties decided at random.

    NaN if q would exceed 1.
    """
    q = ratio * C * C / D
    if q > 1.0 + 1e-12:
        return math.nan
    return models.uniform_error(Problem(D=D, C=C, q=min(1.0, q))).coin


def densities(D: int, C: int) -> Iterator[dict[str, Any]]:
    """Yield the critical density, and the error at qD = C^2, by each law of the error.

    The laws are three of the model, and the limit of normal coefficients.
    """
    problem = Problem(D=D, C=C, q=C * C / D)
    error, disagreement = models.uniform_error(problem), models.uniform_disagreement(problem)
    laws = {
        "ties by a coin": (models.critical_ratio(D, C), error.coin),
        "ties as errors": (models.critical_ratio(D, C, literal=True), error.literal),
        "P[f* g <= 0]": (math.nan, disagreement.literal),
        "normal coefficients": (
            models.gaussian_critical_ratio(D, C),
            models.gaussian_error(problem),
        ),
    }
    for law, (critical, at_one) in laws.items():
        yield {"D": D, "C": C, "kind": law, "critical_density": critical, "error_at_one": at_one}


def sampled_errors(sizes: Sequence[Size], images: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield sampled errors of uniform weights, and their deviations in standard errors.

    Parameters
    ----------
    sizes
        Pairs (D, C); those with a large D are left out.
    images, seed
        Number of sampled data points, and root seed.
    """
    streams = np.random.SeedSequence(seed, spawn_key=(31,)).spawn(len(sizes))
    for (D, C), stream in zip(sizes, streams):
        rng = np.random.default_rng(stream)
        for ratio in SAMPLED if D <= _LARGEST_SAMPLED else ():
            if ratio * C * C <= D:
                problem = Problem(D=D, C=C, q=ratio * C * C / D)
                error, deviation = _sample_uniform(problem, images, rng)
                row = {"D": D, "C": C, "density": ratio}
                yield row | {"sampled": error, "deviation": deviation}


def _sample_uniform(problem: Problem, images: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the sampled error of uniform weights and its deviation in standard errors."""
    wrong, remaining = 0.0, images
    while remaining:
        count = min(remaining, _IMAGES_AT_ONCE)
        s, y = draw_coefficients(problem, count, rng, contiguous(problem))
        margin = y * s.sum(axis=1, dtype=int)
        wrong += float(np.sum(margin < 0) + 0.5 * np.sum(margin == 0))
        remaining -= count
    exact = models.uniform_error(problem)
    variance = exact.wrong + 0.25 * exact.ties - exact.coin**2
    return wrong / images, (wrong / images - exact.coin) / math.sqrt(variance / images)


def best_weights(
    certified: Sequence[Case], searched: Sequence[Case], max_starts: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield errors of uniform weights and of the best weights.

    Parameters
    ----------
    certified, searched
        D, C, q of problems with a proof of optimality, and of problems with a search.
    max_starts, seed
        Starts of a search up to D = 16, a fifth of it beyond, and root seed.
    """
    streams = np.random.SeedSequence(seed, spawn_key=(32,)).spawn(len(searched))
    cases = zip((*certified, *searched), (*[None] * len(certified), *streams))
    for (D, C, q), stream in cases:
        problem = Problem(D=D, C=C, q=q)
        uniform = models.uniform_error(problem).coin
        if stream is None:
            best = models.best_linear_classifier(problem).error
        else:
            starts = max_starts if problem.D <= 16 else max_starts // 5
            rng = np.random.default_rng(stream)
            best = models.search_weights(problem, rng, starts=starts)[0].coin
        yield {
            "D": D,
            "C": C,
            "q": q,
            "uniform": uniform,
            "best": best,
            "improvement": uniform - best,
            "gaussian": models.gaussian_error(problem),
            "proved": stream is None,
        }


def decoding_errors(cases: Sequence[Case], images: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield ``P[f* g <= 0]`` of the model that decodes base 3, exact and on sampled data points.

    The score is computed from sampled X (N, D, d) with noise.
    """
    rng = rng_at(seed, 33)
    for D, C, q in cases:
        problem = Problem(D=D, C=C, q=q, d=8)
        X, _ = sample(problem, images // 4, rng)
        score = X[:, :, 0] @ 3.0 ** np.arange(D)
        digits = models.decode_base_3(score, D).T
        sets = contiguous(problem)
        f_star = labels_of_coefficients(problem, X[:, :, 0], sets)
        g = labels_of_coefficients(problem, digits, sets)
        exact = models.zero_label_probability(problem)
        sampled = float(np.mean(f_star * g <= 0.0))
        yield {
            "D": D,
            "C": C,
            "q": q,
            "decoded": exact,
            "decoded_sampled": sampled,
            "decoded_uniform": models.uniform_error(problem).coin,
            "deviation": (sampled - exact) / math.sqrt(max(exact, 1.0 / len(X)) / len(X)),
        }
