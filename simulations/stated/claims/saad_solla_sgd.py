"""One-pass SGD of the soft committee machine in 500 dimensions, with and without the noise."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from scipy.stats import t as student

from dynamics import gradient_flow
from dynamics.overlaps.risk import OverlapRisk
from dynamics.theory.data import Array
from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import seed_at
from simulations.stated.figures.saad_solla_sgd import draw
from simulations.stated.overlap_runs import StochasticRuns
from simulations.stated.overlaps import UserOverlapTheory
from simulations.stated.user_theory import load_theory

FILE = Path(__file__).parents[1] / "examples" / "saad_solla.py"
#: Hidden units, rate of Saad and Solla (learning rate times d), initial overlaps, and runs.
UNITS, RATE, START, RUNS = 2, 1.0, {"Q": 0.25, "C": 0.0, "R": 0.1, "S": 0.05}, 6
#: Times that are compared, and the probability that a fresh run differs by more than allowed.
RECORDS, LEVEL = 20, 0.05
#: The flows that are compared: with noise, its correction for d, or without noise.
FLOWS = ("with noise", "with noise and correction", "without noise")


def threshold(comparisons: int, runs: int) -> float:
    """Return the largest distance of a fresh run from the mean of others, in their deviations.

    One of the comparisons exceeds it with at most the probability `LEVEL`, if runs are normal.
    """
    quantile = float(student.ppf(1.0 - 0.5 * LEVEL / comparisons, runs - 1))
    return quantile * float(np.sqrt(1.0 + 1.0 / runs))


def risk_of(theory: UserOverlapTheory, flow: str, d: int) -> OverlapRisk:
    """Return the risk whose gradient flow is compared."""
    if flow == "without noise":
        return theory.risk(K=UNITS, d=d)
    correction = flow == "with noise and correction"
    return theory.one_pass(learning_rate=RATE / d, correction=correction, K=UNITS, d=d)


def states_of(risk: OverlapRisk, times: Array) -> Array:
    """Return the overlaps of the flow at given times (times, n)."""
    start = [START[name] for name in risk.order_parameters]
    flow = gradient_flow(risk, horizon=float(times[-1]), initial=start, rtol=1e-5)
    return np.array([flow.at(float(time)) for time in times])


def row_of(flow: str, states: Array, runs: StochasticRuns, risk: OverlapRisk) -> dict[str, Any]:
    """Return the row of a flow in the tables."""
    distance = runs.distance(states)[1:]
    middle = len(states) // 3
    return {
        "flow": flow,
        "comparisons": distance.size,
        "distance": float(distance.max()),
        "rms": float(np.sqrt(np.mean(distance**2))),
        "allowed": threshold(distance.size, len(runs.states)),
        "loss": risk.loss(states[middle]),
        "runs": float(np.mean([risk.loss(run[middle]) for run in runs.states])),
    }


def measure(context: Context) -> Measurement:
    """Compare flows with runs of SGD on vectors."""
    theory = load_theory(FILE)
    assert isinstance(theory, UserOverlapTheory)
    d, last = context.choose(quick=(200, 30), full=(500, 50), thorough=(1000, 50))
    population = theory.risk(K=UNITS, d=d)
    runs = theory.stochastic_runs(
        learning_rate=RATE / d, steps=last * d, records=RECORDS, runs=RUNS,
        initial=[START[name] for name in population.order_parameters],
        seed=seed_at(context.seed, 1), K=UNITS, d=d,
    )  # fmt: skip
    context.progress(0.8)
    flows = context.choose(quick=(FLOWS[0], FLOWS[-1]), full=FLOWS)
    states = {flow: states_of(risk_of(theory, flow, d), runs.time) for flow in flows}
    rows = [row_of(flow, values, runs, population) for flow, values in states.items()]
    return Measurement(
        {"with noise": NOISY.frame(rows[:-1]), "without noise": WITHOUT.frame(rows[-1:])},
        {"K": UNITS, "d": d, "learning rate x d": RATE, "largest time": last, **START},
        (_figure(runs, states, population),),
    )


def _figure(runs: StochasticRuns, states: dict[str, Array], risk: OverlapRisk) -> Figure:
    data = xarray.Dataset(
        {
            "runs": (("run", "time", "overlap"), runs.states),
            "flow": (("equations", "time", "overlap"), np.array(list(states.values()))),
            "run_loss": (("run", "time"), np.array([list(map(risk.loss, x)) for x in runs.states])),
            "loss": (
                ("equations", "time"),
                np.array([list(map(risk.loss, x)) for x in states.values()]),
            ),
        },
        coords={
            "time": runs.time,
            "overlap": list(runs.order_parameters),
            "equations": list(states),
        },
    )
    return report_figure(
        "saad-solla-sgd",
        "SGD follows the equations with the noise term",
        "(a) Loss of runs of one-pass SGD (grey), and of flows with and without the noise term, "
        "against learning rate times steps. (b) Mean and standard deviation of the overlaps over "
        "the runs (dots), and the flow with noise (lines).",
        draw,
        data,
        (9.0, 3.9),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers in the sentence of the claim."""
    noisy, without = tables["with noise"].data, tables["without noise"].data.iloc[0]
    return {
        "comparisons": int(without.comparisons),
        "distance": noisy.distance.max(),
        "allowed": without.allowed,
        "without": without.distance,
    }


