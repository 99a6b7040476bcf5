"""`patchdyn sweep`: one run per cell of a grid of problems."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from simulations.commands import DONE, FAILED, INTERRUPTED, BadInput
from simulations.commands.arguments import EXIT_CODES

if TYPE_CHECKING:
    from simulations.sweep.config import Config
    from simulations.sweep.run import Engine

HELP = "a grid or list of problems, one run each, stored as labelled data"
DESCRIPTION = """\
Make one run per cell of CONFIG.toml and store when the events happen, what is reached and what is
violated in DIR/sweep.nc (NetCDF). A cell that cannot be run is a result too: its status says why.
Finished cells are stored at once: after Ctrl-C, a crash or a full disk the same command goes on
where it stopped, and once finished it computes nothing again.
"""
EPILOG = f"""\
a complete configuration:
  system = "positional"        # the theory (this is the default); or "masked"

  [fixed]                      # one value for all cells: fields of Problem, or
  D = 64                       # qD, qD/C^2, beta/tau, alpha0, gamma0, rho0
  C = 4

  [grid]                       # one axis each
  "qD/C^2" = {{ from = 0.02, to = 0.5, number = 8, scale = "log" }}
  nu = [1e-3, 1e-2, 1e-1]

  [run]                        # how each cell is solved
  solver = "flow"              # or "gd" with learning_rate and steps
  horizon = 1e6
  rtol = 1e-6
  tolerance = 1e-7             # of the population expectation

Instead of [grid], tables [[list]] give the cells one by one. Ready-made configurations of five
maps, one of them of masked image modelling, are in simulations/sweep/examples.

examples:
  patchdyn sweep simulations/sweep/examples/density-nu.toml --out density-nu
  patchdyn map density-nu
  patchdyn sweep CONFIG.toml --out DIR --theory FILE.py
  patchdyn sweep CONFIG.toml --out DIR --scheduler tcp://10.0.0.1:8786

{EXIT_CODES}
Cells that fail are results: that is exit code 0. Exit code 1 means that the sweep could not be
finished; what was finished is kept.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("config", type=Path, metavar="CONFIG.toml", help="what to compute")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to store it")
    parser.add_argument(
        "--theory", type=Path, metavar="FILE.py", help="of your own, instead of a system in CONFIG"
    )
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--workers", type=int, metavar="N", help="processes on this machine (default: its cores)"
    )
    who.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster that computes instead"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with the sweep in DIR, refuse to begin one"
    )


def execute(args: argparse.Namespace) -> int:
    """Compute what is missing and say what is there."""
    if args.workers is not None and args.workers < 1:
        raise BadInput(f"--workers {args.workers} is not allowed: it must be at least 1")
    if args.scheduler is not None and not args.scheduler.strip():
        raise BadInput("--scheduler needs an address, such as tcp://10.0.0.1:8786")
    return compute(
        args.config, args.out, args.theory, args.workers, args.scheduler, resume=args.resume
    )


def compute(
    path: Path, out: Path, theory: Path | None = None, workers: int | None = None,
    scheduler: str | None = None, *, resume: bool = False,
) -> int:  # fmt: skip
    """Compute what is missing of a sweep and say what is there; return the exit code."""
    from simulations.files.store import StoreError
    from simulations.sweep.cluster import ClusterError
    from simulations.sweep.config import ConfigError, read
    from simulations.sweep.run import open_store, sweep
    from simulations.sweep.store import MANIFEST, RESULT

    if resume and not (out / MANIFEST).is_file():
        raise BadInput(f"--resume is not allowed: {out} contains no sweep to resume")
    try:
        config = read(path, _theory(theory))
        store = open_store(out, config)
    except (ConfigError, StoreError) as refusal:
        raise BadInput(str(refusal)) from None
    with store:
        try:
            statuses = sweep(config, store, _engine(config, workers, scheduler))
        except (StoreError, ClusterError) as failure:
            return _stopped(f"{failure}; finished blocks are kept", out, FAILED)
        except KeyboardInterrupt:
            return _stopped("interrupted", out, INTERRUPTED)
    counts = ", ".join(f"{number} {status}" for status, number in statuses.items())
    print(f"{config.size} cells: {counts}")
    print(f"result: {out / RESULT}")
    return DONE


def _theory(file: Path | None) -> str | None:
    """Return the name of the theory of a file, if one is given."""
    from simulations import theories

    return None if file is None else theories.from_file(file).name


def _engine(config: Config, workers: int | None, scheduler: str | None) -> Engine:
    from simulations import theories
    from simulations.sweep.run import Distributed, Local

    theory = theories.load(config.system)
    if scheduler is not None:
        return Distributed(theory, scheduler)
    return Local(theory, workers or available_cores())


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _stopped(reason: str, out: Path, code: int) -> int:
    print(f"patchdyn: {reason}; the same command resumes ({out})", file=sys.stderr)
    return code
