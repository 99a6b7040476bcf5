"""Regime maps: an outcome of a sweep over the plane of two parameters.

A map is a labelled dataset with the ``value`` of each cell, its ``status`` (``value``; ``none`` if
the value is undefined; otherwise the status of the cell), and overlays: fields whose zero line is a
theoretical boundary.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.core.checks import finite
from dynamics.core.errors import ParameterError
from simulations import theories
from simulations.case import Case
from simulations.files import StoreError
from simulations.sweep.config import Config
from simulations.sweep.storage import MANIFEST, RESULT, netcdf_name, read_result

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Overlay:
    """Theoretical boundary on a map.

    Attributes
    ----------
    name, label
        Name, and label in the legend.
    field
        Function of sweep and plane that returns an array over the cells; the boundary is its zero
        line.
    """

    name: str
    label: str
    field: Callable[[Sweep, xarray.Dataset], np.ndarray]


@dataclass(frozen=True)
class Map:
    """Definition of a regime map.

    Attributes
    ----------
    name, title, label
        File stem, title, and label of the colour bar.
    value
        Function of sweep and plane that returns an array over the cells.
    none
        Label of the cells whose value is nan.
    scale
        ``"log"`` or ``"linear"``.
    levels
        Values of the contours; by default powers of ten.
    overlays
        Theoretical boundaries.
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
    """Result and configuration of a sweep."""

    data: xarray.Dataset
    config: Config

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """Mapping from parameter to the values of its axis."""
        if self.config.axes:
            return dict(self.config.axes)
        return {"cell": tuple(range(self.config.size))}

    def indices(self, at: Mapping[str, Any]) -> dict[str, int]:
        """Return the index of the nearest value on each axis.

        Parameters
        ----------
        at
            Mapping from axis to value; a string must be on its axis.

        Raises
        ------
        ParameterError
            If a name is not an axis of the sweep, or a value is not allowed.
        """
        indices = {}
        for name, requested in at.items():
            if name not in self.axes:
                raise ParameterError(
                    f"{name} is not an axis of this sweep: choose among {', '.join(self.axes)}"
                )
            if any(isinstance(value, str) for value in self.axes[name]):
                if requested not in self.axes[name]:
                    choices = ", ".join(map(str, self.axes[name]))
                    raise ParameterError(
                        f"{name} = {requested} is not on its axis: choose among {choices}"
                    )
                indices[name] = self.axes[name].index(requested)
                continue
            value = finite(name, requested)
            values = np.array(self.axes[name], float)
            log = value > 0.0 and (values > 0.0).all() and values.max() > 10 * values.min()
            distance = np.log(values / value) if log else values - value
            indices[name] = int(np.argmin(np.abs(distance)))
        return indices

    def case(self, cell: int) -> Case:
        """Return the case of a cell; raises ParameterError if it is invalid."""
        return theories.load(self.config.system).build(self.config.values(cell))

    def slice(self, at: Mapping[str, Any]) -> tuple[xarray.Dataset, list[str]]:
        """Return the plane at fixed values of axes, and the names of its two axes.

        Raises
        ------
        ParameterError
            If the number of remaining axes is not two.
        """
        if not self.config.axes:
            raise ParameterError(
                "a list of cells cannot be mapped: print one cell with --at cell=0"
            )
        single = {name: 0 for name, values in self.axes.items() if len(values) == 1}
        fixed = single | self.indices(at)
        free = [name for name in self.axes if name not in fixed]
        if len(free) != 2:
            raise ParameterError(
                f"a map needs two axes and this sweep leaves {len(free)} ({', '.join(free)}): "
                + (
                    "fix the others with --at NAME=VALUE"
                    if len(free) > 2
                    else "sweep a second axis"
                )
            )
        indices = {netcdf_name(name): index for name, index in fixed.items()}
        cells = np.arange(self.config.size).reshape(self.config.shape)
        numbered = self.data.assign(cell_number=(self.data["status"].dims, cells))
        return numbered.isel(indices), free


def read(folder: Path) -> Sweep:
    """Read the result of a sweep.

    Raises
    ------
    StoreError
        If there is none, or it is unfinished or damaged.
    """
    data = read_result(folder)
    if data is None:
        if (folder / MANIFEST).is_file():
            raise StoreError(
                f"the sweep in {folder} is not finished: resume it with the same `patchdyn sweep`"
            )
        raise StoreError(f"{folder} contains no sweep: compute one with `patchdyn sweep`")
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
    except Exception as error:  # written by another version
        raise StoreError(
            f"cannot read {folder / RESULT}: it is not the result of a sweep"
        ) from error
    return Sweep(data, config)


