"""Figures of the report: one module each, drawn from labelled data alone.

Every module has ``draw(data, figure=None)``, which draws an :class:`xarray.Dataset` on a Matplotlib
figure and returns the artists by name. It computes nothing: what it draws is gathered by a module
of the same name in the folder ``data`` of the theory, or by the claim itself. So a figure can be
drawn again from the NetCDF file beside it.
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
    """Return a figure of the report that draws ``data`` with ``draw(data, figure)``."""

    def on(figure: matplotlib.figure.Figure) -> None:
        draw(data, figure)

    return Figure(name=name, title=title, caption=caption, draw=on, data=data, size=size)


def render(figure: Figure) -> bytes:
    """Return a figure as PNG, without pyplot and its global state."""
    canvas = matplotlib.figure.Figure(figsize=figure.size, dpi=DPI, layout="constrained")
    FigureCanvasAgg(canvas)
    figure.draw(canvas)
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()
