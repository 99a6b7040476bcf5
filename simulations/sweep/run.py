"""A sweep from its configuration to its labelled result, whoever computes the cells."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import xarray

from simulations import theories
from simulations.sweep.cells import Row, compile_kernels, measure_cell
from simulations.sweep.cluster import Cluster
from simulations.sweep.config import Config
from simulations.sweep.local import results
from simulations.sweep.progress import Progress
from simulations.sweep.stamp import stamp
from simulations.sweep.store import SweepStore, labelled
from simulations.system import System

Block = tuple[int, list[Row]]


class Engine(Protocol):
    """Who computes blocks of cells."""

    def blocks(self, config: Config, wanted: list[int], progress: Progress) -> Iterator[Block]:
        """Yield the wanted blocks as they are finished, in any order."""

    def close(self) -> None:
        """Let go of the workers."""


@dataclass
class Local:
    """So many processes of this machine."""

    theory: System
    workers: int = 2

    def blocks(self, config: Config, wanted: list[int], progress: Progress) -> Iterator[Block]:
        """Compute cell by cell and gather the cells of each block."""
        compile_kernels(self.theory)
        cells = [(cell, config.values(cell)) for b in wanted for cell in config.cells_of(b)]
        waiting: dict[int, dict[int, Row]] = {block: {} for block in wanted}
        self._rows = results(self.theory, self.workers, cells)
        for cell, row in self._rows:
            progress.add(str(row["status"]))
            block = cell // config.block
            waiting[block][cell] = row
            if len(waiting[block]) == len(config.cells_of(block)):
                rows = waiting.pop(block)
                yield block, [rows[number] for number in sorted(rows)]

    def close(self) -> None:
        """End the processes."""
        if hasattr(self, "_rows"):
            self._rows.close()


class Distributed:
    """A Dask cluster."""

    def __init__(self, theory: System, address: str) -> None:
        self.cluster = Cluster(theory, address)

    def blocks(self, config: Config, wanted: list[int], progress: Progress) -> Iterator[Block]:
        """Compute one task per block."""
        tasks = [(b, [config.values(cell) for cell in config.cells_of(b)]) for b in wanted]
        for block, rows in self.cluster.results(tasks):
            for row in rows:
                progress.add(str(row["status"]))
            yield block, rows

    def close(self) -> None:
        """Leave the cluster."""
        self.cluster.close()


def sweep(config: Config, store: SweepStore, engine: Engine) -> dict[str, int]:
    """Compute what the store lacks, write the result, and return the number of cells by status.

    A sweep that is stopped, by whatever, has lost no finished block.
    """
    notes: list[str] = []
    done = dict(store.finished(notes.append))
    missing = [block for block in range(config.blocks) if block not in done]
    computed = sum(len(config.cells_of(block)) for block in missing)
    progress = Progress(config.size, config.size - computed)
    try:
        for note in notes:
            progress.say(f"patchdyn: warning: {note}")
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


def compute(config: Config, progress: Any = None) -> xarray.Dataset:
    """Return the labelled result of a small sweep, computed here and now and stored nowhere."""
    rows, theory = [], theories.load(config.system)
    for number, values in enumerate(config, start=1):
        rows.append(measure_cell(theory, values))
        if progress is not None:
            progress(number / config.size)
    return labelled(config, rows, stamp(theory))


def open_store(path: Path, config: Config) -> SweepStore:
    """Return the store of a sweep made by this code."""
    return SweepStore(path, config, stamp(theories.load(config.system)))


def grid(system: str, axes: Mapping[str, Any], **fixed: Any) -> Config:
    """Return a configuration made in Python."""
    return Config(system, fixed, {name: tuple(values) for name, values in axes.items()})
