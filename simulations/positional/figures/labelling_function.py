"""The error of the labelling function against D: its size, and as a power of D."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled

_SHOWN = 2  # k of panel (a)
_LEAST = 1e-60  # of the axis of panel (a)
_POWERS = (1, 3)
_MOST_POWER = 10.0  # of the axis of panel (b)


def _mathematical(law: str) -> str:
    """Return the name of a law of C in mathematical type."""
    typed = law.replace("log", r"\log ").replace("sqrt(", r"\sqrt{").replace(")", "}")
    return f"${typed}$"


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both panels."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    ks = data["k"].values.tolist()
    for number, law in enumerate(data["law"].values):
        look = PROBLEM_STYLES[number]
        one = data.sel(law=law, k=_SHOWN)
        label = _mathematical(str(law))
        artists[str(law)] = left.plot(one["D"], one["error"], marker=".", label=label, **look)[0]
        for shade, k in enumerate(ks):
            some = data.sel(law=law, k=k)
            opacity = (shade + 1.0) / len(ks)
            right.plot(some["D"], some["exponent"], **look | {"alpha": opacity, "linewidth": 1.3})
        sizes = data["C"].sel(law=law).values
        known = sizes[np.isfinite(sizes)]
        if (known == known[0]).all():
            right.axhline(known[0] - 1.0, **REFERENCE | {"linestyle": (0, (1, 2))})
    D = np.array([data["D"].min(), data["D"].max()])
    for power in _POWERS:
        left.plot(D, D ** -float(power), color="#BBBBBB", linewidth=1.0, zorder=0)
        left.annotate(
            f"$D^{{-{power}}}$",
            (D[1], D[1] ** -float(power)),
            xytext=(2, 0),
            textcoords="offset points",
            va="center",
            color="#777777",
            fontsize=9,
        )
    left.set(xscale="log", yscale="log", ylim=(_LEAST, 1.0), xlabel="$D$")
    left.set_ylabel(r"$P[y f^*\leq 0]$ at $q=C^2/D$")
    right.set(xscale="log", ylim=(0.0, _MOST_POWER), xlabel="$D$", ylabel=r"$-\log P\,/\,\log D$")
    for letter, ax in zip("ab", (left, right)):
        ax.set_xlim(D[0], D[1])
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=5)
    return artists
