"""Regime maps: what the result of a sweep says about each point of a plane of two parameters.

A map is a labelled dataset with one ``value`` per cell, the ``kind`` of the cell (``value``,
``none`` where the thing mapped does not happen, else its status), and overlays: fields whose zero
line is a boundary known beforehand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.core.checks import finite
from dynamics.core.errors import ParameterError
from simulations import theories
from simulations.files.store import StoreError
from simulations.sweep.config import Config
from simulations.sweep.store import MANIFEST, RESULT, netcdf_name, read_result
from simulations.system import Case

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Overlay:
    """A boundary known beforehand: the zero line of ``field(sweep, plane)``; label for a legend."""

    name: str
    label: str
    field: Callable[[Sweep, xarray.Dataset], np.ndarray]


@dataclass(frozen=True)
class Map:
    """One question asked of every cell.

    ``value(sweep, plane)`` is an array over the cells; where it is nan the cell is of kind
    ``none``, which ``none`` puts into words.
    """

    name: str
    title: str
    label: str
    value: Callable[[Sweep, xarray.Dataset], xarray.DataArray]
    none: str = ""
    scale: str = "log"
    levels: tuple[float, ...] = ()
    overlays: tuple[Overlay, ...] = ()


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep and the configuration it was made from."""

    data: xarray.Dataset
    config: Config

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """Axes by parameter name."""
        if self.config.axes:
            return dict(self.config.axes)
        return {"cell": tuple(range(self.config.size))}

    def place(self, at: Mapping[str, Any]) -> dict[str, int]:
        """Return axis -> index of the value nearest to the one asked for (of the word itself).

        Raises
        ------
        ParameterError
            If a name is no axis of the sweep, or the value is not a number.
        """
        found = {}
        for name, wanted in at.items():
            if name not in self.axes:
                raise ParameterError(
                    f"{name} is not an axis of this sweep: choose among {', '.join(self.axes)}"
                )
            if any(isinstance(value, str) for value in self.axes[name]):
                if wanted not in self.axes[name]:
                    choices = ", ".join(map(str, self.axes[name]))
                    raise ParameterError(f"{name} = {wanted} is not on its axis: it has {choices}")
                found[name] = self.axes[name].index(wanted)
                continue
            wanted = finite(name, wanted)
            values = np.array(self.axes[name], float)
            positive = wanted > 0.0 and (values > 0.0).all() and values.max() > 10 * values.min()
            distance = np.log(values / wanted) if positive else values - wanted
            found[name] = int(np.argmin(np.abs(distance)))
        return found

    def case(self, cell: int) -> Case:
        """Return the run behind a cell; raises ParameterError if it is invalid."""
        return theories.load(self.config.system).build(self.config.values(cell))

    def slice(self, at: Mapping[str, Any]) -> tuple[xarray.Dataset, list[str]]:
        """Return the plane that remains when axes are fixed, and the names of its two axes."""
        if not self.config.axes:
            raise ParameterError("a list of cells has no plane: point at one with --at cell=0")
        place = self.place(at)
        single = {name: 0 for name, values in self.axes.items() if len(values) == 1}
        place = single | place
        free = [name for name in self.axes if name not in place]
        if len(free) != 2:
            raise ParameterError(
                f"a map needs two axes and this sweep leaves {len(free)} ({', '.join(free)}): "
                + ("fix the others with --at NAME=VALUE" if len(free) > 2 else "sweep another one")
            )
        indices = {netcdf_name(name): index for name, index in place.items()}
        cells = np.arange(self.config.size).reshape(self.config.shape)
        numbered = self.data.assign(cell_number=(self.data["status"].dims, cells))
        return numbered.isel(indices), free


def read(folder: Path) -> Sweep:
    """Read the result of a sweep.

    Raises
    ------
    StoreError
        If there is none, it is not finished, or it is not what was written.
    """
    data = read_result(folder)
    if data is None:
        if (folder / MANIFEST).is_file():
            raise StoreError(
                f"the sweep in {folder} is not finished: the same `patchdyn sweep` finishes it"
            )
        raise StoreError(f"{folder} holds no sweep: make one with `patchdyn sweep`")
    try:
        plain = json.loads(data.attrs["configuration"])
        axes = {name: tuple(values) for name, values in plain["axes"]}
        config = Config(plain["system"], plain["fixed"], axes, tuple(plain["list"]))
        _check_theory(folder, config.system, json.loads(data.attrs["stamp"]))
        theories.load(config.system)
        if data["status"].shape != config.shape:
            raise ValueError("shape")
    except StoreError:
        raise
    except Exception as failure:  # written by another version
        raise StoreError(
            f"cannot read {folder / RESULT}: it is not the result of a sweep"
        ) from failure
    return Sweep(data, config)


