"""gamma >= rho for all times: where it holds, where it fails, and the condition that decides."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from simulations.claim import Claim, Context, Outcome, Verdict

if TYPE_CHECKING:
    import numpy as np
    import xarray

    from dynamics import Problem

#: Horizon and population tolerance of the randomly drawn problems.
SEARCH_HORIZON, SEARCH_TOLERANCE = 1e5, 1e-9


class Course(NamedTuple):
    """gamma - rho along one flow, and the condition at its start."""

    start: float  # alpha(0)
    settled: float  # quasi-steady alpha at gamma = rho = 0
    critical: float  # alpha above which the flow leaves gamma = rho = 0 downwards
    worst: float  # largest rho - gamma, 0 if below the resolution
    first: float  # first and last time of a violation, nan if none
    last: float
    resolution: float
    final: float  # gamma - rho at the end

    @property
    def ratio(self) -> float:
        """Largest alpha that Event I passes over the critical one."""
        return max(self.start, self.settled) / self.critical

    @property
    def predicted(self) -> bool:
        """Whether the condition says that gamma >= rho holds."""
        return self.ratio <= 1.0

    @property
    def observed(self) -> bool:
        """Whether it does."""
        return self.worst == 0.0


def run(context: Context) -> Outcome:
    """Compare gamma with rho along flows and with the sign of the drift on gamma = rho."""
    from dataclasses import asdict

    from simulations import runs

    named = {
        problem: course(problem, runs.tolerance(context.quick, problem))
        for problem in _problems(context.quick)
    }
    context.progress(0.3)
    drawn = _search(8 if context.quick else 200, context)
    measured: dict[str, Any] = {}
    for problem, one in named.items():
        name = runs.describe(problem)
        measured |= {
            f"alpha(0) ({name})": one.start,
            f"quasi-steady alpha ({name})": one.settled,
            f"critical alpha on gamma = rho ({name})": runs.or_word(one.critical, "none"),
            f"largest rho - gamma ({name})": one.worst,
            f"numerical resolution ({name})": one.resolution,
            f"first violation ({name})": runs.or_word(one.first, "never"),
            f"last violation ({name})": runs.or_word(one.last, "never"),
            f"gamma - rho at the end ({name})": one.final,
        }
    every = [*named.values(), *drawn.values()]
    agree = sum(one.predicted == one.observed for one in every)
    measured |= {
        "problems drawn at random": len(drawn),
        "of these, gamma >= rho fails in": sum(not one.observed for one in drawn.values()),
        "all problems compared with the condition": len(every),
        "of these, the condition decides correctly": agree,
        "greatest |log(alpha / critical alpha)| where it does not": max(
            (abs(math.log(o.ratio)) for o in every if o.predicted != o.observed), default=0.0
        ),
    }
    context.progress(0.7)
    verdict, summary = judge(named, every)
    return Outcome(
        verdict,
        measured,
        max(one.resolution for one in named.values()),
        {"problems": [asdict(problem) for problem in named], "horizon": runs.HORIZON,
         "population tolerance": runs.tolerance(context.quick), "search horizon": SEARCH_HORIZON,
         "search tolerance": SEARCH_TOLERANCE, "seed": context.seed},
        summary,
        tuple(_figures(named, every, context)),
    )  # fmt: skip


def judge(named: dict[Problem, Course], every: list[Course]) -> tuple[Verdict, str]:
    """Return HOLDS if gamma >= rho in every problem, else a finding with regime and condition."""
    from simulations.runs import describe

    broken = {problem: one for problem, one in named.items() if not one.observed}
    if all(one.observed for one in every):
        return Verdict.HOLDS, f"gamma >= rho throughout in all {len(every)} problems."
    agree = sum(one.predicted == one.observed for one in every)
    details = "; ".join(
        f"at {describe(problem)} it fails from flow time {one.first:.2g} to {one.last:.2g} by up "
        f"to {one.worst:.3g}"
        for problem, one in sorted(broken.items(), key=lambda item: -item[1].worst)[:2]
    )
    return Verdict.FINDING, (
        f"gamma >= rho holds in {len(named) - len(broken)} of {len(named)} named problems; worst, "
        f"{details}. What decides is whether alpha(0) or the quasi-steady alpha exceeds the value "
        f"at which d(gamma - rho)/dt on gamma = rho = 0 turns negative: this tells holding from "
        f"failing in {agree} of {len(every)} problems."
    )


def course(problem: Problem, tolerance: float, horizon: float | None = None) -> Course:
    """Return what gamma - rho does along the flow, and the condition."""
    from simulations import runs
    from simulations.symmetric_line import critical_alpha

    path = runs.flow(problem, tolerance, horizon or runs.HORIZON)
    below = path.rho - path.gamma
    times = path.time[below > path.resolution]
    return Course(
        start=problem.initial_state.alpha,
        settled=runs.quasi_steady_alpha(problem, tolerance),
        critical=critical_alpha(problem),
        worst=float(below.max()) if times.size else 0.0,
        first=float(times[0]) if times.size else math.nan,
        last=float(times[-1]) if times.size else math.nan,
        resolution=path.resolution,
        final=float(-below[-1]),
    )


def _problems(quick: bool) -> tuple[Problem, ...]:
    from dynamics import Problem
    from simulations import runs

    started_high = Problem(D=16, C=4, q=0.5, nu=0.09)  # alpha(0) = 0.3
    if quick:
        return runs.BASE, runs.CROWDED, runs.TINY, started_high
    return (*runs.REGIMES, *runs.DENSE_REGIMES, runs.TINY, started_high)


def _search(number: int, context: Context) -> dict[Problem, Course]:
    """Follow randomly drawn small problems; the draw of each depends on the seed and its index."""
    import numpy as np

    found = {}
    for index in range(number):
        rng = np.random.default_rng(np.random.SeedSequence(context.seed, spawn_key=(index,)))
        problem = _draw(rng)
        found[problem] = course(problem, SEARCH_TOLERANCE, SEARCH_HORIZON)
        context.progress(0.3 + 0.4 * index / number)
    return found


def _draw(rng: np.random.Generator) -> Problem:
    from dynamics import Problem

    D, C = ((8, 2), (10, 2), (12, 2), (12, 3), (12, 4), (14, 2), (15, 3), (16, 4))[rng.integers(8)]
    return Problem(
        D=D,
        C=C,
        q=float(rng.uniform(0.2, 0.95)),
        nu=float(10 ** rng.uniform(-4, -1)),
        beta=float(rng.uniform(0.2, 2.0)),
        p=int(rng.choice((3, 5))),
    )


def _figures(named: dict[Problem, Course], every: list[Course], context: Context) -> list[Any]:
    from simulations import runs
    from simulations.figures import (
        gamma_rho_condition,
        gamma_rho_violation,
        phase_portrait,
        report_figure,
    )

    tolerance = runs.tolerance(context.quick)
    shown = [problem for problem in (runs.BASE, runs.CROWDED, runs.TINY) if problem in named]
    portraits: list[xarray.Dataset] = [
        phase_portrait.gather(problem, box, points=13 if context.quick else 33)
        for problem, box in phase_portrait.BOXES.items()
    ]
    return [
        report_figure(
            "phase-portrait",
            "gamma and rho on the slow manifold",
            "Flow of the attention logits with alpha at its quasi-steady value. Arrows: direction; "
            "thin lines: nullclines of gamma (solid) and rho (dashed); grey half plane: gamma < "
            "rho; thick: flows of the whole system from several starts, the orange one from "
            "gamma = rho = 0 (Parametrization 3.1); dots: where they are at flow time 1e6.",
            phase_portrait.draw,
            phase_portrait.combine(portraits),
            (7.0, 4.0),
        ),
        report_figure(
            "gamma-rho-violation",
            "gamma - rho along the flow",
            "Where the curve dips below zero the claim gamma >= rho fails. The vertical scale is "
            "logarithmic on both sides of zero, linear within 1e-6.",
            gamma_rho_violation.draw,
            gamma_rho_violation.gather([runs.flow(problem, tolerance) for problem in shown]),
            (7.0, 3.4),
        ),
        report_figure(
            "gamma-rho-condition",
            "The condition that decides gamma >= rho",
            "(a) d(gamma - rho)/dt on the line gamma = rho = 0 against alpha, as the balance of "
            "images with T >= 0 and with T < 0; circles: alpha(0), diamonds: quasi-steady alpha. "
            "(b) Worst violation in named and random problems against the largest alpha of Event "
            "I, in units of the alpha at which the balance turns.",
            gamma_rho_condition.draw,
            gamma_rho_condition.gather(shown, every),
            (7.0, 3.4),
        ),
    ]


CLAIM = Claim(
    id="gamma-ge-rho",
    place="after Lemma 4.3 (Section 4.1)",
    statement=(
        "The increment of gamma is larger than the one of rho; since gamma(0) = rho(0) = 0, this "
        "implies gamma(t) >= rho(t) for all t >= 0, patch association for any time t."
    ),
    measures=(
        "rho - gamma along flows of named and of random problems, against the exact sign of "
        "d(gamma - rho)/dt on the line gamma = rho."
    ),
    run=run,
    quick_note="8 random problems instead of 200, coarser phase portrait, fewer named problems",
    depends="gradient flow under the certified expectation; an independent sum for the condition",
    shares="named-problems",
)
