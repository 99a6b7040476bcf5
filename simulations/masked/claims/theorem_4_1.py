"""Huang et al., Theorem 4.1: convergence of the loss to its floor, and its time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import xarray

from dynamics import gradient_flow
from dynamics.core.schedule import thinned
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked.events import find_events
from simulations.figures import report_figure
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled
from simulations.masked import runs
from simulations.masked.figures import regime_label
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.fits import exponent
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: Records of a flow in the figure.
_RECORDS = 250
#: Goal of the loss above its floor over E[z^2], and of the mean of (1 - a_n)^2 in every cluster.
EPS = 1e-4
#: Largest uncertainty of a resolved exponent, relative to the predicted one.
RESOLUTION = 0.1
#: Ratios of the largest to the smallest scale; above 1.5 the recalled rate exceeds P^(1 - kappa_s).
SPREADS = (1.0, 1.25, 1.5, 2.0, 3.0)
SIZES = (10**6, 10**12, 10**18, 10**24)
NODES = 6  # points of the scale in [L, U]; four give the same times to 4e-4 at U/L = 3
TAIL = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
#: Deadline of the last stage, over K / (2 mask_ratio L^4 eps).
SLACK = 2.0
#: (1 - a_n)^2 at the end of runs.
FINAL = 0.5 * EPS


def measure(context: Context) -> Measurement:
    """Run small problems with all masks and large ones to EPS; fit times to P, U/L and eps."""
    problems = _problems(context.quick)
    ends = [
        {"problem": runs.describe(problem)} | end_of(problem)
        for problem in context.track(problems, stop=0.5)
    ]
    spreads = context.choose(quick=SPREADS[::2], full=SPREADS)
    in_P = [time_in_P(spread) for spread in context.track(spreads, 0.5, 0.8)]
    tails = (runs.ONE_CLUSTER, runs.TWO_CLUSTERS, runs.GRID, runs.NARROW_GAP.problem())
    return Measurement(
        {
            "runs": RUNS.frame(ends),
            "time in P": TIME_IN_P.frame(in_P),
            "time by U/L": TIMES.frame(row for spread in spreads for row in slowdown(spread)),
            "last stage": LAST_STAGE.frame(last_stage_of(problem) for problem in tails),
        },
        {"eps": TAIL, "P": SIZES, "regime": runs.NARROW_GAP.name, "rtol": runs.RTOL},
        (_figure(problems),),
    )


def _problems(quick: bool) -> list[MaskedProblem]:
    large = (runs.WIDE_GAP, runs.NEGATIVE_GAP, runs.IN_GLOBAL)
    problems = [runs.ONE_CLUSTER, runs.TWO_CLUSTERS, *(regime.problem() for regime in large)]
    if not quick:
        mixed = runs.WIDE_GAP.problem(10**4, K=2).replace(query=("local", "global"))
        problems += [runs.GRID, mixed, runs.WIDE_GAP.problem(z_low=1.0, z_high=1.5)]
    return problems


def last_stage(problem: MaskedProblem, eps: float) -> float:
    """Return K / (2 mask_ratio L^4 eps): dS/dt = -(2 mask_ratio z^4 / K) S^2, S = (1 - a_n)^2."""
    masked = problem.masked / problem.P
    return problem.K / (2.0 * masked * problem.z_low**4 * eps)


def end_of(problem: MaskedProblem) -> dict[str, float]:
    """Return the state of a run at its deadline: attention 1/2 and twice the last stage."""
    run, population = runs.flow(problem, FINAL), runs.population(problem)
    clusters = range(problem.K)
    times = [find_events(run, population, cluster=k, eps=EPS).attended.time for k in clusters]
    deadline = max(times) + SLACK * last_stage(problem, EPS)
    row = {"floor": float(run.floor[0]), "deadline": deadline}
    if not deadline <= run.time[-1]:
        return row
    value, square = population.evaluate(run.at(deadline)), problem.mean_square_z
    return row | {
        "excess": value.excess / square,
        "error": value.bounds["rounding"] / square,
        "shortfall": float(value.shortfall.max()),
    }


def time_in_P(spread: float) -> dict[str, float]:
    """Return the exponent of the time in P for a value of U/L, and its bound."""
    fit = exponent(np.array(SIZES, float), np.array([time_to_half(P, spread) for P in SIZES]))
    factor = max(2.0 * (spread - 1.0), 1.0)
    return {
        "U/L": spread,
        "time_exponent_low": fit.low,
        "time_exponent_high": fit.high,
        "time_bound": factor * (1.0 - runs.NARROW_GAP.kappa_s),
        "recalled": factor > 1.0,
    }


def slowdown(spread: float) -> Iterator[dict[str, float]]:
    """Yield the time for a value of U/L over that at U/L = 1, at the least and the largest P."""
    for P in (SIZES[0], SIZES[-1]):
        slower = time_to_half(P, spread) / time_to_half(P, 1.0)
        yield {"U/L": spread, "P": float(P), "slower": slower}


def last_stage_of(problem: MaskedProblem) -> dict[str, Any]:
    """Return the exponent of the last stage in 1/eps, and its time over the predicted one."""
    waits = np.diff(times_to(problem))
    fit = exponent(1.0 / np.array(TAIL[1:]), waits)
    return {
        "problem": runs.describe(problem),
        "last_exponent_low": fit.low,
        "last_exponent_high": fit.high,
        "last_stage": float(waits[-1] / (0.9 * last_stage(problem, TAIL[-1]))),
    }


@cache
def time_to_half(P: int, spread: float) -> float:
    """Return the time to attention 1/2 with z in [1, spread], on six Gauss-Legendre points."""
    problem = runs.NARROW_GAP.problem(P, z_high=spread if spread > 1.0 else None)
    nodes = NODES if spread > 1.0 else None
    horizon = runs.default_horizon(problem, 1e-2)
    population = MaskedPopulation(problem, nodes=nodes)
    run = gradient_flow(population, horizon=horizon, rtol=runs.RTOL, records=50)
    return find_events(run, population).attended.time


def times_to(problem: MaskedProblem) -> list[float]:
    """Return the times at which (1 - a_n)^2 has fallen to each eps in every cluster."""
    run, population = runs.flow(problem, TAIL[-1]), runs.population(problem)

    def learned(eps: float) -> float:
        return max(
            find_events(run, population, cluster=k, eps=eps).learned.time for k in range(problem.K)
        )

    return [learned(eps) for eps in TAIL]


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    ends = tables["runs"]
    return {
        "in_time": ends.count("the loss is within eps of its floor in time"),
        "excess": ends.data.excess.max(),
        "power": tables["time in P"].data.time_exponent_high.max(),
    }


_LEAST = 1e-12


@styled
def draw_figure(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw loss and shortfall against time."""
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    artists: dict[str, Any] = {}
    labels = ("loss above its floor", r"mean of $(1-a_n)^2$")
    for letter, ax, name, label in zip("ab", panels, ("excess", "shortfall"), labels):
        for number, run in enumerate(data["run"].values):
            part = data.isel(run=number)
            style = dict(PROBLEM_STYLES[number % len(PROBLEM_STYLES)])
            if number >= len(PROBLEM_STYLES):
                style["linewidth"] = 0.9
            later = (part["time"] > 0.0) & (part[name] > _LEAST)
            artists[str(run)] = ax.plot(
                part["time"].where(later),
                part[name].where(later),
                label=regime_label(str(run)),
                **style,
            )[0]
        ax.axhline(data.attrs["eps"], **REFERENCE)
        ax.set(xscale="log", yscale="log", xlim=(1e-1, None), ylim=(1e-6, 2.0))
        ax.set(xlabel=r"flow time (learning rate $\times$ steps)", ylabel=label)
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=2, fontsize=8)
    return artists


