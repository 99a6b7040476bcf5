"""Section 4.2: the realistic process follows the idealized one, and at which rate in N."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import xarray
from matplotlib.ticker import NullFormatter

from dynamics import Problem
from dynamics.positional.oracle.descent import FullPopulation
from dynamics.positional.samples import initial_weights, sample, train
from simulations.figures import report_figure
from simulations.figures.style import (
    COLOURS,
    LABELS,
    PROBLEM_STYLES,
    REFERENCE,
    panel_letters,
    styled,
)
from simulations.positional.idealized_runs import idealized, three_values
from simulations.positional.reference_runs import describe
from simulations.reproduction import intervals
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: A distance falls with N if its exponent is below this, half way from 0 to the -1/2 of a mean.
TOLERANCE = -0.25

#: What the realistic process is compared with.
SEMI, SAME, PAPER, SHIFTED = "semi-realistic", "same alpha(0)", "paper's start", "shifted in time"
_MARKERS = "os^D"


class Plan(NamedTuple):
    """Problem, learning rates of v and A, steps, moments of comparison, sizes, runs of each."""

    problem: Problem
    rate_v: float
    rate_A: float
    steps: int
    early: int
    sizes: tuple[int, ...]
    runs: int
    omega: float


class Paths(NamedTuple):
    """A process at every step: alpha (n,), A (n, D, D)."""

    alpha: np.ndarray
    A: np.ndarray


def measure(context: Context) -> Measurement:
    """Run the three processes, compare them at two moments, fit the exponents in N."""
    plan = _plan(context.quick)
    data = _distances(plan, context)
    across = [
        {
            "step": step,
            **intervals.cells("exponent_across", _exponent(data["across"].sel(moment=step))),
            "semi_to_ideal": float(data["semi_to_ideal"].sel(moment=step).mean()),
        }
        for step in (plan.early, plan.steps)
    ]
    shift = intervals.mean_of(data["shift"].values.mean(axis=0))
    return Measurement(
        {
            "distances": DISTANCES.frame(distances(data)),
            "across w*": ACROSS.frame(across),
            "time shift": SHIFT.frame(
                [{"runs": plan.runs, **intervals.cells("time_shift", shift)}]
            ),
        },
        {**plan._asdict(), "problem": asdict(plan.problem), "seed": context.seed},
        (_figure(data, plan),),
    )


def distances(data: xarray.Dataset) -> Iterator[dict[str, Any]]:
    """Yield exponents in N, and distances at the largest N, from each process at each moment."""
    for other in data["other"].values.tolist():
        for step in data["moment"].values.tolist():
            there = data.sel(other=other, moment=step)
            last = there.isel(N=-1).mean("run")
            yield {
                "other": other,
                "step": step,
                **intervals.cells("exponent", _exponent(there["A"])),
                "distance": float(last["A"]),
                "frobenius": float(last["frobenius"]),
                "alpha_distance": float(last["alpha"]),
            }


def _plan(quick: bool) -> Plan:
    if quick:
        small = Problem(D=8, C=2, q=2 / 8, nu=0.1, output_scale=1.0, d=16)
        return Plan(small, 0.3, 8.0, 60, 20, (500, 2000, 8000), 3, 1e-4)
    problem = Problem(D=12, C=4, q=4 / 12, nu=0.1, output_scale=1.0, d=32)
    return Plan(problem, 0.3, 12.0, 100, 20, (500, 2000, 8000, 32_000, 64_000), 5, 1e-4)


def _distances(plan: Plan, context: Context) -> xarray.Dataset:
    """Return the distances (other, moment, N, run) and the course of alpha at the largest N."""
    problem = plan.problem
    moments = (plan.early, plan.steps)
    others = (SEMI, SAME, PAPER, SHIFTED)
    ideal = _paths(problem, idealized(problem, plan.rate_v, plan.rate_A, plan.steps))
    shape = (len(others), len(moments), len(plan.sizes), plan.runs)
    table = {name: np.full(shape, np.nan) for name in ("A", "frobenius", "alpha")}
    across = np.empty(shape[1:])
    shifts, gaps = np.empty(shape[2:]), np.empty((len(moments), plan.runs))
    for number in range(plan.runs):
        rng = np.random.default_rng(np.random.SeedSequence(context.seed, spawn_key=(number,)))
        start, semi = _semi_realistic(plan, rng)
        context.progress((number + 0.4) / plan.runs)
        same = _paths(
            problem,
            idealized(problem, plan.rate_v, plan.rate_A, plan.steps, float(start[1][0])),
        )
        gaps[:, number] = [np.abs(semi.A[t] - ideal.A[t]).max() for t in moments]
        for column, N in enumerate(plan.sizes):
            path, norms = _realistic(plan, N, rng, start)
            shift = _crossing(path.alpha, ideal.alpha[0])
            shifts[column, number] = shift
            for place, t in enumerate(moments):
                across[place, column, number] = norms[t]
                for row, other in enumerate((semi, same, ideal)):
                    gap = path.A[t] - other.A[t]
                    table["A"][row, place, column, number] = np.abs(gap).max()
                    table["frobenius"][row, place, column, number] = np.linalg.norm(gap)
                    table["alpha"][row, place, column, number] = abs(path.alpha[t] - other.alpha[t])
                then = _at(ideal, t - shift)
                gap = path.A[t] - then.A
                table["A"][3, place, column, number] = np.abs(gap).max()
                table["frobenius"][3, place, column, number] = np.linalg.norm(gap)
                table["alpha"][3, place, column, number] = abs(path.alpha[t] - then.alpha)
            context.progress((number + 0.4 + 0.6 * (column + 1) / len(plan.sizes)) / plan.runs)
    dims = ("other", "moment", "N", "run")
    return xarray.Dataset(
        {name: (dims, values) for name, values in table.items()}
        | {
            "across": (dims[1:], across),
            "shift": (dims[2:], shifts),
            "semi_to_ideal": (("moment", "run"), gaps),
            "alpha_realistic": ("step", path.alpha),
            "alpha_semi": ("step", semi.alpha),
            "alpha_ideal": ("step", ideal.alpha),
        },
        coords={
            "other": list(others),
            "moment": list(moments),
            "N": list(plan.sizes),
            "step": np.arange(plan.steps + 1),
        },
    )


def _paths(problem: Problem, trajectory: Any) -> Paths:
    scale = trajectory.problem.kappa / problem.kappa
    matrices = [three_values(problem, *pair) for pair in zip(trajectory.gamma, trajectory.rho)]
    return Paths(trajectory.alpha * scale, np.stack(matrices))


def _semi_realistic(
    plan: Plan, rng: np.random.Generator
) -> tuple[tuple[np.ndarray, np.ndarray], Paths]:
    """Return a random start and descent on the population risk from it, without symmetry."""
    problem = plan.problem
    A, v = start = initial_weights(problem, rng, plan.omega)
    population = FullPopulation(problem, np.eye(1, problem.dimension)[0], None)
    scores, alphas = [], []
    for step in range(plan.steps + 1):
        scores.append(A)
        alphas.append(v[0])
        if step < plan.steps:
            value = population.evaluate(A, v)
            A, v = A - plan.rate_A * value.dA, v - plan.rate_v * value.dv
    return start, Paths(np.array(alphas), np.stack(scores))


def _realistic(
    plan: Plan, N: int, rng: np.random.Generator, start: tuple[np.ndarray, np.ndarray]
) -> tuple[Paths, np.ndarray]:
    """Return descent on N samples from that start, and the norm of v across w* at every step."""
    X, y = sample(plan.problem, N, rng, dtype=np.float32)
    history = train(
        plan.problem, X, y,
        learning_rate=plan.rate_v, learning_rate_A=plan.rate_A, steps=plan.steps, initial=start,
        record=range(plan.steps + 1), keep_states=True, threads=1,
    ).history  # fmt: skip
    assert history.A is not None
    return Paths(history.alpha, history.A), history.across


def _at(path: Paths, step: float) -> Paths:
    """Return a process at a step between two of its steps, by linear interpolation."""
    low = int(min(max(step, 0.0), path.alpha.size - 2))
    share = step - low
    return Paths(*((1 - share) * part[low] + share * part[low + 1] for part in path))


def _crossing(values: np.ndarray, level: float) -> float:
    """Return the step at which a process first reaches a level, interpolated."""
    step = int((values >= level).argmax())
    return step - float((values[step] - level) / (values[step] - values[step - 1]))


def _exponent(values: xarray.DataArray) -> tuple[float, float, float]:
    """Return the exponent of some values (N, run) and its interval over the runs.

    A run has the same start at every N, so that runs are drawn again whole.
    """
    table = values.transpose("N", "run").values
    sizes = values["N"].values
    return (
        intervals.exponent(sizes, table),
        *intervals.of_exponent(sizes, table, paired=True),
    )


def _figure(data: xarray.Dataset, plan: Plan) -> Figure:
    return report_figure(
        "realistic-tracks-idealized",
        "Distance of the realistic process from the idealized one against N",
        f"{describe(plan.problem)}, d={plan.problem.dimension}, learning rates {plan.rate_v:g} of "
        f"v and {plan.rate_A:g} of A; mean and range of {plan.runs} runs. Left and middle: max "
        f"|A_hat - A| at step {plan.early} and at step {plan.steps} from the semi-realistic "
        "process (population gradient from the same random start), from the idealized process "
        "with the same alpha(0), from the idealized process with the paper's own start, and from "
        "the latter at shifted times. Dotted: N^(-1/2). Right: alpha of the three processes at "
        "the largest N: the realistic one starts late.",
        _draw,
        data,
        (9.5, 3.6),
    )


@styled
def _draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw max |A_hat - A| at both moments against N, and alpha of the processes."""
    panels = figure.subplots(1, 3)
    artists: dict[str, Any] = {}
    size = data["N"].values
    for ax, moment in zip(panels, data["moment"].values):
        for number, other in enumerate(data["other"].values):
            one = data["A"].sel(moment=moment, other=other)
            style = PROBLEM_STYLES[number] | {"marker": _MARKERS[number], "markersize": 4.5}
            mean = one.mean("run").values
            below, above = mean - one.min("run").values, one.max("run").values - mean
            artists[f"{other} {moment}"] = ax.errorbar(
                size, mean, (below, above), label=str(other), capsize=2, elinewidth=0.8, **style
            )
        first = float(data["A"].sel(moment=moment).isel(other=0, N=0).mean()) * 0.6
        ax.plot(size, first * (size / size[0]) ** -0.5, **REFERENCE | {"linestyle": ":"})
        ax.set(xscale="log", yscale="log")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set(xlabel="samples $N$", title=f"step {int(moment)}")
    low = min(ax.get_ylim()[0] for ax in panels[:2])
    high = max(ax.get_ylim()[1] for ax in panels[:2])
    for ax in panels[:2]:
        ax.set_ylim(low, high)
    panels[0].set_ylabel(r"$\max_{ij}|\hat A_{ij}-A_{ij}|$")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4)
    last = panels[2]
    names = ("alpha_ideal", "alpha_semi", "alpha_realistic")
    words = ("idealized", "semi-realistic", rf"realistic, $N={int(size[-1])}$")
    dashes = ("-", "-", (0, (3, 3)))
    colours = ("#BBBBBB", COLOURS["alpha"], "#222222")
    for name, word, dash, colour in zip(names, words, dashes, colours):
        early = data.isel(step=slice(0, 61))
        artists[name] = last.plot(
            early["step"], early[name], color=colour, linestyle=dash, label=word
        )[0]
    last.set(xlabel="step", ylabel=LABELS["alpha"])
    last.legend(loc="lower right")
    panel_letters(panels)
    return artists


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    rows = tables["distances"].data
    common, paper = rows.loc[[SEMI, SAME]], rows.loc[[PAPER]]
    return {
        "common_low": common.exponent_low.min(),
        "common_high": common.exponent_high.max(),
        "paper_low": paper.exponent_low.min(),
        "paper_high": paper.exponent_high.max(),
    }


