"""The two phases in which attention learns look-up."""

from typing import Any

import xarray

from simulations.figures.style import REFERENCE, panel_letter, problem_style, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw attention, and loss times time, against scaled time."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["problem"].values):
        rows, style = data.isel(problem=number), problem_style(number, str(name))
        (artists[str(name)],) = left.plot(data["scaled"], rows["attention"], **style)
        right.plot(data["scaled"], rows["settled"], **style)
    left.axhline(0.5, **REFERENCE)
    right.axhline(1.0, **REFERENCE)
    left.set(ylabel="attention to the query's feature")
    right.set(yscale="log", ylabel=r"loss $\times\ 4t/K$")
    for letter, ax in zip("ab", (left, right)):
        ax.set(xscale="log", xlabel=r"flow time / $K^2$")
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=3)
    return artists
