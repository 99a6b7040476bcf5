"""Training on finite samples: Figure 4's panels, and the control behind Theorem 4.2."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import COLOURS, REFERENCE, panel_letters, styled

_CONTROL = {"color": "#555555", "linestyle": (0, (4, 2)), "linewidth": 1.4}


@styled
def draw_figure_4(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw mask, learned A, test error and cosine, one row of panels a setting."""
    rows = data.sizes["setting"]
    panels = np.atleast_2d(
        figure.subplots(rows, 4, gridspec_kw={"width_ratios": [1, 1.15, 1.35, 1.35]})
    )
    artists: dict[str, Any] = {}
    for number, line in enumerate(panels):
        one = data.isel(setting=number)
        name = str(one["setting"].values)
        artists[f"mask {name}"] = line[0].imshow(
            1 - one[f"mask_{number}"].values, cmap="gray", vmin=-0.8, vmax=1.0
        )
        off = one[f"A_{number}"].values.copy()
        np.fill_diagonal(off, np.nan)
        image = line[1].imshow(off, cmap="cividis", interpolation="nearest")
        line[1].set_facecolor("#BBBBBB")
        artists[f"A {name}"] = image
        figure.colorbar(image, ax=line[1], shrink=0.75, pad=0.03).ax.tick_params(labelsize=8)
        _band(line[2], one, "test_error", "test error")
        _band(line[2], one, "control", "A put back", **_CONTROL)
        _band(line[3], one, "cosine", "cosine", color=COLOURS["alpha"])
        line[2].set_ylim(bottom=0.0, top=0.53)
        line[3].set_ylim(min(0.0, float(one["cosine"].min()) - 0.03), 1.04)
        for ax in line[:2]:
            ax.set_xticks(ax.get_yticks()[1:-1])
            ax.set(xlabel="patch $j$", ylabel="patch $i$")
        for ax in line[2:]:
            ax.set_xlabel("step")
            ax.set_xscale("symlog", linthresh=1.0, linscale=0.3)
            ax.set_xlim(0.0, float(one["step"].max()))
        line[2].set_ylabel(r"test error $P[yF\leq 0]$")
        line[3].set_ylabel(r"cosine of $v$ and $w^*$")
        line[2].legend(loc="upper right")
        line[0].set_title(name, loc="left", fontsize=10)
    panel_letters(panels.flat)
    return artists


@styled
def draw_control(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw test error with its control, and patch association with the cosine, by setting."""
    panels = figure.subplots(2, data.sizes["setting"], sharex="col", sharey="row")
    artists: dict[str, Any] = {}
    for number, (above, below) in enumerate(panels.T):
        one = data.isel(setting=number)
        artists[f"error {number}"] = _band(above, one, "test_error", "test error")
        _band(above, one, "control", "same $v$, A put back", **_CONTROL)
        if np.isfinite(one["best"]) and float(one["best"]) > 1e-4:
            above.axhline(float(one["best"]), label="best possible", **REFERENCE | {"lw": 0.8})
        above.set(yscale="log", title=str(one["setting"].values))
        artists[f"association {number}"] = _band(
            below, one, "association", "rows associated", color=COLOURS["gamma"]
        )
        _band(below, one, "cosine", "cosine", color=COLOURS["alpha"], ls="--")
        below.set_xlabel("step")
        below.set_xscale("symlog", linthresh=1.0, linscale=0.3)
        below.set(xlim=(0.0, float(one["step"].max())), ylim=(-0.04, 1.06))
    panels[0, 0].set(ylim=(1e-3, 1.0), ylabel=r"test error $P[yF\leq 0]$")
    panels[1, 0].set_ylabel("fraction of rows, cosine")
    entries: dict[str, Any] = {}
    for ax in panels.flat:
        entries |= dict(zip(*reversed(ax.get_legend_handles_labels())))
    figure.legend(entries.values(), entries.keys(), loc="outside upper left", ncols=5)
    panel_letters(panels.flat)
    return artists


def _band(ax: Any, one: xarray.Dataset, name: str, label: str, **style: Any) -> Any:
    """Plot the mean over runs and the range between the lowest and the highest run."""
    values = one[name].values
    step = one["every_step" if name == "association" else "step"].values.astype(float)
    known = np.isfinite(values).any(axis=0)
    values, step = values[np.isfinite(values).any(axis=1)][:, known], step[known]
    style = {"color": COLOURS["test_error"]} | style
    ax.fill_between(step, values.min(0), values.max(0), color=style["color"], alpha=0.2, lw=0)
    return ax.plot(step, values.mean(0), label=label, **style)[0]