DISTANCES = Table(
    index=("other", "step"),
    columns={
        **intervals.columns("exponent", "exponent in N of max |A_hat - A|", centre=""),
        "distance": Column("max |A_hat - A| at the largest N", rtol=math.inf),
        "frobenius": Column("Frobenius norm of A_hat - A at the largest N", rtol=math.inf),
        "alpha_distance": Column("|alpha_hat - alpha| at the largest N", rtol=math.inf),
    },
    predicates={"the distance surely falls with N": lambda t: t.exponent_high <= TOLERANCE},
    strict={
        "from a common start it does not surely stay": lambda t: (
            (t.exponent_low <= TOLERANCE) | ~t.index.get_level_values("other").isin([SEMI, SAME])
        ),
    },
    judged=lambda t: t.index.get_level_values("other") != SHIFTED,
)
ACROSS = Table(
    index=("step",),
    columns={
        **intervals.columns(
            "exponent_across", "exponent in N of the norm of v across w*", centre=""
        ),
        "semi_to_ideal": Column(
            "max |A|, semi-realistic against paper's start, mean", rtol=math.inf
        ),
    },
)
SHIFT = Table(
    index=(),
    columns={"runs": Column("runs"), **intervals.columns("time_shift", "time shift", "steps")},
)

CLAIM = Claim(
    id="realistic-tracks-idealized",
    place="Section 4.2, after Theorem 4.2 (proof in Appendix E)",
    statement=(
        "A_hat and v_hat of the realistic process are close to a semi-realistic process, a "
        "mid-point between the idealized and the realistic one, when the samples are many."
    ),
    method=(
        "max |A_hat - A|, the Frobenius norm and |alpha_hat - alpha| against N at two moments: "
        "from the semi-realistic process, read as the population gradient from the realistic "
        "random start, and from the idealized one with the same and with the paper's alpha(0)."
    ),
    criterion=(
        "The statement is that the distance goes to 0 as the samples grow; gradients are means "
        "over N samples, so that N^(-1/2) is to be expected of processes that start together, and "
        "an exponent below -1/4 counts as falling. HOLDS if the 95% intervals (runs drawn again) "
        "of the exponents of max |A_hat - A| at both moments lie below -1/4 from a common start "
        "and from the paper's two starts. FAILS if from a common start one of them lies above. A "
        "finding otherwise. Five runs, at each N from the same start."
    ),
    tables={"distances": DISTANCES, "across w*": ACROSS, "time shift": SHIFT},
    measure=measure,
    headline=headline,
    finding=(
        "max |A_hat - A| falls as N^{common_low:.2f} to N^{common_high:.2f} (95 %) from a common "
        "start, as N^{paper_low:.2f} to N^{paper_high:.2f} from the paper's two."
    ),
    tolerance=TOLERANCE,
    quick_note="D = 8, C = 2 instead of D = 12, C = 4; N up to 8,000 instead of 64,000",
    assumptions=(
        "descent on (E); exact expectation of the full model by enumeration of all patterns, the "
        "noise to leading order in v across w* (semi-realistic), and of the reduced one (idealized)"
    ),
)
