"""Flows for D up to a million: when the events happen, and what is reached."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, panel_letter, styled

_MARKERS = ("o", "s", "^", "D")


@styled
def draw_events(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw T1 beside the scaling theory, and the risk at which the second rise ends."""
    rows = figure.subplots(2, data.sizes["qD"], squeeze=False, sharex=True, sharey="row")
    artists: dict[str, Any] = {}
    for column, one in enumerate(data["qD"].values):
        times, risks = rows[:, column]
        for number, scaling in enumerate(data["scaling"].values):
            row, look = data.sel(scaling=scaling, qD=one), _look(number)
            points = look | {"linestyle": "none"}
            lines = look | {"marker": ""}
            artists[f"T1 {scaling} {one}"] = times.plot(
                data["D"], row["T1"], label=pretty_scaling(scaling), **points
            )[0]
            artists[f"theory {scaling} {one}"] = times.plot(data["D"], row["T1_theory"], **lines)[0]
            risks.plot(data["D"], row["risk_after_rise"], **lines)
            for ended in (0.0, 1.0):
                shown = row["risk_after_rise"].where(row["rise_ends"] == ended)
                filled = points | {"fillstyle": "full" if ended else "none"}
                risks.plot(data["D"], shown, **filled)
        times.set(yscale="log", title=rf"$qD={one}$")
        risks.set_yscale("log")
    rows[0, 0].set_ylabel("$T_1$ (learning rate × steps)")
    rows[1, 0].set_ylabel(r"risk when the rise of $\alpha$ ends")
    _finish(rows, figure)
    return artists


@styled
def draw_ends(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the flow time to the goal and the test errors against D."""
    rows = figure.subplots(2, data.sizes["qD"], squeeze=False, sharex=True, sharey="row")
    artists: dict[str, Any] = {}
    for column, one in enumerate(data["qD"].values):
        times, errors = rows[:, column]
        for number, scaling in enumerate(data["scaling"].values):
            row, look = data.sel(scaling=scaling, qD=one), _look(number)
            artists[f"end {scaling} {one}"] = times.plot(
                data["D"], row["end"], label=pretty_scaling(scaling), **look
            )[0]
            for name, fill in (("settled_error", "none"), ("test_error", "full")):
                artists[f"{name} {scaling} {one}"] = errors.plot(
                    data["D"], row[name], **(look | {"fillstyle": fill})
                )[0]
        times.set(yscale="log", title=rf"$qD={one}$")
        errors.set_yscale("log")
    rows[0, 0].set_ylabel("flow time until risk $10^{-3}$")
    rows[1, 0].set_ylabel(r"test error $P[yF\leq 0]$")
    _finish(rows, figure)
    return artists


def pretty_scaling(name: str) -> str:
    """Return the name of a scaling in mathematical type."""
    names = {"nu=D^(-1/2)": r"$\nu=D^{-1/2}$", "nu=1/D": r"$\nu=1/D$", "nu=1/D^2": r"$\nu=1/D^2$",
             "nu=0.01, beta=1": r"$\nu=0.01$, $\beta=1$"}  # fmt: skip
    return names[name]


def _look(number: int) -> dict[str, Any]:
    return {**PROBLEM_STYLES[number], "marker": _MARKERS[number], "markersize": 5}


def _finish(rows: np.ndarray, figure: Any) -> None:
    for letter, ax in zip("abcd", rows.ravel()):
        ax.set_xscale("log")
        panel_letter(ax, letter)
    for ax in rows[-1]:
        ax.set_xlabel("number of patches $D$")
    handles, labels = rows[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
