"""Attention logits with the diagonal of A frozen and trained."""

from typing import Any

import xarray
from matplotlib.lines import Line2D

from simulations.figures.style import (
    COLOURS,
    LABELS,
    REFERENCE,
    log_time,
    panel_letters,
    problem_style,
    styled,
)

DIAGONALS = ("frozen", "trained")
_DASHES: dict[str, Any] = {"frozen": (0, (4, 2)), "trained": "-"}
FIRST, POINTS, _LINEAR = 1e-2, 301, 0.1
#: Order parameters.
NAMES = ("alpha", "gamma", "rho", "beta")


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the logits of the first problem, and min(beta, gamma) - rho of every problem."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    first = data.isel(problem=0)
    for diagonal in DIAGONALS:
        for name in NAMES[1:]:
            artists[f"{diagonal} {name}"] = left.plot(
                first["time"],
                first[name].sel(diagonal=diagonal),
                color=COLOURS[name],
                linestyle=_DASHES[diagonal],
                label=LABELS[name] if diagonal == "trained" else None,
            )[0]
    left.set_ylabel("attention logits")
    log_time(left, first["time"], first=FIRST)
    left.legend(loc="upper left", labelcolor="linecolor")
    entries = []
    for number, name in enumerate(data["problem"].values):
        problem = data.isel(problem=number)
        smaller = problem["beta"].where(problem["beta"] < problem["gamma"], problem["gamma"])
        gap = smaller - problem["rho"]
        style = problem_style(number, str(name))
        for diagonal in DIAGONALS:
            curve = right.plot(
                problem["time"],
                gap.sel(diagonal=diagonal),
                color=style["color"],
                linestyle=_DASHES[diagonal],
                linewidth=1.3,
                label=style["label"],
            )[0]
            artists[f"{diagonal} {name}"] = curve
        entries.append(curve)
    right.set_yscale("symlog", linthresh=_LINEAR, linscale=0.6)
    right.set_yticks([-10, -1, -0.1, 0, 0.1, 1, 10])
    right.axhline(0.0, **REFERENCE | {"linewidth": 0.6, "linestyle": "-"})
    right.set_ylabel(r"$\min(\beta,\gamma)-\rho$")
    log_time(right, data["time"], first=FIRST)
    panel_letters((left, right))
    entries += [
        Line2D([], [], color="#333333", linestyle=_DASHES[diagonal], label=f"diagonal {diagonal}")
        for diagonal in DIAGONALS[::-1]
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=2)
    return artists
