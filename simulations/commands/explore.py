"""`patchdyn explore`: an interactive local web page for one theory or one sweep."""

from __future__ import annotations

import argparse
import asyncio
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from simulations import theories
from simulations.commands import DONE, FAILED, BadInput
from simulations.commands.arguments import EXIT_CODES, number, pair

if TYPE_CHECKING:
    from simulations.explorer.server import Explorer
    from simulations.explorer.state import View
    from simulations.maps import Sweep

HELP = "open a local web page with a slider for each parameter (extra: explore)"
DESCRIPTION = """\
Serve a web page on this machine, with a field and a slider for each parameter of a theory. The page
plots each run as you change parameters: order parameters and events against time, the risk and its
bound, the phase portrait, the attention matrix at a chosen time, and the violation of each
invariant with its numerical error. Slow runs show their progress and can be cancelled; moving a
slider cancels the current run.

With SWEEP_DIR, the folder of a finished sweep, the page also shows its regime maps: click a cell to
see its run. With FILE.py, the page shows the theory in that file.

The address of the page contains all choices. To share a view, send the address to someone who runs
the same command on the same port. The page also shows the `patchdyn run` command that reproduces
the current run. By default the accuracy is low, for speed (positional attention: tolerance 1e-6,
rtol 1e-5); set it in the fields of the page.
"""
EPILOG = f"""\
examples:
  patchdyn explore --open                         positional attention, in your browser
  patchdyn explore --system masked                another theory
  patchdyn explore my_theory.py                   your own theory
  patchdyn explore --at qD=8 --at nu=0.03         initial values of parameters
  patchdyn explore density-nu --port 5007         the maps of a sweep, on another port

{EXIT_CODES}
Stop the server with Ctrl-C; it then exits with code 0. The server rejects requests from other
machines and from other web sites. Input is parsed as by `patchdyn run` and never evaluated.
"""
PORT = 5006


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "shown",
        nargs="?",
        type=Path,
        metavar="SWEEP_DIR|FILE.py",
        help="folder of a finished sweep, or file of a theory",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--system", choices=theories.names(), help=f"theory (default: {theories.DEFAULT})"
    )
    which.add_argument(
        "--theory",
        type=Path,
        metavar="FILE.py",
        help="file of a theory; with SWEEP_DIR, the theory of the sweep",
    )
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="initial value of a parameter (repeatable)",
    )
    parser.add_argument(
        "--port",
        type=number,
        default=PORT,
        metavar="N",
        help=f"port (default: {PORT}; 0: any free port)",
    )
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="open the page in a browser (default: only print its address)",
    )


def execute(args: argparse.Namespace) -> int:
    """Check the arguments and serve the page until Ctrl-C."""
    if not (isinstance(args.port, int) and 0 <= args.port < 2**16):
        raise BadInput(f"--port {args.port} is not allowed: it must be an integer from 0 to 65535")
    folder, file = _folder_and_file(args.shown, args.theory)
    system = args.system if file is None else theories.from_file(file).name
    sweep = None if folder is None else _read_sweep(folder, system)
    view = _initial_view(system if sweep is None else sweep.config.system, args.at)
    if find_spec("bokeh") is None:
        from simulations.explorer import COMMAND

        raise BadInput(f"explore needs bokeh, which is not installed: {COMMAND}")
    from simulations.commands.sweep import available_cores
    from simulations.explorer.server import Explorer

    try:
        explorer = Explorer(view, args.port, max(2, available_cores()), sweep)
    except OSError as failure:
        reason = os.strerror(failure.errno) if failure.errno else failure
        raise BadInput(
            f"--port {args.port} is not allowed: {reason}; choose another port, or 0 for any"
        ) from None
    return _serve(explorer, args.open)


def _folder_and_file(shown: Path | None, theory: Path | None) -> tuple[Path | None, Path | None]:
    """Return the folder of the sweep and the file of the theory, each None if not given."""
    if shown is None or shown.suffix != ".py" or shown.is_dir():
        return shown, theory
    if theory is not None:
        raise BadInput(f"--theory {theory} is not allowed with {shown}: give one file")
    return None, shown


def _read_sweep(folder: Path, system: str | None) -> Sweep:
    """Return the sweep in a folder; raises BadInput if it has no plane or another system."""
    from simulations.files import StoreError
    from simulations.maps import read

    try:
        sweep = read(folder)
    except StoreError as error:
        raise BadInput(str(error)) from None
    if system not in (None, sweep.config.system):
        raise BadInput(
            f"--system {system} is not allowed: the system of the sweep in {folder} is "
            f"{sweep.config.system}"
        )
    if sum(len(values) > 1 for values in sweep.axes.values()) < 2:
        raise BadInput(f"the sweep in {folder} cannot be mapped: it needs two axes")
    return sweep


def _initial_view(system: str | None, pairs: list[str]) -> View:
    """Return the initial view of the page; raises ParameterError if a value is not allowed."""
    from simulations.explorer.state import View, case

    texts = dict(pair("--at", text) for text in pairs)
    view = View(system or theories.DEFAULT, texts)
    case(theories.load(view.system), texts)
    return view


def _serve(explorer: Explorer, show: bool) -> int:
    """Print the address and serve until Ctrl-C."""
    import sys
    import webbrowser

    try:
        print(f"patchdyn explorer: {explorer.address}\nstop it with Ctrl-C", flush=True)
        if show and not webbrowser.open(explorer.address):
            print("patchdyn: cannot open a browser: open the address yourself", file=sys.stderr)
        asyncio.run(explorer.serve())
    except KeyboardInterrupt:
        return DONE
    return FAILED
