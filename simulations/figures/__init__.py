"""Figures of the report, drawn from labelled data alone.

A drawing function ``draw(data, figure=None)`` draws an :class:`xarray.Dataset` on a Matplotlib
figure and returns a mapping from name to artist. It computes nothing, so that a figure can be drawn
again from its NetCDF file. Short drawing functions stand next to their claim, longer ones in the
folder ``figures`` of a theory; this package contains those that several theories share.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import xarray

from simulations.figures.image import Image
from simulations.reproduction.claim import Figure


def report_figure(
    name: str,
    title: str,
    caption: str,
    draw: Callable[..., Any],
    data: xarray.Dataset,
    size: tuple[float, float] = (7.0, 4.2),
) -> Figure:
    """Return a figure of the report that draws ``data`` with ``draw(data, figure)``.

    Parameters
    ----------
    name, title, caption, size
        As in `Figure`.
    draw
        Draws a dataset on a Matplotlib figure, such as a function decorated with
        `simulations.figures.style.styled`.
    data
        Everything that is drawn.
    """
    return Figure(name, title, caption, partial(draw, data), data, size)


def render(figure: Figure, image: Image = Image()) -> bytes:  # noqa: B008
    """Return a figure as an image, by default as PNG."""
    return image.render(figure.draw, figure.size)
