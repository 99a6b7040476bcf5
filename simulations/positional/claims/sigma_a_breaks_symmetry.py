"""sigma_A > 0 starts patch association: without it nothing breaks the symmetry of the patches."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray

from dynamics import SlowManifold, State, Trajectory
from dynamics.core.crossing import first_passage
from simulations.figures import report_figure
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, log_time, styled
from simulations.positional import reference_runs as runs
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: At sigma_A = 0 symmetry is exact in exact arithmetic: rounding alone may break it.
TOLERANCE = 1e-12
#: Patch association has started where gamma - rho exceeds this.
STARTED = 0.1
HORIZON = 1e6
_BETAS = (1e-6, 1e-4, 1e-2, 1.0)
_QUICK_BETAS = (1e-6, 1e-4, 1.0)
_LOWEST = 1e-9


def measure(context: Context) -> Measurement:
    """Compute the flow at beta = 0 and at small beta > 0, and linearize about the saddle point."""
    tolerance = max(runs.tolerance(context.quick), 1e-6)
    betas = (0.0, *context.choose(quick=_QUICK_BETAS, full=_BETAS))
    flows = {
        beta: runs.flow(runs.BASE.replace(beta=beta), tolerance, HORIZON)
        for beta in context.track(betas, stop=0.9)
    }
    symmetric = _symmetric(flows[0.0], tolerance)
    return Measurement(
        {
            "sigma_A = 0": SYMMETRIC.frame([symmetric]),
            "sigma_A > 0": BROKEN.frame(_broken(beta, flows[beta]) for beta in betas[1:]),
        },
        {
            "problem": asdict(runs.BASE),
            "betas": list(betas),
            "horizon": HORIZON,
            "population tolerance": tolerance,
        },
        (_figure(flows, symmetric["saddle_rate"]),),
    )


def _symmetric(path: Trajectory, tolerance: float) -> dict[str, float]:
    """Return how far rounding breaks the symmetry, and the eigenvalues at the saddle point."""
    manifold = SlowManifold(runs.population(path.problem, tolerance))
    alpha = runs.quasi_steady_alpha(path.problem, tolerance)
    rates = np.linalg.eigvals(manifold.jacobian(State(alpha, 0.0, 0.0))).real
    return {
        "beta": 0.0,
        "largest_gap": np.abs(path.gamma - path.rho).max(),
        "largest_G_change": np.abs(path.attention[:, 3] - path.problem.C).max(),
        "risk": path.loss[-1],
        "saddle_rate": rates.max(),
        "second_rate": rates.min(),
    }


def _broken(beta: float, path: Trajectory) -> dict[str, float]:
    """Return the time at which patch association starts, and its growth rate, for beta > 0."""
    difference = path.gamma - path.rho
    return {
        "beta": beta,
        "started": first_passage(path, lambda state: state.gamma - state.rho, STARTED),
        "final_gap": np.abs(difference).max(),
        "risk": path.loss[-1],
        "growth_rate": _growth_rate(path.time, difference, beta),
    }


def _growth_rate(time: Any, difference: Any, beta: float) -> float:
    """Return the slope of log(gamma - rho) against time between 10 beta and 1e-2, or NaN.

    In this range the growth is exponential, at the rate of the saddle point. Below it beta drives
    gamma - rho, so that the growth is linear in time. For larger beta there is no such range.
    """
    small = (difference > 10.0 * max(beta, 1e-6)) & (difference < 1e-2)
    if small.sum() < 3:
        return math.nan
    return float(np.polyfit(time[small], np.log(difference[small]), 1)[0])


def _figure(flows: Mapping[float, Trajectory], rate: float) -> Figure:
    return report_figure(
        "symmetry-breaking",
        "sigma_A breaks the symmetry",
        f"gamma - rho along the flow of {runs.describe(runs.BASE)} but for beta = sigma_A, as "
        "labelled. At beta = 0 it is zero up to rounding and below the frame. Dashed: growth at "
        "the largest eigenvalue of the saddle, for the smallest beta.",
        _draw,
        _data(flows, rate),
        (7.0, 3.4),
    )


def _data(flows: Mapping[float, Trajectory], rate: float) -> xarray.Dataset:
    """Return gamma - rho (beta, time) and the growth rate at the saddle."""
    horizon = min(float(path.time[-1]) for path in flows.values())
    times = np.geomspace(1e0, horizon, 301)
    rows = [[state[1] - state[2] for state in map(path.at, times)] for path in flows.values()]
    return xarray.Dataset(
        {"difference": (("beta", "time"), np.array(rows))},
        coords={"beta": list(flows), "time": times},
        attrs={"rate": rate},
    )


@styled
def _draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw gamma - rho for each positive beta, and exponential growth at the saddle point."""
    ax = figure.subplots()
    artists: dict[str, Any] = {}
    positive = [beta for beta in data["beta"].values.tolist() if beta > 0.0]
    for number, beta in enumerate(positive):
        style = PROBLEM_STYLES[number % len(PROBLEM_STYLES)]
        label = rf"$\beta={_power(beta)}$"
        difference = data["difference"].sel(beta=beta)
        artists[label] = ax.plot(data["time"], difference, label=label, **style)[0]
    time, rate = data["time"].values, data.attrs["rate"]
    curve = data["difference"].sel(beta=positive[0]).values
    anchor = int(np.searchsorted(curve, 1e-4))
    growing = (curve > 1e-7) & (curve < 1.0)
    ax.plot(
        time[growing],
        curve[anchor] * np.exp(rate * (time[growing] - time[anchor])),
        label="saddle",
        **(REFERENCE | {"linewidth": 1.3}),
    )
    ax.set(yscale="log", ylim=(_LOWEST, 10.0), ylabel=r"$\gamma-\rho$")
    log_time(ax, time, first=float(time[0]))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return artists


