"""Theorem 4.1 in its own regime: q = poly(C)/D, nu = 1/poly(D), with D up to a million."""

import math

from simulations.figures import report_figure
from simulations.positional import large_D as large
from simulations.positional.data import large_D as figures_data
from simulations.positional.figures import large_D as figures
from simulations.positional.large_D import FIXED, LOSS_GOAL, Case, Run
from simulations.reproduction.measured import Measured, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict

#: 1{F <= 0} <= log(1 + e^-F) / log 2: a run that reaches the goal for the risk errs at most so.
ERROR_GOAL = 1e-3 / math.log(2.0)


def run(context: Context) -> Outcome:
    """Follow the flow for every scaling of nu, qD and D, and look at its end."""
    ends = large.follow_all(large.cases(context.quick, context.thorough), context.progress)
    measured: list[Measured] = []
    for case, found in ends.items():
        measured += measured_at(
            case.place,
            ("G", "final G", found.G),
            ("risk", "final population risk", float(found.path.loss[-1])),
            ("test_error", "final test error", found.test_error),
            ("label_error", "test error of f*", found.label.error),
            ("settled_error", "test error when alpha has settled", found.settled_error),
            ("end", "time at the end", float(found.path.time[-1]), "flow time"),
            ("ending", "how the run ended", _ending(found)),
            ("associates", "patch association at the end", found.associates),
            ("violation", "largest gamma < rho", found.path.violations()["gamma >= rho"]),
        )
    data = figures_data.gather(ends)
    measured += large.exponents(data, ("end",))
    verdict, summary = judge(ends)
    return Outcome(
        verdict,
        measured,
        ERROR_GOAL,
        large.parameters(context.quick, context.thorough),
        summary,
        (
            report_figure(
                "theorem-4.1-large-D",
                "Theorem 4.1 for D up to a million",
                "Flows at C = 4; beta = log log D and nu a power of D (the paper's "
                "parametrization), and nu = 0.01, beta = 1 as a contrast. (a, b) Flow time until "
                "the population risk is below 1e-3; (c, d) test error when alpha has settled, "
                "before the attention moves (open symbols), and at the end (filled).",
                figures.draw_ends,
                data,
                (7.0, 5.8),
            ),
        ),
    )


def judge(ends: dict[Case, Run]) -> tuple[Verdict, str]:
    """Return HOLDS if all flows at the paper's scalings associate and reach risk and error."""

    def complete(found: Run) -> bool:
        small = found.test_error <= ERROR_GOAL
        return bool(found.associates and found.learned and small)

    inside = {case: found for case, found in ends.items() if case.scaling != FIXED}
    outside = [found for case, found in ends.items() if case.scaling == FIXED]
    done = [case for case, found in inside.items() if complete(found)]
    top = max(case.D for case in inside)
    times = [float(one.path.time[-1]) for case, one in inside.items() if top == case.D]
    worst = max(found.test_error for found in inside.values())
    text = (
        f"With nu a power of 1/D and beta = log log D, {len(done)} of {len(inside)} flows learn "
        f"patch association and reach risk {LOSS_GOAL:g} within flow time 3e5 (D/100)^3 (final "
        f"test error at most {worst:.2g}); at D = {top:.0e} it takes {min(times):.1e} to "
        f"{max(times):.1e}. With nu = 0.01 and beta = 1, outside the hypotheses: "
        f"{sum(map(complete, outside))} of {len(outside)}."
    )
    return (Verdict.HOLDS if len(done) == len(inside) else Verdict.FINDING), text


def _ending(found: Run) -> str:
    if found.learned:
        return f"risk below {LOSS_GOAL:g}"
    endings = {
        "INACCURATE": "the expectation could not be certified beyond this time",
        "STALLED": "the integrator could not resolve the jump of alpha at this time",
    }
    return endings.get(found.path.status.name, "horizon")


def _finding(outcome: Outcome) -> str:
    flows = [one for one in outcome.numbers("test_error") if one.at["scaling"] != FIXED]
    done = [
        one
        for one in flows
        if outcome.number("associates", **one.at)
        and outcome.number("ending", **one.at) == f"risk below {LOSS_GOAL:g}"
        and float(one.value) <= ERROR_GOAL
    ]
    worst, top = max(one.value for one in flows), max(one.at["D"] for one in flows)
    return (
        f"{len(done)} of {len(flows)} flows at the paper's scalings associate and learn, up to "
        f"D = {top:.0e}, with test error at most {worst:.1e}."
    )


CLAIM = Claim(
    id="theorem-4.1-large-D",
    place="Theorem 4.1 with Assumption 2 and Parametrization 3.1",
    statement=(
        "With q = poly(C)/D, nu = 1/poly(d), sigma_A = polyloglog(d) and D large, gradient descent "
        "on (P) learns patch association and the labelling function within poly(d)/eta steps, "
        "P[f*(X) F(X) > 0] >= 1 - o(1)."
    ),
    method=(
        "Final G, risk and test error of flows at qD = C and C^2 for D = 1,000 to a million, with "
        "nu = D^(-1/2), 1/D, 1/D^2 and beta = log log D; fixed nu and beta as a contrast."
    ),
    headline=Headline("test_error", {"scaling": "nu=1/D"}, max),
    finding=_finding,
    run=run,
    thorough_note="nu = D^(-1/2) at qD = C^2 and at D = 10^6 as well",
    quick_note="nu = 1/D and the contrast, qD = C, D up to 10^4 instead of 10^6",
    assumptions="the Fourier expectation, certified at 1e-8",
    group="large-D",
    criterion=(
        "Holds if in every flow that meets the hypotheses (nu = D^-k, beta = log log D) the "
        "attention prefers the own set at the end, and the population risk falls below 1e-3 within "
        "a flow time stated beforehand and polynomial in D, 3e5 (D/100)^3 (the theorem's T >= "
        "poly(d)/eta), with test error at most 1e-3/log 2. The statement has o(1) and names no "
        "number: 1e-3 stands for it, and 1e-3/log 2 is what it implies for the error, as 1{F <= 0} "
        "<= log(1 + e^-F)/log 2. Flows at fixed nu and beta do not count."
    ),
)
