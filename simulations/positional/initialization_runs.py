"""Training on samples from other initializations of A: random A or P, with A or P trained.

Runs of the same number have the same samples and the same v(0) for all initializations, so that
these are compared in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray

from dynamics import Problem
from dynamics.positional.samples import (
    HeldOut,
    association_gap,
    patch_association,
    sample,
    set_of,
    train,
)
from dynamics.positional.samples.encodings import initial_encodings, train_encodings
from simulations.positional.idealized_runs import full_descent
from simulations.positional.training_runs import HELD_OUT, SMALL, Window, window
from simulations.reproduction.intervals import cells, columns, mean_of
from simulations.reproduction.predicates import Column
from simulations.seeds import rng_at, seed_at

#: Initializations: independent A_ij ~ N(0, (scale beta)^2 / D); random encodings P with A = P^T P;
#: P = sqrt(beta) I, whose A is zero off the diagonal.
ENTRIES, ENCODINGS, IDENTITY = "entries", "encodings", "identity"

#: Learning rate of v, and those of A and of P in units of D. A step of P changes A by about 4 beta
#: times as much as a step of A at the same rate. At twice this rate of P, three of eight runs at
#: D = 48 diverge; at a third of it the same rows associate.
RATE, RATE_A, RATE_P = 0.3, 3.0, 0.15
#: Samples in units of D^2, scale of v(0), held-out samples.
SAMPLES, OMEGA, TESTED = 5, 1e-3, 5000


@dataclass(frozen=True)
class Start:
    """Initialization of the scores.

    Attributes
    ----------
    distribution
        `ENTRIES`, `ENCODINGS` or `IDENTITY`.
    scale
        Scale of `ENTRIES`.
    trains_P
        Whether P is trained instead of A.
    """

    distribution: str = ENTRIES
    scale: float = 0.0
    trains_P: bool = False


class TrainedRun(NamedTuple):
    """A finished run.

    Attributes
    ----------
    share, gap
        Fraction of rows that associate, and association gap, at every step, (steps + 1,).
    test_error
        Test error at the end.
    A
        Scores at the end, (D, D).
    """

    share: np.ndarray
    gap: np.ndarray
    test_error: float
    A: np.ndarray

    @property
    def window(self) -> Window:
        """Steps at which every row has patch association."""
        return window(self.share == 1.0)


def problem_of(D: int) -> Problem:
    """Return the problem of these runs with D patches: C = 4, qD = 8."""
    return SMALL.replace(D=D, q=8 / D)


def scores(problem: Problem, start: Start, rng: np.random.Generator) -> np.ndarray:
    """Return A(0), or P(0) if P is trained, (D, D).

    If A is trained, its diagonal is beta, as in Parametrization 3.1.
    """
    D = problem.D
    if start.distribution == ENTRIES:
        A = start.scale * problem.beta / np.sqrt(D) * rng.standard_normal((D, D))
    else:
        P = np.sqrt(problem.beta) * np.eye(D)
        if start.distribution == ENCODINGS:
            P = initial_encodings(problem, rng)
        if start.trains_P:
            return P
        A = P.T @ P
    np.fill_diagonal(A, problem.beta)
    return A


def train_from(problem: Problem, start: Start, steps: int, seed: int, number: int) -> TrainedRun:
    """Train on ``5 D^2`` samples from an initialization.

    Parameters
    ----------
    problem, start
        Constants and initialization.
    steps
        Number of steps.
    seed, number
        Root seed and number of the run.
    """
    D = problem.D
    key = (D, number)
    rng = rng_at(seed, *key)
    X, y = sample(problem, SAMPLES * D * D, rng, dtype=np.float32)
    v = OMEGA * rng.standard_normal(problem.dimension)
    initial = scores(problem, start, rng_at(seed, *key, 1))
    owner = set_of(problem)
    if start.trains_P:
        result = train_encodings(
            problem,
            X,
            y,
            initial=(initial, v),
            learning_rate_P=RATE_P * D,
            learning_rate_v=RATE,
            steps=steps,
            threads=1,
        )
        share = np.array([patch_association(A, owner) for A in result.A])
        gap = np.array([association_gap(A, owner) for A in result.A])
        A, v = result.A[-1], result.v
    else:
        trained = train(
            problem,
            X,
            y,
            initial=(initial, v),
            learning_rate=RATE,
            learning_rate_A=RATE_A * D,
            steps=steps,
            record=range(steps + 1),
            threads=1,
        )
        share, gap = trained.history.association, trained.history.gap
        A, v = trained.A, trained.v
    error = HeldOut(problem, TESTED, seed_at(seed, *key, HELD_OUT)).error(A, v).error
    return TrainedRun(share, gap, error, A)


def descend_from(problem: Problem, start: Start, steps: int, seed: int, number: int) -> TrainedRun:
    """Run full-matrix descent on the population risk from ``v = alpha(0) w*`` and an initial A.

    No symmetry is assumed, and the test error is exact. Parameters as in `train_from`.
    """
    rng = rng_at(seed, problem.D, number, 1)
    initial = scores(problem, start, rng)
    v = problem.initial_state.alpha * np.eye(1, problem.dimension)[0]
    owner = set_of(problem)
    share, gap, error = [], [], 1.0
    for A, _, value in full_descent(problem, initial, v, (RATE, RATE_A * problem.D), steps):
        share.append(patch_association(A, owner))
        gap.append(association_gap(A, owner))
        error = value.test_error
    return TrainedRun(np.array(share), np.array(gap), error, A)


#: Labels of the quantities of `summary`.
_LABELS = {
    "share": "rows that associate at the end",
    "best": "rows that associate at the best step",
    "error": "test error at the end",
}
#: The columns of `summary`.
COLUMNS = {
    "runs": Column("runs"),
    "complete": Column("runs in which all rows associate at some step", rtol=math.inf),
    **{
        column: content
        for name, label in _LABELS.items()
        for column, content in {
            **columns(name, label),
            f"{name}_least": Column(f"{label}, least", rtol=math.inf),
            f"{name}_greatest": Column(f"{label}, greatest", rtol=math.inf),
        }.items()
    },
}


def summary(runs: Sequence[TrainedRun]) -> dict[str, float]:
    """Return the row of `COLUMNS` for the runs of one initialization.

    It contains means, 95 % intervals and, for more than one run, ranges.
    """
    best = np.array([run.share.max() for run in runs])
    values = {
        "share": np.array([run.share[-1] for run in runs]),
        "best": best,
        "error": np.array([run.test_error for run in runs]),
    }
    row: dict[str, float] = {"runs": len(runs), "complete": int(np.sum(best == 1.0))}
    for name, sample_values in values.items():
        mean, *ends = mean_of(sample_values)
        row |= cells(name, (mean, *np.clip(ends, 0.0, 1.0)))
        if len(runs) > 1:
            row |= {f"{name}_least": sample_values.min(), f"{name}_greatest": sample_values.max()}
    return row


def starts_dataset(
    by_start: Mapping[str, Sequence[TrainedRun]],
    by_problem: Mapping[str, Sequence[TrainedRun]],
    A: np.ndarray | None = None,
) -> xarray.Dataset:
    """Return what is drawn of runs of several starts.

    Parameters
    ----------
    by_start
        Runs of one problem: ``share`` (start, run, step) and ``error`` (start, run).
    by_problem
        Runs of one start: ``end`` and ``best`` share (problem, run); may be empty.
    A
        Learned scores (patch, other_patch).
    """
    data = xarray.Dataset(
        {
            "share": (
                ("start", "run", "step"),
                np.array([[run.share for run in runs] for runs in by_start.values()]),
            ),
            "error": (
                ("start", "run"),
                np.array([[run.test_error for run in runs] for runs in by_start.values()]),
            ),
        },
        coords={"start": list(by_start)},
    )
    if by_problem:
        ends = [[run.share[-1] for run in runs] for runs in by_problem.values()]
        best = [[run.share.max() for run in runs] for runs in by_problem.values()]
        data["end"] = (("problem", "run"), np.array(ends))
        data["best"] = (("problem", "run"), np.array(best))
        data = data.assign_coords(problem=list(by_problem))
    if A is not None:
        data["A"] = (("patch", "other_patch"), A)
    return data
