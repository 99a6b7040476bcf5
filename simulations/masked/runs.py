"""Reference problems, runs and comparisons of masked image modelling, cached per process."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import xarray
from scipy.integrate import quad

from dynamics import gradient_flow
from dynamics.core.schedule import thinned
from dynamics.core.trajectory import Status
from dynamics.masked import MaskedPopulation, MaskedProblem, MaskedTrajectory
from dynamics.masked import oracle as full
from dynamics.masked.events import MaskedEvents, find_events, projected_positions
from simulations.masked.system import SYSTEM, default_horizon
from simulations.seeds import rng_at, seed_at, seeds_of

RTOL = 1e-9
#: Mean of (1 - a_n)^2 at which runs have learned.
EPS = 1e-4
#: Smallest ratio of |Phi_1| to other correlations at the switch, and of the later growth of Phi_n
#: to the change of Phi_1.
LEAD = 3.0
#: Largest other correlation over Phi_n when p has learned.
CLOSE_TO_ZERO = 0.1


@dataclass(frozen=True)
class Regime:
    """A family of problems, one for each P.

    Attributes
    ----------
    kappa_c, kappa_s
        Exponents of the global and of the local areas.
    query
        Area of p, ``"local"`` or ``"global"``.
    """

    kappa_c: float
    kappa_s: float
    query: str = "local"

    def problem(self, P: int = 10**6, **changes: Any) -> MaskedProblem:
        """Return the problem with P patches."""
        kappas: dict[str, Any] = {
            "kappa_c": self.kappa_c,
            "kappa_s": self.kappa_s,
            "query": self.query,
        }
        return MaskedProblem(P=P, **(kappas | changes))

    @property
    def gap(self) -> float:
        """Information gap Delta."""
        return (1.0 - self.kappa_s) - 2.0 * (1.0 - self.kappa_c)

    @property
    def exponent(self) -> float:
        """Exponent of P in the learning time: 1 - kappa of p's own area."""
        return 1.0 - (self.kappa_c if self.query == "global" else self.kappa_s)

    @property
    def name(self) -> str:
        """Area, exponents and gap as text."""
        gap = "" if self.query == "global" else f", Delta={self.gap:.2g}"
        return f"{self.query}, kappa_c={self.kappa_c:g}, kappa_s={self.kappa_s:g}{gap}"


WIDE_GAP, NARROW_GAP = Regime(0.95, 0.3), Regime(0.9, 0.45)
NEGATIVE_GAP, VERY_NEGATIVE_GAP = Regime(0.6, 0.4), Regime(0.55, 0.5)
IN_GLOBAL, IN_SMALL_GLOBAL = Regime(0.95, 0.3, "global"), Regime(0.7, 0.5, "global")
TWO_PHASES = (WIDE_GAP, NARROW_GAP)
ONE_PHASE = (NEGATIVE_GAP, VERY_NEGATIVE_GAP, IN_GLOBAL, IN_SMALL_GLOBAL)

#: Explicit areas, with all masks enumerated; p is in a local area of each cluster.
ONE_CLUSTER = MaskedProblem.from_sizes([6, 3, 3], query=7)
TWO_CLUSTERS = MaskedProblem.from_sizes([6, 3, 3], [5, 4, 3], seed=1, query=7)
GRID = MaskedProblem.rows_and_columns(3, query=4)
#: Small enough for the d x d oracle: 70, 28 and 84 masks.
ORACLE_PROBLEMS = (
    MaskedProblem.from_sizes([4, 2, 2], [2, 3, 3], seed=1, query=4, z_low=1.3),
    MaskedProblem.from_sizes([4, 2, 2], [2, 3, 3], seed=2, query=2, mask_ratio=0.25),
    MaskedProblem.from_sizes([5, 2, 2], query=5, mask_ratio=0.66, z_low=0.8),
)


