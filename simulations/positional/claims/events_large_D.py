"""When the three events happen as D grows, and whether alpha rises until the risk is small."""

from dynamics import Population, gradient_flow
from dynamics.positional.events import find_events
from simulations.figures import report_figure
from simulations.positional import large_D as large
from simulations.positional.data import large_D as figures_data
from simulations.positional.figures import large_D as figures
from simulations.positional.large_D import FIXED, LOSS_GOAL, TOLERANCE, Case, Run
from simulations.positional.runs import or_word
from simulations.reproduction.measured import Measured, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict


def run(context: Context) -> Outcome:
    """Collect T0, T1 and the second rise for every scaling, qD and D; fit exponents in D."""
    found = large.follow_all(large.cases(context.quick, context.thorough), context.progress)
    measured: list[Measured] = []
    for case, one in found.items():
        events, time = one.events, "flow time"
        measured += measured_at(
            case.place,
            ("start_alpha", "alpha(0)", one.path.problem.initial_state.alpha),
            ("alpha_star", "quasi-steady alpha", events.alpha_star),
            ("T0", "T0", events.T0.time, time),
            ("T1", "T1", or_word(events.T1.time, "never"), time),
            ("T1_steps", "T1 at the largest stable rate",
             or_word(events.T1.time / one.stable_rate, "never"), "steps"),
            ("largest_rho", "largest |rho|", one.largest_rho),
            ("horizon", "horizon: time at the end", float(one.path.time[-1]), time),
            ("onset", "onset of the second rise", or_word(events.onset.time, "never"), time),
            ("end_of_rise", "end of the second rise",
             or_word(events.end_of_rise.time, "not in the run"), time),
            ("rise", "factor of the second rise", events.rise),
            ("risk_after_rise", "risk when the second rise ends", one.risk_after_rise),
        )  # fmt: skip
        for risk in large.EARLIER_GOALS:
            early = or_word(one.T1_if_ended_at(risk) / events.T1.time, "-")
            measured += measured_at(
                {**case.place, "ended at risk": risk},
                ("T1_if_ended_earlier", "T1 had the run ended earlier, over T1", early),
            )
    data = figures_data.gather(found)
    measured += large.exponents(data, ("alpha_star", "T0", "T1"))
    if context.thorough:
        measured += longer_horizon()
    verdict, summary = judge(found)
    return Outcome(
        verdict,
        measured,
        large.LOSS_GOAL,
        large.parameters(context.quick, context.thorough),
        summary,
        (
            report_figure(
                "events-large-D",
                "Events II and III for D up to a million",
                "Flows at C = 4; beta = log log D and nu a power of D (the paper's "
                "parametrization), and nu = 0.01, beta = 1 as a contrast. (a, b) T1, the time at "
                "which gamma exceeds the largest |rho| of the run (points), and the scaling theory "
                "with the measured largest |rho| (lines). (c, d) Population risk at which the "
                "second rise of alpha ends; the paper: o(1). Open symbols: alpha still rises when "
                "the run ends at risk 1e-3.",
                figures.draw_events,
                data,
                (7.0, 5.8),
            ),
        ),
    )


def longer_horizon() -> list[Measured]:
    """Return T1 at D = 10^5, qD = 4, nu = 1/D for runs that go on beyond the goal for the risk."""
    case = Case("nu=1/D", 3, 4, 100_000)
    measured: list[Measured] = []
    for horizon in (3e8, 1e9, 3e9):
        population = Population(case.problem, method="fourier", tolerance=TOLERANCE)
        path = gradient_flow(population, horizon=horizon)
        measured += measured_at(
            {**case.place, "horizon": horizon},
            ("T1_longer", "T1 of a longer run", find_events(path, population).T1.time, "flow time"),
            ("ended", "time at which that run ended", float(path.time[-1]), "flow time"),
            ("risk_longer", "risk at its end", float(path.loss[-1])),
        )
    return measured


def judge(found: dict[Case, Run]) -> tuple[Verdict, str]:
    """Return HOLDS if all three events happen at the paper's scalings, until the risk is small."""
    inside = {case: one for case, one in found.items() if case.scaling != FIXED}
    leads = [one for one in inside.values() if one.events.T1.happens]
    rises = {case: one for case, one in inside.items() if one.events.onset.happens}
    until = [one for one in rises.values() if one.risk_after_rise <= LOSS_GOAL]
    ordered = [one for one in leads if one.events.T0.time < one.events.T1.time]
    top = max(case.D for case in inside)
    final = {case: one.risk_after_rise for case, one in rises.items() if top == case.D}
    parts = [
        f"With nu a power of 1/D and beta = log log D, T0 < T1 exist in {len(ordered)} of "
        f"{len(inside)} flows; alpha rises again in {len(rises)}"
    ]
    if rises:
        best = max(rises, key=lambda case: rises[case].events.rise)
        parts.append(f" (by up to {rises[best].events.rise:.3g}, {best})")
    parts.append(f", and until the risk is below {LOSS_GOAL:g} in {len(until)}")
    if final:
        parts.append(
            f"; at D = {top:.0e} the rise ends at risk {min(final.values()):.2g} to "
            f"{max(final.values()):.2g}"
        )
    complete = len(ordered) == len(until) == len(inside)
    return (Verdict.HOLDS if complete else Verdict.FINDING), "".join(parts) + "."


def _finding(outcome: Outcome) -> str:
    rises = [one for one in outcome.numbers("onset") if one.at["scaling"] != FIXED]
    again = [one for one in rises if isinstance(one.value, float)]
    growth = max(outcome.values("exponent", of="T1", scaling="nu=1/D"))
    ends = [outcome.number("risk_after_rise", **one.at) for one in again]
    until = f", until risk {min(ends):.2g} to {max(ends):.2g}" if ends else ""
    return (
        f"T1 grows as D^{growth:.2g} at nu = 1/D; alpha rises again in {len(again)} of "
        f"{len(rises)} flows{until}."
    )


CLAIM = Claim(
    id="events-large-D",
    place="Events I, II, III (Section 4.1) with Assumption 2 and Parametrization 3.1",
    statement=(
        "alpha grows until T0, then gamma until it exceeds the largest |rho| at T1, then alpha "
        "increases again until the population risk is o(1)."
    ),
    method=(
        "T0, T1 and the second rise of alpha against D, with exponents and the scaling theory, for "
        "nu = D^(-1/2), 1/D, 1/D^2 and beta = log log D; fixed nu and beta as a contrast."
    ),
    headline=Headline("exponent", {"of": "T1", "scaling": "nu=1/D"}, max),
    finding=_finding,
    run=run,
    quick_note="nu = 1/D and the contrast, qD = C, D up to 10^4 instead of 10^6",
    thorough_note=(
        "nu = D^(-1/2) at qD = C^2 and at D = 10^6 as well; "
        "T1 at D = 10^5, qD = 4, nu = 1/D for three horizons beyond the goal"
    ),
    assumptions="the Fourier expectation, certified at 1e-8",
    group="large-D",
    criterion=(
        "Holds if at every size, density and scaling of nu with Parametrization 3.1 (fixed nu and "
        "beta do not count) T0 < T1 exist and alpha* rises at some time after T0 until the risk is "
        "below 1e-3, which stands for the paper's o(1). T1 refers to the largest |rho| of the run: "
        "the run ends at risk 1e-3 or, at the latest, at flow time 3e5 (D/100)^3, for the "
        "theorem's T = poly(d)/eta; what T1 would be had it ended at risk 0.1 or 0.01 is given."
    ),
)