def _figure(problems: Sequence[MaskedProblem]) -> Figure:
    data = np.full((3, len(problems), _RECORDS), np.nan)
    for number, problem in enumerate(problems):
        run = runs.flow(problem, FINAL)
        index = thinned(run.time.size, _RECORDS)
        columns = (run.time, run.excess / problem.mean_square_z, run.shortfall.max(axis=1))
        data[:, number, : index.size] = [values[index] for values in columns]
    return report_figure(
        "masked-convergence",
        "The loss goes to its floor and attention to the area",
        "Gradient flow from Q = 0: (a) loss of the query patch above what no attention removes "
        "(all patches of its area masked), over E[z^2]; (b) mean of (1 - a_n)^2 in the worst "
        "cluster, without masks that hide the whole area. Dashed: required accuracy. All masks "
        "are enumerated up to P = 12; larger P are mean-field counts.",
        draw_figure,
        xarray.Dataset(
            {
                name: (("run", "record"), values)
                for name, values in zip(("time", "excess", "shortfall"), data)
            },
            coords={"run": [runs.describe(problem) for problem in problems]},
            attrs={"eps": EPS},
        ),
        (7.4, 4.6),
    )


RUNS = Table(
    index=("problem",),
    columns={
        "floor": Column("loss that no attention removes"),
        "deadline": Column("deadline of learning", "flow time"),
        "excess": Column("loss above the floor then, over E[z^2]", missing="not reached"),
        "error": Column("its rounding error", missing="not reached", rtol=math.inf),
        "shortfall": Column("mean of (1 - a_n)^2 then, worst cluster", missing="not reached"),
    },
    strict={
        "the loss is within eps of its floor in time": lambda t: t.excess - t.error <= EPS,
        "nearly all attention goes to p's area in every cluster": lambda t: t.shortfall <= EPS,
    },
)