def describe(problem: MaskedProblem) -> str:
    """Return a problem as text: numbers of patches, areas and clusters."""
    if problem.partitions is None:
        exponents = f"kappa_c={problem.kappa_c:g}, kappa_s={problem.kappa_s:g}"
        scale = "" if problem.z_is_fixed else f", z in [{problem.z_low:g}, {problem.z_top:g}]"
        query = "/".join(dict.fromkeys(problem.roles))
        return f"P={power(problem.P)}, {query}, {exponents}, K={problem.K}{scale}"
    return f"P={problem.P}, areas {_areas(problem)}"


def _areas(problem: MaskedProblem) -> str:
    """Return the sizes of the areas of each cluster as text."""
    partitions = problem.partitions or ()
    return " and ".join("+".join(str(len(a)) for a in areas) for areas in partitions)


def power(P: int) -> str:
    """Return a number of patches as text, such as ``"10^6"``."""
    exponent = round(math.log10(P))
    return f"10^{exponent}" if 10**exponent == P and exponent > 3 else str(P)


@cache
def population(problem: MaskedProblem, moving: str = "all") -> MaskedPopulation:
    """Return the patch loss of a problem; ``moving`` names the trained correlations."""
    return MaskedPopulation(problem, moving=moving)


@cache
def flow(
    problem: MaskedProblem, eps: float = EPS, moving: str = "all", horizon: float | None = None
) -> MaskedTrajectory:
    """Return the gradient flow from Q(0) = 0.

    Parameters
    ----------
    problem
        Constants.
    eps
        Value of (1 - a_n)^2 that the default horizon suffices to reach.
    moving
        Trained correlations: ``"all"``, ``"features"`` or ``"positions"``.
    horizon
        Final flow time.

    Raises
    ------
    RuntimeError
        If the flow does not reach the horizon.
    """
    end = default_horizon(problem, eps) if horizon is None else horizon
    run = gradient_flow(population(problem, moving), horizon=end, rtol=RTOL, records=400)
    if run.status is not Status.COMPLETED:
        raise RuntimeError(f"the flow of {describe(problem)} stopped early: {run.message}")
    assert isinstance(run, MaskedTrajectory)
    return run


@cache
def events(problem: MaskedProblem, eps: float = EPS) -> MaskedEvents:
    """Return the phases of the flow in the first cluster."""
    return find_events(flow(problem, eps), population(problem), eps=eps)


#: Numbers of patches and of random masks in the comparison with the mean field.
SMALL_P, SAMPLES = 1024, 200


@cache
def sampled(regime: Regime, seed: int = 0) -> tuple[MaskedTrajectory, MaskedEvents]:
    """Return the flow with `SAMPLES` random masks at P = `SMALL_P`, and its phases."""
    problem = regime.problem(SMALL_P)
    expectation = MaskedPopulation(problem, "sampling", samples=SAMPLES, seed=seed)
    horizon = default_horizon(problem, EPS)
    run = gradient_flow(expectation, horizon=horizon, rtol=1e-7, records=100)
    assert isinstance(run, MaskedTrajectory)
    return run, find_events(run, expectation, eps=EPS)


def one_phase_time(problem: MaskedProblem) -> float:
    r"""Return the time to attention 1/2 if only Phi_n changes, in the mean field.

    Then :math:`\dot\Phi_n=\frac mK z^3a(1-a)^2` and :math:`\dot a=z\,a(1-a)\,\dot\Phi_n`, with the
    fraction m of masked patches. The time is
    :math:`\frac K{mz^4}\int_{a(0)}^{1/2}\frac{da}{a^2(1-a)^3}`, where a(0) is 1 - m times the share
    of p's area among all patches.
    """
    masked = problem.masked / problem.P
    start = math.log((1.0 - masked) * problem.own_size() / problem.P)
    integral = quad(lambda u: math.exp(-u) / (1.0 - math.exp(u)) ** 3, start, math.log(0.5))[0]
    return float(problem.K / (masked * problem.z_low**4) * integral)


