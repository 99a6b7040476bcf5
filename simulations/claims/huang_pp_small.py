"""Huang et al., Section 5: position-position correlations stay small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulations.claim import HUANG_2024, Claim, Context, Outcome, Verdict

if TYPE_CHECKING:
    from simulations.masked_runs import Fit, Regime

#: |fitted - predicted| exponent of max |Upsilon| / Phi_n over P = 10^6 .. 10^12.
TOLERANCE = 0.02


def run(context: Context) -> Outcome:
    """Measure projected position correlations when p has learned, over decades of P."""
    import numpy as np
    import xarray

    from simulations import masked_runs as runs

    sizes = np.array((runs.SMALL_P, *runs.decades(context.quick)), float)
    regimes = (runs.WIDE_GAP, runs.NARROW_GAP, runs.NEGATIVE_GAP)
    measured: dict[str, Any] = {}
    fits: dict[Regime, Fit] = {}
    table = np.zeros((2, len(regimes), sizes.size))
    for number, regime in enumerate(regimes):
        for column, P in enumerate(sizes):
            table[:, number, column] = correlations(regime, int(P))
        positions, features = table[:, number]
        fits[regime] = runs.fit(sizes[1:], positions[1:] / features[1:])
        measured |= {
            f"exponent of max |Upsilon| / Phi_n ({regime.name})": fits[regime].slope,
            f"exponent predicted, -kappa_s ({regime.name})": -regime.kappa_s,
            f"max |Upsilon| at P = {runs.SMALL_P} ({regime.name})": float(positions[0]),
            f"Phi_n at P = {runs.SMALL_P} ({regime.name})": float(features[0]),
            f"max |Upsilon| at P = 10^12 ({regime.name})": float(positions[-1]),
            f"max |Upsilon| C_n / Phi_n at P = 10^12 ({regime.name})": float(
                positions[-1] / features[-1] * regime.problem(int(sizes[-1])).own_size()
            ),
        }
        context.progress((number + 1) / len(regimes))
    share = float((table[0] / table[1])[:, 0].max())
    drawn = regimes[:1] if context.quick else regimes
    sampled = {regime: sampled_share(regime, context.seed) for regime in drawn}
    masks = f"{runs.SAMPLES} random masks"
    measured |= {
        f"max |Upsilon| / Phi_n at P = {runs.SMALL_P}, {masks} ({regime.name})": one
        for regime, one in sampled.items()
    }
    verdict, summary = judge(fits, share, max(sampled.values()))
    data = xarray.Dataset(
        {name: (("regime", "P"), values) for name, values in zip(("positions", "features"), table)},
        coords={"regime": [regime.name for regime in regimes], "P": sizes},
    ).assign(kappa_s=("regime", [regime.kappa_s for regime in regimes]))
    return Outcome(
        verdict,
        measured,
        TOLERANCE,
        {"P": sizes.tolist(), "eps": runs.EPS, "z": 1.0, "mask_ratio": 0.5, "K": 1},
        summary,
        (_figure(data),),
    )


def correlations(regime: Regime, P: int) -> tuple[float, float]:
    """Return the greatest |Upsilon| projected on an area, and Phi_n, when p has learned."""
    import numpy as np

    from dynamics.masked.events import projected_positions
    from simulations import masked_runs as runs

    problem = regime.problem(P)
    state = np.asarray(runs.events(problem).learned.state)
    own = problem.layout.clusters[0].own_slot
    return float(np.nanmax(np.abs(projected_positions(problem, state)))), float(state[own])


def sampled_share(regime: Regime, seed: int) -> float:
    """Return max |Upsilon| / Phi_n when p has learned, with random masks instead of mean counts."""
    import numpy as np

    from dynamics.masked.events import projected_positions
    from simulations import masked_runs as runs

    run, events = runs.sampled(regime, seed)
    state = np.asarray(events.learned.state if events.learned.happens else run.final)
    own = run.problem.layout.clusters[0].own_slot
    return float(np.nanmax(np.abs(projected_positions(run.problem, state))) / state[own])


def judge(fits: dict[Regime, Fit], share: float, sampled: float) -> tuple[Verdict, str]:
    """Return the verdict: the share falls as P^(-kappa_s); how large it is at P = 1024 is told."""
    from simulations import masked_runs as runs

    worst = max((abs(fit.slope + regime.kappa_s) for regime, fit in fits.items()), default=1.0)
    slopes = ", ".join(f"{fit.slope:.3f} for -{regime.kappa_s:g}" for regime, fit in fits.items())
    text = (
        f"max |Upsilon| / Phi_n falls with exponents {slopes}; small, but not negligible at "
        f"P = {runs.SMALL_P}: up to {share:.1%} (with random masks {sampled:.1%})."
    )
    return (Verdict.HOLDS if worst <= TOLERANCE else Verdict.FAILS), text


def _figure(data: Any) -> Any:
    from simulations import masked_runs as runs
    from simulations.figures import masked_positions, report_figure

    return report_figure(
        "masked-pp-small",
        "Position-position correlations stay small",
        f"When p has learned ((1 - a_n)^2 = 1e-4): (a) the greatest |Upsilon| projected on an area "
        f"(filled) and Phi_n (open); (b) their ratio, with the predicted P^(-kappa_s) through the "
        f"last point. First points: P = {runs.SMALL_P}. Mean-field counts.",
        masked_positions.draw,
        data,
        (7.4, 3.6),
    )


CLAIM = Claim(
    id="huang-pp-small",
    place="Sections 5.1 to 5.4, Theorem 4.1",
    statement=(
        "All position-position correlations stay O~(P^{-kappa_s}) throughout: what is learned is "
        "the feature-position correlation."
    ),
    measures=(
        "The greatest projected |Upsilon| over Phi_n when p has learned, from P = 1024 to 10^12."
    ),
    run=run,
    quick_note="four values of P for the fit instead of seven, random masks in one regime only",
    depends="the mean-field limit",
    paper=HUANG_2024,
    shares="masked",
)