def _power(beta: float) -> str:
    """Return a number in mathematical type, as a power of ten if it is one."""
    exponent = round(np.log10(beta))
    return rf"10^{{{exponent}}}" if np.isclose(beta, 10.0**exponent) else f"{beta:g}"


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    symmetric, broken = tables["sigma_A = 0"].data.iloc[0], tables["sigma_A > 0"].data
    fitted = broken.growth_rate.dropna()
    return {
        "gap": max(symmetric.largest_gap, TOLERANCE),
        "rates": ", ".join(f"{rate:.3g} at {beta:g}" for beta, rate in fitted[:1].items())
        or "not fitted",
        "saddle": symmetric.saddle_rate,
    }


SYMMETRIC = Table(
    index=("beta",),
    columns={
        "largest_gap": Column("largest |gamma - rho| over the run", atol=TOLERANCE),
        "largest_G_change": Column("largest |G - C| over the run", atol=TOLERANCE),
        "risk": Column("population risk at the end"),
        "saddle_rate": Column("growth rate at the saddle (largest eigenvalue)"),
        "second_rate": Column("second eigenvalue at the saddle", rtol=1e-3),
    },
    strict={
        "gamma = rho at all times": lambda t: t.largest_gap <= TOLERANCE,
        "G = C at all times": lambda t: t.largest_G_change <= TOLERANCE,
    },
)
BROKEN = Table(
    index=("beta",),
    columns={
        "started": Column(f"time at which gamma - rho > {STARTED}", "flow time", missing="never"),
        "final_gap": Column("gamma - rho at the end"),
        "risk": Column("population risk at the end"),
        "growth_rate": Column("fitted growth rate of gamma - rho", missing="not fitted"),
    },
    strict={"patch association starts": lambda t: t.started.notna()},
)

CLAIM = Claim(
    id="sigma-a-breaks-symmetry",
    place="Parametrization 3.1 and Event II (Section 4.1)",
    statement=(
        "Because of the initialization (sigma_A > 0) and the data structure there is patch "
        "association; at sigma_A = 0 and A_ij = 0 nothing distinguishes the patches of a set from "
        "others."
    ),
    method=(
        "gamma - rho and G at sigma_A = 0 over time 1e6, when association starts for small sigma_A "
        "> 0, and its growth rate against the eigenvalue of the symmetric saddle."
    ),
    criterion=(
        "At sigma_A = 0 and A_ij = 0 the patches are exchangeable, an exact symmetry of the flow: "
        "gamma - rho and G - C may differ from 0 by rounding alone (1e-12) up to flow time 1e6. At "
        "each sigma_A > 0 gamma - rho must exceed 0.1 within the same time (the time located on "
        "the dense output). Anything else: fails. Nothing is sampled."
    ),
    tables={"sigma_A = 0": SYMMETRIC, "sigma_A > 0": BROKEN},
    measure=measure,
    headline=headline,
    finding=(
        "At sigma_A = 0 |gamma - rho| stays below {gap:.0e}; growth rates: {rates}, at the saddle "
        "{saddle:.3g}."
    ),
    tolerance=TOLERANCE,
    quick_note="three positive values of sigma_A instead of four, population tolerance 1e-5",
    assumptions="gradient flow under the certified expectation, its Jacobian",
)
