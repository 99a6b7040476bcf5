"""Figures of gamma >= rho: its violations, and the condition that decides it."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import REFERENCE, log_time, panel_letters, problem_style, styled

#: Values of alpha at which the balance is drawn.
ALPHA = np.geomspace(1e-2, 1.0, 121)
_LINEAR = 1e-6  # gamma - rho is on a linear scale up to this, on a logarithmic one beyond
_NO_VIOLATION = 1e-11  # position of problems without a violation on the logarithmic axis
_LARGEST_RATIO, _SMALLEST_RATIO = 10.0, 0.1


@styled
def draw_violations(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw gamma - rho of all problems against time."""
    ax = figure.subplots()
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["problem"].values):
        difference = data["difference"].isel(problem=number)
        style = problem_style(number, str(name))
        artists[str(name)] = ax.plot(data["time"], difference, **style)[0]
    ax.set_yscale("symlog", linthresh=_LINEAR, linscale=0.6)
    ax.set_yticks([-10, -1e-2, -1e-5, 0, 1e-5, 1e-2, 10])
    ax.set_ylim(-50, 50)
    ax.axhline(0.0, **REFERENCE)
    ax.axhspan(-50, 0, color="#000000", alpha=0.07, linewidth=0)
    ax.set_ylabel(r"$\gamma-\rho$")
    log_time(ax, data["time"], first=1e-3)
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=2)
    return artists


@styled
def draw_condition(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the sign of d(gamma - rho)/dt on gamma = rho, and violations against the condition."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["problem"].values):
        problem = data.isel(problem=number)
        style = problem_style(number, str(name))
        artists[str(name)] = left.plot(data["alpha"], problem["balance"], **style)[0]
        for key, marker in (("start", "o"), ("settled", "D")):
            alpha = float(problem[key])
            height = np.interp(alpha, data["alpha"], problem["balance"])
            left.plot(alpha, height, marker, color=style["color"], markersize=5, zorder=4)
    left.axhline(0.0, **REFERENCE)
    left.set(xscale="log", xlabel=r"$\alpha$", xlim=(ALPHA[0], ALPHA[-1]), ylim=(-1.05, 1.05))
    left.set_ylabel(r"balance of $\frac{d}{dt}(\gamma-\rho)$ on $\gamma=\rho$")
    ratio = np.clip(data["ratio"].values, _SMALLEST_RATIO, _LARGEST_RATIO)
    broken = data["worst"].values > 0.0
    right.plot(
        ratio[~broken],
        np.full((~broken).sum(), _NO_VIOLATION),
        "o",
        mfc="none",
        mec="#0072B2",
        markersize=5,
        label=r"$\gamma\geq\rho$ holds",
    )
    right.plot(
        ratio[broken],
        data["worst"].values[broken],
        "s",
        color="#D55E00",
        markersize=4,
        label=r"$\gamma\geq\rho$ fails",
    )
    right.axvline(1.0, **REFERENCE)
    right.set(xscale="log", yscale="log", ylim=(1e-12, 1e3))
    right.set_xticks([0.1, 1.0, 10.0], [r"$\leq 0.1$", "1", r"$\geq 10$"])
    right.set_xlabel(r"$\max(\alpha(0),\,\alpha^*)\,/\,\alpha_{\mathrm{critical}}$")
    right.set_ylabel(r"largest $\rho-\gamma$")
    right.legend(loc="upper left")
    panel_letters((left, right))
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=2)
    return artists
