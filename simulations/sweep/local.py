"""The cells of a sweep on this machine, in processes that survive the death of any of them.

A process computes one cell at a time: one that dies costs one cell, which is computed again. A cell
that kills its process again and again is given up with status ``failed``.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

from simulations.parallel import Team
from simulations.sweep.cells import Row, measure_cell, nothing
from simulations.system import FAILED, System

#: How often a cell may kill its worker before it is given up.
ATTEMPTS = 3

Cell = tuple[int, Mapping[str, Any]]
Measure = Callable[[System, Mapping[str, Any]], Row]


def results(
    theory: System, number: int, cells: Sequence[Cell], measure: Measure = measure_cell
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
    team: Team[Cell] = Team(number, partial(_row, measure, theory))
    deaths: Counter[int] = Counter()
    for event in team.events(cells):
        cell = event.task[0]
        if event.kind == "done":
            yield cell, event.content
            continue
        deaths[cell] += 1
        if deaths[cell] < ATTEMPTS:
            team.again(event.task)
        else:
            how = f"the worker process died {ATTEMPTS} times in this cell ({event.content})"
            yield cell, nothing(theory, FAILED, how)


def _row(measure: Measure, theory: System, cell: Cell, tell: Callable[[Any], None]) -> Row:
    return measure(theory, cell[1])
