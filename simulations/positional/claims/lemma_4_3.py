"""Lemma 4.3: the increments of gamma and rho, and their factors polylog(d)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from dynamics import Population, Problem
from dynamics.core.schedule import thinned
from simulations.figures import report_figure
from simulations.figures.style import (
    PROBLEM_STYLES,
    REFERENCE,
    log_time,
    panel_letter,
    problem_style,
    styled,
)
from simulations.positional import reference_runs as runs
from simulations.positional import theorem_4_1 as theorem
from simulations.positional.increments import increments, lemma_factors
from simulations.positional.reference_runs import describe
from simulations.reproduction import proofs
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.fits import power
from simulations.reproduction.predicates import CheckedTable, Column, Table
from symbolic.positional import lemma_4_3

if TYPE_CHECKING:
    import pandas as pd

_TIMES = np.concatenate([[0.0], np.geomspace(1e-2, 1e8, 301)])
#: Exponent k in (log d)^k and (log d)^-k, the reading of polylog(d).
DEGREE = 2
#: The factors are evaluated up to flow time d^LAST, where P[f* F <= 0] < 1/d (theorem-4.1).
LAST = 2
#: Number of records of each flow, and the tolerance of the increments at them.
RECORDS, THOROUGH_RECORDS, TOLERANCE = 40, 80, 1e-10
_SHARE = "greatest |rho increment| / |gamma increment|"


def measure(context: Context) -> Measurement:
    """Prove the identities of the leading terms and measure the factors along flows."""
    proof = lemma_4_3.prove()
    context.progress(0.1)
    problems = _problems(context)
    tolerance = runs.tolerance(context.quick)
    sharper = max(1e-3 * tolerance, 1e-10)
    series = {
        problem: increments(
            runs.observed_flow(problem, tolerance), runs.population(problem, sharper)
        )
        for problem in context.track(problems, 0.1, 0.6)
    }
    scaled = theorem.paper_problems(context.quick, context.thorough)
    records = THOROUGH_RECORDS if context.thorough else RECORDS
    factors = FACTORS.frame(_factor(problem, records) for problem in context.track(scaled, 0.6))
    return Measurement(
        {
            "identities": proofs.decisions([proof]),
            "factors": factors,
            "exponents": exponents(factors),
            "named problems": NAMED.frame(starmap(_named, series.items())),
        },
        {
            "problems": [asdict(problem) for problem in problems],
            "population tolerance": tolerance,
            "tolerance of the increments": sharper,
            "horizon": runs.HORIZON,
            "proof": proof.claim,
            "judged": [asdict(problem) for problem in scaled],
            "judged up to": f"flow time d^{LAST}",
            "polylog(d)": f"(log d)^{DEGREE}",
        },
        (_figure(list(series.values())), _scaling_figure(factors)),
    )


def _factor(problem: Problem, records: int) -> dict[str, float]:
    """Return the row of a problem: factors in place of polylog(d), up to time d^LAST."""
    path = theorem.flow(problem, theorem.TOLERANCE)
    end = theorem.horizon(problem, LAST)
    times = path.time[path.time < end]
    chosen = thinned(times.size, records)
    states = np.array([*path.states[chosen], path.at(end)])
    factors = lemma_factors(problem, states, Population(problem, tolerance=TOLERANCE))
    d = problem.dimension
    return {
        "d": d,
        "qD": round(problem.q * problem.D, 9),
        "gamma_factor_greatest": factors.gamma_factor.max() / polylog(d),
        "gamma_factor_least": factors.gamma_factor.min() * polylog(d),
        "rho_constant": factors.rho_factor.max() / polylog(d),
        "rho_share": np.nanmax(factors.rho_share),
    }


def polylog(d: Any) -> Any:
    """Return (log d)^`DEGREE`."""
    return np.log(d) ** DEGREE


def exponents(factors: pd.DataFrame) -> pd.DataFrame:
    """Return the exponents in d of the factors, fitted at each qD."""
    rows = []
    for qD, rows_of_qD in _unscaled(factors).groupby("qD"):
        d = rows_of_qD.index.get_level_values("d")
        rows.append(
            {
                "qD": qD,
                "exponent_gamma_greatest": power(d, rows_of_qD.greatest.abs()),
                "exponent_gamma_least": power(d, rows_of_qD.least.abs()),
                "exponent_rho": power(d, rows_of_qD.rho_constant.abs()),
                "exponent_polylog": power(d, polylog(d)),
            }
        )
    return EXPONENTS.frame(rows)


def _unscaled(factors: pd.DataFrame) -> pd.DataFrame:
    """Return the factors without the normalization by (log d)^k."""
    scale = polylog(factors.index.get_level_values("d"))
    return factors[[]].assign(
        least=factors.gamma_factor_least / scale,
        greatest=factors.gamma_factor_greatest * scale,
        rho_constant=factors.rho_constant * scale,
    )


def _named(problem: Problem, series: xarray.Dataset) -> dict[str, Any]:
    """Return the row of a named problem: extremes of increments and factors along its flow."""
    columns = {
        "gamma_ratio": series.gamma_ratio,
        "rho_ratio": series.rho_ratio,
        "gamma_factor_named": series.gamma_factor,
        "gamma_factor_per_sigmoid": series.gamma_factor / series.mean_sigmoid,
    }
    return {
        "problem": describe(problem),
        **{f"{name}_min": float(column.min()) for name, column in columns.items()},
        **{f"{name}_max": float(column.max()) for name, column in columns.items()},
        "rho_constant_named": float(series.rho_factor.max()),
        "rho_share": float(series.rho_share.max()),
    }


def _problems(context: Context) -> tuple[Problem, ...]:
    """Return the named problems of a mode."""
    problems = runs.BASE, runs.WIDE, runs.CROWDED
    if context.quick:
        return problems
    more = (runs.FEW_FEATURES, runs.QUINTIC) if context.thorough else ()
    return (*problems, *more, runs.MANY_FEATURES)


def _figure(series: Sequence[xarray.Dataset]) -> Figure:
    return report_figure(
        "lemma-4-3-factor",
        "Lemma 4.3: factors in place of polylog(d)",
        "(a) Exact increment of gamma over its leading term, the signal set alone, along the flow; "
        "below the dashed zero gamma falls. (b) The factor of alpha^p Gamma G^(p-1) in the "
        "increment of gamma (colours) where it is positive, and (grey) E[s(-F)], the reason of "
        "its decrease. (c) Size of the rho increment relative to the gamma increment.",
        _draw,
        _on_common_times(series),
        (7.0, 6.4),
    )


def _scaling_figure(factors: pd.DataFrame) -> Figure:
    return report_figure(
        "lemma-4-3-scaling",
        "Lemma 4.3: factors against d",
        "Factors in place of polylog(d) on the paper's parametrization (C = 4, nu = 1/d, sigma_A "
        f"= log log d) up to flow time d^{LAST}: (a) greatest (filled) and least (open) factor of "
        "alpha^p Gamma G^(p-1) in the increment of gamma; (b) the constant of the |rho| "
        f"inequality. Shaded: between (log d)^-{DEGREE} and (log d)^{DEGREE}.",
        _draw_scaling,
        _scaling_data(factors),
        (7.0, 3.4),
    )


def _on_common_times(series: Sequence[xarray.Dataset]) -> xarray.Dataset:
    """Return the increments of all problems on common times, (problem, time)."""
    shared = [each.interp(time=_TIMES, kwargs={"fill_value": "extrapolate"}) for each in series]
    names = [each.attrs["problem"] for each in series]
    return xarray.concat(shared, dim="problem", combine_attrs="drop").assign_coords(problem=names)


def _scaling_data(factors: pd.DataFrame) -> xarray.Dataset:
    """Return the factors (case) with d and qD, and the degree k of (log d)^k."""
    rows = _unscaled(factors).reset_index()
    return xarray.Dataset(
        {name: ("case", rows[name]) for name in rows.columns}, attrs={"degree": DEGREE}
    )


@styled
def _draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the ratio to the leading term, the factor, and the ratio of the increments."""
    panels = figure.subplots(3, 1, sharex=True)
    ratio, factor, rho_share = panels
    artists: dict[str, Any] = {}
    time = data["time"].values[1:]
    for number, name in enumerate(data["problem"].values):
        problem = data.isel(problem=number, time=slice(1, None))
        style = problem_style(number, str(name))
        artists[str(name)] = ratio.plot(time, problem["gamma_ratio"], **style)[0]
        positive = problem["gamma_factor"].where(problem["gamma_factor"] > 0.0)
        factor.plot(time, positive, **style)
        grey = style | {"color": "#AAAAAA", "linewidth": 1.0}
        factor.plot(time, problem["mean_sigmoid"], **grey)
        rho_share.plot(time, problem["rho_share"], **style)
    artists["E[s(-F)]"] = factor.plot(
        [], [], color="#AAAAAA", linewidth=1.0, label=r"grey in (b): $E[s(-F)]$"
    )[0]
    ratio.axhline(0.0, **REFERENCE)
    ratio.set_ylabel("exact / leading\nincrement of " + r"$\gamma$")
    factor.set(yscale="log", ylim=(1e-8, 3.0))
    factor.set_ylabel("factor of\n" + r"$\alpha^p\,\Gamma\,G^{p-1}$")
    rho_share.set(yscale="log", ylim=(1e-3, 1e5), ylabel=r"$|\Delta\rho|\,/\,|\Delta\gamma|$")
    rho_share.axhline(1.0, **REFERENCE)
    for letter, ax in zip("abc", panels):
        log_time(ax, time, label=ax is rho_share)
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=2)
    return artists


