"""Event I (Lemma D.2): only v moves until alpha reaches its threshold, and alpha increases."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray

from dynamics import Population, Problem, gradient_flow
from dynamics.core.crossing import every_step
from dynamics.positional.events import find_events
from simulations.figures import report_figure
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled
from simulations.positional import theorem_4_1 as theorem
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

C = 4
SIZES, QUICK_SIZES = (256, 1024, 4096, 16384, 65536, 262144, 1048576), (256, 4096, 65536)
FEATURES, QUICK_FEATURES = (C, 2 * C, C**2), (C, C**2)
TOLERANCE = 1e-8
#: Flow time of each flow; alpha settles within a flow time of the order D^(-2/3).
HORIZON = 10.0
#: "Only v updates" if |gamma| and |rho| are at most this at T0; A enters the model as exp(A).
STILL = 0.01


def measure(context: Context) -> Measurement:
    """Measure alpha, and the speeds of v and A, on [0, T0]."""
    features = context.choose(quick=QUICK_FEATURES, full=FEATURES)
    sizes = context.choose(quick=QUICK_SIZES, full=SIZES)
    cases = [(number, D) for number in features for D in sizes]
    table = TABLE.frame(row(*case) for case in context.track(cases))
    return Measurement(
        {"event I": table},
        {"C": C, "nu": "1/d", "beta": "log log d", "population tolerance": TOLERANCE},
        (_figure(table),),
    )


def row(features: int, D: int) -> dict[str, Any]:
    """Return the row of a problem."""
    problem = Problem.parametrization_3_1(D, C, q=features / D)
    population = Population(problem, method="fourier", tolerance=TOLERANCE)
    path = gradient_flow(population, horizon=HORIZON, rtol=1e-8, records=100)
    events, steps = find_events(path, population), every_step(path)
    during = steps.states[steps.time <= events.T0.time]
    speeds = np.abs([population.gradient(path.state(state)) for state in during])
    ratio = speeds[:, 0] / speeds[:, 1:].max(axis=1) if len(during) else np.array([math.nan])
    arrival = path.at(events.T0.time) if events.T0.happens else path.final
    return {
        "qD": features,
        "D": D,
        "within": not theorem.hypotheses(problem).broken,
        "start": problem.initial_state.alpha / events.alpha_star,
        "T0": events.T0.time,
        "alpha": arrival.alpha,
        "least_step": float(np.diff(during[:, 0]).min()) if len(during) > 1 else math.nan,
        "faster": float(ratio.min()),
        "moved": max(abs(arrival.gamma), abs(arrival.rho)),
    }


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    table = tables["event I"]
    return {
        "increases": table.count("alpha increases until T0"),
        "faster": table.rows.faster.min(),
        "start": table.rows.start.max(),
    }


def _figure(table: Any) -> Figure:
    return report_figure(
        "event-I",
        "Event I: v moves, the attention does not",
        f"Paper's parametrization (C = {C}, nu = 1/d, sigma_A = log log d, d = D). (a) alpha(0) = "
        "nu^(1/2) over the quasi-steady value that alpha reaches at T0: alpha increases below the "
        "dashed line. (b) The least ratio of the speeds of v and of the fastest entry of A "
        "until T0 (solid), and the largest |gamma|, |rho| at T0 (dashed).",
        _draw,
        xarray.Dataset.from_dataframe(table.reset_index().drop(columns="within")),
        (7.2, 3.4),
    )


@styled
def _draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the start relative to the quasi-steady value, and the two speeds."""
    left, right = figure.subplots(1, 2)
    artists = {}
    for number, (density, rows) in enumerate(data.to_dataframe().groupby("qD")):
        style = {"color": PROBLEM_STYLES[number]["color"], "marker": "o", "markersize": 4}
        label = f"$qD={density}$"
        artists[label] = left.plot(rows.D, rows.start, label=label, **style)[0]
        right.plot(rows.D, rows.faster, **style)
        right.plot(rows.D, rows.moved, linestyle="--", **style)
    left.axhline(1.0, **REFERENCE)
    left.set(ylabel=r"$\alpha(0)/\alpha^*$", yscale="log", xscale="log", xlabel="$D$")
    right.set(yscale="log", xscale="log", xlabel="$D$")
    right.set_ylabel(r"ratio of speeds (solid), $|\gamma|,|\rho|$ (dashed)")
    left.set_yticks([0.2, 0.5, 1.0, 2.0], ["0.2", "0.5", "1", "2"])
    left.set_yticks([], minor=True)
    left.legend()
    panel_letters((left, right))
    return artists


TABLE = Table(
    index=("qD", "D"),
    columns={
        "within": Column("hypotheses met"),
        "start": Column("alpha(0) over the quasi-steady value"),
        "T0": Column("T0", "flow time", missing="never", rtol=1e-4),
        "alpha": Column("alpha at T0", rtol=1e-4),
        "least_step": Column("least change of alpha in a step until T0", rtol=math.inf),
        "faster": Column("least |dv/dt| over |dA_ij/dt| until T0", rtol=1e-2),
        "moved": Column("largest |gamma|, |rho| at T0", rtol=1e-2),
    },
    predicates={
        "alpha reaches a threshold at T0 > 0": lambda t: t["T0"] > 0.0,
        "alpha increases until T0": lambda t: (t.start < 1.0) & (t.least_step > 0.0),
        "v moves faster than every A_ij until T0": lambda t: t.faster > 1.0,
        "A stays at its start until T0": lambda t: t.moved <= STILL,
    },
    judged=lambda t: t.within,
)

CLAIM = Claim(
    id="lemma-D.2",
    place="Event I (Section 4.1) and Lemma D.2",
    statement=(
        "At the beginning the update of v is larger than the update of A_ij, so that only v "
        "updates: alpha increases until a time T0 > 0 where it reaches some threshold."
    ),
    method=(
        "On gradient flows from D = 256 to 10^6: at each step of the integrator until T0 (alpha "
        "within 1 % of its quasi-steady value) the change of alpha and the ratio of the speeds of "
        "v and of the fastest entry of A; and the change of A up to T0."
    ),
    criterion=(
        "The appendix with the lemma is not available; the statement of Section 4.1 is tested, on "
        "problems that meet the hypotheses of theorem-4.1. T0 must exist, alpha increase at every "
        "step until T0, v be faster than every A_ij until T0, and |gamma|, |rho| be at most 0.01 "
        "at T0 ('only v updates': the attention weights are off by 1 %). The constants are "
        "part of nu = 1/poly(d): a violation at these sizes is a finding."
    ),
    quick_note="three sizes instead of seven, two densities instead of three",
    assumptions="gradient flow under the certified Fourier expectation",
    tables={"event I": TABLE},
    measure=measure,
    headline=headline,
    finding=(
        "alpha increases until T0 in {increases} (alpha(0) is up to {start!u:.3g} times alpha*); v "
        "is at least {faster!d:.1g} times faster than A."
    ),
)
