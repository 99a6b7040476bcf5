"""How patch association depends on the number of samples: when it is lost, how many it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dynamics import Problem
from dynamics.core.checkpoint import computed_once
from dynamics.positional.samples import initial_weights, sample, train
from simulations.positional.training_runs import LARGER, SMALL, Window, window
from simulations.reproduction import intervals

#: Steps between two looks at whether association is lost.
_PIECE = 50
#: Smallest number of samples that is tried, in patches, and the factor between two tries.
_LEAST, _FACTOR = 2.0, math.sqrt(2.0)
#: Steps within which association must come, and how many samples are tried at most.
_PATIENCE, _MOST = 300, 30_000


class Loss(NamedTuple):
    """A problem whose loss of association is timed at several N: rates, steps at most, runs."""

    problem: Problem
    rate_v: float
    rate_A: float
    sizes: tuple[int, ...]
    horizon: int
    runs: int


class Need(NamedTuple):
    """The D at which the samples that association needs are looked for, qD, runs at each."""

    sizes: tuple[int, ...]
    qD: float
    runs: int

    def problem(self, D: int) -> Problem:
        """Return the problem with D patches."""
        return SMALL.replace(D=D, q=self.qD / D)


def plans(quick: bool, thorough: bool) -> tuple[Loss, Need]:
    """Return what is scanned."""
    if quick:
        return (
            Loss(SMALL.replace(q=12 / 32), 0.3, 64.0, (1250, 5000), 250, 2),
            Need((16, 32), 8.0, 2),
        )
    if thorough:
        return (
            Loss(LARGER, 0.3, 72.0, (2500, 5000, 10_000, 20_000, 40_000), 2400, 5),
            Need((16, 24, 32, 48, 64, 96, 128), 8.0, 20),
        )
    return Loss(LARGER, 0.3, 72.0, (2500, 5000, 10_000), 600, 5), Need((16, 24, 32, 48), 8.0, 5)


class Scan(NamedTuple):
    """What was found: steps at which association came and was lost, samples that it needs.

    ``first`` and ``lost`` (sizes, runs) of `Loss`, nan where it never comes; ``lost`` is infinite
    where it is not lost within the horizon. ``needed`` (sizes, runs) of `Need`.
    """

    loss: Loss
    need: Need
    first: np.ndarray
    lost: np.ndarray
    needed: np.ndarray
    most: int = _MOST

    @property
    def growth(self) -> tuple[float, float, float]:
        """Return the exponent of the mean step of the loss in N and its interval.

        Runs that never associate have no such step; nan if they leave fewer than two sizes.
        """
        known = np.isfinite(self.timed).any(axis=1)
        if known.sum() < 2:
            return math.nan, math.nan, math.nan
        x, y = np.array(self.loss.sizes)[known], self.timed[known]
        return (intervals.exponent(x, y), *intervals.of_exponent(x, y))

    @property
    def growth_of_need(self) -> tuple[float, float, float]:
        """Return the exponent in D of the mean number of samples needed and its interval."""
        x, y = self.need.sizes, np.minimum(self.needed, self.most)
        return (intervals.exponent(x, y), *intervals.of_exponent(x, y))

    @property
    def timed(self) -> np.ndarray:
        """Steps of the loss, the horizon where it does not come: growth is under-estimated."""
        return np.minimum(self.lost, self.loss.horizon)


def scan(
    plan: tuple[Loss, Need],
    seed: int,
    progress: Callable[[float], None],
    scratch: Path | None = None,
    known: Mapping[int, Sequence[Window]] = MappingProxyType({}),
) -> Scan:
    """Follow every run of the plan; with a ``scratch`` folder finished ones are kept there.

    ``known`` are windows of the runs of `Loss` at some N that have been seen elsewhere.
    """
    loss, need = plan
    first, lost = np.empty((2, len(loss.sizes), loss.runs))
    needed = np.empty((len(need.sizes), need.runs))
    cost = [N * loss.problem.D * loss.horizon for N in loss.sizes for _ in range(loss.runs)]
    cost += [40 * D**3 * _PATIENCE for D in need.sizes for _ in range(need.runs)]
    done = iter(np.cumsum(cost) / sum(cost))
    for row, N in enumerate(loss.sizes):
        for number in range(loss.runs):
            if N in known:
                first[row, number], lost[row, number] = _times(known[N][number])
            else:
                first[row, number], lost[row, number] = _stored(
                    scratch,
                    f"loss-{loss.problem.D}-{N}-{loss.horizon}-{seed}-{number}",
                    partial(_lost, loss, N, seed, number),
                )
            progress(float(next(done)))
    for row, D in enumerate(need.sizes):
        for number in range(need.runs):
            (needed[row, number],) = _stored(
                scratch,
                f"need-{D}-{need.qD:g}-{seed}-{number}",
                partial(_needed, need.problem(D), seed, number),
            )
            progress(float(next(done)))
    return Scan(loss, need, first, lost, needed)


def _lost(loss: Loss, N: int, seed: int, number: int) -> list[float]:
    found = follow(
        loss.problem,
        N,
        loss.rate_v,
        loss.rate_A,
        loss.horizon,
        seed,
        number,
        lambda seen: math.isfinite(seen.lost),
    )
    return _times(found)


def _times(found: Window) -> list[float]:
    return [found.first, found.lost]


def _needed(problem: Problem, seed: int, number: int) -> list[float]:
    return [samples_needed(problem, seed, number)]


def samples_needed(problem: Problem, seed: int, number: int) -> float:
    """Return the smallest N tried at which every row has patch association at some step.

    N grows by factors of sqrt(2) from 2 D, every try on fresh samples; infinite if none does. The
    learning rate of A is 2 D, that of v 0.3, and 300 steps are waited.
    """
    N = _LEAST * problem.D
    while N <= _MOST:
        found = follow(
            problem,
            round(N),
            0.3,
            2.0 * problem.D,
            _PATIENCE,
            seed,
            number,
            lambda seen: math.isfinite(seen.first),
        )
        if math.isfinite(found.first):
            return float(round(N))
        N *= _FACTOR
    return math.inf


def follow(
    problem: Problem,
    N: int,
    rate_v: float,
    rate_A: float,
    steps: int,
    seed: int,
    number: int,
    enough: Callable[[Window], bool],
) -> Window:
    """Train on N samples and return when every row has patch association, looked at every step.

    Training goes on in pieces (descent without momentum has no memory, so that this is the same
    run) until ``enough`` is true of what has been seen.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(problem.D, N, number)))
    state = initial_weights(problem, rng)
    X, y = sample(problem, N, rng, dtype=np.float32)
    seen = np.empty(0, dtype=bool)
    for start in range(0, steps, _PIECE):
        length = min(_PIECE, steps - start)
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
        seen = np.concatenate([seen[:-1], result.history.association == 1.0])
        if enough(window(seen)):
            break
    return window(seen)


def _stored(scratch: Path | None, name: str, compute: Callable[[], Sequence[float]]) -> np.ndarray:
    """Return the numbers in a checkpoint of the scratch folder, else compute and store them."""
    return computed_once(None if scratch is None else scratch / f"{name}.npz", name, compute)
