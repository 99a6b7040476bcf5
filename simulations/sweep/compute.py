"""Run a sweep, from its configuration to its labelled result."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray

from simulations import theories
from simulations.display import CellProgress
from simulations.sweep.cells import measure_cell, sweep_stamp
from simulations.sweep.config import Config
from simulations.sweep.engines import Engine
from simulations.sweep.storage import SweepStore, labelled


def sweep(config: Config, store: SweepStore, engine: Engine) -> dict[str, int]:
    """Compute the missing blocks of a sweep and store the result.

    Parameters
    ----------
    config
        Configuration of the sweep.
    store
        Folder of finished blocks. An interrupted sweep loses none of them.
    engine
        Computes the blocks; it is closed at the end.

    Returns
    -------
    dict of str to int
        Number of cells by status.
    """
    warnings: list[str] = []
    done = dict(store.finished(warnings.append))
    missing = [block for block in range(config.blocks) if block not in done]
    to_compute = sum(len(config.cells_of(block)) for block in missing)
    progress = CellProgress(config.size, config.size - to_compute)
    try:
        for warning in warnings:
            progress.write(f"patchdyn: warning: {warning}")
        if missing:
            for block, rows in engine.blocks(config, missing, progress):
                store.write(block, rows)
                done[block] = rows
    finally:
        engine.close()
        progress.close()
    rows = [row for block in range(config.blocks) for row in done[block]]
    if missing or not store.result_is_complete():
        store.write_result(rows)
    statuses = [str(row["status"]) for row in rows]
    return {status: statuses.count(status) for status in dict.fromkeys(statuses)}


def compute(config: Config, progress: Callable[[float], None] | None = None) -> xarray.Dataset:
    """Compute a small sweep in this process and return its labelled result.

    Parameters
    ----------
    config
        Configuration of the sweep.
    progress
        Called with the fraction of cells that are done.
    """
    rows, theory = [], theories.load(config.system)
    for number, values in enumerate(config, start=1):
        rows.append(measure_cell(theory, values))
        if progress is not None:
            progress(number / config.size)
    return labelled(config, rows, sweep_stamp(theory))


def open_store(path: Path, config: Config) -> SweepStore:
    """Open, or create, the folder of a sweep that is computed by this version of the code."""
    return SweepStore(path, config, sweep_stamp(theories.load(config.system)))


def grid(system: str, axes: Mapping[str, Any], **fixed: Any) -> Config:
    """Return a configuration.

    Parameters
    ----------
    system
        Name of the theory.
    axes
        Mapping from parameter to its values; the cells are their product.
    fixed
        Parameters with one value.
    """
    return Config(system, fixed, {name: tuple(values) for name, values in axes.items()})
