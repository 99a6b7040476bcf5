"""Training on samples from other starts of the scores: drawn as the paper's P, or P trained itself.

Runs of the same number have the same samples and the same v(0), whatever the start, so that starts
are compared in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray

from dynamics import Problem
from dynamics.positional.oracle.descent import FullPopulation
from dynamics.positional.samples import (
    HeldOut,
    association_gap,
    patch_association,
    sample,
    set_of,
    train,
)
from dynamics.positional.samples.encodings import initial_encodings, train_encodings
from simulations.positional.training_runs import HELD_OUT, SMALL, Window, window
from simulations.reproduction.intervals import cells, columns, mean_of
from simulations.reproduction.predicates import Column
from simulations.seeds import seed_at

#: What is drawn: every A_ij by itself, N(0, (scale beta)^2 / D); or encodings P and A = P^T P;
#: or P = sqrt(beta) I, whose A has zeros off the diagonal.
ENTRIES, ENCODINGS, IDENTITY = "entries", "encodings", "identity"

#: Learning rate of v; those of A and of P in units of D. A step of P moves A by about 4 beta times
#: what the same rate would move it by itself. At twice this rate of P descent leaves its flow at
#: D = 48, where three runs of eight diverge; at a third of it the same rows associate.
RATE, RATE_A, RATE_P = 0.3, 3.0, 0.15
#: Samples in units of D^2, scale of v(0), held-out samples.
SAMPLES, OMEGA, TESTED = 5, 1e-3, 5000


@dataclass(frozen=True)
class Start:
    """How the scores start, and whether P is trained behind them (`scale` is of `ENTRIES`)."""

    drawn: str = ENTRIES
    scale: float = 0.0
    trains_P: bool = False


class TrainedRun(NamedTuple):
    """A run: share of rows that associate and gap at every step, and the test error at the end.

    ``A`` (D, D) are the scores at the end.
    """

    share: np.ndarray
    gap: np.ndarray
    test_error: float
    A: np.ndarray

    @property
    def window(self) -> Window:
        """When every row has patch association."""
        return window(self.share == 1.0)


def problem_of(D: int) -> Problem:
    """Return the problem of these runs with D patches: C = 4, qD = 8."""
    return SMALL.replace(D=D, q=8 / D)


def scores(problem: Problem, start: Start, rng: np.random.Generator) -> np.ndarray:
    """Return A(0) (D, D), or P(0) (D, D) if P is trained.

    The diagonal of A is beta where A is trained, as Parametrization 3.1 sets it.
    """
    D = problem.D
    if start.drawn == ENTRIES:
        A = start.scale * problem.beta / np.sqrt(D) * rng.standard_normal((D, D))
    else:
        P = np.sqrt(problem.beta) * np.eye(D)
        if start.drawn == ENCODINGS:
            P = initial_encodings(problem, rng)
        if start.trains_P:
            return P
        A = P.T @ P
    np.fill_diagonal(A, problem.beta)
    return A


def train_from(problem: Problem, start: Start, steps: int, seed: int, number: int) -> TrainedRun:
    """Train on ``5 D^2`` samples from a start."""
    D = problem.D
    key = (D, number)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    X, y = sample(problem, SAMPLES * D * D, rng, dtype=np.float32)
    v = OMEGA * rng.standard_normal(problem.dimension)
    initial = scores(
        problem, start, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*key, 1)))
    )
    owner = set_of(problem)
    if start.trains_P:
        result = train_encodings(
            problem, X, y, initial=(initial, v), learning_rate_P=RATE_P * D, learning_rate_v=RATE,
            steps=steps, threads=1,
        )  # fmt: skip
        share = np.array([patch_association(A, owner) for A in result.A])
        gap = np.array([association_gap(A, owner) for A in result.A])
        A, v = result.A[-1], result.v
    else:
        trained = train(
            problem, X, y, initial=(initial, v), learning_rate=RATE, learning_rate_A=RATE_A * D,
            steps=steps, record=range(steps + 1), threads=1,
        )  # fmt: skip
        share, gap = trained.history.association, trained.history.gap
        A, v = trained.A, trained.v
    error = HeldOut(problem, TESTED, seed_at(seed, *key, HELD_OUT)).error(A, v).error
    return TrainedRun(share, gap, error, A)


def descend_from(problem: Problem, start: Start, steps: int, seed: int, number: int) -> TrainedRun:
    """Descend on the population risk from ``v = alpha(0) w*`` and a start of A, without symmetry.

    The test error is exact.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(problem.D, number, 1)))
    A = scores(problem, start, rng)
    w_star = np.eye(1, problem.dimension)[0]
    v = problem.initial_state.alpha * w_star
    population = FullPopulation(problem, w_star)
    owner = set_of(problem)
    share, gap, error = [], [], 1.0
    for step in range(steps + 1):
        value = population.evaluate(A, v)
        share.append(patch_association(A, owner))
        gap.append(association_gap(A, owner))
        error = value.test_error
        if step < steps:
            A, v = A - RATE_A * problem.D * value.dA, v - RATE * value.dv
    return TrainedRun(np.array(share), np.array(gap), error, A)


#: What is measured of the runs from one start.
_MEASURED = {
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
        for name, label in _MEASURED.items()
        for column, content in {
            **columns(name, label),
            f"{name}_least": Column(f"{label}, least", rtol=math.inf),
            f"{name}_greatest": Column(f"{label}, greatest", rtol=math.inf),
        }.items()
    },
}


def summary(runs: Sequence[TrainedRun]) -> dict[str, float]:
    """Return means, 95 % intervals and ranges over runs from one start, by column."""
    best = np.array([run.share.max() for run in runs])
    values = {
        "share": np.array([run.share[-1] for run in runs]),
        "best": best,
        "error": np.array([run.test_error for run in runs]),
    }
    row: dict[str, float] = {"runs": len(runs), "complete": int(np.sum(best == 1.0))}
    for name, some in values.items():
        mean, *ends = mean_of(some)
        row |= cells(name, (mean, *np.clip(ends, 0.0, 1.0)))
        if len(runs) > 1:
            row |= {f"{name}_least": some.min(), f"{name}_greatest": some.max()}
    return row


def starts_dataset(
    courses: Mapping[str, Sequence[TrainedRun]],
    places: Mapping[str, Sequence[TrainedRun]],
    A: np.ndarray | None = None,
) -> xarray.Dataset:
    """Return shares (start, run, step) and test errors (start, run), and shares by place."""
    data = xarray.Dataset(
        {
            "share": (
                ("start", "run", "step"),
                np.array([[run.share for run in some] for some in courses.values()]),
            ),
            "error": (
                ("start", "run"),
                np.array([[run.test_error for run in some] for some in courses.values()]),
            ),
        },
        coords={"start": list(courses)},
    )
    if places:
        ends = [[run.share[-1] for run in some] for some in places.values()]
        best = [[run.share.max() for run in some] for some in places.values()]
        data["end"] = (("place", "run"), np.array(ends))
        data["best"] = (("place", "run"), np.array(best))
        data = data.assign_coords(place=list(places))
    if A is not None:
        data["A"] = (("patch", "other_patch"), A)
    return data
