"""Panel with the regime maps of a sweep; a click on a cell shows its run."""

import json
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import numpy as np
from bokeh.layouts import column, row
from bokeh.models import Div, Select

from simulations.explorer import fragments
from simulations.explorer.controls import on_change
from simulations.explorer.map_figure import legend_entries, map_figure
from simulations.explorer.plots import letters, without_latex
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
            width=380,
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
        controls = row(self.which, *self.fixed.values())
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
