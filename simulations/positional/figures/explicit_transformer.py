"""Figure of Theorem 3.2: scores without own-set attention, errors, and Gram matrix margins."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled

RULES = ("own set", "next set", "own set and twin", "uniform weights")


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both score matrices, the errors against D, and the margins of Gram matrices."""
    panels = figure.subplots(2, 2)
    artists: dict[str, Any] = {}
    titles = (r"$A$, free: rows attend to the next set", r"$A=P^\top P$: twin sets")
    for ax, name, title in zip(panels[0], data["scores"].values, titles):
        A = data["A"].sel(scores=name)
        artists[str(name)] = ax.imshow(A, cmap="cividis", interpolation="nearest")
        for edge in np.arange(0, len(A) + 1, data.attrs["set_size"]) - 0.5:
            ax.axhline(edge, color="white", linewidth=0.6)
            ax.axvline(edge, color="white", linewidth=0.6)
        ticks = range(0, len(A), data.attrs["set_size"])
        ax.set(title=title, xlabel="patch $j$", ylabel="patch $i$", xticks=ticks, yticks=ticks)
        bar = figure.colorbar(artists[str(name)], ax=ax, shrink=0.9)
        bar.set_label("$A_{ij}$")
    _draw_errors(panels[1, 0], data, artists)
    _draw_margins(panels[1, 1], data, artists)
    panel_letters(panels.flat)
    return artists


def _draw_errors(ax: Any, data: xarray.Dataset, artists: dict[str, Any]) -> None:
    """Draw the errors at D = 16 C^2, q = C^2/D, against D."""
    styles = ({"marker": "o"}, {"marker": "x", "markersize": 9}, {"marker": "s"}, {"marker": "^"})
    for number, rule in enumerate(RULES):
        artists[rule] = ax.plot(
            data["D"],
            data["error"].sel(rule=rule),
            label=rule,
            **PROBLEM_STYLES[number],
            **styles[number],
        )
    ax.set(
        xscale="log", yscale="log", xlabel="$D$  ($D=16C^2$, $q=C^2/D$)", ylabel=r"$P[f^*F\leq 0]$"
    )
    ticks = np.unique(data["D"].values).tolist()
    ax.set_xticks(ticks, [str(D) for D in ticks])
    ax.minorticks_off()
    ax.legend(loc="lower left", title="rows attend to")


def _draw_margins(ax: Any, data: xarray.Dataset, artists: dict[str, Any]) -> None:
    """Draw the smallest margins of random and of optimized encodings, ordered by size."""
    groups = (
        ("random $P$", data["random_margin"].values, "#777777"),
        ("optimized", data["optimized"].sel(diagonal="included").values, "#4477AA"),
        (
            "optimized,\nwithout $A_{ii}$",
            data["optimized"].sel(diagonal="excluded").values,
            "#EE6677",
        ),
    )
    for position, (_, values, colour) in enumerate(groups):
        ranked = np.sort(values[np.isfinite(values)])
        x = position + 0.6 * (np.arange(ranked.size) + 0.5) / ranked.size - 0.3
        artists[f"margin {position}"] = ax.plot(x, ranked, ".", color=colour)
    ax.axhline(0.0, **REFERENCE)
    ax.set_xticks(range(3), [name for name, _, _ in groups])
    ax.set(
        xlabel="encodings $P$, one point each", ylabel="smallest own-set margin", ylim=(-1.15, 1.15)
    )