@styled
def _draw_scaling(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the factors of gamma, and the constant of the |rho| inequality, against d."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    for number, density in enumerate(np.unique(data["qD"].values)):
        cases = data.isel(case=(data["qD"] == density).values)
        look = PROBLEM_STYLES[number] | {"linewidth": 1.2}
        label = f"$qD={density:g}$"
        artists[label] = left.plot(cases["d"], cases["greatest"], marker="o", label=label, **look)[
            0
        ]
        left.plot(cases["d"], cases["least"], marker="o", fillstyle="none", **look)
        right.plot(cases["d"], cases["rho_constant"], marker="o", **look)
    sizes = np.unique(data["d"].values)
    polylog = np.log(sizes) ** data.attrs["degree"]
    for letter, ax in zip("ab", (left, right)):
        ax.fill_between(sizes, 1.0 / polylog, polylog, color="#009E73", alpha=0.12, linewidth=0)
        ax.set(xscale="log", yscale="log", xlabel="$d$")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.set_xticks([], minor=True)
        panel_letter(ax, letter)
    for name, fill in (("greatest in (a)", "full"), ("least in (a)", "none")):
        (artists[name],) = left.plot(
            [], [], "o", color="#555555", fillstyle=fill, label=name, linestyle="none"
        )
    left.set_ylabel(r"factor of $\alpha^p\,\Gamma\,G^{p-1}$")
    right.set_ylabel(r"constant of the $|\rho|$ inequality")
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=5)
    return artists


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    fitted = tables["exponents"].data
    return {
        "constant": tables["factors"].data.rho_constant.max(),
        "degree": DEGREE,
        "least": fitted.exponent_gamma_least.min(),
        "greatest": fitted.exponent_gamma_greatest.max(),
    }


