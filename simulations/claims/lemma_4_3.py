"""Lemma 4.3: the increments of gamma and rho, and what their polylog(d) stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulations.claim import Claim, Context, Outcome, Verdict

if TYPE_CHECKING:
    import xarray

    from dynamics import Problem


def run(context: Context) -> Outcome:
    """Decide the identities of the leading terms and measure the factors along flows."""
    from dataclasses import asdict

    from simulations import runs
    from simulations.increments import increments
    from symbolic import lemma_4_3

    proof = lemma_4_3.prove()
    context.progress(0.1)
    problems = _problems(context.quick)
    tolerance = runs.tolerance(context.quick)
    sharper = max(1e-3 * tolerance, 1e-10)
    data = {}
    for number, problem in enumerate(problems, start=1):
        data[problem] = increments(runs.flow(problem, tolerance), runs.population(problem, sharper))
        context.progress(0.1 + 0.9 * number / len(problems))
    measured: dict[str, Any] = {
        "exact identities decided": proof.count,
        "exact identities that fail": proof.failed,
    }
    for problem, series in data.items():
        measured |= _numbers(problem, series)
    verdict, summary = judge(proof.all_zero, data)
    return Outcome(
        verdict,
        measured,
        None,
        {"problems": [asdict(problem) for problem in problems], "population tolerance": tolerance,
         "tolerance of the increments": sharper, "horizon": runs.HORIZON, "proof": proof.claim},
        summary,
        (_figure(list(data.values())),),
    )  # fmt: skip


def judge(proved: bool, data: dict[Problem, xarray.Dataset]) -> tuple[Verdict, str]:
    """Return the verdict.

    The lemma holds with its own words if the factor of the gamma increment is positive throughout,
    the constant of the |rho| inequality at most log(d), and gamma moves faster than rho ("the
    increment of gamma is larger than the one of rho").
    """
    import math

    from simulations.runs import describe

    lowest = {p: float(series["gamma_factor"].min()) for p, series in data.items()}
    highest = {p: float(series["gamma_factor"].max()) for p, series in data.items()}
    bound = max(float(s["rho_factor"].max()) / math.log(p.dimension) for p, s in data.items())
    slower = max(_rho_over_gamma(series) for series in data.values())
    if not proved:
        return Verdict.FAILS, "An identity of the leading terms fails."
    negative = [problem for problem, value in lowest.items() if value <= 0.0]
    held = [problem for problem in data if problem not in negative]
    decades = max((math.log10(highest[p] / lowest[p]) for p in held), default=0.0)
    text = (
        f"|rho|: the inequality holds with {bound:.2g} log(d) for polylog(d). gamma: the factor is "
        f"positive in {len(held)} of {len(data)} problems, where it never exceeds "
        f"{max((highest[p] for p in held), default=math.nan):.2g} and falls by up to "
        f"{decades:.1f} decades along the flow: polylog(d) hides E[s(-F)]"
    )
    if negative:
        worst = min(negative, key=lambda p: lowest[p])
        text += f". It is negative at {describe(worst)} (down to {lowest[worst]:.2g})"
        return Verdict.FINDING, text + f", where rho moves up to {slower:.2g} times as fast."
    holds = bound <= 1.0 and slower < 1.0
    return (Verdict.HOLDS if holds else Verdict.FINDING), text + "."


def _rho_over_gamma(series: xarray.Dataset) -> float:
    return float(series["rho_share"].max())


def _problems(quick: bool) -> tuple[Problem, ...]:
    from simulations import runs

    if quick:
        return runs.BASE, runs.WIDE, runs.CROWDED
    return (
        runs.BASE, runs.FEW_FEATURES, runs.QUINTIC, runs.WIDE, runs.MANY_FEATURES, runs.CROWDED
    )  # fmt: skip


def _numbers(problem: Problem, series: xarray.Dataset) -> dict[str, float]:
    from simulations.runs import describe

    name = describe(problem)
    per_weight = series["gamma_factor"] / series["mean_sigmoid"]
    columns = {
        "gamma: exact over leading increment": series["gamma_ratio"],
        "rho: exact over leading increment": series["rho_ratio"],
        "gamma: factor of alpha^p Gamma G^(p-1)": series["gamma_factor"],
        "gamma: that factor over E[s(-F)]": per_weight,
    }
    numbers = {}
    for what, column in columns.items():
        numbers[f"{what}, least ({name})"] = float(column.min())
        numbers[f"{what}, greatest ({name})"] = float(column.max())
    numbers[f"rho: constant of the inequality ({name})"] = float(series["rho_factor"].max())
    numbers[f"greatest |rho increment| / |gamma increment| ({name})"] = _rho_over_gamma(series)
    return numbers


def _figure(series: list[xarray.Dataset]) -> Any:
    from simulations.figures import lemma_4_3_factor, report_figure

    return report_figure(
        "lemma-4-3-factor",
        "Lemma 4.3: what polylog(d) stands for",
        "(a) Exact increment of gamma over its leading term, the signal set alone, along the flow; "
        "below the dashed zero gamma falls. (b) The factor of alpha^p Gamma G^(p-1) in the "
        "increment of gamma (colours) where it is positive, and (grey) E[s(-F)], which explains "
        "its fall. (c) Size of the rho increment relative to that of gamma.",
        lemma_4_3_factor.draw,
        lemma_4_3_factor.gather(series),
        (7.0, 6.4),
    )


CLAIM = Claim(
    id="lemma-4.3",
    place="Lemma 4.3 (Section 4.1)",
    statement=(
        "gamma(t+1) = gamma(t) + eta polylog(d) alpha^p Gamma G^(p-1) and |rho(t+1)| <= |rho(t)| + "
        "eta polylog(d) alpha^p (1/D + Gamma G^(p-1)/D): the increment of gamma is larger than the "
        "one of rho."
    ),
    measures=(
        "The exact increments of gamma and rho along the flow against their leading terms, and the "
        "factors that stand for polylog(d) as functions of time."
    ),
    run=run,
    quick_note="three problems instead of six, population tolerance 1e-5 instead of 1e-8",
    depends="the population gradient; leading terms emitted from the symbolic derivation",
    shares="named-problems",
)
