"""Theorem 4.2 with Parametrization 3.1's own start, kappa = D and one learning rate."""

import math
from collections.abc import Iterator

import numpy as np

from dynamics import Problem
from dynamics.core.trajectory import Status
from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.labelling import label_error
from dynamics.positional.samples import HeldOut, contiguous, random_feature, sample
from dynamics.positional.samples.flow import train_by_flow

#: Flow times d^k at which the conclusions must hold: T >= poly(d)/eta.
POWERS = (3, 4)
#: As in `theorem-4.2`: largest P[f* F <= 0], in units of the exact error of uniform attention, and
#: the hypotheses at finite size, P[y f* <= 0] and N over D^2.
TOLERANCE, LABELS, SAMPLES = 0.25, 0.01, 4.0
C, RUNS = 4, 3
TESTED, TEST_SEED = 20_000, 1


def problems(quick: bool, thorough: bool) -> list[Problem]:
    """Return the problems in the paper's parametrization, d = D."""
    sizes = (16, 24, 32) if thorough else (16,)
    return [
        Problem.parametrization_3_1(D, C, q=features / D)
        for D in sizes
        for features in ((C,) if quick else (C, 2 * C))
    ]


def rows(problem: Problem, N: int, seed: int, number: int) -> Iterator[dict[str, object]]:
    """Yield the conclusions of one run at each of `POWERS`."""
    d = problem.dimension
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(d, number)))
    w_star, partition = random_feature(problem, rng), contiguous(problem)
    X, y = sample(problem, N, rng, partition, w_star)
    held_out = HeldOut(problem, TESTED, TEST_SEED, partition)
    result = train_by_flow(
        problem, X, y, horizon=float(d) ** POWERS[-1], rng=rng, omega=1.0 / d, w_star=w_star,
        partition=partition, held_out=held_out, records=400, threads=1,
    )  # fmt: skip
    history = result.history
    for power in POWERS:
        at = int(np.searchsorted(history.time, float(d) ** power * (1 - 1e-9)))
        reached = at < history.time.size and result.status is Status.COMPLETED
        at = min(at, history.time.size - 1)
        yield {
            "D": problem.D,
            "qD": round(problem.q * problem.D),
            "run": number,
            "power": power,
            "N": N,
            "within": label_error(problem).error <= LABELS and N >= SAMPLES * problem.D**2,
            "association": history.association[at] if reached else math.nan,
            "disagreement": history.disagreement[at] if reached else math.nan,
            "linear": uniform_error(problem).coin,
            "test_error": history.test_error[at] if reached else math.nan,
            "loss": history.loss[at] if reached else math.nan,
            "best": float(history.association.max()),
        }