FACTORS = Table(
    index=("d", "qD"),
    columns={
        "gamma_factor_greatest": Column(
            f"gamma's factor over (log d)^{DEGREE}, greatest", rtol=1e-2
        ),
        "gamma_factor_least": Column(f"gamma's factor times (log d)^{DEGREE}, least", rtol=1e-4),
        "rho_constant": Column(f"|rho|'s constant over (log d)^{DEGREE}", rtol=1e-2),
        "rho_share": Column(_SHARE, rtol=1e-4),
    },
    predicates={
        "gamma's factor is at most polylog(d)": lambda t: t.gamma_factor_greatest <= 1.0,
        "gamma's factor is at least 1/polylog(d)": lambda t: t.gamma_factor_least >= 1.0,
        "|rho|'s constant is at most polylog(d)": lambda t: t.rho_constant <= 1.0,
    },
    strict={
        "gamma's factor is positive": lambda t: t.gamma_factor_least > 0.0,
        "rho moves less than gamma": lambda t: t.rho_share < 1.0,
    },
)
EXPONENTS = Table(
    index=("qD",),
    columns={
        "exponent_gamma_greatest": Column("exponent in d of gamma's greatest factor", atol=1e-2),
        "exponent_gamma_least": Column("exponent in d of gamma's least factor", rtol=1e-4),
        "exponent_rho": Column("exponent in d of |rho|'s constant", atol=1e-2),
        "exponent_polylog": Column(f"exponent in d of (log d)^{DEGREE}"),
    },
    predicates={
        "gamma's greatest factor scales no faster than polylog(d)": lambda t: (
            t.exponent_gamma_greatest.abs() <= t.exponent_polylog
        ),
        "gamma's least factor scales no faster than polylog(d)": lambda t: (
            t.exponent_gamma_least.abs() <= t.exponent_polylog
        ),
        "|rho|'s constant grows no faster than polylog(d)": lambda t: (
            t.exponent_rho <= t.exponent_polylog
        ),
    },
)
NAMED = Table(
    index=("problem",),
    columns={
        f"{name}_{end}": Column(f"{label}, {word}", rtol=1e-2)
        for end, word in (("min", "least"), ("max", "greatest"))
        for name, label in (
            ("gamma_ratio", "gamma: exact over leading increment"),
            ("rho_ratio", "rho: exact over leading increment"),
            ("gamma_factor_named", "gamma: factor of alpha^p Gamma G^(p-1)"),
            ("gamma_factor_per_sigmoid", "gamma: that factor over E[s(-F)]"),
        )
    }
    | {
        "rho_constant_named": Column("rho: constant of the inequality", rtol=1e-2),
        "rho_share": Column(_SHARE, rtol=1.0),
    },
)

