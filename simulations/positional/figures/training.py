"""Figures of training on finite samples: Figure 4, and the control of Theorem 4.2."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import (
    COLOURS,
    REFERENCE,
    legend_entries,
    mean_and_range,
    off_diagonal_image,
    panel_letters,
    styled,
)

_CONTROL = {"color": "#555555", "linestyle": (0, (4, 2)), "linewidth": 1.4}


@styled
def draw_figure_4(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw mask, learned A, test error and cosine, one row of panels per setting."""
    rows = data.sizes["setting"]
    parts = figure.subfigures(rows, 1, squeeze=False).ravel()
    panels = [part.subplots(1, 4, width_ratios=[1, 1.15, 1.35, 1.35]) for part in parts]
    artists: dict[str, Any] = {}
    for number, row in enumerate(panels):
        setting = data.isel(setting=number)
        name = str(setting["setting"].values)
        artists[f"mask {name}"] = row[0].imshow(
            1 - setting[f"mask_{number}"].values, cmap="gray", vmin=-0.8, vmax=1.0
        )
        image = off_diagonal_image(row[1], setting[f"A_{number}"].values)
        artists[f"A {name}"] = image
        parts[number].suptitle(name, x=0.01, ha="left")
        parts[number].colorbar(image, ax=row[1], shrink=0.75, pad=0.03).ax.tick_params(labelsize=8)
        _band(row[2], setting, "test_error", "test error")
        _band(row[2], setting, "control", "A reset", **_CONTROL)
        _band(row[3], setting, "cosine", "cosine", color=COLOURS["alpha"])
        row[2].set_ylim(bottom=0.0, top=0.53)
        row[3].set_ylim(min(0.0, float(setting["cosine"].min()) - 0.03), 1.04)
        for ax in row[:2]:
            ax.yaxis.get_major_locator().set_params(integer=True)
            ax.set_xticks(ax.get_yticks()[1:-1])
            ax.set(xlabel="patch $j$", ylabel="patch $i$")
        for ax in row[2:]:
            ax.set_xlabel("step")
            ax.set_xscale("symlog", linthresh=1.0, linscale=0.7)
            ax.set_xlim(0.0, float(setting["step"].max()))
        row[2].set_ylabel(r"test error $P[yF\leq 0]$")
        row[3].set_ylabel(r"cosine of $v$ and $w^*$")
        row[2].legend(loc="upper right")
    panel_letters(np.ravel(panels))
    return artists


@styled
def draw_control(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw test error with its control, and patch association with the cosine, by setting."""
    panels = figure.subplots(2, data.sizes["setting"], sharex="col", sharey="row")
    artists: dict[str, Any] = {}
    for number, (above, below) in enumerate(panels.T):
        setting = data.isel(setting=number)
        artists[f"error {number}"] = _band(above, setting, "test_error", "test error")
        _band(above, setting, "control", "same $v$, A reset", **_CONTROL)
        if np.isfinite(setting["best"]) and float(setting["best"]) > 1e-4:
            above.axhline(float(setting["best"]), label="best possible", **REFERENCE | {"lw": 0.8})
        above.set(yscale="log", title=str(setting["setting"].values))
        artists[f"association {number}"] = _band(
            below, setting, "association", "rows associated", color=COLOURS["gamma"]
        )
        _band(below, setting, "cosine", "cosine", color=COLOURS["alpha"], ls="--")
        below.set_xlabel("step")
        below.set_xscale("symlog", linthresh=1.0, linscale=0.3)
        below.set(xlim=(0.0, float(setting["step"].max())), ylim=(-0.04, 1.06))
    panels[0, 0].set(ylim=(1e-3, 1.0), ylabel=r"test error $P[yF\leq 0]$")
    panels[1, 0].set_ylabel("fraction of rows, cosine")
    figure.legend(*legend_entries(panels.flat), loc="outside upper left", ncols=5)
    panel_letters(panels.flat)
    return artists


def _band(ax: Any, setting: xarray.Dataset, name: str, label: str, **style: Any) -> Any:
    """Plot the mean over runs and their range, against step."""
    values = setting[name].values
    step = setting["every_step" if name == "association" else "step"].values.astype(float)
    recorded = np.isfinite(values).any(axis=0)
    values, step = values[np.isfinite(values).any(axis=1)][:, recorded], step[recorded]
    style = {"color": COLOURS["test_error"]} | style
    return mean_and_range(ax, step, values, label=label, **style)
