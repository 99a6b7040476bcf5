"""Fine-tuning on a new feature (Section 5), with and without patch association, run by run.

The downstream task keeps the sets and has its own feature w*. Every test error is that of a learner
trained on N~ fresh samples; run ``number`` has the same seed whatever the learner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from dynamics import Problem
from dynamics.empirical import HeldOut, initial_weights, random_feature, sample, train
from dynamics.empirical.data import draw_coefficients
from dynamics.full_expectation import checked_partition
from simulations.store import read_json, write_json
from simulations.training_runs import (
    HELD_OUT_SEED,
    Setting,
    idealized,
    three_values,
    trained,
)

#: Learners: v on A pre-trained on samples; v on A as initialized; v on uniform attention; a linear
#: classifier of all D d numbers; A and v together; v on A of the idealized process.
PRETRAINED = "pre-trained A"
INITIAL = "A at initialization"
UNIFORM = "uniform attention"
LOGISTIC = "logistic regression"
SCRATCH = "everything from scratch"
IDEALIZED = "idealized A"
LEARNERS = (PRETRAINED, INITIAL, UNIFORM, LOGISTIC, SCRATCH, IDEALIZED)

#: Learning rate of v, steps (of v alone; of A and v from scratch), scale of the random start.
RATE, STEPS, SCRATCH_STEPS, OMEGA = 0.3, 200, 300, 1e-3
#: Pre-trained models, which the runs share out among themselves.
PRETRAINED_MODELS = 2
#: Held-out samples of every test error.
TESTED = 4000
#: Ridge penalties of logistic regression; the one with the lowest test error counts.
PENALTIES = (1e-3, 1e-2, 1e-1)
#: A run that gets the sign of the feature wrong has a test error near 1.
FAILED = 0.5

#: Samples, steps and learning rate of A of the pre-training at each D.
PRETRAINING = {16: (4000, 100, 50.0), 32: (5000, 100, 100.0), 64: (12_000, 120, 128.0)}


def downstream(D: int, qD: float) -> Problem:
    """Return the problem of these claims with D patches and qD random features."""
    return Problem(D=D, C=4, q=qD / D, nu=0.1, beta=1.5, output_scale=1.0)


class Sweep(NamedTuple):
    """Test errors of a learner on a problem: sizes (n,), errors (n, runs)."""

    learner: str
    problem: Problem
    sizes: tuple[int, ...]
    errors: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean over runs, (n,)."""
        return np.asarray(self.errors.mean(axis=1))

    @property
    def failures(self) -> np.ndarray:
        """Fraction of runs worse than chance, (n,)."""
        return np.asarray((self.errors > FAILED).mean(axis=1))

    def needed(self, threshold: float) -> float:
        """Return the samples from which on the mean error stays at or below a threshold.

        Interpolated on logarithmic scales; the smallest size if it already suffices, infinite if
        the largest does not.
        """
        mean = np.maximum(self.mean, 1e-6)
        above = np.flatnonzero(mean > threshold)
        if above.size == 0:
            return float(self.sizes[0])
        last = int(above[-1])
        if last == len(self.sizes) - 1:
            return math.inf
        low, high = np.log(mean[last]), np.log(mean[last + 1])
        share = (low - math.log(threshold)) / (low - high)
        return float(self.sizes[last] * (self.sizes[last + 1] / self.sizes[last]) ** share)


class Entry(NamedTuple):
    """A sweep to make: learner, mean number qD of random features, D, sizes, runs of each."""

    learner: str
    qD: float
    D: int
    sizes: tuple[int, ...]
    runs: int


