"""What is drawn in ``figures/explicit_transformer.py``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray

from dynamics import Problem
from dynamics.positional.baselines import explicit_transformer as explicit
from dynamics.positional.baselines.linear_models import uniform_error, zero_label_probability
from dynamics.positional.samples.partitions import contiguous
from simulations.positional.figures.explicit_transformer import RULES

#: Scale of the value vector in w*; with kappa = D the cubic part of the activation dominates.
ALPHA = 1.0


def gather_scores(D: int, C: int) -> xarray.Dataset:
    """Return the scores of the derangement and of the twin Gram matrix."""
    problem = Problem(D=D, C=C, q=C / D)
    twin, _ = explicit.paired_gram(problem, within=0.5, scale=1.0)
    return xarray.Dataset(
        {"A": (("rule", "row", "column"), [explicit.derangement_scores(problem, 2.0), twin])},
        coords={"rule": ["derangement", "twin"]},
        attrs={"set_size": C},
    )


def gather_small(cases: Sequence[tuple[int, int, float]]) -> xarray.Dataset:
    """Return errors over all images (case, rule): finite scores, enumerated; and their limits."""
    errors = np.full((len(cases), 3), np.nan)
    limits = np.full((len(cases), 3), np.nan)
    margins = np.full((len(cases), 3), np.nan)
    for row, (D, C, qD) in enumerate(cases):
        problem = Problem(D=D, C=C, q=qD / D)
        scores = [explicit.block_scores(problem), explicit.derangement_scores(problem)]
        limits[row, :2] = explicit.block_error(problem, ALPHA).error
        if problem.L % 2 == 0:
            scores.append(explicit.paired_gram(problem, within=1.0, scale=40.0)[0])
            limits[row, 2] = explicit.paired_error(problem, ALPHA).error
        for column, A in enumerate(scores):
            errors[row, column] = explicit.exact_error(problem, A, ALPHA).error
            margins[row, column] = explicit.own_set_margin(A, contiguous(problem)).min()
    return xarray.Dataset(
        {
            "enumerated": (("case", "rule"), errors),
            "limit": (("case", "rule"), limits),
            "margin": (("case", "rule"), margins),
        },
        coords={**_coordinates(cases), "rule": list(RULES[:3])},
    )


def gather_large(
    cases: Sequence[tuple[int, int, float]], twins: int, images: int, seed: int
) -> xarray.Dataset:
    """Return exact errors (case, rule) of the limits, and the derangement on sampled images.

    The twin rule is computed up to ``D = twins``; samples are drawn where they can see an error.
    """
    errors = np.full((len(cases), len(RULES)), np.nan)
    silent, sampled, margin = (np.full(len(cases), np.nan) for _ in range(3))
    streams = np.random.SeedSequence(seed, spawn_key=(34,)).spawn(len(cases))
    for row, ((D, C, qD), stream) in enumerate(zip(cases, streams)):
        problem = Problem(D=D, C=C, q=qD / D)
        errors[row, :2] = explicit.block_error(problem, ALPHA).error
        errors[row, 3] = uniform_error(problem).literal
        silent[row] = zero_label_probability(problem)
        if twins >= D:
            errors[row, 2] = explicit.paired_error(problem, ALPHA).error
        A = explicit.derangement_scores(problem)
        margin[row] = explicit.own_set_margin(A, contiguous(problem)).min()
        if errors[row, 0] * images > 10.0:
            rng = np.random.default_rng(stream)
            sampled[row] = explicit.sampled_error(problem, A, ALPHA, images, rng).error
    exact = errors[:, 0]
    return xarray.Dataset(
        {
            "error": (("case", "rule"), errors),
            "silent": ("case", silent),
            "sampled": ("case", sampled),
            "deviation": ("case", (sampled - exact) / np.sqrt(exact * (1.0 - exact) / images)),
            "margin": ("case", margin),
            "scaled": ("case", [qD == C**2 and D == 16 * C**2 for D, C, qD in cases]),
        },
        coords={**_coordinates(cases), "rule": list(RULES)},
    )


def gather_gram(D: int, C: int, draws: int, attempts: int, seed: int) -> xarray.Dataset:
    """Return the smallest own-set margin of Gram matrices over the largest squared norm.

    Of random encodings with the diagonal, and of optimized ones with and without it. Also the
    margin of the row of largest norm, which Cauchy-Schwarz bounds by 0.
    """
    problem = Problem(D=D, C=C, q=C / D)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(35,)))
    sets = contiguous(problem)
    worst, longest, meeting = [], [], []
    for _ in range(draws):
        P = rng.normal(size=(D, D)) * rng.exponential(size=D)
        A = P.T @ P
        margin = explicit.own_set_margin(A, sets) / A.diagonal().max()
        worst.append(margin.min())
        longest.append(margin[np.argmax(A.diagonal())])
        meeting.append(int(np.sum(margin < 0.0)))
    small = Problem(D=8, C=2, q=0.25)
    optimized = [
        [explicit.best_gram_margin(small, rng, diagonal=diagonal)[0] for _ in range(attempts)]
        for diagonal in (True, False)
    ]
    return xarray.Dataset(
        {
            "random_margin": ("draw", worst),
            "longest_margin": ("draw", longest),
            "rows_meeting": ("draw", meeting),
            "optimized": (("diagonal", "attempt"), optimized),
        },
        coords={"diagonal": ["included", "excluded"]},
    )


def _coordinates(cases: Sequence[tuple[int, int, float]]) -> dict[str, Any]:
    """Return the name of each case and its D, C and qD."""
    names = [f"D={D}, C={C}, qD={qD:g}" for D, C, qD in cases]
    return {"case": names} | {
        name: ("case", list(values)) for name, values in zip(("D", "C", "qD"), zip(*cases))
    }


def join(scores: xarray.Dataset, large: xarray.Dataset, gram: xarray.Dataset) -> xarray.Dataset:
    """Return what is drawn as one dataset."""
    return xarray.merge(
        [scores.rename(rule="scores"), large, gram],
        combine_attrs="drop_conflicts",
        compat="no_conflicts",
        join="outer",
    )
