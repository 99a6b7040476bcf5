"""Huang et al., Section 5: position-position correlations stay small."""

from typing import Any

import numpy as np
import xarray

from dynamics.masked.events import projected_positions
from simulations.figures import report_figure
from simulations.masked import runs
from simulations.masked.figures import positions as masked_positions
from simulations.masked.runs import Regime
from simulations.reproduction.fits import Exponent, exponent
from simulations.reproduction.measured import Measured, interval, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict
from simulations.seeds import seeds_of

#: Uncertainty of an exponent that is called measured, relative to the exponent predicted.
RESOLUTION = 0.1
#: Masks are drawn with so many seeds.
SEEDS = 5


def run(context: Context) -> Outcome:
    """Measure projected position correlations when p has learned, over decades of P."""
    sizes = np.array((runs.SMALL_P, *(10**e for e in range(6, 37, 10 if context.quick else 6))))
    regimes = (runs.WIDE_GAP, runs.NARROW_GAP, runs.NEGATIVE_GAP)
    measured: list[Measured] = []
    fits: dict[Regime, Exponent] = {}
    table = np.zeros((2, len(regimes), sizes.size))
    for number, regime in enumerate(regimes):
        for column, P in enumerate(sizes):
            table[:, number, column] = correlations(regime, int(P))
        positions, features = table[:, number]
        fits[regime] = exponent(sizes[1:].astype(float), positions[1:] / features[1:])
        own = regime.problem(int(sizes[-1])).own_size()
        fit, label = fits[regime], "exponent of max |Upsilon| / Phi_n"
        measured += measured_at(
            regime.place(),
            *interval("exponent", label, fit.low, fit.high),
            ("predicted", "exponent predicted, -kappa_s", -regime.kappa_s),
        )
        for column in (0, -1):
            measured += measured_at(
                regime.place(int(sizes[column])),
                ("positions", "max |Upsilon|", float(positions[column])),
                ("features", "Phi_n", float(features[column])),
            )
        measured += measured_at(
            regime.place(int(sizes[-1])),
            ("scaled", "max |Upsilon| C_n / Phi_n", float(positions[-1] / features[-1] * own)),
        )
        context.progress((number + 1) / len(regimes))
    share = float((table[0] / table[1])[:, 0].max())
    drawn = regimes[:1] if context.quick else regimes
    seeds = seeds_of(context.seed, SEEDS)
    sampled = {one: [sampled_share(one, seed) for seed in seeds] for one in drawn}
    label = f"max |Upsilon| / Phi_n over {SEEDS} seeds of {runs.SAMPLES} random masks"
    for regime, shares in sampled.items():
        measured += measured_at(
            regime.place(runs.SMALL_P),
            ("sampled_least", f"{label}, least", min(shares)),
            ("sampled_greatest", f"{label}, greatest", max(shares)),
        )
    verdict, summary = judge(fits, share, max(map(max, sampled.values())))
    data = xarray.Dataset(
        {name: (("regime", "P"), values) for name, values in zip(("positions", "features"), table)},
        coords={"regime": [regime.name for regime in regimes], "P": sizes.astype(float)},
    ).assign(kappa_s=("regime", [regime.kappa_s for regime in regimes]))
    return Outcome(
        verdict,
        measured,
        RESOLUTION,
        {"P": sizes.tolist(), "eps": runs.EPS, "z": 1.0, "mask_ratio": 0.5, "K": 1},
        summary,
        (_figure(data),),
    )


def correlations(regime: Regime, P: int) -> tuple[float, float]:
    """Return the greatest |Upsilon| projected on an area, and Phi_n, when p has learned."""
    problem = regime.problem(P)
    state = np.asarray(runs.events(problem).learned.state)
    own = problem.layout.clusters[0].own_slot
    return float(np.nanmax(np.abs(projected_positions(problem, state)))), float(state[own])


def sampled_share(regime: Regime, seed: int) -> float:
    """Return max |Upsilon| / Phi_n when p has learned, with random masks instead of mean counts."""
    run, events = runs.sampled(regime, seed)
    state = np.asarray(events.learned.state if events.learned.happens else run.final)
    own = run.problem.layout.clusters[0].own_slot
    return float(np.nanmax(np.abs(projected_positions(run.problem, state))) / state[own])


def judge(fits: dict[Regime, Exponent], share: float, sampled: float) -> tuple[Verdict, str]:
    """Return the verdict: the share falls as P^(-kappa_s); how large it is at P = 1024 is told."""
    slopes = ", ".join(f"{fit.last:.4f} for -{regime.kappa_s:g}" for regime, fit in fits.items())
    text = (
        f"max |Upsilon| / Phi_n falls with exponents {slopes}; small, but not negligible at "
        f"P = {runs.SMALL_P}: up to {share:.1%} (with random masks {sampled:.1%})."
    )
    if not fits or not all(fit.allows(-regime.kappa_s) for regime, fit in fits.items()):
        return Verdict.FAILS, text
    sure = all(fit.resolves(regime.kappa_s, RESOLUTION) for regime, fit in fits.items())
    return (Verdict.HOLDS if sure else Verdict.FINDING), text


def _figure(data: Any) -> Any:
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


def _finding(outcome: Outcome) -> str:
    off = max(
        abs(end - one.value)
        for one in outcome.numbers("predicted")
        for end in (outcome.number(f"exponent_{side}", **one.at) for side in ("low", "high"))
    )
    small = min(outcome.numbers("positions"), key=lambda one: float(one.at["P"])).at["P"]
    share = max(
        one.value / outcome.number("features", **one.at)
        for one in outcome.numbers("positions", P=small)
    )
    return (
        f"max |Upsilon| / Phi_n falls as P^-kappa_s, to {off:.1g} in the exponent; at P = {small} "
        f"it is {share:.0%} at most."
    )


CLAIM = Claim(
    id="huang-pp-small",
    place="Sections 5.1 to 5.4, Theorem 4.1",
    statement=(
        "All position-position correlations stay O~(P^{-kappa_s}) throughout: what is learned is "
        "the feature-position correlation."
    ),
    method=(
        "The greatest projected |Upsilon| over Phi_n when p has learned, from P = 1024 to 10^36."
    ),
    criterion=(
        "O~(P^{-kappa_s}) is about P to infinity up to logarithms: -kappa_s must lie in the "
        "interval that the local exponents of max |Upsilon| / Phi_n give for large P (as in "
        "huang-scaling), half as wide as a tenth of kappa_s at most, else the claim is a finding. "
        "How large the ratio is at P = 1024 is told and decides nothing."
    ),
    headline=Headline("sampled_greatest", pick=max),
    finding=_finding,
    run=run,
    quick_note="four values of P for the fit instead of six, random masks in one regime only",
    assumptions="the mean-field limit",
    group="masked",
)