#: Mean numbers of random features: far below, below and at C^2 = 16.
EASY, MIDDLE, HARD = 4.0, 8.0, 16.0
Sizes = tuple[int, ...]
_FEW: Sizes = (1, 2, 4, 8, 16)
_MORE: Sizes = (1, 2, 4, 8, 16, 32, 64)
_MANY: dict[int, Sizes] = {
    16: (64, 128, 256),
    32: (128, 256, 512),
    48: (128, 256, 512),
    64: (256, 512, 1024),
}
_LINEAR: dict[int, Sizes] = {
    16: (16, 32, 64, 128, 256),
    32: (32, 64, 128, 256, 1024),
    64: (64, 128, 256, 512, 1024),
}
_THINNED = ((_MANY, 1), (_LINEAR, 2))


def entries(quick: bool) -> list[Entry]:
    """Return the sweeps of Theorems 5.1 and 5.2."""
    patches: Sizes = (16, 32, 64, 128)
    regimes: tuple[float, ...] = (EASY, MIDDLE, HARD)
    few, more, many, linear = _FEW, _MORE, _MANY, _LINEAR
    runs, costly = 20, 12
    if quick:
        patches, regimes = patches[:2], regimes[:2]
        few, more = few[::2], more[::2]
        many, linear = ({D: table[D][::step] for D in patches} for table, step in _THINNED)
        runs, costly = 12, 4
    found = []
    for qD in regimes:
        for D in patches if qD != HARD else (32,):
            many_runs = 2 * runs if qD == MIDDLE else runs
            if D in PRETRAINING:
                found.append(Entry(PRETRAINED, qD, D, few, many_runs))
            if qD == MIDDLE:
                found.append(Entry(IDEALIZED, qD, D, few, many_runs))
            found.append(Entry(UNIFORM, qD, D, more, runs))
            if D <= 64:
                found.append(Entry(INITIAL, qD, D, more, costly))
        for D, sizes in linear.items():
            if qD == EASY or D == 32:
                found.append(Entry(LOGISTIC, qD, D, sizes, costly))
    found += [Entry(SCRATCH, MIDDLE, D, sizes, costly) for D, sizes in many.items()]
    return found


def sweeps(
    wanted: Sequence[Entry],
    seed: int,
    progress: Callable[[float], None],
    scratch: Path | None = None,
) -> dict[Entry, Sweep]:
    """Return the test errors of every entry, those of equal runs computed once per process.

    With a ``scratch`` folder finished entries are kept there and not computed again.
    """
    found = {}
    for number, entry in enumerate(wanted, start=1):
        name = f"{entry.learner}-{entry.qD:g}-{entry.D}-{entry.runs}-{seed}.json".replace(" ", "-")
        kept = None if scratch is None else scratch / name
        errors = None if kept is None else read_json(kept)
        if errors is None:
            errors = [_errors(entry, N, seed) for N in entry.sizes]
            if kept is not None:
                write_json(kept, errors)
        problem = downstream(entry.D, entry.qD)
        found[entry] = Sweep(entry.learner, problem, entry.sizes, np.array(errors))
        progress(number / len(wanted))
    return found


def _errors(entry: Entry, N: int, seed: int) -> list[float]:
    problem = downstream(entry.D, entry.qD)
    return [test_error(entry.learner, problem, N, number, seed) for number in range(entry.runs)]


@cache
def pretrained(problem: Problem, seed: int, number: int) -> np.ndarray:
    """Return A (D, D) from pre-training on samples."""
    N, steps, rate_A = PRETRAINING[problem.D]
    setting = Setting(problem, N, RATE, rate_A, steps, records=3, tested=1000)
    return trained(setting, seed, number).A


@cache
def idealized_scores(problem: Problem) -> np.ndarray:
    """Return A (D, D) at the end of the idealized process."""
    last = idealized(problem, RATE, max(50.0, problem.D**2 / 32), STEPS, tolerance=1e-6).final
    return three_values(problem, last.gamma, last.rho)


