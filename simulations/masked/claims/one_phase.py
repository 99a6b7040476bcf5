"""Huang et al., Section 5.4: a negative gap, or a patch in the global area, and one phase."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dynamics.masked import MaskedProblem
from simulations.figures import report_figure
from simulations.masked import runs
from simulations.masked.data import course as masked_course_data
from simulations.masked.figures import course as masked_course
from simulations.reproduction.measured import Measured, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict

#: Largest other correlation over Phi_n when p has learned.
CLOSE_TO_ZERO = 0.1


@dataclass(frozen=True)
class Lead:
    """What decides about one run."""

    initial_ratio: float  # of the fastest rival to dPhi_n/dt
    overtaken: float  # greatest ratio of another speed to dPhi_n/dt until p has learned
    others: float  # greatest modulus of all other correlations until then, over Phi_n

    @property
    def alone(self) -> bool:
        """Whether Phi_n dominates throughout and the others stay near zero."""
        return self.overtaken < 1.0 and self.others <= CLOSE_TO_ZERO


def run(context: Context) -> Outcome:
    """Follow patches with a negative gap, and patches in the global area."""
    sizes = (10**6,) if context.quick else (10**6, 10**9, 10**12)
    found: dict[str, Lead] = {}
    measured: list[Measured] = []
    for number, regime in enumerate(runs.ONE_PHASE, start=1):
        for P in sizes:
            name = f"P={runs.power(P)}, {regime.name}"
            found[name] = one = lead_of(regime.problem(P))
            measured += measured_at(
                regime.place(P),
                ("initial_ratio", "initial speed of the fastest rival over dPhi_n/dt",
                 one.initial_ratio),
                ("overtaken", "greatest speed of a rival over dPhi_n/dt until learned",
                 one.overtaken),
                ("others", "largest other correlation over Phi_n when learned", one.others),
            )  # fmt: skip
        context.progress(number / len(runs.ONE_PHASE))
    verdict, summary = judge(found)
    return Outcome(
        verdict,
        measured,
        CLOSE_TO_ZERO,
        {"regimes": [asdict(regime) for regime in runs.ONE_PHASE], "P": list(sizes),
         "eps": runs.EPS, "rtol": runs.RTOL},
        summary,
        (_figure([regime.problem() for regime in (runs.NEGATIVE_GAP, runs.IN_GLOBAL)]),),
    )  # fmt: skip


def lead_of(problem: MaskedProblem) -> Lead:
    """Return the numbers of one run."""
    events, run, speeds = runs.events(problem), runs.flow(problem), runs.speeds(problem)
    rest = np.abs(np.delete(speeds.features, speeds.own, axis=1)).max(axis=1)
    until = run.time <= events.learned.time
    slots = np.unique(problem.layout.clusters[0].slot)
    own = problem.layout.clusters[0].own_slot
    positions = run.states[until, problem.layout.phi_slots :]
    features = run.states[until][:, [slot for slot in slots if slot != own]]
    greatest = max(float(np.abs(features).max()), float(np.abs(positions).max()))
    return Lead(
        events.initial_ratio,
        float((rest / speeds.features[:, speeds.own])[until].max()),
        greatest / float(run.at(events.learned.time)[own]),
    )


def judge(found: dict[str, Lead]) -> tuple[Verdict, str]:
    """Return the verdict: Phi_n moves fastest at all times, the others stay near zero."""
    other = [name for name, one in found.items() if not one.alone]
    if not found or other:
        where = f", not at {other[0]}" if other else ""
        return Verdict.FAILS, (
            f"Phi_n dominates throughout in {len(found) - len(other)} of {len(found)} runs{where}."
        )
    fastest = max(one.overtaken for one in found.values())
    share = max(one.others for one in found.values())
    return Verdict.HOLDS, (
        f"In {len(found)} runs every other feature correlation moves at most {fastest:.2g} times "
        f"as fast as Phi_n, and all others stay within {share:.2g} of it."
    )


def _figure(problems: list[MaskedProblem]) -> Any:
    return report_figure(
        "masked-one-phase",
        "One phase: negative information gap, and the global area",
        "Gradient flow at P = 10^6, z = 1, mask ratio 0.5 (mean-field counts). The correlation "
        "with p's own area grows from the start; for a patch in the global area (right) it is the "
        "global one, and learning takes P^(1 - kappa_c) instead of P^(1 - kappa_s).",
        masked_course.draw,
        masked_course_data.gather(problems),
        (7.4, 5.2),
    )


def _finding(outcome: Outcome) -> str:
    fastest, others = outcome.values("overtaken"), outcome.values("others")
    return (
        f"In {len(fastest)} runs no rival moves more than {max(fastest):.2g} times as fast as "
        f"Phi_n or ends above {max(others):.2g} of it."
    )


CLAIM = Claim(
    id="huang-one-phase",
    place="Sections 5 and 5.4",
    statement=(
        "With a negative information gap, and for every patch in a global area, the increase of "
        "Phi_{p->v_n} dominates throughout the training; all other correlations stay close to 0."
    ),
    method=(
        "Speeds and sizes of all correlations until p has learned, for local patches with a "
        "negative gap and patches in global areas, P = 10^6 to 10^12."
    ),
    criterion=(
        "'Dominates throughout' is read as: no other feature correlation ever moves as fast as "
        "Phi_n until (1 - a_n)^2 = 1e-4; 'stay close to 0' as: no other correlation exceeds a "
        "tenth (an order of magnitude) of Phi_n then. Every run must satisfy both. The runs draw "
        "nothing."
    ),
    headline=Headline("overtaken", pick=max),
    finding=_finding,
    run=run,
    quick_note="P = 10^6 only",
    assumptions="the mean-field limit, whose error is estimated along the run",
    group="masked",
)
