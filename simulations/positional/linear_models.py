"""Errors of generalized linear models (Theorem 3.1), as datasets."""

import math
from collections.abc import Sequence

import numpy as np
import xarray

from dynamics import Problem
from dynamics.positional.baselines import linear_models as models
from dynamics.positional.samples.data import draw_coefficients, labels_of_coefficients, sample
from dynamics.positional.samples.partitions import contiguous
from simulations.seeds import rng_at

#: Laws of the error: three of the model, and the limit of normal coefficients.
_LAWS = ("ties by a coin", "ties as errors", "P[f* g <= 0]", "normal coefficients")
#: Values of qD/C^2 at which errors are also sampled.
_SAMPLED = (0.25, 0.5, 1.0, 2.0, 4.0)
_IMAGES_AT_ONCE = 20_000


def error_curves(
    sizes: Sequence[tuple[int, int]], ratios: tuple[float, float, int], images: int, seed: int
) -> xarray.Dataset:
    """Return the errors of uniform weights against qD/C^2.

    Parameters
    ----------
    sizes
        Pairs (D, C).
    ratios
        Smallest and largest qD/C^2, and their number, on a logarithmic grid.
    images, seed
        Number of sampled data points up to D = 256, and root seed.

    Returns
    -------
    xarray.Dataset
        Exact errors ``coin`` (size, ratio), ``sampled`` errors and their ``deviation`` in standard
        errors (size, ratio_sampled), errors at qD = C^2, and critical ratios (size).
    """
    ratio = np.geomspace(*ratios)
    coin = np.full((len(sizes), ratio.size), np.nan)
    sampled, deviation = (np.full((len(sizes), len(_SAMPLED)), np.nan) for _ in range(2))
    streams = np.random.SeedSequence(seed, spawn_key=(31,)).spawn(len(sizes))
    for row, ((D, C), stream) in enumerate(zip(sizes, streams)):
        for column, r in enumerate(ratio):
            if r * C * C <= D * (1.0 + 1e-12):
                problem = Problem(D=D, C=C, q=min(1.0, r * C * C / D))
                coin[row, column] = models.uniform_error(problem).coin
        rng = np.random.default_rng(stream)
        for column, r in enumerate(_SAMPLED if D <= 256 else ()):
            if r * C * C <= D:
                sampled[row, column], deviation[row, column] = _sample_uniform(
                    Problem(D=D, C=C, q=r * C * C / D), images, rng
                )
    names = [f"D={D}, C={C}" for D, C in sizes]
    return xarray.Dataset(
        {
            "coin": (("size", "ratio"), coin),
            "sampled": (("size", "ratio_sampled"), sampled),
            "deviation": (("size", "ratio_sampled"), deviation),
            "reference": (("size", "kind"), [_errors_at_one(*size) for size in sizes]),
            "normal": ("ratio", models.special.ndtr(-1.0 / np.sqrt(ratio))),
            "critical": ("size", [models.critical_ratio(*size) for size in sizes]),
            "critical_literal": (
                "size",
                [models.critical_ratio(*size, literal=True) for size in sizes],
            ),
            "critical_gaussian": (
                "size",
                [models.gaussian_critical_ratio(*size) for size in sizes],
            ),
            "D": ("size", [D for D, _ in sizes]),
            "C": ("size", [C for _, C in sizes]),
        },
        coords={
            "size": names,
            "ratio": ratio,
            "ratio_sampled": list(_SAMPLED),
            "kind": list(_LAWS),
        },
        attrs={"images": images, "level": models.LEVEL},
    )


def _errors_at_one(D: int, C: int) -> list[float]:
    """Return the errors of uniform weights at qD = C^2 by the laws `_LAWS`."""
    problem = Problem(D=D, C=C, q=C * C / D)
    error, disagreement = models.uniform_error(problem), models.uniform_disagreement(problem)
    return [error.coin, error.literal, disagreement.literal, models.gaussian_error(problem)]


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


