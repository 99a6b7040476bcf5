"""The softmax of the attention matrix at the start and at the end of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from matplotlib.colors import LogNorm

from dynamics import Problem, State, Trajectory, attention
from simulations.figures.style import styled


def gather(run: Trajectory) -> xarray.Dataset:
    """Return S (moment, row, column) with contiguous sets, at the first and the last record."""
    problem = run.problem
    moments = [run.states[0], run.states[-1]]
    return xarray.Dataset(
        {
            "S": (
                ("moment", "row", "column"),
                np.stack([softmax_matrix(problem, State(*row.tolist())) for row in moments]),
            ),
            "G": ("moment", [attention(problem, State(*row.tolist())).G for row in moments]),
        },
        coords={"moment": ["before", "after"], "time": ("moment", run.time[[0, -1]])},
        attrs={"C": problem.C},
    )


def softmax_matrix(problem: Problem, state: State) -> np.ndarray:
    """Return S (D, D) on the invariant manifold, sets being contiguous blocks."""
    Lambda, Gamma, Xi, _ = attention(problem, state)
    owner = np.arange(problem.D) // problem.C
    S = np.where(owner[:, None] == owner, Gamma, Xi)
    np.fill_diagonal(S, Lambda)
    return S


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both matrices with one colour bar."""
    panels = figure.subplots(1, 2, sharey=True)
    low, high = float(data["S"].min()), float(data["S"].max())
    artists: dict[str, Any] = {}
    for ax, moment in zip(panels, data["moment"].values):
        one = data.sel(moment=moment)
        artists[str(moment)] = ax.imshow(
            one["S"], norm=LogNorm(low, high), cmap="cividis", interpolation="nearest"
        )
        time = float(one["time"])
        when = "0" if time == 0.0 else rf"10^{{{np.log10(time):.3g}}}"
        ax.set_title(rf"$t={when}$:  $G={float(one['G']):.3g}$")
        ax.set_xlabel("patch $j$")
        for spine in ax.spines.values():
            spine.set_visible(False)
    panels[0].set_ylabel("patch $i$")
    bar = figure.colorbar(artists["after"], ax=panels, shrink=0.9)
    bar.set_label(r"$S_{ij}$")
    artists["colour bar"] = bar
    return artists
