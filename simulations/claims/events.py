"""Events I, II and III of Section 4.1: when they happen, and where they do not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simulations.claim import Claim, Context, Outcome, Verdict

if TYPE_CHECKING:
    from dynamics import Problem
    from dynamics.events import Events


def run(context: Context) -> Outcome:
    """Locate the events on the flow of each named regime."""
    from dataclasses import asdict

    from simulations import runs

    problems = _problems(context.quick)
    tolerances = {problem: runs.tolerance(context.quick, problem) for problem in problems}
    found = {}
    for number, problem in enumerate(problems, start=1):
        found[problem] = runs.events(problem, tolerances[problem])
        context.progress(number / len(problems))
    measured: dict[str, Any] = {}
    for problem, events in found.items():
        name = runs.describe(problem)
        final = runs.flow(problem, tolerances[problem]).final
        measured |= {
            f"I: alpha(0) ({name})": problem.initial_state.alpha,
            f"I: quasi-steady alpha ({name})": events.alpha_star,
            f"I: T0 ({name})": runs.or_word(events.T0.time, "never"),
            f"II: T1 ({name})": runs.or_word(events.T1.time, "never"),
            f"III: alpha after Event I ({name})": events.alpha_after_event_I,
            f"III: onset of the rise ({name})": runs.or_word(events.onset.time, "never"),
            f"III: end of the rise ({name})": runs.or_word(events.end_of_rise.time, "never"),
            f"III: factor of the rise ({name})": events.rise,
            f"end: alpha ({name})": final.alpha,
            f"end: gamma ({name})": final.gamma,
            f"end: rho ({name})": final.rho,
        }
    verdict, summary = judge(found)
    return Outcome(
        verdict,
        measured,
        None,
        {"problems": [asdict(problem) for problem in problems], "horizon": runs.HORIZON,
         "population tolerances": list(tolerances.values()), "definitions": _definitions(found)},
        summary,
        tuple(_figure(problem, tolerances[problem]) for problem in _shown(context.quick)),
    )  # fmt: skip


def judge(found: Mapping[Problem, Events]) -> tuple[Verdict, str]:
    """Return HOLDS if all three events happen as described in every regime, else a finding."""
    increases = [p for p, e in found.items() if p.initial_state.alpha < e.alpha_star]
    leads = [e.T1.time for e in found.values() if e.T1.happens]
    rises = [e for e in found.values() if e.onset.happens]
    for_good = [e for e in rises if not e.end_of_rise.happens]
    total = len(found)
    last_arrival = max((e.T0.time for e in found.values() if e.T0.happens), default=math.nan)
    text = (
        f"Event I: alpha increases in {len(increases)} of {total} regimes and arrives by flow time "
        f"{last_arrival:.3g}. Event II: T1 exists in {len(leads)} of {total}"
    )
    if leads:
        text += f" ({min(leads):.2g} to {max(leads):.2g})"
    text += f". Event III: alpha increases again in {len(rises)} of {total}"
    if rises:
        text += f", by a factor of at most {max(e.rise for e in rises):.4g}"
    text += f", and until the end in {len(for_good)}; elsewhere it falls monotonically."
    complete = len(increases) == len(leads) == len(for_good) == total
    return (Verdict.HOLDS if complete else Verdict.FINDING), text


def _problems(quick: bool) -> tuple[Problem, ...]:
    from simulations import runs

    return (runs.BASE, runs.WIDE, runs.CROWDED) if quick else runs.REGIMES + runs.DENSE_REGIMES


def _shown(quick: bool) -> tuple[Problem, ...]:
    from simulations import runs

    return (runs.BASE,) if quick else (runs.BASE, runs.MANY_FEATURES)


def _definitions(found: Mapping[Problem, Events]) -> dict[str, str]:
    events = next(iter(found.values()))
    moments = (events.T0, events.T1, events.onset, events.end_of_rise)
    return {moment.name: moment.definition for moment in moments}


def _figure(problem: Problem, tolerance: float) -> Any:
    from simulations import runs
    from simulations.figures import order_parameters, report_figure

    base = problem == runs.BASE
    return report_figure(
        "order-parameters" if base else "order-parameters-second-rise",
        "Events I, II, III: the order parameters"
        + ("" if base else " where alpha rises a second time"),
        f"Gradient flow on (P), {runs.describe(problem)}, from Parametrization 3.1. Shaded: Events "
        "I (until alpha reaches its quasi-steady value, T0), II (until gamma exceeds the largest "
        "|rho|, T1) and III.",
        order_parameters.draw,
        order_parameters.gather(runs.flow(problem, tolerance), runs.events(problem, tolerance)),
        (7.0, 4.8),
    )


CLAIM = Claim(
    id="events",
    place="Events I, II, III (Section 4.1)",
    statement=(
        "Event I: alpha increases until T0, where it reaches some threshold. Event II: gamma "
        "increases until a T1 with gamma(T1) > max_t |rho(t)|. Event III: alpha increases again "
        "until the population risk is o(1)."
    ),
    measures="T0, T1, and the onset, end and size of alpha's second rise, in named regimes.",
    run=run,
    quick_note="three regimes instead of nine, population tolerance 1e-5 instead of 1e-8",
    depends="gradient flow under the certified expectation, events located by root finding",
    shares="named-problems",
)
