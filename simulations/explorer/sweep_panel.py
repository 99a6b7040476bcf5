"""Panel with the regime maps of a sweep, as Bokeh figures; a click on a cell shows its run."""

import json
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import numpy as np
import xarray
from bokeh.layouts import column, row
from bokeh.models import (
    ColorBar,
    ColumnDataSource,
    Div,
    HoverTool,
    LinearColorMapper,
    LogColorMapper,
    Range1d,
    Select,
    TapTool,
)

from simulations.explorer import fragments
from simulations.explorer.plots import format_ticks, letters, on_change, plain_figure, without_latex
from simulations.figures.regime_map import (
    axis_scale,
    boundaries,
    cell_edges,
    colour_limits,
    positions,
    without_value,
)
from simulations.maps import Sweep, map_data, maps_of


class SweepPanel:
    """Panel that shows a map, with choices of the map and of its plane.

    Parameters
    ----------
    sweep
        Sweep with at least two axes.
    choices
        Choices in the address: ``map``, and ``at NAME`` for each axis that is not in the plane.
    text
        Returns a part of the page for HTML, given its name.
    on_cell
        Called with the parameters of a cell that the user clicks.
    on_choice
        Called when the user chooses another map or plane.
    """

    def __init__(
        self,
        sweep: Sweep,
        choices: Mapping[str, str],
        text: Callable[[str], Div],
        on_cell: Callable[[dict[str, Any]], None],
        on_choice: Callable[[], None],
    ) -> None:
        self.sweep, self._on_cell, self._on_choice = sweep, on_cell, on_choice
        self.maps = {regime_map.name: regime_map for regime_map in maps_of(sweep)}
        options = [
            (name, without_latex(regime_map.title)) for name, regime_map in self.maps.items()
        ]
        first = choices.get("map", "")
        self.which = Select(
            title="Map",
            options=options,
            name="map",
            sizing_mode="stretch_width",
            max_width=380,
            value=first if first in self.maps else options[0][0],
        )
        varied = [name for name, values in sweep.axes.items() if len(values) > 1]
        self.fixed = {
            name: self._select_value(name, choices.get(f"at {name}", "")) for name in varied[:-2]
        }
        for select in (self.which, *self.fixed.values()):
            on_change(select, "value", self._choose)
        self.legend, self.cell = text("legend"), text("cell")
        self.cell.text = "Click a cell to see its run."
        menus: Any = {"sizing_mode": "stretch_width", "styles": {"flex-wrap": "wrap"}}
        controls = row(self.which, *self.fixed.values(), **menus)
        self.root = column(
            controls, self.legend, Div(), self.cell, name="sweep", sizing_mode="stretch_width"
        )
        self._draw()

    def _select_value(self, name: str, chosen: str) -> Select:
        """Return the menu of the values of an axis."""
        values = [str(value) for value in self.sweep.axes[name]]
        return Select(
            title=letters(name),
            options=values,
            name=f"at {name}",
            width=120,
            value=chosen if chosen in values else values[0],
        )

    @property
    def chosen(self) -> dict[str, str]:
        """Choices of map and plane for the address."""
        return {"map": self.which.value} | {
            f"at {name}": select.value for name, select in self.fixed.items()
        }

    @property
    def at(self) -> dict[str, Any]:
        """Values of the axes that are not in the plane."""
        return {
            name: self.sweep.axes[name][list(select.options).index(select.value)]
            for name, select in self.fixed.items()
        }

    def _choose(self) -> None:
        self._draw()
        self._on_choice()

    def _draw(self) -> None:
        chosen = self.maps[self.which.value]
        data = map_data(self.sweep, chosen, self.at)
        figure, self.source = map_figure(data)
        on_change(self.source.selected, "indices", self._click)
        self.names = data.attrs["y"], data.attrs["x"]
        fixed = _equations(json.loads(data.attrs["fixed"]))
        self.legend.text = fragments.legend_of_map(
            chosen.title, chosen.label, fixed, legend_entries(data)
        )
        self.root.children[2] = figure

    def _click(self) -> None:
        if indices := self.source.selected.indices:
            self._on_cell(self.values(indices[0]))

    def values(self, number: int) -> dict[str, Any]:
        """Show which cell of the map is selected, and return its parameters."""
        data = self.source.data
        index = self.sweep.indices(self.at) | dict(
            zip(self.names, (data["row"][number], data["column"][number]))
        )
        cell = int(
            np.ravel_multi_index(
                [index.get(name, 0) for name in self.sweep.axes], self.sweep.config.shape
            )
        )
        values = dict(self.sweep.config.values(cell))
        where = _equations({name: values[name] for name in self.names})
        label = data["label"][number]
        self.cell.text = f"Run below: {escape(where)} (on the map: {escape(label)})."
        return values


def _equations(values: Mapping[str, Any]) -> str:
    """Return values as text, such as ``ν = 0.01, D = 64``."""
    return ", ".join(
        f"{letters(name)} = {value if isinstance(value, str) else format(value, 'g')}"
        for name, value in values.items()
    )


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
        log[axis] = axis_scale(data, axis) == "log"
        edges[axis] = cell_edges(positions(values), log[axis])
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
    format_ticks(axis for axis, is_log in zip(plot.axis, (log["x"], log["y"])) if is_log)
    colours = _colours(cells, data.attrs["scale"])
    source = ColumnDataSource(
        cells | {"face": [without_value(status)[0] for status in cells["status"]]}
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
    mapper = LogColorMapper if scale == "log" else LinearColorMapper
    low, high = colour_limits(values, scale)
    return mapper("Viridis256", low=low, high=high)


def _draw_boundaries(plot: Any, data: xarray.Dataset) -> None:
    """Draw the theoretical boundaries: the zero lines of their fields."""
    y, x = map(str, data["value"].dims)
    if any(data[name].values.dtype.kind in "OUS" for name in (x, y)):
        return
    for name, (colour, dash) in boundaries(data).items():
        plot.contour(
            data[x].values.astype(float),
            data[y].values.astype(float),
            data[name].values.astype(float),
            levels=[0.0],
            line_color=colour,
            line_dash=dash,
            line_width=2.5,
        )


def legend_entries(data: xarray.Dataset) -> list[tuple[str, str, str]]:
    """Return the entries of the legend: colour, line style (empty for a face) and label."""
    statuses = sorted(set(data["status"].values.astype(str).ravel()) - {"value"})
    labels = {"none": data.attrs["none"] or "no value"}
    entries = [(without_value(status)[0], "", labels.get(status, status)) for status in statuses]
    return entries + [
        (colour, dash, str(data[name].attrs["long_name"]))
        for name, (colour, dash) in boundaries(data).items()
    ]
