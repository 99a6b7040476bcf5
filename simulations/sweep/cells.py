"""One cell of a sweep: a pure function of its values, whoever computes it and when."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from dynamics.core.errors import ParameterError
from simulations.system import FAILED, INVALID, System

#: What became of a cell: outcomes by name, with ``status`` and ``message``.
Row = dict[str, "float | str"]

# LSODA keeps its state in the process: one run at a time in each
_one_run = threading.Lock()


def measure_cell(theory: System, values: Mapping[str, Any]) -> Row:
    """Return the outcomes of one cell; whatever goes wrong is a status and a message."""
    try:
        case = theory.build(values)
    except ParameterError as refusal:
        return nothing(theory, INVALID, str(refusal))
    try:
        with _one_run:
            return theory.measure(case)
    except Exception as failure:  # a defect met in one cell must not cost the others
        return nothing(theory, FAILED, f"{type(failure).__name__}: {failure}")


def measure_cells(theory: System, cells: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return the outcomes of several cells."""
    return [measure_cell(theory, values) for values in cells]


def nothing(theory: System, status: str, message: str) -> Row:
    """Return the row of a cell without outcomes."""
    row: Row = {quantity.name: math.nan for quantity in theory.outcomes}
    return row | {"status": status, "message": message}


def compile_kernels(theory: System) -> None:
    """Compile the kernels in a process of their own, so that all others load them from disk.

    Code that Numba has just compiled and the same code loaded from its cache may round
    differently: a worker that compiled would return other last digits than the rest. Whatever ends
    the waiting ends the compilation too, its own processes with it.
    """
    process = subprocess.Popen(
        [sys.executable, *theory.precompile], stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        process.wait()
    except BaseException:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        raise
