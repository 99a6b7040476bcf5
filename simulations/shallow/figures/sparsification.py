"""Test loss by what is removed from each sample, at two levels of noise."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled

_BLUE, _RED = (look["color"] for look in PROBLEM_STYLES[:2])


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw a panel for each level of noise."""
    names = [str(name).replace(" ", "\n") for name in data["removed"].values]
    panels = figure.subplots(1, data.sizes["noise"], sharey=True)
    x = np.arange(len(names))
    artists: dict[str, Any] = {}
    for letter, ax, noise in zip("abc", panels, data["noise"].values):
        here = data.sel(noise=noise)
        each = here["each"].values
        scatter = np.linspace(-0.12, 0.12, len(each))[:, None] - 0.15 + x
        ax.plot(scatter.ravel(), each.ravel(), ".", color="#BBBBBB", markersize=3, zorder=1)
        for part, shift, looks in (
            ("alike", -0.15, {"fmt": "s", "color": _BLUE, "label": "test samples treated alike"}),
            ("all", 0.2, {"fmt": "x", "color": _RED, "label": "test samples with all tokens"}),
        ):
            value = here[part].values
            error = np.abs(
                np.stack([here[f"{part} low"].values, here[f"{part} high"].values]) - value
            )
            artists[part] = ax.errorbar(x + shift, value, error, capsize=3, **looks)
        ax.axhline(float(here["alike"][0]), **REFERENCE)
        ax.set_yscale("symlog", linthresh=1e-3)
        ax.set(title=f"noise {float(noise):g} on 20 of 50 tokens", ylim=(-1e-4, 2.0))
        ax.set_xlabel("removed from each sample")
        ax.set_xticks(x, names)
        panel_letter(ax, letter)
    panels[0].set_ylabel("test hinge loss")
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=2)
    return artists
