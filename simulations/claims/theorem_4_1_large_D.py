"""Theorem 4.1 in its own regime: q = poly(C)/D with D up to a million."""

from __future__ import annotations

from typing import Any

from simulations.claim import Claim, Context, Outcome, Verdict

#: Largest final test error that counts as o(1) in the verdict.
ERROR_GOAL = 2e-3


def run(context: Context) -> Outcome:
    """Follow the flow for every D and qD and look at its end."""
    from simulations import large_D as large
    from simulations.figures import large_D as figures
    from simulations.figures import report_figure

    sizes, expected = large.sizes(context.quick), large.features(context.quick)
    ends = large.follow_all(expected, sizes, context.progress)
    measured: dict[str, Any] = {}
    for (features, D), found in ends.items():
        at = f"(D={D}, qD={features})"
        measured |= {
            f"final G {at}": found.G,
            f"final population risk {at}": float(found.path.loss[-1]),
            f"final test error {at}": float(found.path.test_error[-1]),
            f"test error of f* {at}": found.label.error,
            f"test error when alpha has settled {at}": _settled_error(found),
            f"flow time at the end {at}": float(found.path.time[-1]),
            f"how the run ended {at}": _ending(found),
            f"patch association at the end {at}": _associates(found),
            f"largest gamma < rho {at}": found.path.violations()["gamma >= rho"],
        }
    verdict, summary = judge(ends)
    data = figures.gather(ends)
    return Outcome(
        verdict,
        measured,
        ERROR_GOAL,
        {"C": large.C, "qD": list(expected), "D": list(sizes), "nu": 0.01, "beta": 1.0,
         "p": 3, "population tolerance": large.TOLERANCE, "ends at risk": large.LOSS_GOAL},
        summary,
        (
            report_figure(
                "theorem-4.1-large-D",
                "Theorem 4.1 for D up to a million",
                "At the end of the flow (population risk below 1e-3, or flow time "
                "3e5 (D/100)^3), C = 4, nu = 0.01, beta = 1: (a) attention mass G, at most D; (b) "
                "test error before the attention moves and at the end, and the error of the "
                "labelling function f* itself.",
                figures.draw_ends,
                data,
            ),
        ),
    )  # fmt: skip


def judge(ends: Any) -> tuple[Verdict, str]:
    """Return HOLDS if association, small error and risk below the goal are reached everywhere."""
    from simulations import large_D as large

    goal = large.LOSS_GOAL
    learned = [key for key, found in ends.items() if found.path.loss[-1] < goal]
    associates = [key for key, found in ends.items() if _associates(found)]
    small = [key for key, found in ends.items() if found.path.test_error[-1] <= ERROR_GOAL]
    worst = max(float(found.path.test_error[-1]) for found in ends.values())
    largest = max(D for _, D in ends)
    latest = max(float(found.path.time[-1]) for (_, D), found in ends.items() if largest == D)
    text = (
        f"Patch association at the end in {len(associates)} of {len(ends)} problems, final test "
        f"error at most {worst:.2g} (goal {ERROR_GOAL:g}), population risk below {goal:g} in "
        f"{len(learned)}; at D = {largest:.0e} it takes flow time "
        f"{latest:.1e}."
    )
    complete = len(associates) == len(small) == len(learned) == len(ends)
    return (Verdict.HOLDS if complete else Verdict.FINDING), text


def _associates(found: Any) -> bool:
    problem, final = found.path.problem, found.path.final
    return bool(min(problem.beta, final.gamma) > final.rho)


def _ending(found: Any) -> str:
    from simulations import large_D as large

    if found.path.loss[-1] < large.LOSS_GOAL:
        return f"risk below {large.LOSS_GOAL:g}"
    endings = {
        "INACCURATE": "the expectation could not be certified beyond this time",
        "STALLED": "the integrator could not resolve the jump of alpha at this time",
    }
    return endings.get(found.path.status.name, "horizon")


def _settled_error(found: Any) -> float:
    import numpy as np

    return float(np.interp(found.events.T0.time, found.path.time, found.path.test_error))


CLAIM = Claim(
    id="theorem-4.1-large-D",
    place="Theorem 4.1 with Assumption 2",
    statement=(
        "With q = poly(C)/D and D large, gradient descent on (P) learns patch association and the "
        "labelling function, P[f*(X) F(X) > 0] >= 1 - o(1)."
    ),
    measures="Final G, risk and test error of flows at qD = C and C^2 for D = 100 to a million.",
    run=run,
    quick_note="qD = C and D up to 10^3 instead of 10^6",
    depends="the Fourier expectation, certified at 1e-8",
    shares="large-D",
)
