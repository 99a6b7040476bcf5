"""Engines that compute the blocks of a sweep: processes on this machine, or a Dask cluster."""

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from simulations.case import FAILED
from simulations.display import CellProgress
from simulations.sweep.cells import (
    Row,
    compile_kernels,
    empty_row,
    measure_cell,
    measure_cells,
    sweep_stamp,
)
from simulations.sweep.config import Config
from simulations.system import System
from simulations.workers import Channel, WorkerPool

#: Number of times that a cell is computed if its process dies.
ATTEMPTS = 3
_CONNECT_SECONDS = 10

Cell = tuple[int, Mapping[str, Any]]
Block = tuple[int, list[Row]]
Measure = Callable[[System, Mapping[str, Any]], Row]


class Engine(Protocol):
    """Computes blocks of cells."""

    def blocks(self, config: Config, numbers: list[int], progress: CellProgress) -> Iterator[Block]:
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

    def blocks(self, config: Config, numbers: list[int], progress: CellProgress) -> Iterator[Block]:
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


class ClusterError(Exception):
    """The cluster cannot be used; the message is one sentence."""


class DifferentCode(Exception):
    """A worker has another version of the code than the client; the message names the parts."""


class Cluster:
    """Workers of a scheduler of Dask distributed, one task per block.

    Tasks are pure functions that return their rows, and only the client writes files. If a worker
    dies, the scheduler assigns its tasks to another worker.

    Parameters
    ----------
    theory
        Theory of the sweep.
    address
        Address of the scheduler.

    Raises
    ------
    ClusterError
        If Dask is not installed or there is no scheduler at the address.
    """

    def __init__(self, theory: System, address: str) -> None:
        self.theory, self.address = theory, address
        try:
            from distributed import Client
        except ImportError:
            raise ClusterError(
                "--scheduler needs Dask, which is not installed: pip install 'patchdyn[cluster]'"
            ) from None
        # errors of the cluster are reported as one sentence, without the tracebacks of Dask
        logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
        try:
            self.client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, ImportError) as failure:
            reason = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
            raise ClusterError(f"no scheduler answers at {address}: {reason}") from None

    def blocks(self, config: Config, numbers: list[int], progress: CellProgress) -> Iterator[Block]:
        """Compute one task per block."""
        tasks = [(b, [config.values(cell) for cell in config.cells_of(b)]) for b in numbers]
        for block, rows in self.results(tasks):
            for row in rows:
                progress.add(str(row["status"]))
            yield block, rows

    def results(self, blocks: Sequence[tuple[int, Sequence[Mapping[str, Any]]]]) -> Iterator[Block]:
        """Yield (number, rows) of the blocks as they are finished, in any order."""
        from distributed import KilledWorker, as_completed

        stamp, cells = sweep_stamp(self.theory), dict(blocks)
        futures = {
            self.client.submit(_work, self.theory, list(block), stamp, pure=False): number
            for number, block in blocks
        }
        try:
            for future in as_completed(list(futures), loop=self.client.loop):
                number = futures.pop(future)
                try:
                    rows = future.result()
                except KilledWorker:
                    message = "the workers of the cluster died repeatedly in this block"
                    rows = [empty_row(self.theory, FAILED, message) for _ in cells[number]]
                yield number, rows
        except (CancelledError, OSError) as loss:
            raise ClusterError(
                f"the connection to the scheduler at {self.address} is lost"
            ) from loss
        except (DifferentCode, ImportError) as difference:
            raise ClusterError(
                f"a worker of {self.address} runs different code ({difference}): install the same "
                "version of patchdyn and of its libraries on all machines"
            ) from None
        finally:
            for future in futures:
                with contextlib.suppress(Exception):
                    future.cancel()

    def close(self) -> None:
        """Disconnect from the cluster."""
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)


#: Whether this worker has compiled its kernels.
_compiled = False


def _work(
    theory: System, cells: Sequence[Mapping[str, Any]], client_stamp: dict[str, str]
) -> list[Row]:
    """Compute a block on a worker; raises DifferentCode if its stamp differs from the client's."""
    global _compiled
    stamp = sweep_stamp(theory)
    if stamp != client_stamp:
        differing = (key for key in client_stamp if stamp.get(key) != client_stamp[key])
        raise DifferentCode(" and ".join(differing))
    if not _compiled:
        compile_kernels(theory)
        _compiled = True
    return measure_cells(theory, cells)


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
        if event.type == "done":
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
