"""Theorem 4.1: the conclusion on problems inside its hypotheses, and where problems lie."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled

_MARKERS = {2: "^", 3: "s", 4: "o"}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both panels."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    D = np.unique(data["D"].values)
    for number, density in enumerate(np.unique(data["qD"].values)):
        one = data.isel(problem=(data["qD"] == density).values)
        look = PROBLEM_STYLES[number]
        for power in data["power"].values.tolist():
            label = rf"$qD={density:g}$, $t=D^{power}$"
            artists[label] = left.plot(
                one["D"],
                one["disagreement"].sel(power=power),
                marker=_MARKERS.get(power, "o"),
                markersize=4,
                label=label,
                **look | {"linewidth": 1.2},
            )[0]
        right.plot(
            one["q"],
            one["label_excess"],
            "o",
            color=look["color"],
            markersize=5,
            label=f"$qD={density:g}$",
        )
    artists["small"] = left.plot(D, 1.0 / D, **REFERENCE)[0]
    left.annotate(
        "$1/D$", (D[0], 1.0 / D[0]), xytext=(2, 4), textcoords="offset points", fontsize=9
    )
    left.set(xscale="log", yscale="log", xlabel="$D$", ylabel=r"bound on $P[f^*F\leq 0]$")
    left.set_xticks(D, [str(size) for size in D])
    left.set_xticks([], minor=True)
    right.plot(
        data["q_outside"],
        data["label_excess_outside"],
        "x",
        color="#222222",
        markersize=6,
        label="named",
    )
    right.set(xscale="log", yscale="log", xlabel="$q$")
    right.set_ylabel(rf"$d^{data.attrs['label_power']}\,P[y f^*\leq 0]$")
    (low, _), (bottom, _) = right.get_xlim(), right.get_ylim()
    right.fill_between(
        [low, data.attrs["much_less"]], bottom, 1.0, color="#009E73", alpha=0.12, linewidth=0
    )
    right.set(xlim=(low, 1.0), ylim=(bottom, right.get_ylim()[1]))
    right.legend(loc="lower right", handlelength=1.0)
    panel_letters((left, right))
    drawn = [artist for name, artist in artists.items() if name != "small"]
    figure.legend(handles=drawn, loc="outside upper center", ncols=3)
    return artists
