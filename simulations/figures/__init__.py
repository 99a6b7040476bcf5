"""Figures of the report, one module each.

Every module defines ``draw(data, figure=None)``, which draws an :class:`xarray.Dataset` on a
Matplotlib figure and returns a mapping from name to artist. It computes no results: the claim
provides all data. Thus a figure can be drawn again from the NetCDF file in the report.
"""

import io
from collections.abc import Callable
from typing import Any

import matplotlib.figure
import xarray
from matplotlib.backends.backend_agg import FigureCanvasAgg

from simulations.reproduction.claim import Figure

DPI = 160


def report_figure(
    name: str,
    title: str,
    caption: str,
    draw: Callable[..., Any],
    data: xarray.Dataset,
    size: tuple[float, float] = (7.0, 4.2),
) -> Figure:
    """Return a figure of the report.

    Parameters
    ----------
    name, title, caption, size
        As in `simulations.reproduction.claim.Figure`.
    draw
        Called as ``draw(data, figure)`` with an empty Matplotlib figure.
    data
        Everything that the figure shows.
    """

    def draw_data(figure: matplotlib.figure.Figure) -> None:
        draw(data, figure)

    return Figure(name=name, title=title, caption=caption, draw=draw_data, data=data, size=size)


def render(figure: Figure) -> bytes:
    """Return a figure as PNG, without the global state of pyplot."""
    canvas = matplotlib.figure.Figure(figsize=figure.size, dpi=DPI, layout="constrained")
    FigureCanvasAgg(canvas)
    figure.draw(canvas)
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()