CLAIM = Claim(
    id="lemma-4.3",
    place="Lemma 4.3 (Section 4.1)",
    statement=(
        "gamma(t+1) = gamma(t) + eta polylog(d) alpha^p Gamma G^(p-1) and |rho(t+1)| <= |rho(t)| + "
        "eta polylog(d) alpha^p (1/D + Gamma G^(p-1)/D): the increment of gamma is larger than the "
        "one of rho."
    ),
    method=(
        "The exact increments of gamma and rho along the flow against their leading terms, and the "
        "factors in place of polylog(d) as functions of time."
    ),
    criterion=(
        "The lemma has one function polylog(d): read as (log d)^2, fixed beforehand, and as its "
        "inverse. On the paper's parametrization (C = 4, qD = C, 2C and C^2, nu = 1/d, "
        "sigma_A = log log d; d = 256 to 2048) up to flow time d^2 (T >= poly(d)/eta; at that "
        "time P[f* F <= 0] is below 1/d): the factor of alpha^p Gamma G^(p-1) in the increment of "
        "gamma, an equality, must be positive and lie between (log d)^-2 and (log d)^2, and its "
        "greatest and least value must not scale faster in d than (log d)^(+-2) does over the "
        "same sizes; the constant of the |rho| inequality, a bound, at most (log d)^2 and growing "
        "no faster; and rho must move less than gamma ('the increment of gamma is larger than the "
        "one of rho'). All of it: holds; else a finding. Fails if an identity fails, or if at one "
        "of these problems a statement for all t has a counterexample: a factor of gamma that is "
        "not positive, or rho moving as fast as gamma. Named problems outside the hypotheses are "
        "reported only."
    ),
    amended=(
        "A factor of gamma that is not positive was a finding. A statement without exceptions now "
        "fails by a confirmed counterexample, in every claim. The measurement is unchanged."
    ),
    tables={
        "identities": proofs.layout(all_sizes=False),
        "factors": FACTORS,
        "exponents": EXPONENTS,
        "named problems": NAMED,
    },
    measure=measure,
    headline=headline,
    finding=(
        "The |rho| inequality holds with {constant:.2g} (log d)^{degree}; gamma's factor scales as "
        "d^{least:.2g} to d^{greatest:.2g}."
    ),
    quick_note=(
        "two sizes instead of three, three named problems instead of four at population tolerance "
        "1e-5 instead of 1e-8"
    ),
    thorough_note=(
        "four sizes instead of three, six named problems instead of four, twice as many records"
    ),
    assumptions="the population gradient; leading terms emitted from the symbolic derivation",
    group="named-problems",
)
