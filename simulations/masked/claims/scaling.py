"""Huang et al.: how ratio, switch and times scale with the number of patches."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray

from dynamics.masked import MaskedProblem
from dynamics.masked.events import find_events
from simulations.figures import report_figure
from simulations.masked import runs
from simulations.masked.figures import scaling as masked_scaling
from simulations.masked.runs import Regime
from simulations.reproduction.fits import Exponent, exponent
from simulations.reproduction.measured import Measured, interval, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict

#: Uncertainty of an exponent that is called measured, relative to the exponent predicted.
RESOLUTION = 0.1
#: Accuracy of the located times themselves, relative.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Law:
    """An interval for an exponent beside the predicted one."""

    what: str
    regime: str
    found: Exponent
    predicted: float

    @property
    def holds(self) -> bool:
        """Whether the prediction is inside what the runs allow."""
        return self.found.allows(self.predicted)

    @property
    def resolved(self) -> bool:
        """Whether the runs say enough to tell the exponent from another."""
        return self.found.resolves(self.predicted, RESOLUTION)


@dataclass(frozen=True)
class Ratio:
    """A time over what the theory gives for it to leading order, and the next order."""

    value: float
    allowed: float  # relative

    @property
    def holds(self) -> bool:
        """Whether the difference is no more than what the leading order leaves out."""
        return abs(self.value - 1.0) <= self.allowed


def run(context: Context) -> Outcome:
    """Fit exponents over decades of P in the mean-field limit."""
    sizes = runs.decades(context.quick)
    P = np.array(sizes, float)
    regimes = (*runs.TWO_PHASES, runs.NEGATIVE_GAP, runs.IN_GLOBAL, runs.IN_SMALL_GLOBAL)
    laws: list[Law] = []
    series = np.full((3, len(regimes), P.size), np.nan)
    for number, regime in enumerate(regimes):
        found = [runs.events(regime.problem(size)) for size in sizes]
        series[0, number] = [one.initial_ratio for one in found]
        series[1, number] = [one.rival_at_switch if one.phases == 2 else np.nan for one in found]
        series[2, number] = [one.found.time for one in found]
        laws += _laws(regime, P, series[:, number])
        context.progress(0.9 * (number + 1) / len(regimes))
    finals = {name: final_stage(**changes) for name, changes in _FINAL.items()}
    one_phase = [one for one in regimes if one not in runs.TWO_PHASES]
    times = {f"P={runs.power(size)}, {one.name}": one_phase_ratio(one.problem(size))
             for one in one_phase for size in (sizes[0], sizes[-1])}  # fmt: skip
    verdict, summary = judge(laws, finals, times)
    places = {regime.name: regime.place() for regime in regimes}
    measured: list[Measured] = []
    for law in laws:
        name = _NAMES[law.what]
        measured += measured_at(
            places[law.regime],
            (f"{name}_predicted", f"{law.what}, predicted", law.predicted),
            *interval(name, f"{law.what}, limit of large P", law.found.low, law.found.high),
        )
        for P_from, local in zip(sizes, law.found.local):
            measured += measured_at(
                {**places[law.regime], "P": P_from},
                (f"{name}_local", f"{law.what}, from this P to the next", local),
            )
    for name, one in finals.items():
        label = "final stage over K/(2 mask_ratio z^4 eps)"
        measured += measured_at({"problem": name}, ("final_stage", label, one.value))
    for regime in one_phase:
        for size in (sizes[0], sizes[-1]):
            one = times[f"P={runs.power(size)}, {regime.name}"]
            label = "time to attention 1/2 over its integral, one phase"
            measured += measured_at(regime.place(size), ("one_phase_time", label, one.value))
    data = xarray.Dataset(
        {name: (("regime", "P"), values)
         for name, values in zip(("ratio", "switch", "found"), series)},
        coords={"regime": [regime.name for regime in regimes], "P": P},
    ).assign(gap=("regime", [regime.gap for regime in regimes]),
             exponent=("regime", [regime.exponent for regime in regimes]))  # fmt: skip
    return Outcome(
        verdict,
        measured,
        RESOLUTION,
        {"P": P.tolist(), "z": 1.0, "mask_ratio": 0.5, "K": 1, "rtol": runs.RTOL,
         "regimes": [regime.name for regime in regimes], "final stage": _FINAL},
        summary,
        (_figure(data),),
    )  # fmt: skip


_RATIO, _SWITCH = "exponent of the initial ratio", "Phi_1 at the switch over log P"
_TIME = "exponent of the time to attention 1/2"
_NAMES = {_RATIO: "ratio", _SWITCH: "switch", _TIME: "time"}
_FINAL: dict[str, dict[str, float]] = {
    "z=1, mask_ratio=0.5, K=1": {},
    "z=1.3, mask_ratio=0.3, K=2": {"z_low": 1.3, "mask_ratio": 0.3, "K": 2},
}


def _laws(regime: Regime, P: Any, series: Any) -> list[Law]:
    """Return what the theory predicts for a regime."""
    laws = []
    if regime.query == "local":
        laws.append(Law(_RATIO, regime.name, exponent(P, series[0]),
                        regime.gap))  # fmt: skip
    if regime in runs.TWO_PHASES:
        laws.append(Law(_SWITCH, regime.name,
                        exponent(P, series[1], log=False), -0.5 * regime.gap))  # fmt: skip
    laws.append(Law(_TIME, regime.name, exponent(P, series[2]),
                    regime.exponent))  # fmt: skip
    return laws


def final_stage(**changes: float) -> Ratio:
    """Return the time from (1 - a_n)^2 = 1e-4 to 1e-6 over what Theorem 4.1 gives for it.

    With S = (1 - a_n)^2 it leaves out a factor a_n^2 in dS/dt, which makes it longer by
    4 sqrt(1e-6), and position correlations, which help by 1/(z^2 C_n).
    """
    problem = runs.WIDE_GAP.problem(10**8, **changes)
    run, population = runs.flow(problem, 1e-6), runs.population(problem)
    early, late = (find_events(run, population, eps=e).learned.time for e in (1e-4, 1e-6))
    rate = 2.0 * problem.masked / problem.P * problem.z_low**4 / problem.K
    positions = 1.0 / (problem.z_low**2 * problem.own_size())
    return Ratio(rate * (late - early) / (1e6 - 1e4), 4.0 * math.sqrt(1e-6) + positions)


def one_phase_ratio(problem: MaskedProblem) -> Ratio:
    """Return the time to attention 1/2 over the integral that gives it if Phi_n moves alone.

    The integral leaves out the other correlations; to first order they change the speed by as much
    as they move relative to Phi_n: the rival at the start, positions 1/(z^2 C_n).
    """
    events = runs.events(problem)
    positions = 1.0 / (problem.z_low**2 * problem.own_size())
    return Ratio(events.found.time / runs.one_phase_time(problem),
                 events.initial_ratio + positions + ROUNDING)  # fmt: skip


def judge(
    laws: list[Law], finals: dict[str, Ratio], times: dict[str, Ratio]
) -> tuple[Verdict, str]:
    """Return the verdict: no prediction outside its interval, and intervals that say something."""
    off = [law for law in laws if not law.holds]
    vague = [law for law in laws if not law.resolved]
    late = [name for name, one in (finals | times).items() if not one.holds]
    worst = max((law.found.uncertainty / abs(law.predicted) for law in laws), default=math.nan)
    stage = max((abs(one.value - 1.0) for one in finals.values()), default=math.nan)
    alone = max((abs(one.value - 1.0) for one in times.values()), default=math.nan)
    text = (
        f"{len(laws) - len(off)} of {len(laws)} predicted exponents are inside the intervals for "
        f"large P, whose half widths are at most {worst:.1%} of the exponent; the final stage "
        f"takes K/(2 mask_ratio z^4 eps) to {stage:.1%}, and a single phase the time of Phi_n "
        f"moving alone to {alone:.1e}"
    )
    if off:
        found = off[0].found
        text += f"; off: {off[0].what} at {off[0].regime}, {found.low:.4f} to {found.high:.4f}"
    if late:
        text += f"; not to leading order: {late[0]}"
    if not laws or not finals or not times or off or late:
        return Verdict.FAILS, text + "."
    if vague:
        return Verdict.FINDING, (
            text + f"; not resolved to {RESOLUTION:.0%}: {vague[0].what} at {vague[0].regime}."
        )
    slow = max(laws, key=lambda law: abs(min(law.found.local, key=abs) / law.predicted - 1.0))
    return Verdict.HOLDS, (
        text + f". The limit is slow at {slow.regime}: between consecutive P the exponent is as "
        f"low as {min(slow.found.local, key=abs):.3f} for {slow.predicted:g}."
    )


def _figure(data: Any) -> Any:
    return report_figure(
        "masked-scaling",
        "Scaling with the number of patches",
        "Mean-field gradient flow, z = 1, mask ratio 0.5, K = 1 (points, up to P = 10^60, where "
        "constants no longer matter), and the predicted "
        "exponents through the last point (lines). (a) Initial |dPhi_1/dt| / (dPhi_n/dt) ~ "
        "P^Delta for local patches. (b) Phi_1 at the switch, slope -Delta/2 against log P. (c) "
        "Time at which the attention to the area passes 1/2, ~ P^(1 - kappa_s) for local and "
        "P^(1 - kappa_c) for global patches.",
        masked_scaling.draw,
        data,
        (7.6, 3.8),
    )


def _finding(outcome: Outcome) -> str:
    inside = [
        outcome.number(f"{name}_low", **one.at)
        <= one.value
        <= outcome.number(f"{name}_high", **one.at)
        for name in ("ratio", "switch", "time")
        for one in outcome.numbers(f"{name}_predicted")
    ]
    stage = max(abs(one - 1.0) for one in outcome.values("final_stage"))
    return (
        f"{sum(inside)} of {len(inside)} predicted exponents are inside their intervals; the last "
        f"stage takes the predicted time to {stage:.1%}."
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
        "Local exponents from P = 10^6 to 10^60 in the mean-field limit and the intervals that "
        "they give for large P; the time from (1 - a_n)^2 = 1e-4 to 1e-6 at two choices of z, mask "
        "ratio and K; in one phase the time to attention 1/2 also against the integral that gives "
        "it if Phi_n moves alone."
    ),
    criterion=(
        "The statement is about P to infinity, up to constants and logarithms. Each predicted "
        "exponent must lie between the last local exponent and its continuations to infinite P "
        "(Aitken's rule; linear in 1/log P), and half that interval must be at most a tenth of the "
        "exponent, else it is not resolved and the claim is a finding. The two times, whose "
        "constants the dynamics give (Lemma 5.1), may differ by the terms that leading order "
        "leaves out: 4 sqrt(eps) + 1/(z^2 C_n) in the last stage, and in one phase the initial "
        "speed of the rival over that of Phi_n + 1/(z^2 C_n)."
    ),
    headline=Headline("time_local", pick=min),
    finding=_finding,
    run=run,
    quick_note="steps of 10^12 in P instead of 10^6",
    assumptions="the mean-field limit (counts at their means); the extrapolation is an estimate",
    group="masked",
)