TIME_IN_P = Table(
    index=("U/L",),
    columns={
        "time_exponent_low": Column("exponent of the time in P, lower end"),
        "time_exponent_high": Column("exponent of the time in P, upper end"),
        "time_bound": Column("exponent that bounds it (factor recalled)"),
        "recalled": Column("the bound depends on the recalled factor"),
    },
    strict={
        "the exponent in P is at most that of the theorem, recalled bounds aside": lambda t: (
            (t.recalled == 1) | (t.time_exponent_low <= t.time_bound)
        ),
    },
    predicates={
        "the exponent in P is at most that of the theorem": lambda t: (
            t.time_exponent_low <= t.time_bound
        ),
        "the exponent in P is measured": lambda t: (
            0.5 * (t.time_exponent_high - t.time_exponent_low) <= RESOLUTION * t.time_bound
        ),
    },
)

TIMES = Table(
    index=("U/L", "P"),
    columns={"slower": Column("time over that at U/L = 1")},
)

LAST_STAGE = Table(
    index=("problem",),
    columns={
        "last_exponent_low": Column("exponent of the last stage in 1/eps, lower end"),
        "last_exponent_high": Column("exponent of the last stage in 1/eps, upper end"),
        "last_stage": Column("last stage over K/(2 mask_ratio L^4 eps)"),
    },
    strict={"the exponent in 1/eps is at most 1": lambda t: t.last_exponent_low <= 1.0},
    predicates={
        "the exponent in 1/eps is measured": lambda t: (
            0.5 * (t.last_exponent_high - t.last_exponent_low) <= RESOLUTION
        ),
    },
)

CLAIM = Claim(
    id="huang-theorem-4.1",
    place="Theorem 4.1 (Section 4)",
    statement=(
        "Gradient descent brings the reconstruction loss of each patch to within eps of what "
        "cannot be removed, in a time of order P^{c (1-kappa_s)} + 1/eps up to logarithms, with "
        "c = max{2(U/L - 1), 1} (this factor is recalled: no formula of the available text "
        "confirms it), and a masked patch pays nearly all attention to the unmasked patches of its "
        "area, in every cluster."
    ),
    method=(
        "Loss above its floor and (1 - a_n)^2 at a deadline, all masks enumerated at P = 9 and 12 "
        "with one and two clusters and in the mean-field limit at large P; exponents of the time "
        "to attention 1/2 in P for U/L from 1 to 3, and of the last stage in 1/eps."
    ),
    criterion=(
        "The theorem bounds the order of times from above. (1) Loss and attention must reach eps = "
        "1e-4 within the time to attention 1/2 plus twice K/(2 mask_ratio L^4 eps), the time of "
        "Lemma 5.1 for many patches (twice, as the constant is not stated). (2) The intervals of "
        "the exponents of the time in P and of the last stage in 1/eps (as in huang-scaling) must "
        "contain values at or below those of the theorem, with a half width of at most a tenth. "
        "For U/L > 1.5 the bound depends on a recalled factor: a violation is a finding, not a "
        "failure."
    ),
    tables={
        "runs": RUNS,
        "time in P": TIME_IN_P,
        "time by U/L": TIMES,
        "last stage": LAST_STAGE,
    },
    measure=measure,
    headline=headline,
    finding=(
        "{in_time} runs are in time within {excess!u:.1e} E[z^2] of their floor; the time in P has "
        "exponent {power!u:.2f} at most."
    ),
    tolerance=EPS,
    quick_note="five problems instead of eight, three values of U/L instead of five",
    assumptions="enumeration of all masks; for large P the mean-field limit",
    group="masked",
)
