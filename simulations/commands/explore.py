"""`patchdyn explore`: a page on this machine to play with problems, and with the map of a sweep."""

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

HELP = "play with a theory, or with the map of a sweep, on a local page (extra: explore)"
DESCRIPTION = """\
Serve a page, to this machine alone, with a field and a slider for each parameter of a theory. It
draws the run while you play: order parameters against time with their events, the risk and its
bound, the phase portrait, the attention matrix at a moment, and each invariant with its violation
beside its numerical error. A run that is slow shows how far it is and can be cancelled; moving a
slider stops the run before.

With SWEEP_DIR, a finished sweep, its regime maps stand above: click a cell to see its run.
With FILE.py, a theory stated in a file of your own, the page is about that theory.

The address of the page holds all that was chosen: send it to a colleague who runs the same command
on the same port. The page also gives the `patchdyn run` command that makes the run it shows.
Accuracy is that of a sketch (for positional attention tolerance 1e-6 and rtol 1e-5) unless it is
set: the fields show what holds.
"""
EPILOG = f"""\
examples:
  patchdyn explore --open                         positional attention, in your browser
  patchdyn explore --system masked                another theory
  patchdyn explore my_theory.py                   a theory in a file
  patchdyn explore --at qD=8 --at nu=0.03         where the page begins
  patchdyn explore density-nu --port 5007         the maps of a sweep, on a port of your choice

{EXIT_CODES}
Ctrl-C ends the server, which is its usual end: exit code 0. Other machines, and pages of other
sites in your browser, are refused; what is typed is read as `patchdyn run` reads it, never
evaluated.
"""
PORT = 5006


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "shown",
        nargs="?",
        type=Path,
        metavar="SWEEP_DIR|FILE.py",
        help="a finished sweep, or a theory stated in your own file",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--system", choices=theories.names(), help=f"the theory (default {theories.DEFAULT})"
    )
    which.add_argument(
        "--theory", type=Path, metavar="FILE.py", help="a theory in a file; of the sweep, if given"
    )
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="begin with this value of a parameter (repeatable)",
    )
    parser.add_argument(
        "--port",
        type=number,
        default=PORT,
        metavar="N",
        help=f"port of this machine (default {PORT}; 0: any that is free)",
    )
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="show the page in a browser (default: only tell its address)",
    )


def execute(args: argparse.Namespace) -> int:
    """Check what is asked for, then serve."""
    if not (isinstance(args.port, int) and 0 <= args.port < 2**16):
        raise BadInput(f"--port {args.port} is not allowed: it must be an integer from 0 to 65535")
    folder, file = _shown(args.shown, args.theory)
    system = args.system if file is None else theories.from_file(file).name
    sweep = None if folder is None else _swept(folder, system)
    view = _beginning(system if sweep is None else sweep.config.system, args.at)
    if find_spec("bokeh") is None:
        from simulations.explorer import COMMAND

        raise BadInput(f"explore needs bokeh, which is not installed: {COMMAND}")
    from simulations.commands.sweep import available_cores
    from simulations.explorer.server import Explorer

    try:
        explorer = Explorer(view, args.port, max(2, available_cores()), sweep)
    except OSError as failure:
        words = os.strerror(failure.errno) if failure.errno else failure
        raise BadInput(
            f"--port {args.port} is not allowed: {words}; choose another, or 0 for any"
        ) from None
    return _serve(explorer, args.open)


def _shown(shown: Path | None, theory: Path | None) -> tuple[Path | None, Path | None]:
    """Return the folder of a sweep and the file of a theory that are asked for."""
    if shown is None or shown.suffix != ".py" or shown.is_dir():
        return shown, theory
    if theory is not None:
        raise BadInput(f"--theory {theory} is not allowed with {shown}: name one file")
    return None, shown


def _swept(folder: Path, system: str | None) -> Sweep:
    from simulations.files.store import StoreError
    from simulations.maps import read

    try:
        sweep = read(folder)
    except StoreError as refusal:
        raise BadInput(str(refusal)) from None
    if system not in (None, sweep.config.system):
        raise BadInput(
            f"--system {system} is not allowed: the sweep in {folder} is of {sweep.config.system}"
        )
    if sum(len(values) > 1 for values in sweep.axes.values()) < 2:
        raise BadInput(f"the sweep in {folder} has no plane to map: it needs two axes")
    return sweep


def _beginning(system: str | None, pairs: list[str]) -> View:
    """Return what a page shows at first; refused as the page would refuse it."""
    from simulations.explorer.state import View, case

    texts = dict(pair("--at", text) for text in pairs)
    view = View(system or theories.DEFAULT, texts)
    case(theories.load(view.system), texts)
    return view


def _serve(explorer: Explorer, show: bool) -> int:
    """Tell the address and serve until Ctrl-C."""
    import sys
    import webbrowser

    try:
        print(f"patchdyn explorer: {explorer.address}\nCtrl-C ends it", flush=True)
        if show and not webbrowser.open(explorer.address):
            print("patchdyn: no browser could be opened: open the address by hand", file=sys.stderr)
        asyncio.run(explorer.serve())
    except KeyboardInterrupt:
        return DONE
    return FAILED