_COLUMNS = {
    "comparisons": Column("overlaps and times that are compared"),
    "distance": Column(
        "largest distance from the mean of the runs", "standard deviations", rtol=np.inf
    ),
    "rms": Column("root mean square of the distances", "standard deviations", rtol=np.inf),
    "allowed": Column("largest distance of a fresh run", "standard deviations"),
    "loss": Column("loss at a third of the time", rtol=1e-4),
    "runs": Column("mean loss of the runs there", rtol=np.inf),
}
NOISY = Table(
    index=("flow",),
    columns=_COLUMNS,
    predicates={"it is within the spread of fresh seeds": lambda t: t.distance <= t.allowed},
)
WITHOUT = Table(
    index=("flow",),
    columns=_COLUMNS,
    predicates={"it leaves the spread of fresh seeds": lambda t: t.distance > t.allowed},
)

CLAIM = Claim(
    id="saad-solla-sgd",
    place="Equations of motion at a finite learning rate, and simulations of SGD",
    statement=(
        "The overlaps of on-line gradient descent in many dimensions follow the equations of "
        "motion with the term quadratic in the learning rate, which describes the noise of the "
        "gradient; without it the equations hold for small rates only."
    ),
    method=(
        "Two hidden units, learning rate 1 / d, six runs on vectors in d = 500 dimensions to time "
        "50, against the flow derived from a file: with the noise term, with its correction for a "
        "finite dimension, and without noise; four overlaps at 20 times."
    ),
    criterion=(
        "Otherwise a finding: each overlap of a flow with noise is within the spread of fresh "
        "seeds, that is at the distance from the mean of the runs that one of the comparisons of "
        "a further, normally distributed run exceeds with probability at most .05 (Student's "
        "distribution, divided by the number of comparisons); the flow without noise is not."
    ),
    tables={"with noise": NOISY, "without noise": WITHOUT},
    measure=measure,
    headline=headline,
    finding=(
        "{comparisons} comparisons, allowed {allowed:.2g} deviations: with noise at most "
        "{distance!u:.2g}, without {without:.3g}."
    ),
    quick_note="d = 200 to time 30 instead of 500 to time 50, without the correction",
    thorough_note="d = 1000 instead of 500",
    assumptions=(
        "one start with R > S, so that unit k specializes to unit k of the teacher; public code of "
        "the equations: github.com/sgoldt/nn2pp"
    ),
    amended=(
        "after the first run, which took 42 seconds: six runs to time 50 instead of ten to time 60"
    ),
)
