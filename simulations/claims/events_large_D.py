"""When the three events happen as D grows, and from which size on alpha rises again."""

from __future__ import annotations

from typing import Any

from simulations.claim import Claim, Context, Outcome, Verdict


def run(context: Context) -> Outcome:
    """Collect T0, T1 and the second rise for every D and qD; fit exponents in D."""
    import numpy as np

    from simulations import large_D as large
    from simulations.figures import large_D as figures
    from simulations.figures import report_figure

    sizes, expected = large.sizes(context.quick), large.features(context.quick)
    found = large.follow_all(expected, sizes, context.progress)
    measured: dict[str, Any] = {}
    for (features, D), one in found.items():
        at = f"(D={D}, qD={features})"
        measured |= {
            f"quasi-steady alpha {at}": one.events.alpha_star,
            f"T0 {at}": one.events.T0.time,
            f"T1 {at}": one.events.T1.time,
            f"steps to T1 at the largest stable rate {at}": one.events.T1.time / one.stable_rate,
            f"onset of the second rise {at}": one.events.onset.time,
            f"factor of the second rise {at}": one.events.rise,
        }
    data = figures.gather(found)
    axis = np.array(sizes, float)
    for features in expected:
        row = data.sel(qD=features)
        for name in ("alpha_star", "T0", "T1"):
            slope = large.exponent(axis, row[name].values)
            measured[f"exponent of {name} in D (qD={features})"] = slope
            last = large.exponent(axis[-2:], row[name].values[-2:])
            measured[f"exponent of {name} over the last decade (qD={features})"] = last
    verdict, summary = judge(found)
    return Outcome(
        verdict,
        measured,
        None,
        {"C": large.C, "qD": list(expected), "D": list(sizes), "nu": 0.01, "beta": 1.0,
         "p": 3, "population tolerance": large.TOLERANCE, "ends at risk": large.LOSS_GOAL},
        summary,
        (
            report_figure(
                "events-large-D",
                "Events I, II and III for D up to a million",
                "Flow at C = 4, nu = 0.01, beta = 1: (a) T0, when alpha has settled, and T1, when "
                "gamma exceeds the largest |rho|, with the slope over the last decade; (b) the "
                "factor by which alpha grows in its second rise (1: it never rises).",
                figures.draw_events,
                data,
            ),
        ),
    )  # fmt: skip


def judge(found: Any) -> tuple[Verdict, str]:
    """Return HOLDS if all three events happen at every size, else say from which size on."""
    parts, complete = [], True
    for features in sorted({features for features, _ in found}):
        sizes = sorted(D for key, D in found if key == features)
        leads = [D for D in sizes if found[features, D].events.T1.happens]
        rises = [D for D in sizes if found[features, D].events.onset.happens]
        factors = {D: found[features, D].events.rise for D in rises}
        complete &= len(leads) == len(sizes) == len(rises)
        best = max(factors, key=factors.__getitem__) if factors else 0
        rising = (
            f"alpha rises again from D = {min(rises)} on, by a factor of at most "
            f"{factors[best]:.3g} (D = {best})"
            if rises
            else "alpha never rises again"
        )
        parts.append(f"qD = {features}: T1 exists at {len(leads)} of {len(sizes)} sizes, {rising}")
    return (Verdict.HOLDS if complete else Verdict.FINDING), "; ".join(parts) + "."


CLAIM = Claim(
    id="events-large-D",
    place="Events I, II, III (Section 4.1) with Assumption 2",
    statement=(
        "alpha grows until T0, then gamma until it exceeds the largest |rho| at T1, then alpha "
        "increases again until the population risk is o(1)."
    ),
    measures="T0, T1 and the second rise of alpha against D, with exponents; GD steps to T1.",
    run=run,
    quick_note="qD = C and D up to 10^3 instead of 10^6",
    depends="the Fourier expectation, certified at 1e-8",
    shares="large-D",
)
