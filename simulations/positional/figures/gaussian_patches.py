"""Figure 2: test error on Gaussian patches, and whether P^T P shows the sets."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw test errors, the sets, two learned P^T P, and test error against AUC of all runs."""
    panels = figure.subplot_mosaic([["error", "sets", "first"], ["runs", "runs", "second"]])
    artists: dict[str, Any] = {}
    names = [str(name) for name in data["architecture"].values]
    shown = (names[0], names[1])
    for number, name in enumerate(shown):
        runs = data.sel(architecture=name)
        test_error = runs["test_error"].dropna("run", how="all")
        style = PROBLEM_STYLES[number]
        panels["error"].fill_between(
            runs["step"],
            test_error.min("run"),
            test_error.max("run"),
            color=style["color"],
            alpha=0.25,
            linewidth=0,
        )
        artists[name] = panels["error"].plot(
            runs["step"], test_error.median("run"), label=name, **style
        )
    level = float(data["linear"].mean())
    panels["error"].axhline(level, **REFERENCE)
    panels["error"].annotate(
        "best linear rule",
        (1.0, level),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
    )
    panels["error"].set(xlabel="Adam step", ylabel="test error", yscale="log", ylim=(1e-3, 1.0))
    panels["error"].legend(loc="upper right", fontsize=9, handlelength=1.6)
    D, C = data.sizes["row"], data.attrs["C"]
    owner = np.arange(D) // C
    _matrix(panels["sets"], np.where(owner[:, None] == owner, 1.0, 0.0), "the sets")
    for key, name in zip(("first", "second"), shown):
        artists[f"matrix {name}"] = _matrix(
            panels[key], data["gram"].sel(architecture=name).values, f"$P^\\top P$: {name}"
        )
    _draw_runs(panels["runs"], data, level, artists)
    handles, labels = panels["runs"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=1.2)
    for letter, key in zip("abcde", ("error", "sets", "first", "runs", "second")):
        panel_letter(panels[key], letter)
    return artists


def _matrix(ax: Any, matrix: np.ndarray, title: str) -> Any:
    """Show a matrix, with colours scaled to its off-diagonal entries."""
    off = matrix[~np.eye(len(matrix), dtype=bool)]
    image = ax.imshow(
        matrix, vmin=off.min(), vmax=off.max(), cmap="cividis", interpolation="nearest"
    )
    ticks = range(0, len(matrix), max(1, len(matrix) // 4))
    ax.set(xlabel="patch $j$", ylabel="patch $i$", xticks=ticks, yticks=ticks)
    ax.set_title(title, fontsize=9)
    return image


def _draw_runs(ax: Any, data: xarray.Dataset, level: float, artists: dict[str, Any]) -> None:
    """Draw the AUC of P^T P (filled) and of the attention (open) against test error."""
    marks = "osD^vP*X"
    colours = [style["color"] for style in PROBLEM_STYLES] + ["#777777", "#000000"]
    for number, name in enumerate(data["architecture"].values):
        runs, colour = data.sel(architecture=name), colours[number % 8]
        style = {"color": colour, "marker": marks[number % 8], "linestyle": "none", "alpha": 0.8}
        artists[f"runs {name}"] = ax.plot(runs["error"], runs["auc"], label=str(name), **style)
        artists[f"attention {name}"] = ax.plot(
            runs["error"], runs["attention auc"], **style | {"markerfacecolor": "none"}
        )
    ax.axvline(level, **REFERENCE)
    ax.axhline(0.5, **REFERENCE)
    ax.annotate(
        "filled: $P^\\top P$; open: attention", (0.02, 0.04), xycoords="axes fraction", fontsize=9
    )
    ax.set(xscale="log", xlim=(1e-3, 0.5), ylim=(0.2, 1.05), xlabel="test error", ylabel="AUC")
