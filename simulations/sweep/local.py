"""The cells of a sweep, computed in worker processes on this machine.

A process computes one cell at a time. If it dies, the cell is computed again; a cell whose process
dies `ATTEMPTS` times has the status ``failed``.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

from simulations.sweep.cells import Row, measure_cell, nothing
from simulations.theory import FAILED, Theory
from simulations.workers import Channel, WorkerPool

#: Number of times that a cell is computed if its process dies.
ATTEMPTS = 3

Cell = tuple[int, Mapping[str, Any]]
Measure = Callable[[Theory, Mapping[str, Any]], Row]


def results(
    theory: Theory, number: int, cells: Sequence[Cell], measure: Measure = measure_cell
) -> Generator[tuple[int, Row], None, None]:
    """Yield (number, outcomes) of the cells as they are finished, in any order.

    Parameters
    ----------
    theory
        Whose cells are computed; sent to the processes, which need not find it by name.
    number
        How many processes.
    cells
        What is computed, numbered.
    measure
        What computes a cell; a function that other processes can import.
    """
    pool = WorkerPool(number, partial(_row, measure, theory))
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
            yield cell, nothing(theory, FAILED, message)


def _row(measure: Measure, theory: Theory, cell: Cell, channel: Channel) -> Row:
    return measure(theory, cell[1])
