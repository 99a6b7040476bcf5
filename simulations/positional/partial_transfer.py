"""Fine-tuning on a task that shares only a part of its sets with the pre-training (Section 5)."""

from functools import cache, partial

import numpy as np
from numpy.typing import ArrayLike

from dynamics import Problem
from dynamics.positional.baselines.changed_sets import changed_error, changed_order, unchanged_error
from dynamics.positional.baselines.set_knowledge import bayes_error
from dynamics.positional.samples import initial_weights, random_feature, sample
from simulations.positional.learners import MIDDLE
from simulations.positional.training_runs import stored
from simulations.positional.transfer_runs import (
    OMEGA,
    downstream,
    fine_tuned_error,
    held_out,
    pretrained,
)
from simulations.positional.transfer_statistics import SEEDS, Sweep
from simulations.reproduction.claim import Context
from simulations.seeds import rng_at

#: Number of held-out samples of each group of runs.
TESTED = 4000
#: Scale of v for the exact errors; as large as after training, so that the cubic part dominates.
ALPHA = 2.0
#: Key of the random streams, distinct from the ones of `transfer_runs`.
_STREAM = 53


def configuration(context: Context) -> tuple[int, tuple[float, ...], tuple[int, ...], int]:
    """Return D, the shares of unchanged sets, the sample sizes, and the number of runs.

    The number of runs is a multiple of the number of groups.
    """
    if context.quick:
        return 32, (1.0, 0.5, 0.0), (1, 4, 16), 2 * SEEDS
    return (
        64,
        (1.0, 0.75, 0.5, 0.25, 0.0),
        (1, 2, 5, 16, 64),
        (10 if context.thorough else 4) * SEEDS,
    )


def sweeps(context: Context) -> dict[float, Sweep]:
    """Return the test errors for each share of unchanged sets."""
    (D, shares, sizes, runs), seed = configuration(context), context.seed
    problem = downstream(D, MIDDLE)
    results: dict[float, Sweep] = {}
    for share in context.track(shares):
        compute = partial(_errors, problem, share, sizes, runs, seed)
        errors = stored(context, f"partial-{D}-{share:g}-{seed}", compute)
        results[share] = Sweep(f"share {share:g}", problem, sizes, errors)
    return results


def _errors(
    problem: Problem, share: float, sizes: tuple[int, ...], runs: int, seed: int
) -> list[list[float]]:
    return [[test_error(problem, share, N, run, seed) for run in range(runs)] for N in sizes]


@cache
def test_error(problem: Problem, share: float, N: int, number: int, seed: int) -> float:
    """Return the test error after training v on N samples with a share of unchanged sets.

    The data of run ``number`` are the same for all shares.
    """
    group = number % SEEDS
    key = (_STREAM, problem.D, N, number)
    rng = rng_at(seed, *key)
    w_star = random_feature(problem, rng)
    X, y = sample(problem, N, rng, w_star=w_star)
    _, v = initial_weights(problem, rng, OMEGA)
    order = changed_order(problem, round(share * problem.L), rng)
    A = pretrained(problem, seed, group)[np.ix_(order, order)]
    return fine_tuned_error(problem, A, v, X, y, w_star, held_out(problem, seed, group, TESTED))


def uniform_attention_error(problem: Problem, shares: ArrayLike) -> np.ndarray:
    """Return the exact error of uniform attention to the old sets, with ties by a coin, (n,)."""
    old, new = unchanged_error(problem, ALPHA).coin, changed_error(problem, ALPHA).coin
    share = np.asarray(shares)
    return np.asarray(share * old + (1.0 - share) * new)


def bayes_errors(problem: Problem, shares: ArrayLike) -> np.ndarray:
    """Return the least error of any rule that knows the unchanged sets only, (n,)."""
    known = np.rint(np.asarray(shares) * problem.L).astype(int)
    return np.array([bayes_error(problem, number).coin for number in known.tolist()])
