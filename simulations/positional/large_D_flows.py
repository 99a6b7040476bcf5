"""Flows in the regime of the paper, q = poly(C)/D, for D up to a million."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray

from dynamics import Population, Problem, State, ToleranceError, Trajectory, gradient_flow
from dynamics.core.crossing import root
from dynamics.core.trajectory import Status
from dynamics.positional.events import Events, find_events
from dynamics.positional.labelling import LabelError, label_error
from dynamics.positional.many_patch_limit import time_to_lead
from dynamics.positional.slow_manifold import largest_stable_learning_rate
from simulations.reproduction.claim import Context
from simulations.reproduction.predicates import Column, Table

C = 4
SIZES, THOROUGH_SIZES = (1_000, 100_000, 1_000_000), (1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (1_000, 10_000)
#: Expected number of features outside the signal set: q = C/D and q = C^2/D.
FEATURES, QUICK_FEATURES = (C, C**2), (C,)
#: Exponents k of nu = D^-k, with beta = log log D (Parametrization 3.1).
SLOWEST = "nu=D^(-1/2)"
POWERS = {SLOWEST: 0.5, "nu=1/D": 1.0, "nu=1/D^2": 2.0}
#: The contrast, which the paper excludes: nu and beta do not depend on D.
FIXED, FIXED_NU, FIXED_BETA = "nu=0.01, beta=1", 0.01, 1.0
#: Sizes for other degrees of the activation, with nu = 1/D^2 (alpha(0) below alpha*) and the
#: contrast. Beyond D = 10^5 the Fourier method rejects p = 7.
DEGREES = {5: (100_000, 1_000_000), 7: (100_000,)}
QUICK_DEGREES = {5: (100_000,)}
THOROUGH_DEGREES = {5: (100_000, 1_000_000), 7: (10_000, 100_000)}
TOLERANCE = 1e-8
#: Population risk at which a run ends (the o(1) of the theorem), unless the horizon comes first.
LOSS_GOAL = 1e-3
#: Relative accuracy of the risk at that end.
END_ACCURACY = 1e-4
#: Other risks at which a run could end; T1 depends on this choice.
EARLIER_GOALS = (1e-1, 1e-2)

#: Index levels of a table with one row for each flow.
INDEX = ("scaling", "p", "qD", "D")
EXPONENTS = Table(
    index=("of", "scaling", "qD"),
    columns={"exponent": Column("exponent in D over the last decade")},
)


def in_regime(table: pd.DataFrame) -> Any:
    """Return whether each row has a scaling of the paper rather than the contrast."""
    return table.index.get_level_values("scaling") != FIXED


class Case(NamedTuple):
    """One flow: how nu and beta depend on D, the degree p, the number of features qD, and D."""

    scaling: str
    p: int
    features: int
    D: int

    @property
    def problem(self) -> Problem:
        """The constants, at C = 4, kappa = D and tau = 1."""
        q = self.features / self.D
        if self.scaling == FIXED:
            return Problem(self.D, C, q, self.p, nu=FIXED_NU, beta=FIXED_BETA)
        nu = self.D ** -POWERS[self.scaling]
        return Problem.parametrization_3_1(self.D, C, q=q, p=self.p, nu=nu)

    @property
    def horizon(self) -> float:
        """A sufficient flow time, of the order D^p: the poly(d)/eta of the theorem."""
        return 3e5 * (self.D / 100) ** self.p

    @property
    def levels(self) -> dict[str, Any]:
        """Index of the flow in a table: its value of each level of `INDEX`."""
        return dict(zip(INDEX, self))


class Run(NamedTuple):
    """A flow with its events.

    Attributes
    ----------
    case
        Parameters of the flow.
    path
        Trajectory up to the goal or the horizon.
    population
        Population expectation along it.
    events
        Events of Section 4.1.
    label
        Error of the labelling function itself.
    stable_rate
        Largest stable learning rate at the start and after Event I.
    """

    case: Case
    path: Trajectory
    population: Population
    events: Events
    label: LabelError
    stable_rate: float

    @property
    def G(self) -> float:
        """Attention mass D (Lambda + (C-1) Gamma) at the end."""
        return float(self.path.attention[-1, 3])

    @property
    def learned(self) -> bool:
        """Whether the population risk fell to `LOSS_GOAL`, up to the accuracy of the end."""
        return bool(self.path.loss[-1] < (1.0 + END_ACCURACY) * LOSS_GOAL)

    @property
    def associates(self) -> bool:
        """Whether patch association, min(beta, gamma) > rho, holds at the end."""
        return bool(min(self.path.problem.beta, self.path.final.gamma) > self.path.final.rho)

    @property
    def largest_rho(self) -> float:
        """Largest |rho| of the run."""
        return float(np.abs(self.path.rho).max())

    @property
    def predicted_T1(self) -> float:
        """T1 of the scaling theory, given the largest |rho| of the run."""
        return time_to_lead(self.path.problem, self.largest_rho)

    def T1_if_ended_at(self, risk: float) -> float:
        """Return T1 of the run cut at the first record below a risk.

        NaN if the risk is below it before alpha settles.
        """
        if np.interp(self.events.T0.time, self.path.time, self.path.loss) < risk:
            return float("nan")
        below = np.flatnonzero(self.path.loss < risk)
        last = int(below[0]) if below.size else self.path.time.size - 1
        level = np.abs(self.path.rho[: last + 1]).max()
        return float(np.interp(level, self.path.gamma[: last + 1], self.path.time[: last + 1]))

    @property
    def risk_after_rise(self) -> float:
        """Risk at which the second rise of alpha ends, or of the final state if it still rises."""
        end = self.events.end_of_rise
        if not end.happens:
            return float(self.path.loss[-1])
        return float(np.interp(end.time, self.path.time, self.path.loss))

    @property
    def settled_error(self) -> float:
        """Test error at T0, when alpha has settled and the attention has not moved."""
        after = int(np.searchsorted(self.path.time, self.events.T0.time))
        pair = np.clip([after - 1, after], 0, self.path.time.size - 1)
        around = self.population.observe(self.path.at_records(pair.tolist()))
        return float(np.interp(self.events.T0.time, around.time, around.test_error))

    @property
    def test_error(self) -> float:
        """Test error at the end."""
        return float(self.population.observe(self.path.at_records([-1])).test_error[0])


@cache
def run_flow(case: Case) -> Run:
    """Compute the flow of one case with the Fourier expectation, and its events.

    Raises
    ------
    RuntimeError
        If the flow ends for another reason than the goal, the horizon or lost accuracy.
    """
    population = Population(case.problem, method="fourier", tolerance=TOLERANCE)

    checked = State(1.0, 1.0, 0.0)  # the last state at which the risk was evaluated

    def learned(state: State) -> bool:
        nonlocal checked
        moved = abs(state.alpha - checked.alpha) > 0.01 * checked.alpha
        if state.gamma < 1.0 or not (moved or state.gamma > checked.gamma + 0.01):
            return False
        checked = state
        try:
            return population.certified_loss(state).loss < LOSS_GOAL
        except ToleranceError:
            return True  # the last record reports the lost accuracy

    path = gradient_flow(population, horizon=case.horizon, until=learned)
    path = ended_at_goal(path, population)
    if path.status not in (Status.COMPLETED, Status.INACCURATE, Status.STALLED):
        raise RuntimeError(f"the flow at {case} stopped early: {path.message}")
    return Run(
        case,
        path,
        population,
        find_events(path, population),
        label_error(population.problem),
        largest_stable_learning_rate(population, population.problem.initial_state),
    )


def ended_at_goal(path: Trajectory, population: Population) -> Trajectory:
    """Return a flow cut at the time at which its risk falls to `LOSS_GOAL`, if there is one.

    The time is a root on the dense output, so that it does not depend on the steps of the
    integrator. Its tolerance is rounding: where alpha jumps, the risk falls from 0.3 to the goal
    within a relative change of 1e-6 of the time. If the root is still too inaccurate, the run ends
    at the next record.
    """
    below = np.flatnonzero(path.loss <= LOSS_GOAL)
    if not below.size or below[0] == 0:
        return path
    last = int(below[0])

    def excess(time: float) -> float:
        return population.certified_loss(path.at(time)).loss / LOSS_GOAL - 1.0

    end = root(excess, float(path.time[last - 1]), float(path.time[last]), rtol=1e-15)
    if abs(excess(end)) > END_ACCURACY:
        return path.at_records(list(range(last + 1)))
    final = population.certified_loss(path.at(end))
    return replace(
        path,
        time=np.append(path.time[:last], end),
        states=np.vstack([path.states[:last], path.at(end)]),
        loss=np.append(path.loss[:last], final.loss),
        bound=np.append(path.bound[:last], final.bound),
        message=f"the run ended at time {end:.6g}, where its risk is {LOSS_GOAL:g}",
    )


def cases(quick: bool, thorough: bool = False) -> list[Case]:
    """Return the cases at p = 3: the scalings of the paper, then the contrast.

    Those of `_is_slow` require ``thorough``: they take more than half of the total time.
    """
    scalings = ("nu=1/D", FIXED) if quick else (*POWERS, FIXED)
    sizes = QUICK_SIZES if quick else THOROUGH_SIZES if thorough else SIZES
    return [
        Case(scaling, 3, features, D)
        for scaling in scalings
        for features in (QUICK_FEATURES if quick else FEATURES)
        for D in sizes
        if thorough or quick or not _is_slow(scaling, features, D)
    ]


def _is_slow(scaling: str, features: int, D: int) -> bool:
    """Return whether a case is left to thorough runs."""
    if scaling == SLOWEST:
        return features > C or D > 100_000
    if scaling == FIXED:
        return features > C or D == 100_000
    return scaling == "nu=1/D^2" and features > C


def degree_cases(quick: bool, thorough: bool = False) -> list[Case]:
    """Return the cases at p = 5 and 7, with qD = C^2; most of `FIXED` require ``thorough``."""
    degrees = QUICK_DEGREES if quick else THOROUGH_DEGREES if thorough else DEGREES
    return [
        Case(scaling, p, C**2, D)
        for p, sizes in degrees.items()
        for scaling in (("nu=1/D^2",) if quick else ("nu=1/D^2", FIXED))
        for D in sizes
        if thorough or scaling != FIXED or (p, D) == (5, 100_000)
    ]


def flows(context: Context) -> dict[Case, Run]:
    """Compute the flows of `cases`."""
    chosen = cases(context.quick, context.thorough)
    return {case: run_flow(case) for case in context.track(chosen)}


def parameters(context: Context) -> dict[str, object]:
    """Return the parameters of the flows, for the report."""
    quick, thorough = context.quick, context.thorough
    chosen = cases(quick, thorough)
    return {
        "C": C,
        "qD": sorted({case.features for case in chosen}),
        "D": sorted({case.D for case in chosen}),
        "nu and beta": [*dict.fromkeys(case.scaling for case in chosen)],
        "beta unless given": "log log D",
        "left out": (
            []
            if quick or thorough
            else [
                f"{SLOWEST}, qD={C**2} or D=1000000",
                f"nu=1/D^2, qD={C**2}",
                f"{FIXED}, qD={C**2} or D=100000",
            ]
        ),
        "p": 3,
        "population tolerance": TOLERANCE,
        "ends at risk": LOSS_GOAL,
        "horizon": "3e5 (D/100)^p",
    }


def grid(table: pd.DataFrame) -> xarray.Dataset:
    """Return numbers of flows at p = 3 as arrays (scaling, qD, D), NaN where there is no flow."""
    scalings = dict.fromkeys(table.index.get_level_values("scaling"))
    return xarray.Dataset.from_dataframe(table.droplevel("p")).sel(scaling=list(scalings))


def exponents(data: xarray.Dataset, names: tuple[str, ...]) -> pd.DataFrame:
    """Return the exponent in D of each quantity over the last decade, where both values exist."""
    return EXPONENTS.frame(_exponents(data, names))


def _exponents(data: xarray.Dataset, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    decade = np.diff(np.log(data["D"][-2:]))[0]
    for name in names:
        for scaling in data["scaling"].values.tolist():
            for features in data["qD"].values.tolist():
                values = data[name].sel(scaling=scaling, qD=features)
                slope = float(np.diff(np.log(values[-2:]))[0] / decade)
                if np.isfinite(slope):
                    yield {"of": name, "scaling": scaling, "qD": features, "exponent": slope}