def random_problems(count: int, seed: int, largest_first: bool = True) -> list[MaskedProblem]:
    """Return small random problems with p in the second area of the first cluster.

    Parameters
    ----------
    count, seed
        Number of problems and random seed.
    largest_first
        Whether the first area of each cluster is the largest, like a global area, or the smallest.
    """
    rng = rng_at(seed, count, largest_first)
    problems = []
    for number in range(count):
        P = int(rng.integers(5, 11))
        sizes = []
        for _ in range(int(rng.integers(1, 3))):
            areas = int(rng.integers(2, 5))
            parts = rng.multinomial(P - areas, np.full(areas, 1.0 / areas)) + 1
            sizes.append(sorted(parts.tolist(), reverse=largest_first))
        mask_ratio, z = float(rng.choice((0.3, 0.5, 0.7))), float(rng.choice((0.7, 1.0, 1.5)))
        problem = MaskedProblem.from_sizes(
            *sizes, seed=seed_at(seed, number), query=sizes[0][0], mask_ratio=mask_ratio, z_low=z
        )
        problems.append(problem)
    return problems


@dataclass(frozen=True)
class Speeds:
    """Speeds of the correlations of the first cluster along a run.

    Attributes
    ----------
    time
        Flow times, (n,).
    features, positions
        dPhi_m/dt, and the mean of dUpsilon/dt over the positions of area m, (n, areas); equal
        areas share a column.
    own, first
        Columns of p's own area and of the global area.
    """

    time: np.ndarray
    features: np.ndarray
    positions: np.ndarray
    own: int
    first: int


@cache
def speeds(problem: MaskedProblem, eps: float = EPS) -> Speeds:
    """Return the speeds of the correlations at the records of the flow."""
    run = flow(problem, eps)
    areas = problem.layout.clusters[0]
    slots = np.unique(areas.slot)
    velocity = -np.array([population(problem).gradient(state) for state in run.states])
    projected = np.array([projected_positions(problem, row) for row in velocity])
    own, first = (int(np.flatnonzero(slots == s)[0]) for s in (areas.own_slot, areas.global_slot))
    return Speeds(run.time, velocity[:, slots], projected, own, first)


@dataclass(frozen=True)
class Agreement:
    """Largest differences between the reduced gradient and the gradient of the d x d oracle.

    Attributes
    ----------
    features, positions
        Differences of the two types of entries.
    elsewhere
        Largest entry in the rows of features, where the gradient must be 0.
    states
        Number of states.
    """

    features: float
    positions: float
    elsewhere: float
    states: int


@cache
def agreement(states: int, seed: int) -> Agreement:
    """Compare gradients at random states of each oracle problem; all rows of Q are random."""
    features = positions = elsewhere = 0.0
    for number, problem in enumerate(ORACLE_PROBLEMS):
        rng = rng_at(seed, number)
        model, reduced = full.FullMaskedModel(problem), population(problem)
        columns = columns_of(problem)
        for _ in range(states):
            state = rng.normal(size=len(problem.order_parameters))
            Q = rng.normal(size=(model.dimension,) * 2)
            Q[problem.patch] = state[columns]
            gradient = model.evaluate(Q)[1]
            difference = np.abs(gradient[problem.patch] - reduced.gradient(state)[columns])
            positions = max(positions, float(difference[: problem.P].max()))
            features = max(features, float(difference[problem.P :].max()))
            elsewhere = max(elsewhere, float(np.abs(gradient[problem.P :]).max()))
    return Agreement(features, positions, elsewhere, states * len(ORACLE_PROBLEMS))


def agreements(states: int, root: int, seeds: int) -> Agreement:
    """Return the largest differences over several seeds, each with ``states`` of each problem."""
    results = [agreement(states, seed) for seed in seeds_of(root, seeds)]
    return Agreement(
        max(result.features for result in results),
        max(result.positions for result in results),
        max(result.elsewhere for result in results),
        sum(result.states for result in results),
    )


