"""Storage of a sweep: a folder of finished blocks, and the labelled result.

The manifest ``sweep.json`` contains the configuration, the stamp of the code and the digest of the
result. ``config.toml`` is the file of the user, ``blocks/NNNNN.json`` are records of finished
blocks of cells, and ``sweep.nc`` is the result of all blocks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simulations import theories
from simulations.files import (
    ResultFolder,
    StoreError,
    difference,
    read_dataset,
    read_record,
    write_bytes,
    write_dataset,
    write_record,
)
from simulations.sweep.cells import Row
from simulations.sweep.config import Config

if TYPE_CHECKING:
    import xarray

MANIFEST, RESULT = "sweep.json", "sweep.nc"
_TEXTS = ("status", "message")


def netcdf_name(parameter: str) -> str:
    """Return the name of a parameter in a NetCDF file, where a slash would start a group."""
    return parameter.replace("/", "_over_").replace("^", "")


class SweepStore(ResultFolder):
    """Blocks of one sweep on disk, written by one process at a time.

    The folder is locked until `close` or the end of the ``with`` block.

    Parameters
    ----------
    path
        Folder.
    config
        Configuration of the sweep.
    stamp
        Versions and digests of the code, see `simulations.sweep.cells.sweep_stamp`.

    Raises
    ------
    StoreError
        If the folder cannot be written, is in use, or contains something else or another sweep.
    """

    KIND, MANIFEST, LAYOUT, FOLDERS = "sweep", MANIFEST, 3, ("blocks",)

    def __init__(self, path: Path, config: Config, stamp: dict[str, str]) -> None:
        super().__init__(path)
        self.config, self.stamp = config, stamp
        self.outcomes = [quantity.name for quantity in theories.load(config.system).outcomes]
        manifest = self.open()
        try:
            if manifest is None:
                self._begin()
            else:
                self._check(manifest)
        except BaseException:
            self.close()
            raise

    def _check(self, manifest: dict[str, Any]) -> None:
        """Raise StoreError if the folder contains another sweep."""
        if manifest["configuration"] != self._plain():
            changed = _difference(manifest["configuration"], self._plain())
            what = f"of another configuration ({changed})"
        elif changed := difference(manifest["stamp"], self.stamp):
            what = f"made by {changed}"
        else:
            return
        raise StoreError(f"{self.path} contains a sweep {what}: choose another --out")

    def _plain(self) -> Any:
        return json.loads(json.dumps(self.config.plain()))

    def _begin(self) -> None:
        """Write the manifest and the configuration of a new sweep."""
        from dynamics.core.provenance import provenance

        self.write_manifest(  # written first: it identifies the folder as a sweep
            {
                "system": self.config.system,
                "configuration": self._plain(),
                "digest": self.config.digest,
                "cells": self.config.size,
                "cells_per_block": self.config.block,
                "stamp": self.stamp,
                "provenance": provenance(),
            }
        )
        write_bytes(self.path / "config.toml", self.config.text.encode())

    def block_path(self, block: int) -> Path:
        """Return the path of a block."""
        return self.path / "blocks" / f"{block:05d}.json"

    def write(self, block: int, rows: list[Row]) -> None:
        """Store a finished block; numbers are stored as strings, because JSON has no nan."""
        numbers = np.array([[row[name] for name in self.outcomes] for row in rows], float)
        texts = [[row[name] for name in _TEXTS] for row in rows]
        cells = [[*map(repr, values), *text] for values, text in zip(numbers.tolist(), texts)]
        record = {"sweep": self.config.digest, "block": block, "rows": cells}
        write_record(self.block_path(block), record)

    def read(self, block: int) -> list[Row] | None:
        """Return the rows of a stored block, ``None`` if it is absent.

        Raises
        ------
        StoreError
            If the block is damaged.
        """
        path, count = self.block_path(block), len(self.outcomes)
        record = read_record(path)
        if record is None:
            return None
        if (record["sweep"], record["block"]) != (self.config.digest, block):
            raise StoreError(f"cannot read {path}: it is another block, or of another sweep")
        return [
            {**dict(zip(self.outcomes, map(float, row[:count]))), **dict(zip(_TEXTS, row[count:]))}
            for row in record["rows"]
        ]

    def finished(self, warn: Callable[[str], None]) -> Iterator[tuple[int, list[Row]]]:
        """Yield number and rows of the stored blocks; call ``warn(message)`` for damaged ones."""
        for block in range(self.config.blocks):
            try:
                rows = self.read(block)
            except StoreError as damage:
                warn(f"{damage}; its cells are computed again")
                continue
            if rows is not None:
                yield block, rows

    def result_is_complete(self) -> bool:
        """Return whether the labelled result exists and is undamaged."""
        try:
            return read_result(self.path) is not None
        except StoreError:
            return False

    def write_result(self, rows: list[Row]) -> None:
        """Store the labelled result of all cells."""
        write_result(self.path, labelled(self.config, rows, self.stamp))


def write_result(folder: Path, data: xarray.Dataset) -> None:
    """Store the result of a sweep, with its digest in the manifest."""
    digest = write_dataset(folder / RESULT, data)
    manifest = read_record(folder / MANIFEST) or {}
    write_record(folder / MANIFEST, manifest | {"result sha256": digest})


def read_result(folder: Path) -> xarray.Dataset | None:
    """Return the result of a sweep, ``None`` if it is not finished.

    Raises
    ------
    StoreError
        If the result or the manifest is damaged.
    """
    digest = (read_record(folder / MANIFEST) or {}).get("result sha256")
    return None if digest is None else read_dataset(folder / RESULT, digest)


def labelled(config: Config, rows: list[Row], stamp: dict[str, str]) -> xarray.Dataset:
    """Return the outcomes as a NetCDF-safe dataset.

    Parameters
    ----------
    config
        Configuration of the sweep.
    rows
        Outcomes of all cells, in the order of their numbers.
    stamp
        Versions and digests of the code, stored as an attribute.
    """
    import xarray

    from dynamics.core.provenance import provenance

    system = theories.load(config.system)
    dims = [netcdf_name(name) for name in config.axes] or ["cell"]
    variables = {}
    for quantity in system.outcomes:
        column = np.array([row[quantity.name] for row in rows], float).reshape(config.shape)
        attributes = {"long_name": quantity.meaning, **_unit(quantity.unit)}
        variables[quantity.name] = (dims, column, attributes)
    for name in _TEXTS:
        column = np.array([row[name] for row in rows], object).reshape(config.shape)
        variables[name] = (dims, column, {"long_name": f"{name} of the run"})
    return xarray.Dataset(
        variables,
        coords=_coordinates(config),
        attrs={
            "title": f"sweep of {system.title}",
            "system": config.system,
            "configuration": json.dumps(config.plain()),
            "stamp": json.dumps(stamp),
            "provenance": json.dumps(provenance()),
        },
    )


def _unit(unit: str) -> dict[str, str]:
    """Return the NetCDF attribute of a unit."""
    return {"units": {"time": "learning rate x steps"}.get(unit, unit)} if unit else {}


def _coordinates(config: Config) -> dict[str, Any]:
    """Return the coordinates: values of the axes, or of the parameters of a list."""
    if config.axes:
        return {
            netcdf_name(name): (netcdf_name(name), _array(values), {"parameter": name})
            for name, values in config.axes.items()
        }
    names = dict.fromkeys(name for cell in config.listed for name in cell)
    columns = {name: [cell.get(name, math.nan) for cell in config.listed] for name in names}
    return {"cell": np.arange(config.size)} | {
        netcdf_name(name): ("cell", _array(column), {"parameter": name})
        for name, column in columns.items()
    }


def _array(values: Iterable[Any]) -> np.ndarray:
    """Return an array of numbers, or of strings if one value is a string."""
    values = list(values)
    text = any(isinstance(value, str) for value in values)
    return np.array([str(value) for value in values], object) if text else np.array(values)


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return a description of the first difference between two configurations."""
    if old["system"] != new["system"]:
        return "system differs"
    for part in ("fixed", "axes"):
        before, after = dict(old[part]), dict(new[part])
        for key in (*after, *before):
            if before.get(key) != after.get(key):
                return f"{key} differs"
    return "list differs" if old["list"] != new["list"] else "the order of the axes differs"
