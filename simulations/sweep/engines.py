"""Engines that compute the blocks of a sweep: processes on this machine, or a Dask cluster."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from simulations.case import FAILED
from simulations.sweep.cells import Row, compile_kernels, empty_row, measure_cell
from simulations.sweep.cluster import Cluster
from simulations.sweep.config import Config
from simulations.sweep.progress import Progress
from simulations.system import System
from simulations.workers import Channel, WorkerPool

#: Number of times that a cell is computed if its process dies.
ATTEMPTS = 3

Cell = tuple[int, Mapping[str, Any]]
Block = tuple[int, list[Row]]
Measure = Callable[[System, Mapping[str, Any]], Row]


class Engine(Protocol):
    """Computes blocks of cells."""

    def blocks(self, config: Config, numbers: list[int], progress: Progress) -> Iterator[Block]:
        """Yield number and rows of these blocks as they are finished, in any order."""

    def close(self) -> None:
        """Release the workers."""


@dataclass
class Local:
    """Worker processes on this machine.

    Parameters
    ----------
    theory
        Theory of the sweep.
    workers
        Number of processes.
    """

    theory: System
    workers: int = 2

    def blocks(self, config: Config, numbers: list[int], progress: Progress) -> Iterator[Block]:
        """Compute cell by cell and yield each block when its cells are finished."""
        compile_kernels(self.theory)
        cells = [(cell, config.values(cell)) for b in numbers for cell in config.cells_of(b)]
        unfinished: dict[int, dict[int, Row]] = {block: {} for block in numbers}
        self._rows = measure_in_processes(self.theory, self.workers, cells)
        for cell, row in self._rows:
            progress.add(str(row["status"]))
            block = cell // config.block
            unfinished[block][cell] = row
            if len(unfinished[block]) == len(config.cells_of(block)):
                rows = unfinished.pop(block)
                yield block, [rows[number] for number in sorted(rows)]

    def close(self) -> None:
        """End the processes."""
        if hasattr(self, "_rows"):
            self._rows.close()


class Distributed:
    """Workers of a Dask cluster.

    Parameters
    ----------
    theory
        Theory of the sweep.
    address
        Address of the scheduler.
    """

    def __init__(self, theory: System, address: str) -> None:
        self.cluster = Cluster(theory, address)

    def blocks(self, config: Config, numbers: list[int], progress: Progress) -> Iterator[Block]:
        """Compute one task per block."""
        tasks = [(b, [config.values(cell) for cell in config.cells_of(b)]) for b in numbers]
        for block, rows in self.cluster.results(tasks):
            for row in rows:
                progress.add(str(row["status"]))
            yield block, rows

    def close(self) -> None:
        """Disconnect from the cluster."""
        self.cluster.close()


def measure_in_processes(
    theory: System, workers: int, cells: Sequence[Cell], measure: Measure = measure_cell
) -> Generator[tuple[int, Row], None, None]:
    """Compute cells in worker processes.

    A process computes one cell at a time. If it dies, the cell is computed again; a cell whose
    process dies `ATTEMPTS` times has the status ``failed``.

    Parameters
    ----------
    theory
        Theory of the cells; it is pickled for the processes.
    workers
        Number of processes.
    cells
        Pairs of the number of a cell and its parameters.
    measure
        Computes a cell; other processes must be able to import it.

    Yields
    ------
    tuple of int and Row
        Number and outcomes of each cell as it is finished, in any order.
    """
    pool = WorkerPool(workers, partial(_measure, measure, theory))
    deaths: Counter[int] = Counter()
    for task, event in pool.events(cells):
        cell = task[0]
        if event.kind == "done":
            yield cell, event.content
            continue
        deaths[cell] += 1
        if deaths[cell] < ATTEMPTS:
            pool.retry(task)
        else:
            message = f"the worker process died {ATTEMPTS} times in this cell ({event.content})"
            yield cell, empty_row(theory, FAILED, message)


def _measure(measure: Measure, theory: System, cell: Cell, channel: Channel) -> Row:
    return measure(theory, cell[1])
