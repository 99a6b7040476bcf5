"""Scans over the number of samples: when patch association is lost, and how many it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dynamics import Problem
from dynamics.positional.samples import initial_weights, sample, train
from simulations.positional.training_runs import SMALL, Window, larger, stored, window
from simulations.reproduction import intervals
from simulations.reproduction.claim import Context
from simulations.seeds import rng_at

#: Steps between two tests of the stopping condition.
_BLOCK = 50
#: Smallest number of samples tried, in units of D, and the factor between consecutive trials.
_LEAST, _FACTOR = 2.0, math.sqrt(2.0)
#: Learning rates of v and, in units of D, of A in these trials.
_RATE_V, _RATE_A = 0.3, 2.0
#: Steps within which association must occur, and largest number of samples tried.
_STEPS, _MOST = 300, 30_000


class AssociationLoss(NamedTuple):
    """Scan of the step at which association is lost: the problem, its training and the sizes N.

    ``horizon`` is the largest number of steps, ``runs`` the number of runs at each size.
    """

    problem: Problem
    rate_v: float
    rate_A: float
    sizes: tuple[int, ...]
    horizon: int
    runs: int


class SampleNeed(NamedTuple):
    """Scan of the number of samples that association needs: the D, qD, and runs at each D."""

    sizes: tuple[int, ...]
    qD: float
    runs: int

    def problem(self, D: int) -> Problem:
        """Return the problem with D patches."""
        return SMALL.replace(D=D, q=self.qD / D)


def scan_settings(quick: bool, thorough: bool) -> tuple[AssociationLoss, SampleNeed]:
    """Return the two scans of a report mode."""
    if quick:
        return (
            AssociationLoss(SMALL.replace(q=12 / 32), 0.3, 64.0, (1250, 5000), 250, 2),
            SampleNeed((16, 32), 8.0, 2),
        )
    if thorough:
        return (
            AssociationLoss(
                larger(thorough), 0.3, 72.0, (2500, 5000, 10_000, 20_000, 40_000), 2400, 5
            ),
            SampleNeed((16, 24, 32, 48, 64, 96, 128), 8.0, 20),
        )
    return (
        AssociationLoss(larger(thorough), 0.3, 48.0, (1100, 2200, 4400), 400, 5),
        SampleNeed((16, 24, 32, 48), 8.0, 5),
    )


class Scan(NamedTuple):
    """Results of both scans.

    Attributes
    ----------
    loss, need
        The scans.
    first, lost
        Steps at which association occurs and is lost, (sizes, runs); NaN if it never occurs.
        ``lost`` is infinite if association persists to the horizon.
    needed
        Number of samples that association needs, (sizes, runs); infinite if more than ``most``.
    most
        Largest number of samples tried.
    """

    loss: AssociationLoss
    need: SampleNeed
    first: np.ndarray
    lost: np.ndarray
    needed: np.ndarray
    most: int = _MOST

    @property
    def loss_exponent(self) -> tuple[float, float, float]:
        """Exponent in N of the mean step at which association is lost, with its interval.

        Runs that never associate are left out; NaN if fewer than two sizes remain.
        """
        known = np.isfinite(self.timed).any(axis=1)
        if known.sum() < 2:
            return math.nan, math.nan, math.nan
        x, y = np.array(self.loss.sizes)[known], self.timed[known]
        return (intervals.exponent(x, y), *intervals.of_exponent(x, y))

    @property
    def need_exponent(self) -> tuple[float, float, float]:
        """Exponent in D of the mean number of samples needed, with its interval."""
        x, y = self.need.sizes, np.minimum(self.needed, self.most)
        return (intervals.exponent(x, y), *intervals.of_exponent(x, y))

    @property
    def timed(self) -> np.ndarray:
        """Steps at which association is lost, at most the horizon: a lower bound of the growth."""
        return np.minimum(self.lost, self.loss.horizon)


def scan(
    scans: tuple[AssociationLoss, SampleNeed],
    context: Context,
    known: Mapping[int, Sequence[Window]] = MappingProxyType({}),
) -> Scan:
    """Compute all runs of the two scans.

    Parameters
    ----------
    scans
        The scans, see `scan_settings`.
    context
        Settings of the run; finished runs are stored in its folder.
    known
        Windows of runs at some N that were computed elsewhere, one for each run.
    """
    (loss, need), seed = scans, context.seed
    first, lost = np.empty((2, len(loss.sizes), loss.runs))
    needed = np.empty((len(need.sizes), need.runs))
    cost = [N * loss.problem.D * loss.horizon for N in loss.sizes for _ in range(loss.runs)]
    cost += [40 * D**3 * _STEPS for D in need.sizes for _ in range(need.runs)]
    done = iter(np.cumsum(cost) / sum(cost))
    for row, N in enumerate(loss.sizes):
        for number in range(loss.runs):
            if N in known:
                first[row, number], lost[row, number] = known[N][number][:2]
            else:
                first[row, number], lost[row, number] = stored(
                    context,
                    f"loss-{loss.problem.D}-{N}-{loss.horizon}-{seed}-{number}",
                    partial(_lost, loss, N, seed, number),
                )
            context.progress(float(next(done)))
    for row, D in enumerate(need.sizes):
        for number in range(need.runs):
            (needed[row, number],) = stored(
                context,
                f"need-{D}-{need.qD:g}-{seed}-{number}",
                partial(_needed, need.problem(D), seed, number),
            )
            context.progress(float(next(done)))
    return Scan(loss, need, first, lost, needed)


def _lost(loss: AssociationLoss, N: int, seed: int, number: int) -> list[float]:
    """Return the first step with association and the step at which it is lost."""
    window = train_until(
        loss.problem,
        N,
        loss.rate_v,
        loss.rate_A,
        loss.horizon,
        seed,
        number,
        lambda window: math.isfinite(window.lost),
    )
    return [window.first, window.lost]


def _needed(problem: Problem, seed: int, number: int) -> list[float]:
    return [samples_needed(problem, seed, number)]


def samples_needed(problem: Problem, seed: int, number: int) -> float:
    """Return the smallest N tried at which every row has patch association at some step.

    N grows by factors of sqrt(2) from 2 D to 30,000; each trial has fresh samples and 300 steps.
    The result is infinite if no trial succeeds.
    """
    N = _LEAST * problem.D
    while N <= _MOST:
        window = train_until(
            problem,
            round(N),
            _RATE_V,
            _RATE_A * problem.D,
            _STEPS,
            seed,
            number,
            lambda window: math.isfinite(window.first),
        )
        if math.isfinite(window.first):
            return float(round(N))
        N *= _FACTOR
    return math.inf


def train_until(
    problem: Problem,
    N: int,
    rate_v: float,
    rate_A: float,
    steps: int,
    seed: int,
    number: int,
    enough: Callable[[Window], bool],
) -> Window:
    """Train on N samples until a condition is met; return the window of patch association.

    Training runs in blocks of 50 steps until ``enough`` returns True for the window of the steps
    so far. Descent without momentum has no memory, so that the blocks form one run.

    Parameters
    ----------
    problem, N
        Constants and number of samples.
    rate_v, rate_A
        Learning rates of v and of A.
    steps
        Largest number of steps.
    seed, number
        Root seed and number of the run.
    enough
        Stopping condition.

    Returns
    -------
    Window
        Steps at which every row has patch association.
    """
    rng = rng_at(seed, problem.D, N, number)
    state = initial_weights(problem, rng)
    X, y = sample(problem, N, rng, dtype=np.float32)
    associated = np.empty(0, dtype=bool)
    for start in range(0, steps, _BLOCK):
        length = min(_BLOCK, steps - start)
        result = train(
            problem,
            X,
            y,
            learning_rate=rate_v,
            learning_rate_A=rate_A,
            steps=length,
            initial=state,
            record=range(length + 1),
            threads=1,
        )
        state = result.A, result.v
        associated = np.concatenate([associated[:-1], result.history.association == 1.0])
        if enough(window(associated)):
            break
    return window(associated)
