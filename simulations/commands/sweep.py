"""`patchdyn sweep`: compute one run for each problem of a grid or list."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, FAILED, INTERRUPTED, BadInput
from simulations.commands.arguments import EXIT_CODES, add_optimizer, given_optimizer

if TYPE_CHECKING:
    from simulations.sweep.config import Config
    from simulations.sweep.engines import Engine

HELP = "compute one run for each problem of a grid or list"
DESCRIPTION = """\
Compute one run for each cell of the grid in CONFIG.toml. Store event times, final values and
violations of invariants in DIR/sweep.nc (NetCDF). A cell that cannot be run is stored with a status
and a message. Finished cells are stored immediately: after Ctrl-C, a crash or a full disk, the same
command resumes. A finished sweep is not computed again.
"""
EPILOG = f"""\
a complete configuration:
  system = "positional"        # theory: "positional" (default), "masked" or "shallow"

  [fixed]                      # parameters with one value: fields of Problem, or
  D = 64                       # qD, qD/C^2, beta/tau, alpha0, gamma0, rho0
  C = 4

  [grid]                       # one axis for each parameter
  "qD/C^2" = {{ from = 0.02, to = 0.5, number = 8, scale = "log" }}
  nu = [1e-3, 1e-2, 1e-1]

  [run]                        # solver of all cells
  solver = "flow"              # or "gd" with learning_rate and steps
  horizon = 1e6
  rtol = 1e-6
  tolerance = 1e-7             # of the population expectation

A list of cells is given by tables [[list]] instead of [grid]. Configurations of five maps, one of
them for masked attention, are in simulations/sweep/examples.

examples:
  patchdyn sweep simulations/sweep/examples/density-nu.toml --out density-nu
  patchdyn map density-nu
  patchdyn sweep CONFIG.toml --out DIR --theory FILE.py
  patchdyn sweep CONFIG.toml --out DIR --optimizer momentum --momentum 0.9
  patchdyn sweep CONFIG.toml --out DIR --scheduler tcp://10.0.0.1:8786

{EXIT_CODES}
The exit code is 0 even if cells fail. It is 1 if the sweep could not be finished; finished cells
are stored.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "config", type=Path, metavar="CONFIG.toml", help="configuration of the sweep"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the results"
    )
    parser.add_argument(
        "--theory",
        type=Path,
        metavar="FILE.py",
        help="file of a theory, in place of a system in CONFIG.toml",
    )
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="number of worker processes (default: one per core)",
    )
    engine.add_argument(
        "--scheduler", metavar="ADDRESS", help="compute on the Dask cluster with this scheduler"
    )
    parser.add_argument(
        "--resume", action="store_true", help="resume the sweep in DIR; fail if there is none"
    )
    add_optimizer(parser)


def execute(args: argparse.Namespace) -> int:
    """Check the arguments and compute the sweep."""
    if args.workers is not None and args.workers < 1:
        raise BadInput(f"--workers {args.workers} is not allowed: it must be at least 1")
    if args.scheduler is not None and not args.scheduler.strip():
        raise BadInput("--scheduler is not allowed without an address such as tcp://10.0.0.1:8786")
    return compute(
        args.config, args.out, args.theory, args.workers, args.scheduler,
        optimizer=given_optimizer(args), resume=args.resume,
    )  # fmt: skip


def compute(
    path: Path,
    out: Path,
    theory: Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    *,
    optimizer: Mapping[str, Any] = MappingProxyType({}),
    resume: bool = False,
) -> int:
    """Compute the missing cells of a sweep and print the number of cells by status.

    Parameters
    ----------
    path
        Configuration file.
    out
        Folder of the results.
    theory
        File of a theory.
    workers
        Number of worker processes; by default one per core.
    scheduler
        Address of a Dask scheduler to use in place of worker processes.
    optimizer
        Mapping from name to value of the parameters of the optimizer, for all cells.
    resume
        Fail if ``out`` contains no sweep.

    Returns
    -------
    int
        Exit code.
    """
    from simulations.files import StoreError
    from simulations.sweep.compute import open_store, sweep
    from simulations.sweep.config import ConfigError, read
    from simulations.sweep.engines import ClusterError
    from simulations.sweep.storage import MANIFEST, RESULT

    if resume and not (out / MANIFEST).is_file():
        raise BadInput(f"--resume is not allowed: {out} contains no sweep to resume")
    try:
        config = read(path, _theory(theory), optimizer)
        store = open_store(out, config)
    except (ConfigError, StoreError) as error:
        raise BadInput(str(error)) from None
    with store:
        try:
            statuses = sweep(config, store, _engine(config, workers, scheduler))
        except (StoreError, ClusterError) as error:
            return _stopped(f"{error}; finished blocks are stored", out, FAILED)
        except KeyboardInterrupt:
            return _stopped("interrupted", out, INTERRUPTED)
    counts = ", ".join(f"{number} {status}" for status, number in statuses.items())
    print(f"{config.size} cells: {counts}")
    print(f"result: {out / RESULT}")
    return DONE


def _theory(file: Path | None) -> str | None:
    """Load the theory in a file and return its name; None without a file."""
    from simulations import theories

    return None if file is None else theories.from_file(file).name


def _engine(config: Config, workers: int | None, scheduler: str | None) -> Engine:
    """Return the worker processes or the cluster that computes the cells."""
    from simulations import theories
    from simulations.sweep.engines import Cluster, Local

    theory = theories.load(config.system)
    if scheduler is not None:
        return Cluster(theory, scheduler)
    return Local(theory, workers or available_cores())


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _stopped(reason: str, out: Path, code: int) -> int:
    """Print why a sweep stopped; return the exit code."""
    print(f"patchdyn: {reason}; the same command resumes ({out})", file=sys.stderr)
    return code
