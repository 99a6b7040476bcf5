"""Training from other starts of the scores: random scores, and trained encodings P."""

import textwrap
from typing import Any

import numpy as np
import xarray

from simulations.figures.style import (
    COLOURS,
    PROBLEM_STYLES,
    legend_entries,
    mean_and_range,
    off_diagonal_image,
    panel_letters,
    styled,
)


@styled
def draw_random(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the share over time by start, the share by problem from random scores, and errors."""
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.0, 1.0, 1.15))
    artists = _shares(left, data)
    problems = [str(name) for name in data["problem"].values]
    for name, mark, shift, label in (("best", "^", -0.12, "best step"), ("end", "o", 0.12, "end")):
        x = np.arange(len(problems)) + shift
        artists[name] = middle.plot(
            np.broadcast_to(x[:, None], data[name].shape).ravel(),
            data[name].values.ravel(),
            mark,
            color=COLOURS["gamma" if name == "best" else "test_error"],
            alpha=0.6,
            label=label,
        )[0]
    middle.set_xticks(range(len(problems)), [_in_lines(name) for name in problems])
    middle.set(
        xlim=(-0.5, len(problems) - 0.5), ylim=(-0.04, 1.04), ylabel="rows associated, $c=1$"
    )
    middle.set_xlabel("problem")
    artists |= _errors(right, data)
    figure.legend(
        *legend_entries((left, middle)), loc="outside upper left", ncols=len(data["start"]) + 2
    )
    panel_letters((left, middle, right))
    return artists


@styled
def draw_encodings(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the share over time by start, the learned P^T P, and the test errors."""
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.0, 1.0, 1.15))
    artists = _shares(left, data)
    artists["A"] = off_diagonal_image(middle, data["A"].values)
    middle.set(xlabel="patch $j$", ylabel="patch $i$")
    bar = figure.colorbar(artists["A"], ax=middle, shrink=0.8, pad=0.03)
    bar.set_label(r"$\langle p_i,p_j\rangle$")
    artists |= _errors(right, data)
    figure.legend(*legend_entries((left,)), loc="outside upper left", ncols=4)
    panel_letters((left, middle, right))
    return artists


def _shares(ax: Any, data: xarray.Dataset) -> dict[str, Any]:
    """Draw the share of associated rows over time, mean and range, for each start."""
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["start"].values):
        values = data["share"].sel(start=name).values
        step = np.arange(values.shape[1])
        style = PROBLEM_STYLES[number % len(PROBLEM_STYLES)]
        artists[str(name)] = mean_and_range(
            ax, step, values, alpha=0.15, label=_typeset(name), **style
        )
    ax.set(ylim=(-0.04, 1.04), xlim=(0, values.shape[1] - 1), xlabel="step")
    ax.set_ylabel("rows associated")
    return artists


def _errors(ax: Any, data: xarray.Dataset) -> dict[str, Any]:
    """Draw the test error of every run and a bar at the mean, one column per start."""
    artists: dict[str, Any] = {}
    for number, values in enumerate(data["error"].values):
        colour = PROBLEM_STYLES[number % len(PROBLEM_STYLES)]["color"]
        artists[f"error {number}"] = ax.plot(
            np.full(values.size, number), values, "o", color=colour, alpha=0.6
        )[0]
        ax.hlines(values.mean(), number - 0.3, number + 0.3, color=colour)
    names = [_in_lines(str(name)) for name in data["start"].values]
    ax.set_xticks(range(len(names)), names)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_ylim(bottom=0.0)
    ax.set(xlabel="start", ylabel=r"test error $P[yF\leq 0]$")
    return artists


def _in_lines(name: str) -> str:
    """Return a label in several lines, broken at its comma or after at most 9 characters."""
    if ", " in name:
        return name.replace(", ", "\n", 1)
    return _typeset("\n".join(textwrap.wrap(name, 9)))


def _typeset(name: str) -> str:
    """Return a label with P^T P in mathematical type."""
    return str(name).replace("P^T P", r"$P^\top P$")
