"""Events I, II and III of Section 4.1: when they happen, and where they do not."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dynamics import Problem
from dynamics.positional.events import Events, attention_leads
from simulations.figures import report_figure
from simulations.positional import runs
from simulations.positional import theorem_4_1 as theorem
from simulations.positional.data import order_parameters as order_parameters_data
from simulations.positional.figures import order_parameters
from simulations.positional.runs import or_word
from simulations.reproduction.measured import Measured, Row, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict

#: Flow times eta T up to which |rho| is compared with gamma, for the named regimes; the events
#: themselves are sought up to the last.
HORIZONS = (1e4, 1e6, 1e8)
#: Size of the problems of the paper's parametrization for which T1 is given at d^2, d^3, d^4.
D = 1024


def run(context: Context) -> Outcome:
    """Locate the events on the flow of each named regime."""
    problems = _problems(context.quick)
    tolerances = {problem: runs.tolerance(context.quick, problem) for problem in problems}
    found = {}
    for number, problem in enumerate(problems, start=1):
        found[problem] = runs.events(problem, tolerances[problem])
        context.progress(number / len(problems))
    measured: list[Measured] = []
    leads: dict[Problem, list[float]] = {}
    for problem, events in found.items():
        at = runs.place(problem)
        path = runs.flow(problem, tolerances[problem])
        leads[problem] = [attention_leads(path, horizon).time for horizon in HORIZONS]
        for horizon, time in zip(HORIZONS, leads[problem]):
            measured += measured_at({**at, "horizon": horizon}, _leads(time))
        measured += measured_at(
            at,
            ("start_alpha", "I: alpha(0)", problem.initial_state.alpha),
            ("alpha_star", "I: quasi-steady alpha", events.alpha_star),
            ("T0", "I: T0", runs.or_word(events.T0.time, "never"), "flow time"),
            ("T1", "II: T1", runs.or_word(events.T1.time, "never"), "flow time"),
            ("after_event_I", "III: alpha after Event I", events.alpha_after_event_I),
            ("onset", "III: onset of the rise", runs.or_word(events.onset.time, "never"),
             "flow time"),
            ("end_of_rise", "III: end of the rise",
             runs.or_word(events.end_of_rise.time, "never"), "flow time"),
            ("rise", "III: factor of the rise", events.rise),
            *((name, f"end: {name}", value) for name, value in path.final._asdict().items()),
        )  # fmt: skip
    for problem in theorem.paper_problems(context.quick):
        if problem.D == D:
            path = theorem.flow(problem, theorem.TOLERANCE)
            for power in theorem.HORIZONS:
                time = attention_leads(path, theorem.horizon(problem, power)).time
                at = {**runs.place(problem), "horizon": f"d^{power}"}
                measured += measured_at(at, _leads(time))
    verdict, summary = judge(found, leads)
    return Outcome(
        verdict,
        measured,
        None,
        {"problems": [asdict(problem) for problem in problems], "horizon": runs.HORIZON,
         "horizons of T1": list(HORIZONS), "population tolerances": list(tolerances.values()),
         "definitions": _definitions(found)},
        summary,
        tuple(_figure(problem, tolerances[problem]) for problem in _shown(context.quick)),
    )  # fmt: skip


def _leads(time: float) -> Row:
    return "T1_by_horizon", "II: T1 within a horizon", or_word(time, "never"), "flow time"


def judge(
    found: Mapping[Problem, Events], leads_at: Mapping[Problem, Sequence[float]]
) -> tuple[Verdict, str]:
    """Return HOLDS if all three events happen as described in every regime, else a finding.

    ``leads_at`` holds T1 with each of `HORIZONS`, nan where gamma does not lead within it.
    """
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
        text += f" ({min(leads):.2g} to {max(leads):.2g}){_sensitivity(leads_at)}"
    text += f". Event III: alpha increases again in {len(rises)} of {total}"
    if rises:
        text += f", by a factor of at most {max(e.rise for e in rises):.4g}"
    text += f", and until the end in {len(for_good)}; elsewhere it falls monotonically."
    complete = len(increases) == len(leads) == len(for_good) == total
    return (Verdict.HOLDS if complete else Verdict.FINDING), text


def _sensitivity(leads_at: Mapping[Problem, Sequence[float]]) -> str:
    """Say how much T1, which waits for the largest |rho| of the run, depends on the horizon."""
    growth = [
        times[-1] / times[-2]
        for times in leads_at.values()
        if len(times) > 1 and math.isfinite(times[-1]) and math.isfinite(times[-2])
    ]
    if not growth:
        return ""
    return (
        f", up to {max(growth):.3g} times as late with horizon {HORIZONS[-1]:.0e} as with "
        f"{HORIZONS[-2]:.0e}"
    )


def _problems(quick: bool) -> tuple[Problem, ...]:
    return (runs.BASE, runs.WIDE, runs.CROWDED) if quick else runs.REGIMES + runs.DENSE_REGIMES


def _shown(quick: bool) -> tuple[Problem, ...]:
    return (runs.BASE,) if quick else (runs.BASE, runs.MANY_FEATURES)


def _definitions(found: Mapping[Problem, Events]) -> dict[str, str]:
    events = next(iter(found.values()))
    moments = (events.T0, events.T1, events.onset, events.end_of_rise)
    return {moment.name: moment.definition for moment in moments}


def _figure(problem: Problem, tolerance: float) -> Any:
    base = problem == runs.BASE
    return report_figure(
        "order-parameters" if base else "order-parameters-second-rise",
        "Events I, II, III: the order parameters"
        + ("" if base else " where alpha rises a second time"),
        f"Gradient flow on (P), {runs.describe(problem)}, from Parametrization 3.1. Shaded: Events "
        "I (until alpha reaches its quasi-steady value, T0), II (until gamma exceeds the largest "
        "|rho|, T1) and III.",
        order_parameters.draw,
        order_parameters_data.gather(
            runs.flow(problem, tolerance), runs.events(problem, tolerance)
        ),
        (7.0, 4.8),
    )


def _finding(outcome: Outcome) -> str:
    total = len(outcome.numbers("T1"))
    found, rises, ends = (
        [one.value for one in outcome.numbers(name) if not isinstance(one.value, str)]
        for name in ("T1", "onset", "end_of_rise")
    )
    times = f" ({min(found):.2g} to {max(found):.2g})" if found else ""
    return (
        f"T1 exists in {len(found)} of {total} regimes{times}; alpha rises again in {len(rises)}, "
        f"until the end in {len(rises) - len(ends)}."
    )


CLAIM = Claim(
    id="events",
    place="Events I, II, III (Section 4.1)",
    statement=(
        "Event I: alpha increases until T0, where it reaches some threshold. Event II: gamma "
        "increases until a T1 with gamma(T1) > max_t |rho(t)|. Event III: alpha increases again "
        "until the population risk is o(1)."
    ),
    method=(
        "T0, T1 (at three horizons, on which it depends), and the onset, end and size of alpha's "
        "second rise, in named regimes."
    ),
    criterion=(
        "The three sentences, at every named regime up to flow time 1e8, each moment located on "
        "the dense output. I: alpha(0) lies below the quasi-steady alpha*, so that alpha "
        "increases, and comes within 1 % of it. II: gamma exceeds the largest |rho| of the whole "
        "run. III: alpha* rises again after T0 and does so until the end of the run (until the "
        "risk is o(1)). All in all regimes: holds; otherwise a finding with the counts, since the "
        "paper's regime is asymptotic. T1 waits for the largest |rho| up to the horizon T, so it "
        "is reported at three. Nothing is sampled."
    ),
    headline=Headline("rise", pick=max),
    finding=_finding,
    run=run,
    quick_note="three regimes instead of nine, population tolerance 1e-5 instead of 1e-8",
    assumptions="gradient flow under the certified expectation, events located by root finding",
    group="named-problems",
)
