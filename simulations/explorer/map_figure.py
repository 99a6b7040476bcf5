"""Regime map of a sweep as an interactive Bokeh figure."""

from typing import Any

import numpy as np
import xarray
from bokeh.models import (
    ColorBar,
    ColumnDataSource,
    CustomJSTickFormatter,
    HoverTool,
    LinearColorMapper,
    LogColorMapper,
    Range1d,
    TapTool,
)

from simulations.explorer.plots import TICKS, letters, plain_figure, without_latex
from simulations.figures.regime_map import cell_edges

#: Colours of cells without a value, by status, and of other statuses.
_WITHOUT_VALUE = {
    "none": "#F2F2F2",
    "invalid": "#FFFFFF",
    "failed": "#F6C9C9",
    "diverged": "#E9D8A6",
    "unstable": "#D9E6C3",
}
_OTHER = "#E0D4EC"
_BOUNDARIES = (("#C8102E", "dashed"), ("#111111", "dotted"))


def map_cells(data: xarray.Dataset) -> tuple[dict[str, list[Any]], dict[str, bool]]:
    """Return the cells of a map, and whether each axis is logarithmic.

    Parameters
    ----------
    data
        Map, see `simulations.maps.map_data`. The values of an axis of strings are replaced by
        their indices.

    Returns
    -------
    cells
        Columns with the edges, row, column, status, value and label of each cell.
    log
        Whether the axes ``"x"`` and ``"y"`` are logarithmic.
    """
    edges, log, texts = {}, {}, {}
    for axis, name in zip("yx", map(str, data["value"].dims)):
        values = data[name].values
        is_text = values.dtype.kind in "OUS"
        numbers = np.arange(values.size, dtype=float) if is_text else values.astype(float)
        log[axis] = bool(
            not is_text and (numbers > 0.0).all() and numbers.max() >= 8 * numbers.min()
        )
        edges[axis] = cell_edges(numbers, log[axis])
        texts[axis] = [value if is_text else f"{value:.6g}" for value in values.tolist()]
    i, j = np.indices(data["value"].shape).reshape(2, -1)
    values, statuses = data["value"].values.ravel(), data["status"].values.astype(str).ravel()
    none = without_latex(data.attrs["none"]) or "no value"
    labels = [
        f"{value:.6g}" if status == "value" else none if status == "none" else status
        for value, status in zip(values.tolist(), statuses.tolist())
    ]
    return {
        "left": edges["x"][j].tolist(),
        "right": edges["x"][j + 1].tolist(),
        "bottom": edges["y"][i].tolist(),
        "top": edges["y"][i + 1].tolist(),
        "row": i.tolist(),
        "column": j.tolist(),
        "status": statuses.tolist(),
        "value": values.tolist(),
        "at x": [texts["x"][k] for k in j],
        "at y": [texts["y"][k] for k in i],
        "label": labels,
    }, log


def map_figure(data: xarray.Dataset, height: int = 420) -> tuple[Any, ColumnDataSource]:
    """Return the figure of a map, and the data source of its selectable cells."""
    cells, log = map_cells(data)
    scales = {f"{axis}_axis_type": "log" if log[axis] else "linear" for axis in "xy"}
    labels = {f"{axis}_axis_label": letters(data.attrs[axis]) for axis in "xy"}
    plot = plain_figure(
        "",
        height=height,
        tools="reset,save",
        **scales,
        **labels,
        x_range=Range1d(0, 1),
        y_range=Range1d(0, 1),
    )
    plot.grid.visible = False
    for extent, low, high in ((plot.x_range, "left", "right"), (plot.y_range, "bottom", "top")):
        extent.update(start=min(cells[low]), end=max(cells[high]))
    for axis, logarithmic in zip(plot.axis, (log["x"], log["y"])):
        if logarithmic:
            axis.formatter = CustomJSTickFormatter(code=TICKS)
    colours = _colours(cells, data.attrs["scale"])
    source = ColumnDataSource(
        cells | {"face": [_WITHOUT_VALUE.get(status, _OTHER) for status in cells["status"]]}
    )
    sides = ("left", "right", "bottom", "top")
    style: dict[str, Any] = {
        "source": source,
        "line_color": None,
        "nonselection_fill_alpha": 1.0,
        "selection_line_color": "#D4145A",
        "selection_line_width": 3,
    }
    plot.quad(*sides, fill_color="face", **style)
    if colours is not None:
        colours.nan_color = (0, 0, 0, 0)
        plot.quad(*sides, fill_color={"field": "value", "transform": colours}, **style)
        plot.add_layout(ColorBar(color_mapper=colours, width=12, label_standoff=6), "right")
    _draw_boundaries(plot, data)
    tips = [
        (letters(data.attrs["x"]), "@{at x}"),
        (letters(data.attrs["y"]), "@{at y}"),
        ("", "@label"),
    ]
    plot.add_tools(
        TapTool(renderers=plot.renderers[:1]),
        HoverTool(renderers=plot.renderers[:1], tooltips=tips),
    )
    return plot, source


def _colours(cells: dict[str, list[Any]], scale: str) -> Any:
    """Return the colour mapper of the values, ``None`` without values."""
    values = np.array(cells["value"], float)
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    low, high = float(values.min()), float(values.max())
    if scale == "log":
        low, high = (low, high) if high >= 1.05 * low else (low / 2.0, high * 2.0)
        return LogColorMapper("Viridis256", low=low, high=high)
    return LinearColorMapper("Viridis256", low=low, high=high if high > low else low + 1.0)


def _draw_boundaries(plot: Any, data: xarray.Dataset) -> None:
    """Draw the theoretical boundaries: the zero lines of their fields."""
    y, x = map(str, data["value"].dims)
    if any(data[name].values.dtype.kind in "OUS" for name in (x, y)):
        return
    for name, (colour, dash) in zip(boundaries(data), _BOUNDARIES):
        plot.contour(
            data[x].values.astype(float),
            data[y].values.astype(float),
            data[name].values.astype(float),
            levels=[0.0],
            line_color=colour,
            line_dash=dash,
            line_width=2.5,
        )


def boundaries(data: xarray.Dataset) -> list[str]:
    """Return the names of the fields whose zero line crosses the plane."""
    crossing = []
    for name in map(str, data.data_vars):
        values = data[name].values if name.startswith("overlay ") else np.zeros((0, 0))
        finite = np.isfinite(values) if values.size else np.zeros(0, bool)
        plane = min(values.shape) > 1 and bool(finite.any())
        if plane and np.nanmin(values) < 0.0 < np.nanmax(values):
            crossing.append(name)
    return crossing


def legend_entries(data: xarray.Dataset) -> list[tuple[str, str, str]]:
    """Return the entries of the legend: colour, line style (empty for a face) and label."""
    statuses = sorted(set(data["status"].values.astype(str).ravel()) - {"value"})
    labels = {"none": data.attrs["none"] or "no value"}
    entries = [
        (_WITHOUT_VALUE.get(status, _OTHER), "", labels.get(status, status)) for status in statuses
    ]
    return entries + [
        (colour, dash, str(data[name].attrs["long_name"]))
        for name, (colour, dash) in zip(boundaries(data), _BOUNDARIES)
    ]
