"""The folder of a sweep: finished blocks, each complete or absent, and the labelled result.

Layout: ``sweep.json`` says what is computed and by which code, ``config.toml`` is the
configuration as it was written, ``blocks/NNNNN.nc`` hold finished blocks of cells, and ``sweep.nc``
is the whole, once all blocks are there. Blocks and result are sealed
(:mod:`simulations.files.store`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from simulations import theories
from simulations.files.stamped_folder import Kind, difference, sealed
from simulations.files.store import (
    StoreError,
    read_sealed_dataset,
    write_bytes,
    write_json,
    write_sealed_dataset,
)
from simulations.sweep.cells import Row
from simulations.sweep.config import Config

if TYPE_CHECKING:
    import xarray

MANIFEST, RESULT = "sweep.json", "sweep.nc"
_TEXTS = ("status", "message")


def _fits(found: Mapping[str, Any]) -> bool:
    return isinstance(found.get("configuration"), dict) and isinstance(found.get("stamp"), dict)


KIND = Kind("sweep", MANIFEST, 2, _fits, ("blocks",))


def netcdf_name(parameter: str) -> str:
    """Return the name of a parameter in a file, where a slash would open a group."""
    return parameter.replace("/", "_over_").replace("^", "")


class SweepStore:
    """Blocks on disk, all of one configuration and one stamp, and one writer at a time.

    :meth:`open` takes the lock of the folder; as a context manager it does so too, and lets go.
    """

    def __init__(self, path: Path, config: Config, stamp: dict[str, str]) -> None:
        self.path, self.config, self.stamp = path, config, stamp
        self.outcomes = [quantity.name for quantity in theories.load(config.system).outcomes]
        self._lock: contextlib.ExitStack | None = None

    def __enter__(self) -> SweepStore:
        if self._lock is None:
            self.open()
        return self

    def open(self) -> None:
        """Take the folder.

        Raises
        ------
        StoreError
            If it cannot be written, holds something else or another sweep, or is in use.
        """
        lock, manifest = KIND.take(self.path, self._refuse)
        if manifest is None:
            with lock:
                self._write_manifest()
                lock = lock.pop_all()
        self._lock = lock

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _refuse(self, manifest: dict[str, Any]) -> None:
        """Refuse a folder that holds another sweep."""
        what = ""
        if manifest["configuration"] != self._plain():
            changed = _difference(manifest["configuration"], self._plain())
            what = f"of another configuration ({changed})"
        elif changed := difference(manifest["stamp"], self.stamp):
            what = f"made by {changed}"
        if what:
            raise StoreError(f"{self.path} holds a sweep {what}: choose another --out")

    def _plain(self) -> Any:
        return json.loads(json.dumps(self.config.plain()))

    def _write_manifest(self) -> None:
        from dynamics.core.provenance import provenance

        content = {
            "format": KIND.layout,
            "system": self.config.system,
            "configuration": self._plain(),
            "digest": self.config.digest,
            "cells": self.config.size,
            "cells_per_block": self.config.block,
            "stamp": self.stamp,
            "provenance": provenance(),
        }
        write_json(self.path / MANIFEST, sealed(content))  # first: it makes the folder ours
        write_bytes(self.path / "config.toml", self.config.text.encode())

    def block_path(self, block: int) -> Path:
        """Return where a block is stored."""
        return self.path / "blocks" / f"{block:05d}.nc"

    def write(self, block: int, rows: list[Row]) -> None:
        """Store a finished block."""
        import xarray

        cells = self.config.cells_of(block)
        numbers = np.array([[row[name] for name in self.outcomes] for row in rows], float)
        data = xarray.Dataset(
            {"outcomes": (("cell", "outcome"), numbers)}
            | {name: ("cell", np.array([row[name] for row in rows], object)) for name in _TEXTS},
            coords={"cell": np.arange(cells.start, cells.stop), "outcome": self.outcomes},
            attrs={"sweep": self.config.digest, "digest": self._digest(block, rows)},
        )
        write_sealed_dataset(self.block_path(block), data)

    def read(self, block: int) -> list[Row] | None:
        """Return the rows of a stored block, ``None`` if it is absent.

        Raises
        ------
        StoreError
            If the block is there but damaged.
        """
        path = self.block_path(block)
        data = read_sealed_dataset(path)
        if data is None:
            return None
        try:
            numbers = data["outcomes"].sel(outcome=self.outcomes).values.tolist()
            texts = zip(*(data[name].values.tolist() for name in _TEXTS))
            rows: list[Row] = [
                {**dict(zip(self.outcomes, row)), **dict(zip(_TEXTS, text))}
                for row, text in zip(numbers, texts)
            ]
            whole = data.attrs["digest"] == self._digest(block, rows)
        except Exception as failure:  # sealed, but not by this code
            raise StoreError(f"cannot read {path}: {type(failure).__name__}") from failure
        if not whole:
            raise StoreError(f"cannot read {path}: it is a block of another sweep")
        return rows

    def _digest(self, block: int, rows: Iterable[Row]) -> str:
        """Return a digest of a block's rows, of its place and of the configuration."""
        names = (*self.outcomes, *_TEXTS)
        content = repr([[row[name] for name in names] for row in rows])
        return hashlib.sha256(f"{self.config.digest} {block} {content}".encode()).hexdigest()

    def finished(self, warn: Any) -> Iterator[tuple[int, list[Row]]]:
        """Yield the stored blocks; ``warn(sentence)`` of a damaged one, which counts as absent."""
        for block in range(self.config.blocks):
            try:
                rows = self.read(block)
            except StoreError as damage:
                warn(f"{damage}; its cells are computed again")
                continue
            if rows is not None:
                yield block, rows

    def result_is_complete(self) -> bool:
        """Tell whether the labelled result is there and can be read."""
        with contextlib.suppress(StoreError, KeyError):
            data = read_sealed_dataset(self.path / RESULT)
            return data is not None and bool(data["status"].size == self.config.size)
        return False

    def write_result(self, rows: list[Row]) -> Path:
        """Store the labelled result of all cells."""
        target = self.path / RESULT
        write_sealed_dataset(target, labelled(self.config, rows, self.stamp))
        return target


