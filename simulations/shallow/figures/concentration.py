"""How attention concentrates: the slides' curve, plateaus, the rate, what is missing at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from matplotlib.ticker import NullFormatter

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled

_BLUE, _RED, _GREEN = (look["color"] for look in PROBLEM_STYLES[:3])


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the four panels."""
    panels = figure.subplots(2, 2)
    (curve, plateau), (rate, left) = panels
    step = data["iteration"].values
    error = np.abs(np.stack([data["low"], data["high"]]) - data["attention"].values)
    artists = {
        "attention": curve.errorbar(step, data["attention"], error, color=_BLUE, capsize=3,
                                    label="ten seeds, 95 %"),
        "read": curve.plot(step, data["read"], "s", color=_RED, label="read off the slides")[0],
    }  # fmt: skip
    curve.set(xlabel="iteration", ylabel="attention on relevant tokens", ylim=(0.5, 0.95))
    curve.legend(loc="lower right")
    artists["end"] = plateau.plot(data["plateau"], data["end"], "o", color=_BLUE)[0]
    plateau.axline((0.75, 0.75), slope=1.0, **REFERENCE)
    for name, x, y in zip(data["place"].values, data["plateau"].values, data["end"].values):
        right = x < 0.85
        plateau.annotate(str(name), (x, y), xytext=(7 if right else -7, -3), fontsize=8,
                         textcoords="offset points", ha="left" if right else "right")  # fmt: skip
    plateau.set(xlabel=r"$\alpha_*/(\alpha_*+\alpha_\#)$", ylabel="attention of irrelevant queries")
    since = data["since"].values
    artists["left"] = rate.plot(since, data["left"], "o-", color=_GREEN, markersize=3)[0]
    first = float(data["left"][0])
    rate.plot(since, first * since[0] / since, **REFERENCE)
    rate.annotate("$1/t$", (since[-1], first * since[0] / since[-1]), xytext=(-4, 8),
                  textcoords="offset points", color="#555555", ha="right")  # fmt: skip
    rate.set(xscale="log", yscale="log", ylabel="1 - attention")
    rate.xaxis.set_minor_formatter(NullFormatter())
    rate.set_xlabel(r"flow time since attention was $\frac{1}{2}$")
    for name, axis, marker, colour, label in (
        ("by_eta", "eta", "o", _BLUE, r"against $\eta$, $\eta_{KQ}/\eta=30$"),
        ("by_ratio", "ratio", "s", _RED, r"against $\eta_{KQ}/\eta$, $\eta=0.01$"),
    ):
        looks = {"color": colour, "label": label}
        artists[name] = left.plot(data[axis], data[name], marker + "-", **looks)[0]
    ratio = data["ratio"].values
    left.plot(ratio, float(data["by_ratio"][-1]) * ratio[-1] / ratio, **REFERENCE)
    left.set(xscale="log", yscale="log", xlabel=r"$\eta$ or $\eta_{KQ}/\eta$")
    left.set_ylabel("1 - attention at the end")
    left.legend(loc="lower left")
    for letter, ax in zip("abcd", panels.ravel()):
        panel_letter(ax, letter)
    return artists
