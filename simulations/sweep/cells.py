"""Computation of one cell of a sweep, a pure function of its parameter values."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dynamics.core.errors import ParameterError
from simulations.case import FAILED, INVALID

if TYPE_CHECKING:
    from simulations.system import System

#: Outcomes of a cell: mapping from name to value, with ``status`` and ``message``.
Row = dict[str, "float | str"]

#: LSODA has global state, so that a process computes only one cell at a time.
_lsoda_lock = threading.Lock()


def measure_cell(theory: System, values: Mapping[str, Any]) -> Row:
    """Return the outcomes of one cell.

    Parameters
    ----------
    theory
        Theory of the sweep.
    values
        Parameters of the cell.

    Returns
    -------
    Row
        Outcomes; errors are reported as a status and a message.
    """
    try:
        case = theory.build(values)
    except ParameterError as error:
        return empty_row(theory, INVALID, str(error))
    try:
        with _lsoda_lock:
            return theory.measure(case)
    except Exception as error:  # a bug in one cell must not stop the sweep
        return empty_row(theory, FAILED, f"{type(error).__name__}: {error}")


def measure_cells(theory: System, cells: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return the outcomes of several cells."""
    return [measure_cell(theory, values) for values in cells]


def empty_row(theory: System, status: str, message: str) -> Row:
    """Return a row whose outcomes are nan."""
    row: Row = {quantity.name: math.nan for quantity in theory.outcomes}
    return row | {"status": status, "message": message}


def compile_kernels(theory: System) -> None:
    """Compile the kernels in a separate process, so that all workers load them from the cache.

    Code that Numba has just compiled and the same code loaded from the cache may round
    differently: a worker that compiled its kernels would return other last digits. If waiting is
    interrupted, the process and its children are killed.
    """
    process = subprocess.Popen(
        [sys.executable, *theory.precompile], stdout=subprocess.DEVNULL, start_new_session=True
    )
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


def sweep_stamp(theory: System | None = None) -> dict[str, str]:
    """Return versions and digests of the code that the outcomes of a sweep depend on.

    Sweeps with equal stamps have equal outcomes. Plots and the report do not count. ``theory`` adds
    the digest of the file of a user-defined theory.
    """
    from dynamics.core.provenance import provenance
    from simulations.files import code_fingerprint
    from simulations.theories import folders

    versions = {key: value for key, value in provenance().items() if key != "commit"}
    modules = ("case", "solver_options", "system")
    parts = ("dynamics", *(f"simulations/{module}.py" for module in modules), *folders())
    file = {"theory": theory.fingerprint} if theory is not None and theory.fingerprint else {}
    return {
        **versions,
        "python": platform.python_version(),
        "code": code_fingerprint(parts),
        **file,
    }