def labelled(config: Config, rows: list[Row], stamp: dict[str, str]) -> xarray.Dataset:
    """Return the outcomes on the axes of a sweep, NetCDF-safe."""
    import xarray

    from dynamics.core.provenance import provenance

    system = theories.load(config.system)
    dims = [netcdf_name(name) for name in config.axes] or ["cell"]
    variables = {}
    for quantity in system.outcomes:
        column = np.array([row[quantity.name] for row in rows], float).reshape(config.shape)
        about = {"long_name": quantity.meaning}
        variables[quantity.name] = (dims, column, about | _unit(quantity.unit))
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
    return {"units": {"time": "learning rate x steps"}.get(unit, unit)} if unit else {}


def _coordinates(config: Config) -> dict[str, Any]:
    """Return the values of the axes, or of every parameter that a list sets."""
    if config.axes:
        return {
            netcdf_name(name): (netcdf_name(name), _array(values), {"parameter": name})
            for name, values in config.axes.items()
        }
    names = dict.fromkeys(name for cell in config.listed for name in cell)
    return {"cell": np.arange(config.size)} | {
        netcdf_name(name): ("cell", _array([cell.get(name, math.nan) for cell in config.listed]),
                            {"parameter": name})
        for name in names
    }  # fmt: skip


def _array(values: Iterable[Any]) -> np.ndarray:
    values = list(values)
    words = any(isinstance(value, str) for value in values)
    return np.array([str(value) for value in values], object) if words else np.array(values)


def _difference(old: Any, new: Any) -> str:
    """Return what differs between two configurations, in words; ``old`` may be anything."""
    for part in ("system", "fixed", "axes", "list"):
        if old.get(part) != new[part]:
            before, now = dict(_pairs(old.get(part))), dict(_pairs(new[part]))
            for key in (*now, *before):
                if before.get(key) != now.get(key):
                    return f"{key} differs"
            return f"{part} differ" if part != "system" else "system differs"
    return "it differs"


def _pairs(part: Any) -> Iterable[tuple[Any, Any]]:
    """Return the entries of one part of a configuration."""
    if isinstance(part, dict):
        return part.items()
    if isinstance(part, list) and all(
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], str)
        and isinstance(entry[1], list)
        for entry in part
    ):
        return ((name, tuple(map(str, values))) for name, values in part)
    return ()
