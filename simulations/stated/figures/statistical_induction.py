"""Statistical induction heads: loss, depth of the unigram shoulder, and share of lag 1."""

from typing import Any

import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, pretty, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw losses from two starts, the depth of their shoulders, and the first layer."""
    left, middle, right = axes = figure.subplots(1, 3)
    artists: dict[str, Any] = {}
    for name, level in zip(data["name"].values, data["level"].values):
        left.axhline(level, **REFERENCE)
        below = name == "bigram"
        left.annotate(str(name), (1.0, level), xycoords=("axes fraction", "data"),
                      xytext=(-2, -3 if below else 3), textcoords="offset points", ha="right",
                      va="top" if below else "bottom")  # fmt: skip
    for number, start in enumerate(data["start"].values):
        rows, style = data.sel(start=start), PROBLEM_STYLES[number]
        label = pretty(str(start))
        (artists[str(start)],) = left.plot(rows["time"], rows["loss"], label=label, **style)
        left.plot(rows["shoulder_time"], rows["shoulder_loss"], "o", color=style["color"], ms=6)
        middle.plot(data["T"], rows["depth"], marker="o", label=label, **style)
    left.set(ylabel="cross-entropy (nats)", xscale="log", xlabel="flow time")
    left.margins(y=0.1)
    left.legend(loc="upper right", bbox_to_anchor=(1.0, 0.9))
    middle.axhline(0.5, **REFERENCE)
    middle.set(xlabel="tokens $T$", ylabel="rate at the shoulder / smaller peak", ylim=(0.0, 1.05))
    middle.set_xticks(data["T"].values)
    middle.legend(loc="lower left")
    for number, run in enumerate(data["run"].values):
        rows = data.sel(run=run)
        (artists[str(run)],) = right.plot(
            rows["run_time"], rows["share"], label=str(run), **PROBLEM_STYLES[number]
        )
    right.axhline(0.5, **REFERENCE)
    right.set(xscale="log", xlabel="flow time", ylabel="share of lag 1 in the first layer")
    right.set(ylim=(0.0, 1.0))
    right.legend(loc="upper left")
    panel_letters(axes)
    return artists
