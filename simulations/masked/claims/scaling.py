"""Huang et al.: scaling of initial ratio, switch and times with the number of patches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray

from dynamics.masked import MaskedProblem
from dynamics.masked.events import find_events
from simulations.figures import report_figure
from simulations.figures.style import PROBLEM_STYLES, panel_letter, styled
from simulations.masked import runs
from simulations.masked.figures import regime_label
from simulations.masked.runs import Regime
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.fits import Exponent, allows, exponent, resolves
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: Largest uncertainty of a resolved exponent, relative to the predicted one.
RESOLUTION = 0.1
#: Relative accuracy of located times.
ROUNDING = 1e-6
ONE_PHASE = (runs.NEGATIVE_GAP, runs.IN_GLOBAL, runs.IN_SMALL_GLOBAL)
REGIMES = (*runs.TWO_PHASES, *ONE_PHASE)
#: Problems whose final stage is timed.
FINAL: dict[str, dict[str, float]] = {
    "z=1, mask_ratio=0.5, K=1": {},
    "z=1.3, mask_ratio=0.3, K=2": {"z_low": 1.3, "mask_ratio": 0.3, "K": 2},
}


def measure(context: Context) -> Measurement:
    """Fit exponents over decades of P in the mean-field limit."""
    sizes = runs.decades(context.quick)
    series = {regime: series_of(regime, sizes) for regime in context.track(REGIMES, stop=0.9)}
    limits, local = [], []
    for regime, values in series.items():
        for quantity, fit, predicted in fits(regime, sizes, values):
            label = {"quantity": quantity, "regime": regime.name}
            limits.append(
                label | {"predicted": predicted, "exponent_low": fit.low, "exponent_high": fit.high}
            )
            local += [label | {"P": float(P), "local": x} for P, x in zip(sizes, fit.local)]
    return Measurement(
        {
            "exponents": EXPONENTS.frame(limits),
            "local exponents": LOCAL.frame(local),
            "final stage": FINAL_STAGE.frame(
                {"problem": name} | final_stage(**changes) for name, changes in FINAL.items()
            ),
            "one phase": ONE_PHASE_TIME.frame(
                {"regime": regime.name, "P": float(P)} | one_phase(regime.problem(P))
                for regime in ONE_PHASE
                for P in (sizes[0], sizes[-1])
            ),
        },
        {"z": 1.0, "mask_ratio": 0.5, "K": 1, "final stage": FINAL, "rtol": runs.RTOL},
        (_figure(sizes, series),),
    )


def series_of(regime: Regime, sizes: Sequence[int]) -> np.ndarray:
    """Return initial ratio, Phi_1 at the switch and time to attention 1/2, (3, sizes)."""
    events = [runs.events(regime.problem(size)) for size in sizes]
    ratios = [event.initial_ratio for event in events]
    switches = [event.rival_at_switch if event.phases == 2 else np.nan for event in events]
    return np.array([ratios, switches, [event.attended.time for event in events]])


def fits(
    regime: Regime, sizes: Sequence[int], series: np.ndarray
) -> Iterator[tuple[str, Exponent, float]]:
    """Yield quantity, fitted exponent and predicted exponent for each prediction of a regime."""
    P = np.array(sizes, float)
    if regime.query == "local":
        yield "initial ratio", exponent(P, series[0]), regime.gap
    if regime in runs.TWO_PHASES:
        yield "Phi_1 at the switch over log P", exponent(P, series[1], log=False), -0.5 * regime.gap
    yield "time to attention 1/2", exponent(P, series[2]), regime.exponent


def final_stage(**changes: float) -> dict[str, float]:
    """Return the time from (1 - a_n)^2 = 1e-4 to 1e-6 over the prediction of Theorem 4.1.

    With S = (1 - a_n)^2 the prediction omits a factor a_n^2 in dS/dt, which extends the time by a
    relative 4 sqrt(1e-6), and position correlations, which shorten it by 1/(z^2 C_n).
    """
    problem = runs.WIDE_GAP.problem(10**8, **changes)
    run, population = runs.flow(problem, 1e-6), runs.population(problem)
    early, late = (find_events(run, population, eps=e).learned.time for e in (1e-4, 1e-6))
    rate = 2.0 * problem.masked / problem.P * problem.z_low**4 / problem.K
    positions = 1.0 / (problem.z_low**2 * problem.own_size())
    return {
        "final_stage": rate * (late - early) / (1e6 - 1e4),
        "allowed": 4.0 * math.sqrt(1e-6) + positions,
    }


def one_phase(problem: MaskedProblem) -> dict[str, float]:
    """Return the time to attention 1/2 over its integral for a run in which only Phi_n changes.

    The integral omits the other correlations. To first order they change the speed by their own
    relative speed: the rival at the start, positions by 1/(z^2 C_n).
    """
    events = runs.events(problem)
    positions = 1.0 / (problem.z_low**2 * problem.own_size())
    return {
        "one_phase_time": events.attended.time / runs.one_phase_time(problem),
        "allowed": events.initial_ratio + positions + ROUNDING,
    }


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    return {
        "inside": tables["exponents"].count("the predicted exponent is inside the interval"),
        "stage": (tables["final stage"].data.final_stage - 1.0).abs().max(),
    }


_MARKERS = "osD^v<"


@styled
def draw_figure(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the initial ratio, Phi_1 at the switch and the time to attention 1/2."""
    panels = figure.subplots(1, 3)
    labels = (
        r"initial $|d\Phi_1/dt|\,/\,(d\Phi_n/dt)$",
        r"$\Phi_1$ at the switch",
        r"time to $a_n=1/2$",
    )
    artists: dict[str, Any] = {}
    P = data["P"].values
    for letter, ax, name, label in zip("abc", panels, ("ratio", "switch", "attended"), labels):
        for number, regime in enumerate(data["regime"].values):
            part = data.isel(regime=number)
            if name != "attended" and str(regime).startswith("global"):
                continue
            colour = PROBLEM_STYLES[number]["color"]
            points = ax.plot(
                P,
                part[name],
                _MARKERS[number],
                color=colour,
                markersize=4.5,
                label=regime_label(str(regime)),
            )[0]
            artists[str(regime)] = points
            ax.plot(P, _law(name, part, P), color=colour, linewidth=0.9, zorder=-1)
        ax.set(xscale="log", xlabel="$P$", ylabel=label, xticks=[1e12, 1e36, 1e60])
        if name != "switch":
            ax.set_yscale("log")
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=2)
    return artists


