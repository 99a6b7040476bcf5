"""`patchdyn map`: regime maps of a sweep, and what is behind one of their points."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, BadInput
from simulations.commands.arguments import EXIT_CODES, assignment

if TYPE_CHECKING:
    from simulations.maps import Map, Sweep

HELP = "regime maps of a sweep; or, with --at, what is behind one point of them"
DESCRIPTION = """\
Draw what the sweep in DIR says about the plane of its two axes: when patch association is learned
(T1), where gamma >= rho is violated, where alpha rises again, the final test error above the best
possible one, and for gradient descent where it is stable. Boundaries that are known beforehand are
marked. Each map is a PNG and the NetCDF file of what it shows, in DIR/maps.
"""
EPILOG = f"""\
examples:
  patchdyn sweep simulations/sweep/examples/density-nu.toml --out density-nu
  patchdyn map density-nu                           all maps
  patchdyn map density-nu --quantity G              one outcome
  patchdyn map density-nu --at qD/C^2=0.3 --at nu=0.01
                                                    the nearest cell, and the command that reruns it
  patchdyn map DIR --at D=64                        a slice of a sweep with three axes

{EXIT_CODES}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="of a finished sweep")
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="fix an axis at its nearest value; with all axes fixed, print that cell",
    )
    parser.add_argument(
        "--quantity", action="append", metavar="NAME", help="map this outcome only (repeatable)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: DIR/maps")
    parser.add_argument("--json", action="store_true", help="print a cell as JSON")
    parser.add_argument("--theory", metavar="FILE.py", help="the file of a sweep with --theory")


def execute(args: argparse.Namespace) -> int:
    """Draw the maps, or print a cell."""
    from simulations.files.store import StoreError
    from simulations.maps import read

    if args.theory is not None:
        from simulations import theories

        theories.from_file(args.theory)
    at = dict(assignment("--at", text) for text in args.at)
    try:
        sweep = read(args.folder)
    except StoreError as refusal:
        raise BadInput(str(refusal)) from None
    many = {name for name, values in sweep.axes.items() if len(values) > 1}
    sweep.place(at)
    if at and many <= set(at):
        return _print_cell(sweep, at, args.json)
    if args.json:
        raise BadInput("--json is not allowed without --at for every axis: it prints one cell")
    return _draw_maps(sweep, at, args)


def _draw_maps(sweep: Sweep, at: dict[str, Any], args: argparse.Namespace) -> int:
    from simulations.maps import maps_of, outcome_map

    wanted: tuple[Map, ...] = maps_of(sweep)
    if args.quantity:
        wanted = tuple(outcome_map(sweep, name) for name in args.quantity)
    out = args.out or args.folder / "maps"
    for one in wanted:
        print(_draw(sweep, one, at, out))
    return DONE


def _draw(sweep: Sweep, one: Map, at: dict[str, Any], out: Path) -> Path:
    """Draw one map; returns the picture's path."""
    import io

    from matplotlib.figure import Figure

    from simulations.figures import regime_map
    from simulations.files.store import write_bytes, write_dataset
    from simulations.maps import draw_data

    data = draw_data(sweep, one, at)
    figure = Figure(figsize=(6.4, 5.0), dpi=160, layout="constrained")
    regime_map.draw(data, figure)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_dataset(out / f"{one.name}.nc", data)
    write_bytes(out / f"{one.name}.png", picture.getvalue())
    return out / f"{one.name}.png"


def _print_cell(sweep: Sweep, at: dict[str, Any], as_json: bool) -> int:
    """Print the outcomes of a cell and the command that makes its run again."""
    import numpy as np

    from dynamics import ParameterError
    from simulations import theories
    from simulations.files.as_json import to_json
    from simulations.sweep.store import netcdf_name

    place = {name: 0 for name in sweep.axes} | sweep.place(at)
    cell = int(np.ravel_multi_index(tuple(place.values()), sweep.config.shape))
    row = sweep.data.isel({netcdf_name(name): index for name, index in place.items()})
    outcomes: dict[str, Any] = {str(name): row[name].item() for name in row.data_vars}
    system = theories.load(sweep.config.system)
    try:
        command = theories.command(sweep.case(cell))
    except ParameterError:
        command = None
    point = {name: sweep.axes[name][index] for name, index in place.items()}
    if as_json:
        values = sweep.config.values(cell)
        print(to_json({"at": point, "values": values, "outcomes": outcomes, "command": command}))
        return DONE
    shown_at = (f"{n} = {v if isinstance(v, str) else format(v, 'g')}" for n, v in point.items())
    print("at       " + ", ".join(shown_at))
    print(f"status   {outcomes.pop('status')}: {outcomes.pop('message')}\n")
    for quantity in system.outcomes:
        value = outcomes[quantity.name]
        shown = "-" if np.isnan(value) else f"{value:.6g}"
        print(f"{quantity.name:<26} {shown:>13}   {quantity.meaning}")
    print(f"\nthis run again:\n{command}" if command else "\nno run can be made of this cell")
    return DONE
