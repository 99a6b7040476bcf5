"""Training from other starts of the scores: random draws, and encodings P trained themselves."""

import textwrap
from typing import Any

import numpy as np
import xarray

from simulations.figures.style import COLOURS, PROBLEM_STYLES, panel_letters, styled


@styled
def draw_draws(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the share over time by start, the share by D from the draw, the test errors."""
    left, middle, right = figure.subplots(1, 3)
    artists = _courses(left, data)
    places = [str(name) for name in data["place"].values]
    for name, mark, shift, label in (("best", "^", -0.12, "best step"), ("end", "o", 0.12, "end")):
        x = np.arange(len(places)) + shift
        artists[name] = middle.plot(
            np.broadcast_to(x[:, None], data[name].shape).ravel(),
            data[name].values.ravel(),
            mark,
            color=COLOURS["gamma" if name == "best" else "test_error"],
            alpha=0.6,
            label=label,
        )[0]
    middle.set_xticks(range(len(places)), [_broken(name) for name in places])
    middle.set(xlim=(-0.5, len(places) - 0.5), ylim=(-0.04, 1.04), ylabel="rows associated, $c=1$")
    middle.set_xlabel("problem")
    artists |= _errors(right, data)
    figure.legend(*_merged(left, middle), loc="outside upper left", ncols=len(data["start"]) + 2)
    panel_letters((left, middle, right))
    return artists


@styled
def draw_encodings(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the share over time by what is trained, the learned P^T P, the test errors."""
    left, middle, right = figure.subplots(1, 3)
    artists = _courses(left, data)
    off = data["A"].values.copy()
    np.fill_diagonal(off, np.nan)
    artists["A"] = middle.imshow(off, cmap="cividis", interpolation="nearest")
    middle.set_facecolor("#BBBBBB")
    middle.set(xlabel="patch $j$", ylabel="patch $i$")
    bar = figure.colorbar(artists["A"], ax=middle, shrink=0.8, pad=0.03)
    bar.set_label(r"$\langle p_i,p_j\rangle$")
    artists |= _errors(right, data)
    figure.legend(*_merged(left), loc="outside upper left", ncols=4)
    panel_letters((left, middle, right))
    return artists


def _courses(ax: Any, data: xarray.Dataset) -> dict[str, Any]:
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["start"].values):
        values = data["share"].sel(start=name).values
        step = np.arange(values.shape[1])
        style = PROBLEM_STYLES[number % len(PROBLEM_STYLES)]
        ax.fill_between(step, values.min(0), values.max(0), color=style["color"], alpha=0.15, lw=0)
        artists[str(name)] = ax.plot(step, values.mean(0), label=_typeset(name), **style)[0]
    ax.set(ylim=(-0.04, 1.04), xlim=(0, values.shape[1] - 1), xlabel="step")
    ax.set_ylabel("rows associated")
    return artists


def _errors(ax: Any, data: xarray.Dataset) -> dict[str, Any]:
    """Draw the test error of every run, a column and a bar at the mean for each start."""
    artists: dict[str, Any] = {}
    for number, values in enumerate(data["error"].values):
        colour = PROBLEM_STYLES[number % len(PROBLEM_STYLES)]["color"]
        artists[f"error {number}"] = ax.plot(
            np.full(values.size, number), values, "o", color=colour, alpha=0.6
        )[0]
        ax.hlines(values.mean(), number - 0.3, number + 0.3, color=colour)
    names = [_broken(str(name)) for name in data["start"].values]
    ax.set_xticks(range(len(names)), names)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_ylim(bottom=0.0)
    ax.set(xlabel="start", ylabel=r"test error $P[yF\leq 0]$")
    return artists


def _broken(name: str) -> str:
    """Break a label in lines at its comma or within a dozen characters."""
    if ", " in name:
        return name.replace(", ", "\n", 1)
    return _typeset("\n".join(textwrap.wrap(name, 11)))


def _typeset(name: str) -> str:
    return str(name).replace("P^T P", r"$P^\top P$")


def _merged(*panels: Any) -> tuple[list[Any], list[str]]:
    entries: dict[str, Any] = {}
    for ax in panels:
        entries |= dict(zip(*reversed(ax.get_legend_handles_labels())))
    return list(entries.values()), list(entries)
