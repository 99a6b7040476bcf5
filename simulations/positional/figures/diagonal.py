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

KINDS = ("frozen", "trained")
_DASHES: dict[str, Any] = {"frozen": (0, (4, 2)), "trained": "-"}
FIRST, POINTS, _LINEAR = 1e-2, 301, 0.1
#: Columns of both kinds of run.
NAMES = ("alpha", "gamma", "rho", "beta")


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the logits of the first problem, and the gap of every problem."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    first = data.isel(problem=0)
    for kind in KINDS:
        for name in NAMES[1:]:
            artists[f"{kind} {name}"] = left.plot(
                first["time"],
                first[name].sel(kind=kind),
                color=COLOURS[name],
                linestyle=_DASHES[kind],
                label=LABELS[name] if kind == "trained" else None,
            )[0]
    left.set_ylabel("attention logits")
    log_time(left, first["time"], first=FIRST)
    left.legend(loc="upper left", labelcolor="linecolor")
    entries = []
    for number, name in enumerate(data["problem"].values):
        one = data.isel(problem=number)
        smaller = one["beta"].where(one["beta"] < one["gamma"], one["gamma"])
        gap = smaller - one["rho"]
        style = problem_style(number, str(name))
        for kind in KINDS:
            drawn = right.plot(
                one["time"],
                gap.sel(kind=kind),
                color=style["color"],
                linestyle=_DASHES[kind],
                linewidth=1.3,
                label=style["label"],
            )[0]
            artists[f"{kind} {name}"] = drawn
        entries.append(drawn)
    right.set_yscale("symlog", linthresh=_LINEAR, linscale=0.6)
    right.set_yticks([-10, -1, -0.1, 0, 0.1, 1, 10])
    right.axhline(0.0, **REFERENCE | {"linewidth": 0.6, "linestyle": "-"})
    right.set_ylabel(r"$\min(\beta,\gamma)-\rho$")
    log_time(right, data["time"], first=FIRST)
    panel_letters((left, right))
    entries += [
        Line2D([], [], color="#333333", linestyle=_DASHES[kind], label=f"diagonal {kind}")
        for kind in KINDS[::-1]
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=2)
    return artists
