"""Training runs on finite samples (problem (E)), cached per process.

The model has ``kappa = 1`` and separate learning rates for A and v; see
`simulations.positional.idealized_runs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynamics import Problem
from dynamics.core.checkpoint import computed_once
from dynamics.core.trajectory import Status
from dynamics.positional.samples import (
    HeldOut,
    History,
    TrainingResult,
    contiguous,
    random_feature,
    random_partition,
    sample,
    squares,
    train,
)
from simulations.reproduction.claim import Context
from simulations.seeds import rng_at, seed_at

#: Key of the random stream of held-out samples.
HELD_OUT = 1

SMALL = Problem(D=32, C=4, q=8 / 32, nu=0.1, beta=1.5, output_scale=1.0)


def larger(thorough: bool, qD: int = 12) -> Problem:
    """Return a problem of Theorem 4.2 and Figure 4.

    At qD = 12 uniform attention fails (error 0.11) and patch association is learned; at qD = 16
    training on a few thousand samples over-fits.
    """
    D = 48 if thorough else 32
    return SMALL.replace(D=D, q=qD / D)


@dataclass(frozen=True)
class Setting:
    """A problem and its training.

    Attributes
    ----------
    problem, N
        Constants and number of samples.
    rate_v, rate_A, steps
        Learning rates of v and of A, and number of steps.
    omega
        Scale of the initial v.
    sets
        Partition: ``"contiguous"`` blocks, ``"random"``, or ``"squares"`` of a grid.
    projected
        Whether the noise is orthogonal to w*, as in Assumption 1.
    records
        Number of steps at which the test error is computed, see `record_steps`.
    tested
        Number of held-out samples.
    """

    problem: Problem
    N: int
    rate_v: float
    rate_A: float
    steps: int
    omega: float = 1e-3
    sets: str = "contiguous"
    projected: bool = True
    records: int = 41
    tested: int = 10_000


class Training(NamedTuple):
    """A finished run.

    Attributes
    ----------
    history
        Records at `record_steps`, without A and v.
    A, w_star, partition
        Scores at the end, feature, sets.
    control
        Test error at these records of the same v with A reset to its initial value, (n,).
    association, gap
        At every step, (steps + 1,): fraction of rows with ``Top_C(A_i) = S_l(i)``, and smallest
        off-diagonal A within sets minus largest across sets.
    learned
        First step at which the test error has made nine tenths of its decrease from 1/2 to its
        final value, located by bisection between two records.
    """

    history: History
    A: np.ndarray
    w_star: np.ndarray
    partition: np.ndarray
    control: np.ndarray
    association: np.ndarray
    gap: np.ndarray
    learned: float

    @property
    def window(self) -> Window:
        """Steps at which every row has patch association."""
        return window(self.association == 1.0)

    @property
    def separated(self) -> Window:
        """Steps at which every entry of A within a set exceeds every entry across sets."""
        return window(self.gap > 0.0)


class Window(NamedTuple):
    """Steps at which a condition is true.

    Attributes
    ----------
    first
        First step at which it is true; NaN if it never is.
    lost
        First later step at which it is false; infinite if it stays true, NaN if it never is true.
    share
        Fraction of the steps from ``first`` on at which it is true.
    """

    first: float
    lost: float
    share: float


def window(true: np.ndarray) -> Window:
    """Return the window of a condition given at every step, (n,)."""
    if not true.any():
        return Window(math.nan, math.nan, 0.0)
    first = int(np.argmax(true))
    after = true[first:]
    lost = math.inf if after.all() else float(first + np.argmin(after))
    return Window(float(first), lost, float(after.mean()))


#: Names of the settings of Theorem 4.2, in the order of its figures.
PUBLIC, FAST = "public Figure 4 settings", "the same, A 100 times faster"
LARGE, FEW = "larger problem", "few samples"

#: Where the public settings come from.
SOURCE = (
    "The public Figure 4 settings are those of a script in a third party's repository "
    "(github.com/D-Roberts/icd-gen, test_j/test_jelassi_theirs.py, commit c05a0a37) that looks "
    "like the authors' own; the authors have published none, so that this cannot be verified."
)


def settings(quick: bool, thorough: bool = False) -> dict[str, tuple[Setting, int]]:
    """Return a mapping from name to setting and number of runs, for Theorem 4.2 and Figure 4.

    `SOURCE` states the origin of the public ones.
    """
    figure_4 = Problem.figure_4()
    public: Any = {"sets": "random", "projected": False}
    if quick:
        crowded = SMALL.replace(q=16 / 32)
        return {
            PUBLIC: (Setting(figure_4, 3000, 0.1, 0.1, 300, **public, records=31), 2),
            FAST: (Setting(figure_4, 3000, 0.1, 10.0, 300, **public, records=31), 1),
            LARGE: (Setting(SMALL, 4200, 0.3, 100.0, 100, records=31, tested=5000), 2),
            FEW: (Setting(crowded, 1500, 0.3, 64.0, 200, records=31, tested=5000), 1),
        }
    checked: Any = {"records": 35, "tested": 5000}
    problem, crowded = larger(thorough), larger(thorough, 16)
    if thorough:
        return {
            PUBLIC: (Setting(figure_4, 50_000, 0.1, 0.1, 300, **public), 5),
            FAST: (Setting(figure_4, 10_000, 0.1, 10.0, 300, **public), 5),
            LARGE: (Setting(problem, 10_000, 0.3, 72.0, 2400, **checked), 5),
            FEW: (Setting(crowded, 5_000, 0.3, 100.0, 300, **checked), 5),
        }
    return {
        PUBLIC: (Setting(figure_4, 10_000, 0.1, 0.1, 300, **public), 5),
        FAST: (Setting(figure_4, 5000, 0.1, 10.0, 300, **public), 5),
        LARGE: (Setting(problem, 4400, 0.3, 48.0, 400, **checked), 5),
        FEW: (Setting(crowded, 3600, 0.3, 64.0, 300, **checked), 5),
    }


def all_trained(
    context: Context, names: Sequence[str] = (PUBLIC, FAST, LARGE, FEW)
) -> dict[str, list[Training]]:
    """Return all runs of the named settings, in order of their number."""
    every = settings(context.quick, context.thorough)
    chosen = {name: entry for name, entry in every.items() if name in names}
    total, done = sum(count for _, count in chosen.values()), 0
    runs: dict[str, list[Training]] = {name: [] for name in chosen}
    for name, (setting, count) in chosen.items():
        for number in range(count):

            def part(fraction: float, before: int = done) -> None:
                context.progress((before + fraction) / total)

            runs[name].append(trained(setting, context.seed, number, part, context.scratch))
            done += 1
            context.progress(done / total)
    return runs


_finished: dict[tuple[Setting, int, int], Training] = {}


def trained(
    setting: Setting,
    seed: int,
    number: int,
    progress: Callable[[float], None] | None = None,
    scratch: Path | None = None,
) -> Training:
    """Return run ``number`` of a setting, computed once per process.

    Parameters
    ----------
    setting
        Problem and training.
    seed, number
        Root seed and number of the run; data, feature, sets and initial v depend on both.
    progress
        Called with the fraction of steps done.
    scratch
        Folder for checkpoints, from which an interrupted run resumes.

    Raises
    ------
    RuntimeError
        If the run diverges.
    """
    if (setting, seed, number) in _finished:
        return _finished[setting, seed, number]
    problem = setting.problem
    rng = rng_at(seed, problem.D, number)
    partition = _partition(setting, rng)
    w_star = random_feature(problem, rng)
    X, y = sample(
        problem, setting.N, rng, partition, w_star, dtype=np.float32, projected=setting.projected
    )
    held_out = HeldOut(
        problem,
        setting.tested,
        seed_at(seed, problem.D, number, HELD_OUT),
        partition,
        projected=setting.projected,
    )
    name = f"D{problem.D}-N{setting.N}-{setting.rate_A:g}-{setting.sets}-{seed}-{number}.npz"
    checkpoint = None if scratch is None else scratch / name
    result = train(
        problem,
        X,
        y,
        learning_rate=setting.rate_v,
        learning_rate_A=setting.rate_A,
        steps=setting.steps,
        rng=rng,
        omega=setting.omega,
        w_star=w_star,
        partition=partition,
        record=range(setting.steps + 1),
        keep_states=True,
        progress=progress,
        threads=1,
        checkpoint=checkpoint,
        resume=checkpoint is not None,
    )
    if result.status not in (Status.COMPLETED, Status.UNSTABLE):
        raise RuntimeError(f"training of {setting} stopped early: {result.message}")
    run = _tested(setting, result, held_out, w_star)
    _finished[setting, seed, number] = run
    return run


def _tested(
    setting: Setting, result: TrainingResult, held_out: HeldOut, w_star: np.ndarray
) -> Training:
    """Return a run with its test errors at `record_steps`, and the step at which they fall."""
    every = result.history
    assert every.A is not None
    assert every.v is not None
    A, v = every.A, every.v
    chosen = record_steps(setting.steps, setting.records)
    rates = [held_out.error(A[step], v[step], w_star) for step in chosen]
    error = np.array([rate.error for rate in rates])
    columns = {field.name: getattr(every, field.name) for field in fields(every)}
    columns = {name: None if name in "Av" else column[chosen] for name, column in columns.items()}
    disagreement = np.array([rate.disagreement for rate in rates])
    columns |= {"test_error": error, "disagreement": disagreement}
    return Training(
        History(**columns),
        result.A,
        w_star,
        held_out.partition,
        np.array([held_out.error(A[0], v[step], w_star).error for step in chosen]),
        every.association,
        every.gap,
        first_below(
            chosen,
            error,
            0.5 - 0.9 * (0.5 - error[-1]),
            lambda step: held_out.error(A[step], v[step], w_star).error,
        ),
    )


def stored(context: Context, name: str, compute: Callable[[], ArrayLike]) -> np.ndarray:
    """Return an array of the scratch folder, or compute and store it."""
    path = None if context.scratch is None else context.scratch / f"{name}.npz"
    return computed_once(path, name, compute)


def record_steps(steps: int, records: int) -> np.ndarray:
    """Return at most ``records`` steps, of which half are the first ones.

    The others have geometric spacing up to the last step. Events at the beginning are thus
    recorded at their own step.
    """
    dense = min(max(records // 2, 1), steps)
    spread = np.geomspace(dense, steps, max(records - dense, 2)).round().astype(np.int64)
    return np.unique(np.concatenate([np.arange(dense), spread, [steps]]))


def first_below(
    step: np.ndarray, value: np.ndarray, level: float, at: Callable[[int], float]
) -> float:
    """Return a step at which a quantity falls to ``level``, or NaN if no record is below it.

    Parameters
    ----------
    step, value
        Records of the quantity, (n,).
    level
        Threshold.
    at
        Returns the quantity at any step; it is bisected between two records.
    """
    below = np.asarray(value) <= level
    if not below.any():
        return math.nan
    first = int(np.argmax(below))
    low, high = (int(step[first - 1]) if first else -1), int(step[first])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle) <= level else (middle, high)
    return float(high)


def _partition(setting: Setting, rng: np.random.Generator) -> np.ndarray:
    if setting.sets == "random":
        return random_partition(setting.problem, rng)
    return (squares if setting.sets == "squares" else contiguous)(setting.problem)


def describe(setting: Setting) -> str:
    """Return problem, sample size and learning rates of a setting as text."""
    problem = setting.problem
    return (
        f"D={problem.D}, C={problem.C}, qD={problem.q * problem.D:.3g}, p={problem.p}, "
        f"N={setting.N}, rates {setting.rate_v:g} and {setting.rate_A:g}"
    )


def parameters(settings: dict[str, tuple[Setting, int]]) -> dict[str, Any]:
    """Return the parameters of the settings, for the report."""
    return {name: asdict(setting) | {"runs": runs} for name, (setting, runs) in settings.items()}
