"""Huang et al.: how ratio, switch and times scale with the number of patches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulations.claim import HUANG_2024, Claim, Context, Outcome, Verdict

if TYPE_CHECKING:
    from dynamics.masked import MaskedProblem
    from simulations.masked_runs import Fit, Regime

#: |fitted - predicted| exponent over P = 10^6 .. 10^12; constants shift it by about 0.01 there.
TOLERANCE = 0.02
#: |final stage / prediction - 1| between (1 - a_n)^2 = 1e-4 and 1e-6.
FINAL_TOLERANCE = 0.02
#: |time in one phase / time if Phi_n moves alone - 1|: at P = 10^6 the others still move a little.
TIME_TOLERANCE = 2e-3


@dataclass(frozen=True)
class Law:
    """A fitted exponent beside the predicted one."""

    what: str
    regime: str
    fitted: Fit
    predicted: float

    @property
    def holds(self) -> bool:
        """Whether it is close over the decades fitted, and at their upper end too."""
        slopes = (self.fitted.slope, self.fitted.last)
        return all(abs(slope - self.predicted) <= TOLERANCE for slope in slopes)


def run(context: Context) -> Outcome:
    """Fit exponents over decades of P in the mean-field limit."""
    import numpy as np
    import xarray

    from simulations import masked_runs as runs

    P = np.array(runs.decades(context.quick), float)
    regimes = (*runs.TWO_PHASES, runs.NEGATIVE_GAP, runs.IN_GLOBAL, runs.IN_SMALL_GLOBAL)
    laws: list[Law] = []
    series = np.full((3, len(regimes), P.size), np.nan)
    for number, regime in enumerate(regimes):
        found = [runs.events(regime.problem(int(size))) for size in P]
        series[0, number] = [one.initial_ratio for one in found]
        series[1, number] = [one.rival_at_switch if one.phases == 2 else np.nan for one in found]
        series[2, number] = [one.found.time for one in found]
        laws += _laws(regime, P, series[:, number])
        context.progress(0.9 * (number + 1) / len(regimes))
    finals = {name: final_stage(**changes) for name, changes in _FINAL.items()}
    one_phase = [one for one in regimes if one not in runs.TWO_PHASES]
    times = {f"P={runs.power(int(size))}, {one.name}": one_phase_ratio(one.problem(int(size)))
             for one in one_phase for size in P[[0, -1]]}  # fmt: skip
    verdict, summary = judge(laws, finals, times)
    measured: dict[str, Any] = {}
    for law in laws:
        measured[f"{law.what} ({law.regime})"] = law.fitted.slope
        measured[f"{law.what}, predicted ({law.regime})"] = law.predicted
        measured[f"{law.what}, last interval ({law.regime})"] = law.fitted.last
    measured |= {f"final stage over K/(2 mask_ratio z^4 eps) ({n})": v for n, v in finals.items()}
    measured |= {f"time to attention 1/2 over its integral, one phase ({name})": value
                 for name, value in times.items()}  # fmt: skip
    data = xarray.Dataset(
        {name: (("regime", "P"), values)
         for name, values in zip(("ratio", "switch", "found"), series)},
        coords={"regime": [regime.name for regime in regimes], "P": P},
    ).assign(gap=("regime", [regime.gap for regime in regimes]),
             exponent=("regime", [regime.exponent for regime in regimes]))  # fmt: skip
    return Outcome(
        verdict,
        measured,
        TOLERANCE,
        {"P": P.tolist(), "z": 1.0, "mask_ratio": 0.5, "K": 1, "rtol": runs.RTOL,
         "regimes": [regime.name for regime in regimes], "final stage": _FINAL},
        summary,
        (_figure(data),),
    )  # fmt: skip


_FINAL: dict[str, dict[str, float]] = {
    "z=1, mask_ratio=0.5, K=1": {},
    "z=1.3, mask_ratio=0.3, K=2": {"z_low": 1.3, "mask_ratio": 0.3, "K": 2},
}


def _laws(regime: Regime, P: Any, series: Any) -> list[Law]:
    """Return what the theory predicts for a regime."""
    from simulations import masked_runs as runs

    laws = []
    if regime.query == "local":
        laws.append(Law("exponent of the initial ratio", regime.name, runs.fit(P, series[0]),
                        regime.gap))  # fmt: skip
    if regime in runs.TWO_PHASES:
        laws.append(Law("Phi_1 at the switch over log P", regime.name,
                        runs.fit(P, series[1], log=False), -0.5 * regime.gap))  # fmt: skip
    laws.append(Law("exponent of the time to attention 1/2", regime.name, runs.fit(P, series[2]),
                    regime.exponent))  # fmt: skip
    return laws


def final_stage(**changes: float) -> float:
    """Return the time from (1 - a_n)^2 = 1e-4 to 1e-6 over what Theorem 4.1 gives for it."""
    from dynamics.masked.events import find_events
    from simulations import masked_runs as runs

    problem = runs.WIDE_GAP.problem(10**8, **changes)
    run = runs.flow(problem, 1e-6)
    early, late = (find_events(run, eps=eps).learned.time for eps in (1e-4, 1e-6))
    rate = 2.0 * problem.masked / problem.P * problem.z_low**4 / problem.K
    return rate * (late - early) / (1e6 - 1e4)


def one_phase_ratio(problem: MaskedProblem) -> float:
    """Return the time to attention 1/2 over the integral that gives it if Phi_n moves alone."""
    from simulations import masked_runs as runs

    return runs.events(problem).found.time / runs.one_phase_time(problem)


def judge(
    laws: list[Law], finals: dict[str, float], times: dict[str, float]
) -> tuple[Verdict, str]:
    """Return the verdict: exponents close to the predicted ones, the final constant, the times."""
    off = [law for law in laws if not law.holds]
    worst = max((abs(law.fitted.slope - law.predicted) for law in laws), default=math.nan)
    stage = max((abs(value - 1.0) for value in finals.values()), default=math.nan)
    alone = max((abs(value - 1.0) for value in times.values()), default=math.nan)
    text = (
        f"{len(laws) - len(off)} of {len(laws)} exponents are within {TOLERANCE:g} of the theory "
        f"(largest deviation {worst:.2g}); the final stage takes K/(2 mask_ratio z^4 eps) to "
        f"{stage:.1%}, and a single phase the time of Phi_n moving alone to {alone:.1e}"
    )
    if off:
        text += f"; off: {off[0].what} at {off[0].regime}, {off[0].fitted.slope:.3f}"
    holds = bool(laws) and not off and stage <= FINAL_TOLERANCE and alone <= TIME_TOLERANCE
    return (Verdict.HOLDS if holds else Verdict.FAILS), text + "."


def _figure(data: Any) -> Any:
    from simulations.figures import masked_scaling, report_figure

    return report_figure(
        "masked-scaling",
        "Scaling with the number of patches",
        "Mean-field gradient flow, z = 1, mask ratio 0.5, K = 1 (points), and the predicted "
        "exponents through the last point (lines). (a) Initial |dPhi_1/dt| / (dPhi_n/dt) ~ "
        "P^Delta for local patches. (b) Phi_1 at the switch, slope -Delta/2 against log P. (c) "
        "Time at which the attention to the area passes 1/2, ~ P^(1 - kappa_s) for local and "
        "P^(1 - kappa_c) for global patches.",
        masked_scaling.draw,
        data,
        (7.6, 3.8),
    )


CLAIM = Claim(
    id="huang-scaling",
    place="Theorem 4.1, Sections 5.2 to 5.4 (Appendices C to E)",
    statement=(
        "The initial ratio of the gradients of Phi_{p->v_1} and Phi_{p->v_n} scales as P^Delta; "
        "Phi_{p->v_1} reaches -(Delta/2z) log P at the switch; learning takes times of order "
        "P^{1-kappa_s} (local) and P^{1-kappa_c} (global), and the last stage 1/(2 mask_ratio eps)."
    ),
    measures=(
        "Least-squares exponents over P = 10^6 to 10^12 in the mean-field limit, and the time from "
        "(1 - a_n)^2 = 1e-4 to 1e-6 at two choices of z, mask ratio and K; in one phase the time "
        "to attention 1/2 also against the integral that gives it if Phi_n moves alone."
    ),
    run=run,
    quick_note="four values of P instead of seven",
    depends="the mean-field limit (counts at their means)",
    paper=HUANG_2024,
    shares="masked",
)