def _law(name: str, part: xarray.Dataset, P: np.ndarray) -> np.ndarray:
    """Return the predicted dependence on P through the last point."""
    last, distance = float(part[name][-1]), np.log(P / P[-1])
    if name == "switch":
        return last - 0.5 * float(part["gap"]) * distance
    return last * np.exp(float(part["gap" if name == "ratio" else "exponent"]) * distance)


def _figure(sizes: Sequence[int], series: Mapping[Regime, np.ndarray]) -> Figure:
    data = np.stack(list(series.values()))
    return report_figure(
        "masked-scaling",
        "Scaling with the number of patches",
        "Mean-field gradient flow, z = 1, mask ratio 0.5, K = 1 (points, up to P = 10^60, where "
        "constants no longer matter), and the predicted "
        "exponents through the last point (lines). (a) Initial |dPhi_1/dt| / (dPhi_n/dt) ~ "
        "P^Delta for local patches. (b) Phi_1 at the switch, slope -Delta/2 against log P. (c) "
        "Time at which the attention to the area passes 1/2, ~ P^(1 - kappa_s) for local and "
        "P^(1 - kappa_c) for global patches.",
        draw_figure,
        xarray.Dataset(
            {
                name: (("regime", "P"), data[:, number])
                for number, name in enumerate(("ratio", "switch", "attended"))
            }
            | {
                name: ("regime", [getattr(regime, name) for regime in series])
                for name in ("gap", "exponent")
            },
            coords={"regime": [regime.name for regime in series], "P": np.array(sizes, float)},
        ),
        (7.6, 3.8),
    )


EXPONENTS = Table(
    index=("quantity", "regime"),
    columns={
        "predicted": Column("exponent predicted"),
        "exponent_low": Column("exponent in the limit of large P, lower end"),
        "exponent_high": Column("exponent in the limit of large P, upper end"),
    },
    strict={"the predicted exponent is inside the interval": allows},
    predicates={"the exponent is resolved": lambda t: resolves(t, RESOLUTION)},
)

LOCAL = Table(
    index=("quantity", "regime", "P"),
    columns={"local": Column("exponent from this P to the next")},
)

FINAL_STAGE = Table(
    index=("problem",),
    columns={
        "final_stage": Column("final stage over K/(2 mask_ratio z^4 eps)"),
        "allowed": Column("relative difference beyond leading order"),
    },
    strict={
        "the final stage takes its time to leading order": lambda t: (
            (t.final_stage - 1.0).abs() <= t.allowed
        ),
    },
)

ONE_PHASE_TIME = Table(
    index=("regime", "P"),
    columns={
        "one_phase_time": Column("time to attention 1/2 over its integral, one phase"),
        "allowed": Column("relative difference that leading order leaves out"),
    },
    strict={
        "a single phase takes the time of Phi_n alone to leading order": lambda t: (
            (t.one_phase_time - 1.0).abs() <= t.allowed
        ),
    },
)

CLAIM = Claim(
    id="huang-scaling",
    place="Theorem 4.1, Sections 5.2 to 5.4 (Appendices C to E)",
    statement=(
        "The initial ratio of the gradients of Phi_{p->v_1} and Phi_{p->v_n} scales as P^Delta; "
        "Phi_{p->v_1} reaches -(Delta/2z) log P at the switch; learning takes times of order "
        "P^{1-kappa_s} (local) and P^{1-kappa_c} (global), and the last stage 1/(2 mask_ratio eps)."
    ),
    method=(
        "Local exponents from P = 10^6 to 10^60 in the mean-field limit and their intervals for "
        "large P; the time from (1 - a_n)^2 = 1e-4 to 1e-6 at two choices of z, mask ratio and K. "
        "For runs with one phase the time to attention 1/2 is compared with its integral for a run "
        "in which only Phi_n changes."
    ),
    criterion=(
        "The statement is about P to infinity, up to constants and logarithms. Each predicted "
        "exponent must lie between the last local exponent and its extrapolations to infinite P "
        "(Aitken's rule; linear in 1/log P). The half width of this interval must be at most a "
        "tenth of the exponent; otherwise it is not resolved and the claim is a finding. The two "
        "times, whose constants follow from the dynamics (Lemma 5.1), may differ by the terms "
        "beyond leading order: 4 sqrt(eps) + 1/(z^2 C_n) in the last stage, and in one phase the "
        "initial speed of the rival over that of Phi_n + 1/(z^2 C_n)."
    ),
    tables={
        "exponents": EXPONENTS,
        "local exponents": LOCAL,
        "final stage": FINAL_STAGE,
        "one phase": ONE_PHASE_TIME,
    },
    measure=measure,
    headline=headline,
    finding=(
        "{inside} predicted exponents are inside their intervals; the last stage takes the "
        "predicted time to {stage:.1%}."
    ),
    tolerance=RESOLUTION,
    quick_note="steps of 10^12 in P instead of 10^6",
    assumptions="the mean-field limit (counts at their means); the extrapolation is an estimate",
    group="masked",
)
