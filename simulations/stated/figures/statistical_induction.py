"""Statistical induction heads: loss, shoulder at the unigram loss, and share of lag 1."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, pretty, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the loss for one size, the scaled loss for all, and the first layer."""
    axes = figure.subplots(1, 3)
    left, middle, right = axes
    artists: dict[str, Any] = {}
    (artists["loss"],) = left.plot(data["time"], data["loss"], color=PROBLEM_STYLES[0]["color"])
    for name, level in zip(data["name"].values, data["level"].values):
        left.axhline(level, **REFERENCE)
        left.annotate(str(name), (float(data["time"][0]), level), xytext=(3, 3),
                      textcoords="offset points")  # fmt: skip
    left.set(ylabel="cross-entropy (nats)")
    for number, size in enumerate(data["size"].values):
        rows = data.sel(size=size)
        style = PROBLEM_STYLES[number % len(PROBLEM_STYLES)]
        (artists[str(size)],) = middle.plot(
            data["time"], rows["part"], label=pretty(str(size)), **style
        )
        at = int(np.argmax(rows["part"].values <= float(rows["unigram"])))
        middle.plot(data["time"][at], rows["unigram"], "o", color=style["color"], ms=6)
    middle.set(ylabel="loss, from bigram (0) to uniform (1)")
    middle.legend(loc="lower left")
    for number, run in enumerate(data["run"].values):
        (artists[str(run)],) = right.plot(
            data["time"], data["share"].sel(run=run), label=str(run), **PROBLEM_STYLES[number]
        )
    right.axhline(0.5, **REFERENCE)
    right.set(ylabel="share of lag 1 in the first layer", ylim=(0.0, 1.0))
    right.legend(loc="upper left")
    for ax in axes:
        ax.set(xscale="log", xlabel="flow time")
    panel_letters(axes)
    return artists