def power_errors(set_sizes: Sequence[int], powers: Sequence[float]) -> xarray.Dataset:
    """Return errors of uniform weights at q = C^k/D, D = 16 C^2 (C, k), and the k of error 1/8."""
    k = np.linspace(0.75, 3.0, 46)

    def error(C: int, power: float) -> float:
        D = 16 * C * C
        q = C**power / D
        return models.uniform_error(Problem(D=D, C=C, q=q)).coin if q <= 1.0 else math.nan

    critical = [
        2.0 + math.log(models.critical_ratio(16 * C * C, C)) / math.log(C) for C in set_sizes
    ]
    return xarray.Dataset(
        {
            "error": (("C", "k"), [[error(C, p) for p in k] for C in set_sizes]),
            "at": (("C", "k_at"), [[error(C, p) for p in powers] for C in set_sizes]),
            "critical": ("C", critical),
            "D": ("C", [16 * C * C for C in set_sizes]),
        },
        coords={"C": list(set_sizes), "k": k, "k_at": list(powers)},
    )


def best_weights(
    certified: Sequence[tuple[int, int, float]],
    searched: Sequence[tuple[int, int, float]],
    max_starts: int,
    seed: int,
) -> xarray.Dataset:
    """Return errors (problem) of uniform weights and of the best weights.

    Parameters
    ----------
    certified, searched
        D, C, q of problems with a proof of optimality, and of problems with a search.
    max_starts, seed
        Starts of a search up to D = 16, a fifth of it beyond, and root seed.
    """
    streams = np.random.SeedSequence(seed, spawn_key=(32,)).spawn(len(searched))
    problems = [Problem(D=D, C=C, q=q) for D, C, q in (*certified, *searched)]
    best = [models.best_linear_classifier(p).error for p in problems[: len(certified)]]
    for problem, stream in zip(problems[len(certified) :], streams):
        starts = max_starts if problem.D <= 16 else max_starts // 5
        result = models.search_weights(problem, np.random.default_rng(stream), starts=starts)
        best.append(result[0].coin)
    return xarray.Dataset(
        {
            "uniform": ("problem", [models.uniform_error(p).coin for p in problems]),
            "best": ("problem", best),
            "gaussian": ("problem", [models.gaussian_error(p) for p in problems]),
            "proved": ("problem", np.arange(len(problems)) < len(certified)),
        },
        coords={"problem": [f"D={p.D}, C={p.C}, q={p.q:g}" for p in problems]},
    )


def decoding_errors(
    cases: Sequence[tuple[int, int, float]], images: int, seed: int
) -> xarray.Dataset:
    """Return ``P[f* g <= 0]`` of the model that decodes base 3, exact and on sampled data points.

    The score is computed from sampled X (N, D, d) with noise.
    """
    rng = rng_at(seed, 33)
    exact, sampled, uniform, deviation = [], [], [], []
    for D, C, q in cases:
        problem = Problem(D=D, C=C, q=q, d=8)
        X, _ = sample(problem, images // 4, rng)
        score = X[:, :, 0] @ 3.0 ** np.arange(D)
        digits = models.decode_base_3(score, D).T
        sets = contiguous(problem)
        f_star = labels_of_coefficients(problem, X[:, :, 0], sets)
        g = labels_of_coefficients(problem, digits, sets)
        exact.append(models.zero_label_probability(problem))
        sampled.append(float(np.mean(f_star * g <= 0.0)))
        uniform.append(models.uniform_error(problem).coin)
        spread = math.sqrt(max(exact[-1], 1.0 / len(X)) / len(X))
        deviation.append((sampled[-1] - exact[-1]) / spread)
    return xarray.Dataset(
        {
            "exact": ("problem", exact),
            "sampled": ("problem", sampled),
            "uniform": ("problem", uniform),
            "deviation": ("problem", deviation),
        },
        coords={"problem": [f"D={D}, C={C}, q={q:g}" for D, C, q in cases]},
    )


def merge_datasets(
    curves: xarray.Dataset, powers: xarray.Dataset, weights: xarray.Dataset, decoded: xarray.Dataset
) -> xarray.Dataset:
    """Return the datasets of the figure as one."""
    return xarray.merge(
        [
            curves.drop_vars(["D", "C"]),
            powers.rename(C="set_size", D="patches", critical="critical_power"),
            weights.rename(problem="weights_problem", uniform="weights_uniform"),
            decoded.rename(
                problem="decoded_problem",
                deviation="decoded_deviation",
                sampled="decoded_sampled",
                uniform="decoded_uniform",
            ),
        ],
        compat="no_conflicts",
        join="outer",
        combine_attrs="drop_conflicts",
    )