def _check_theory(folder: Path, system: str, stamp: Mapping[str, Any]) -> None:
    """Refuse a sweep of a theory in a file, unless the user named that file and it is the same."""
    if not theories.is_of_a_file(system):
        return
    try:
        known = theories.load(system).fingerprint
    except ParameterError:
        raise StoreError(
            f"{folder} holds a sweep of a theory in a file ({system.partition(':')[2]}): name it "
            "with --theory FILE.py"
        ) from None
    if known != stamp.get("theory"):
        raise StoreError(f"{folder} holds a sweep of another version of the file with {system}")


def maps_of(sweep: Sweep) -> tuple[Map, ...]:
    """Return the maps that make sense for a sweep: those of its system."""
    of_system = theories.submodule(sweep.config.system, "maps")
    maps: tuple[Map, ...] = of_system.maps_of(sweep)
    return maps


def _plain_map(sweep: Sweep, name: str) -> Map:
    """Return the map of one outcome as it is."""
    values = sweep.data[name]
    positive = bool((values > 0.0).any()) and not bool((values < 0.0).any())
    spread = positive and float(values.max()) > 10.0 * float(values.where(values > 0.0).min())
    label = str(values.attrs.get("long_name", name))
    scale = "log" if spread else "linear"
    return Map(netcdf_name(name).replace(" ", "-"), label.capitalize(), name,
               lambda _, data: data[name], "not defined", scale)  # fmt: skip


def outcome_map(sweep: Sweep, name: str) -> Map:
    """Return the map of an outcome asked for by name."""
    known = [q.name for q in theories.load(sweep.config.system).outcomes]
    if name not in known:
        raise ParameterError(f"{name} is not an outcome: choose among {', '.join(known)}")
    return _plain_map(sweep, name)


def draw_data(sweep: Sweep, one: Map, at: Mapping[str, Any]) -> xarray.Dataset:
    """Return everything that a map shows, dims (y, x): the second axis of the sweep is x."""
    import xarray

    plane, (y, x) = sweep.slice(at)
    dims = (netcdf_name(y), netcdf_name(x))
    plane = plane.transpose(*dims)
    with np.errstate(divide="ignore", invalid="ignore"):
        overlays: dict[str, Any] = {
            over.name: (dims, over.field(sweep, plane), {"long_name": over.label})
            for over in one.overlays
        }
        value = one.value(sweep, plane)
    ran = plane["status"] == "completed"
    if one.scale == "log":
        value = value.where(value > 0.0)
    kind = xarray.where(ran, xarray.where(value.isnull(), "none", "value"), plane["status"])
    data: dict[str, Any] = {
        "value": (dims, value.where(ran).values),
        "kind": (dims, kind.values.astype(object)),
    }
    data |= {f"overlay {name}": drawn for name, drawn in overlays.items()}
    words = {"x": x, "y": y, "label": one.label, "title": one.title, "none": one.none,
             "scale": one.scale, "levels": json.dumps(one.levels), "name": one.name}  # fmt: skip
    words["fixed"] = json.dumps({name: sweep.axes[name][i] for name, i in sweep.place(at).items()})
    words["configuration"] = str(sweep.data.attrs["configuration"])
    words["stamp"] = str(sweep.data.attrs["stamp"])
    return xarray.Dataset(data, {name: plane[name].values for name in dims}, words)


def cases_of(sweep: Sweep, plane: xarray.Dataset) -> list[Case | None]:
    """Return the case of each cell of a plane, ``None`` where it is invalid."""
    found: list[Case | None] = []
    for cell in plane["cell_number"].values.ravel():
        try:
            found.append(sweep.case(int(cell)))
        except ParameterError:
            found.append(None)
    return found