@cache
def test_error(learner: str, problem: Problem, N: int, number: int, seed: int) -> float:
    """Return the test error of a learner after training on N fresh samples of a new feature."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(problem.D, N, number)))
    w_star = random_feature(problem, rng)
    X, y = sample(problem, N, rng, w_star=w_star)
    A, v = initial_weights(problem, rng, OMEGA)
    if learner == LOGISTIC:
        return min(logistic_error(problem, X, y, w_star, penalty) for penalty in PENALTIES)
    if learner == SCRATCH:
        # stopped at the best record, as no learner could know: the baseline is favoured
        result = train(
            problem, X.astype(np.float32), y,
            learning_rate=RATE, learning_rate_A=2.0 * problem.D, steps=SCRATCH_STEPS,
            initial=(A, v), w_star=w_star, held_out=held_out(problem),
            record="linear", records=16, threads=1,
        )  # fmt: skip
        return float(np.nanmin(result.history.test_error))
    if learner == PRETRAINED:
        A = pretrained(problem, seed, number % PRETRAINED_MODELS)
    elif learner == IDEALIZED:
        A = idealized_scores(problem)
    elif learner == UNIFORM:
        A = np.zeros_like(A)
    v = train(
        problem, X, y,
        learning_rate=RATE, steps=STEPS, initial=(A, v), trainable="v", record=(), threads=1,
    ).v  # fmt: skip
    return held_out(problem).error(A, v, w_star).error


@cache
def held_out(problem: Problem) -> HeldOut:
    """Return the held-out samples of a problem."""
    return HeldOut(problem, TESTED, HELD_OUT_SEED)


def logistic_error(
    problem: Problem, X: np.ndarray, y: np.ndarray, w_star: np.ndarray, penalty: float
) -> float:
    """Return the test error of ridge-penalized logistic regression on the flattened patches.

    Of the classifier ``sum_j <w_j, X_j>`` the sample shows ``sum_j s_j <w_j, w*>`` and Gaussian
    noise, which is integrated exactly.
    """
    N = X.shape[0]
    rows = (X * y[:, None, None]).reshape(N, -1)

    def risk(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margin = rows @ weights
        gradient = -(special.expit(-margin) @ rows) / N + penalty * weights
        value = np.logaddexp(0.0, -margin).mean() + 0.5 * penalty * (weights @ weights)
        return float(value), gradient

    found = optimize.minimize(
        risk, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200}
    )
    weights = found.x.reshape(problem.D, problem.dimension)
    along = weights @ w_star
    across = problem.noise * np.linalg.norm(weights - along[:, None] * w_star)
    margins = _test_coefficients(problem) @ along
    return float(special.ndtr(-margins / max(across, 1e-300)).mean())


@cache
def _test_coefficients(problem: Problem) -> np.ndarray:
    """Return coefficients of w* of fresh samples with label +1, (n, D)."""
    rng = np.random.default_rng(HELD_OUT_SEED)
    drawn, y = draw_coefficients(problem, TESTED, rng, checked_partition(problem))
    return np.asarray((drawn * y[:, None]).astype(float))


def exponent(sizes: Sequence[float], needed: Sequence[float]) -> float:
    """Return the fitted power of D in the samples needed, nan where some are infinite."""
    if not np.isfinite(needed).all():
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(needed), 1)[0])


def interval_of_exponent(
    sweeps: Sequence[Sweep], threshold: float, seed: int, samples: int = 400
) -> tuple[float, float]:
    """Return the 5% and 95% points of the fitted power of D when the runs are drawn again."""
    rng = np.random.default_rng(seed)
    powers = []
    for _ in range(samples):
        again = [
            sweep._replace(errors=rng.choice(sweep.errors, sweep.errors.shape[1], axis=1))
            for sweep in sweeps
        ]
        needed = [sweep.needed(threshold) for sweep in again]
        powers.append(exponent([sweep.problem.D for sweep in sweeps], needed))
    found = np.array(powers)[np.isfinite(powers)]
    if found.size == 0:
        return math.nan, math.nan
    low, high = np.quantile(found, (0.05, 0.95))
    return float(low), float(high)