def columns_of(problem: MaskedProblem) -> np.ndarray:
    """Return the order parameter index of each entry of e_p^T Q: positions, then features."""
    assert problem.partitions is not None
    names = problem.order_parameters
    K, slots = problem.K, []
    for q in range(problem.P):
        where = [
            str(next(m for m, area in enumerate(areas, 1) if q in area))
            for areas in problem.partitions
        ]
        slots.append(names.index(f"Upsilon_{'self' if q == problem.patch else '_'.join(where)}"))
    for k, areas in enumerate(problem.partitions, 1):
        for m in range(1, len(areas) + 1):
            slots.append(names.index(f"Phi_{m}" if K == 1 else f"Phi_{k}_{m}"))
    return np.array(slots)


def decades(quick: bool, most: int = 60) -> tuple[int, ...]:
    """Return numbers of patches in equal ratios, up to 10^most."""
    return tuple(10**e for e in range(12 if quick else 6, most + 1, 12 if quick else 6))


def log_gap(problem: MaskedProblem) -> float:
    """Return ``Delta/2 log P``, the prediction for -z Phi_1 at the switch up to constants."""
    return 0.5 * problem.information_gap * math.log(problem.P)


#: Observables of `trajectory_dataset`.
_OBSERVABLES = ("time", "Phi_1", "Phi_n", "Phi_rest", "Upsilon_n", "a_n", "excess")
_RECORDS = 300  # of `speed_dataset`


def trajectory_dataset(
    problems: Sequence[MaskedProblem], law: bool = False, until: float = 3.0
) -> xarray.Dataset:
    """Return observables of the flows of several problems, dims (run, record), for a figure.

    Parameters
    ----------
    problems
        One problem for each run.
    law
        Whether -Delta/2z log P is included.
    until
        End of each run, in units of the time at which p has learned.
    """
    parts = []
    times: dict[str, list[float]] = {name: [] for name in ("switch", "learned", "law")}
    for problem in problems:
        run, phases = flow(problem), events(problem)
        included = run.time <= min(until * phases.learned.time, float(run.time[-1]))
        columns = SYSTEM.observe(SYSTEM.build({}), run)
        parts.append({name: np.where(included, columns[name], np.nan) for name in _OBSERVABLES})
        parts[-1]["excess"] = parts[-1]["excess"] / parts[-1]["excess"][0]
        times["switch"].append(phases.switch.time if phases.phases == 2 else np.nan)
        times["learned"].append(phases.learned.time)
        times["law"].append(-log_gap(problem) / problem.z_top if law else np.nan)
    width = max(part["time"].size for part in parts)
    data = {
        name: (("run", "record"), np.stack([_padded(part[name], width) for part in parts]))
        for name in _OBSERVABLES
    }
    return xarray.Dataset(
        data | {name: ("run", values) for name, values in times.items()},
        coords={"run": [_regime_name(problem) for problem in problems]},
    )


def _regime_name(problem: MaskedProblem) -> str:
    if problem.kappa_c is None or problem.kappa_s is None:
        return describe(problem)
    return Regime(problem.kappa_c, problem.kappa_s, problem.roles[0]).name


def _padded(values: np.ndarray, width: int) -> np.ndarray:
    return np.concatenate([values, np.full(width - values.size, np.nan)])


def speed_dataset(runs: Mapping[str, Speeds]) -> xarray.Dataset:
    """Return the speeds of several runs, dims (run, record); NaN after the last record."""
    names = ("time", "own", "first", "rest", "fastest", "positions")
    columns = {name: np.full((len(runs), _RECORDS), np.nan) for name in names}
    for number, run in enumerate(runs.values()):
        index = thinned(run.time.size, _RECORDS)
        others = [m for m in range(run.features.shape[1]) if m not in (run.own, run.first)]
        rows = {
            "time": run.time,
            "own": run.features[:, run.own],
            "first": run.features[:, run.first],
            "rest": np.abs(run.features[:, others]).max(axis=1, initial=0.0),
            "fastest": np.abs(run.features).max(axis=1),
            "positions": np.nanmax(np.abs(run.positions), axis=1),
        }
        for name, values in rows.items():
            columns[name][number, : index.size] = values[index]
    return xarray.Dataset(
        {name: (("run", "record"), values) for name, values in columns.items()},
        coords={"run": list(runs)},
    )
