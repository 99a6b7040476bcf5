"""Both cores of this machine: worker processes that survive the death of any of them.

Each worker computes one cell at a time and sends each result back at once, so that a worker that
dies costs one cell, which another worker repeats. A cell that kills its worker again and again is
given up with status ``failed``.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from simulations.interrupts import held_back
from simulations.sweep.cells import Row, measure_cell, nothing
from simulations.theory import FAILED, Theory

#: How often a cell may kill its worker before it is given up.
ATTEMPTS = 3
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Cell = tuple[int, Mapping[str, Any]]
Measure = Callable[[Theory, Mapping[str, Any]], Row]


def _work(pipe: Connection, measure: Measure, theory: Theory) -> None:
    """Compute cells until the other end closes; Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(measure(theory, pipe.recv()))


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    cell: Cell | None = None


class Workers:
    """A pool of processes, one thread each.

    Parameters
    ----------
    theory
        Whose cells are computed; sent to the processes, which need not find it by name.
    number
        How many processes.
    measure
        What computes a cell; a function that other processes can import.
    """

    def __init__(self, theory: Theory, number: int, measure: Measure = measure_cell) -> None:
        self.theory, self.number, self.measure = theory, number, measure
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []

    def results(self, cells: Sequence[Cell]) -> Iterator[tuple[int, Row]]:
        """Yield (number, outcomes) of the cells as they are finished, in any order."""
        queue, deaths = deque(cells), dict.fromkeys((number for number, _ in cells), 0)
        try:
            self._workers = [self._start() for _ in range(min(self.number, len(queue)))]
            for worker in self._workers:
                self._give(worker, queue)
            while busy := [worker for worker in self._workers if worker.cell is not None]:
                for ready in wait([worker.pipe for worker in busy]):
                    worker = next(one for one in busy if one.pipe is ready)
                    assert worker.cell is not None
                    number = worker.cell[0]
                    try:
                        row = worker.pipe.recv()
                    except (EOFError, OSError):
                        deaths[number] += 1
                        if deaths[number] < ATTEMPTS:
                            queue.appendleft(worker.cell)
                        else:
                            yield number, self._given_up(worker)
                        self._workers[self._workers.index(worker)] = worker = self._replace(worker)
                    else:
                        yield number, row
                    self._give(worker, queue)
        finally:
            self.close()

    @property
    def processes(self) -> list[int]:
        """Ids of the worker processes."""
        return [worker.process.pid for worker in self._workers]

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        for worker in self._workers:
            worker.process.kill()
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join()
        self._workers = []

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_work, args=(theirs, self.measure, self.theory), daemon=True
        )
        with _one_thread(), held_back():
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _give(self, worker: _Worker, queue: deque[Cell]) -> None:
        """Hand the next cell to a worker; a dead one is noticed when its answer is read."""
        worker.cell = queue.popleft() if queue else None
        if worker.cell is not None:
            with contextlib.suppress(OSError):
                worker.pipe.send(dict(worker.cell[1]))

    def _replace(self, worker: _Worker) -> _Worker:
        worker.pipe.close()
        worker.process.kill()
        worker.process.join()
        return self._start()

    def _given_up(self, worker: _Worker) -> Row:
        worker.process.join()
        code = worker.process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return nothing(
            self.theory, FAILED, f"the worker process died {ATTEMPTS} times in this cell ({how})"
        )


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Start processes whose numerical libraries use one thread each."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
