"""The map of a sweep above the run of one of its cells."""

import json
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import numpy as np
from bokeh.layouts import column, row
from bokeh.models import Div, Select

from simulations.explorer import words
from simulations.explorer.controls import on_change
from simulations.explorer.mapped import drawn, legend
from simulations.explorer.plots import letters, without_latex
from simulations.maps import Sweep, draw_data, maps_of


class SweepPanel:
    """Which map, of which plane; a cell that is tapped is given as the values of its run.

    Parameters
    ----------
    sweep
        What is mapped: it has at least two axes.
    asked
        Choices of an address: ``map``, and ``at NAME`` for each axis beside the two of the plane.
    text
        Makes a piece of the page that holds HTML.
    tapped
        Called with the values of a cell.
    turned
        Called when another map or plane is chosen.
    """

    def __init__(
        self,
        sweep: Sweep,
        asked: Mapping[str, str],
        text: Callable[[str], Div],
        tapped: Callable[[dict[str, Any]], None],
        turned: Callable[[], None],
    ) -> None:
        self.sweep, self._tapped, self._turned = sweep, tapped, turned
        self.maps = {one.name: one for one in maps_of(sweep)}
        options = [(name, without_latex(one.title)) for name, one in self.maps.items()]
        first = asked.get("map", "")
        self.which = Select(
            title="Map",
            options=options,
            name="map",
            width=380,
            value=first if first in self.maps else options[0][0],
        )
        many = [name for name, values in sweep.axes.items() if len(values) > 1]
        self.fixed = {name: self._axis(name, asked.get(f"at {name}", "")) for name in many[:-2]}
        for select in (self.which, *self.fixed.values()):
            on_change(select, "value", self._turn)
        self.legend, self.cell = text("legend"), text("cell")
        self.cell.text = "Click a cell to see its run."
        controls = row(self.which, *self.fixed.values())
        self.root = column(
            controls, self.legend, Div(), self.cell, name="sweep", sizing_mode="stretch_width"
        )
        self._draw()

    def _axis(self, name: str, asked: str) -> Select:
        values = [str(value) for value in self.sweep.axes[name]]
        return Select(
            title=letters(name),
            options=values,
            name=f"at {name}",
            width=120,
            value=asked if asked in values else values[0],
        )

    @property
    def chosen(self) -> dict[str, str]:
        """The choices, as an address holds them."""
        return {"map": self.which.value} | {
            f"at {name}": select.value for name, select in self.fixed.items()
        }

    @property
    def at(self) -> dict[str, Any]:
        """The value of each axis that is fixed."""
        return {
            name: self.sweep.axes[name][list(select.options).index(select.value)]
            for name, select in self.fixed.items()
        }

    def _turn(self) -> None:
        self._draw()
        self._turned()

    def _draw(self) -> None:
        one = self.maps[self.which.value]
        data = draw_data(self.sweep, one, self.at)
        figure, self.source = drawn(data)
        on_change(self.source.selected, "indices", self._tap)
        self.names = data.attrs["y"], data.attrs["x"]
        fixed = _equations(json.loads(data.attrs["fixed"]))
        self.legend.text = words.legend_of_map(one.title, one.label, fixed, legend(data))
        self.root.children[2] = figure

    def _tap(self) -> None:
        if indices := self.source.selected.indices:
            self._tapped(self.values(indices[0]))

    def values(self, place: int) -> dict[str, Any]:
        """Return the values of the run behind a cell of the map, and tell of it."""
        data = self.source.data
        index = self.sweep.indices(self.at) | dict(
            zip(self.names, (data["row"][place], data["column"][place]))
        )
        cell = int(
            np.ravel_multi_index(
                [index.get(name, 0) for name in self.sweep.axes], self.sweep.config.shape
            )
        )
        values = dict(self.sweep.config.values(cell))
        where = _equations({name: values[name] for name in self.names})
        told = data["told"][place]
        self.cell.text = f"Below: the run at {escape(where)} (on the map: {escape(told)})."
        return values


def _equations(values: Mapping[str, Any]) -> str:
    """Return values as one writes them, as in ν = 0.01, D = 64."""
    return ", ".join(
        f"{letters(name)} = {value if isinstance(value, str) else format(value, 'g')}"
        for name, value in values.items()
    )
