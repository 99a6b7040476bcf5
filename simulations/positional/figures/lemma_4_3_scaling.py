"""Lemma 4.3's factors against d, beside the powers of log d that polylog(d) is read as."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, panel_letter, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both panels."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    for number, density in enumerate(np.unique(data["qD"].values)):
        one = data.isel(case=(data["qD"] == density).values)
        look = PROBLEM_STYLES[number] | {"linewidth": 1.2}
        label = f"$qD={density:g}$"
        artists[label] = left.plot(one["d"], one["greatest"], marker="o", label=label, **look)[0]
        left.plot(one["d"], one["least"], marker="o", fillstyle="none", **look)
        right.plot(one["d"], one["rho_constant"], marker="o", **look)
    sizes = np.unique(data["d"].values)
    polylog = np.log(sizes) ** data.attrs["degree"]
    for letter, ax in zip("ab", (left, right)):
        ax.fill_between(sizes, 1.0 / polylog, polylog, color="#009E73", alpha=0.12, linewidth=0)
        ax.set(xscale="log", yscale="log", xlabel="$d$")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.set_xticks([], minor=True)
        panel_letter(ax, letter)
    left.set_ylabel(r"factor of $\alpha^p\,\Gamma\,G^{p-1}$")
    right.set_ylabel(r"constant of the $|\rho|$ inequality")
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=3)
    return artists