def _check_theory(folder: Path, system: str, stamp: Mapping[str, Any]) -> None:
    """Raise StoreError for a sweep of a user-defined theory that is not loaded or has changed."""
    if not theories.is_from_file(system):
        return
    try:
        known = theories.load(system).fingerprint
    except ParameterError:
        raise StoreError(
            f"{folder} contains a sweep of a theory in a file ({system.partition(':')[2]}): "
            "load it with --theory FILE.py"
        ) from None
    if known != stamp.get("theory"):
        raise StoreError(
            f"{folder} contains a sweep of another version of {system}: compute it again"
        )


def maps_of(sweep: Sweep) -> tuple[Map, ...]:
    """Return the maps that the theory of a sweep defines for it."""
    module = theories.submodule(sweep.config.system, "maps")
    maps: tuple[Map, ...] = module.maps_of(sweep)
    return maps


def _plain_map(sweep: Sweep, name: str) -> Map:
    """Return the map of one outcome."""
    values = sweep.data[name]
    positive = bool((values > 0.0).any()) and not bool((values < 0.0).any())
    spread = positive and float(values.max()) > 10.0 * float(values.where(values > 0.0).min())
    label = str(values.attrs.get("long_name", name))
    scale = "log" if spread else "linear"
    return Map(
        name=netcdf_name(name).replace(" ", "-"),
        title=label[:1].upper() + label[1:],
        label=name,
        value=lambda _, data: data[name],
        none="not defined",
        scale=scale,
    )


def outcome_map(sweep: Sweep, name: str) -> Map:
    """Return the map of an outcome; raises ParameterError if the name is unknown."""
    known = [q.name for q in theories.load(sweep.config.system).outcomes]
    if name not in known:
        raise ParameterError(f"{name} is not an outcome: choose among {', '.join(known)}")
    return _plain_map(sweep, name)


def map_data(
    sweep: Sweep,
    chosen: Map,
    at: Mapping[str, Any],
    scales: Mapping[str, str] = MappingProxyType({}),
) -> xarray.Dataset:
    """Return the data of a map.

    Parameters
    ----------
    sweep
        Result of the sweep.
    chosen
        Map to evaluate.
    at
        Fixed values of all but two axes.
    scales
        Mapping from axis, or ``"value"``, to ``"log"`` or ``"linear"``.

    Returns
    -------
    Dataset
        Variables ``value``, ``status`` and overlays on the dimensions (y, x), where x is the second
        axis of the sweep. Labels are attributes.
    """
    import xarray

    plane, (y, x) = sweep.slice(at)
    for name in (x, y):
        if scales.get(name) == "log" and not all(_is_positive(value) for value in sweep.axes[name]):
            raise ParameterError(
                f"{name} = log is not allowed: the values must be positive numbers"
            )
    dims = (netcdf_name(y), netcdf_name(x))
    plane = plane.transpose(*dims)
    with np.errstate(divide="ignore", invalid="ignore"):
        overlays: dict[str, Any] = {
            over.name: (dims, over.field(sweep, plane), {"long_name": over.label})
            for over in chosen.overlays
        }
        value = chosen.value(sweep, plane)
    ran = plane["status"] == "completed"
    scale = scales.get("value", chosen.scale)
    if scale == "log":
        value = value.where(value > 0.0)
    status = xarray.where(ran, xarray.where(value.isnull(), "none", "value"), plane["status"])
    data: dict[str, Any] = {
        "value": (dims, value.where(ran).values),
        "status": (dims, status.values.astype(object)),
    }
    data |= {f"overlay {name}": overlay for name, overlay in overlays.items()}
    single = {name: values[0] for name, values in sweep.axes.items() if len(values) == 1}
    nearest = {name: sweep.axes[name][index] for name, index in sweep.indices(at).items()}
    fixed = {**sweep.config.fixed, **single, **nearest}
    attributes = {
        "x": x,
        "y": y,
        "label": chosen.label,
        "title": chosen.title,
        "none": chosen.none,
        "scale": scale,
        "x_scale": scales.get(x, ""),
        "y_scale": scales.get(y, ""),
        "levels": json.dumps(chosen.levels),
        "name": chosen.name,
        "fixed": json.dumps(fixed),
        "configuration": str(sweep.data.attrs["configuration"]),
        "stamp": str(sweep.data.attrs["stamp"]),
    }
    return xarray.Dataset(data, {name: plane[name].values for name in dims}, attributes)


def _is_positive(value: Any) -> bool:
    """Return whether a value of an axis is a positive number."""
    return not isinstance(value, str) and value > 0.0


def cases_of(sweep: Sweep, plane: xarray.Dataset) -> list[Case | None]:
    """Return the case of each cell of a plane, ``None`` where it is invalid."""
    cases: list[Case | None] = []
    for cell in plane["cell_number"].values.ravel():
        try:
            cases.append(sweep.case(int(cell)))
        except ParameterError:
            cases.append(None)
    return cases
