"""`patchdyn map`: draw regime maps of a sweep, or print one of its cells."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, BadInput
from simulations.commands.arguments import (
    EXIT_CODES,
    add_optimizer,
    assignment,
    check_output_file,
    given_optimizer,
)
from simulations.commands.image_options import FORMATS, add_image_options, image_options

if TYPE_CHECKING:
    import xarray

    from simulations.figures.image import Image
    from simulations.maps import Map, Sweep

HELP = "draw regime maps of a sweep or, with --at, print one cell"
DESCRIPTION = """\
Draw regime maps of the sweep in DIR over the plane of its two axes: the time at which patch
association is learned (T1), violations of gamma >= rho, a second rise of alpha, the excess of the
final test error over the best possible one and, for gradient descent, stability. Theoretical
boundaries are drawn as lines. Each map is written to DIR/maps as an image and as NetCDF.
"""
EPILOG = f"""\
examples:
  patchdyn sweep simulations/sweep/examples/density-nu.toml --out density-nu
  patchdyn map density-nu                           draw all maps
  patchdyn map density-nu --quantity G              draw one outcome
  patchdyn map density-nu --at qD/C^2=0.3 --at nu=0.01
                                                    print the nearest cell and its command
  patchdyn map DIR --at D=64                        draw a slice of a sweep with three axes
  patchdyn map density-nu --quantity G --out G.pdf --size 8.5x7 --scale nu=linear
                                                    write one map for a column of a paper

{EXIT_CODES}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of a finished sweep")
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="fix an axis at its value nearest to VALUE; with all axes fixed, print that cell",
    )
    parser.add_argument(
        "--quantity", action="append", metavar="NAME", help="draw only this outcome (repeatable)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of the maps (default: DIR/maps); a name that ends in .pdf, .svg or .png is "
        "the file of one map",
    )
    parser.add_argument("--force", action="store_true", help="overwrite the file of --out")
    parser.add_argument("--json", action="store_true", help="print the cell as JSON")
    parser.add_argument("--theory", metavar="FILE.py", help="file of the theory of the sweep")
    add_image_options(parser, "an axis of the sweep, or value for the colours")
    add_optimizer(parser)


def execute(args: argparse.Namespace) -> int:
    """Draw the maps, or print a cell."""
    from simulations.files import StoreError
    from simulations.maps import read

    if args.theory is not None:
        from simulations import theories

        theories.from_file(args.theory)
    at = dict(assignment("--at", text) for text in args.at)
    try:
        sweep = read(args.folder)
    except StoreError as error:
        raise BadInput(str(error)) from None
    at |= _at_optimizer(sweep, given_optimizer(args))
    varied = {name for name, values in sweep.axes.items() if len(values) > 1}
    sweep.indices(at)  # raises if a name or a value is not allowed
    if at and varied <= set(at):
        return _print_cell(sweep, at, args.json)
    if args.json:
        raise BadInput("--json is not allowed without --at for every axis: it prints a single cell")
    return _draw_maps(sweep, at, args)


def _at_optimizer(sweep: Sweep, optimizer: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the optimizer that are axes; reject others that differ."""
    for name, value in optimizer.items():
        if name not in sweep.axes and sweep.config.fixed.get(name) != value:
            used = sweep.config.fixed.get(name, "its default")
            raise BadInput(
                f"{name} = {value} is not allowed: the sweep used {name} = {used}; run the sweep "
                f"with --{name.replace('_', '-')} {value}"
            )
    return {name: value for name, value in optimizer.items() if name in sweep.axes}


def _draw_maps(sweep: Sweep, at: dict[str, Any], args: argparse.Namespace) -> int:
    from simulations.files import write_bytes, write_dataset
    from simulations.maps import map_data, maps_of, outcome_map

    maps: tuple[Map, ...] = maps_of(sweep)
    if args.quantity:
        maps = tuple(outcome_map(sweep, name) for name in args.quantity)
    out, file = args.out or args.folder / "maps", None
    if out.suffix.lower().removeprefix(".") in FORMATS:
        file, out = out, out.parent
        if len(maps) != 1:
            raise BadInput(
                f"--out {file} is not allowed for {len(maps)} maps: choose one with --quantity"
            )
        check_output_file("--out", file, force=args.force)
    image = image_options(args, (*sweep.axes, "value"), file)
    for regime_map in maps:
        data = map_data(sweep, regime_map, at, image.scales)
        path = file or out / f"{regime_map.name}.{image.format}"
        content = _draw(data, image)
        if file is None:
            write_dataset(path.with_suffix(".nc"), data)
        write_bytes(path, content)
        print(path)
    return DONE


def _draw(data: xarray.Dataset, image: Image) -> bytes:
    """Return a map as an image."""
    from simulations.figures import regime_map, render, report_figure

    figure = report_figure("map", "", "", regime_map.draw, data, (6.4, 5.0))
    return render(figure, image)


def _print_cell(sweep: Sweep, at: dict[str, Any], as_json: bool) -> int:
    """Print the outcomes of a cell and the command that reproduces its run."""
    import numpy as np

    from dynamics import ParameterError
    from simulations import theories
    from simulations.files import to_json
    from simulations.sweep.storage import netcdf_name

    indices = {name: 0 for name in sweep.axes} | sweep.indices(at)
    cell = int(np.ravel_multi_index(tuple(indices.values()), sweep.config.shape))
    row = sweep.data.isel({netcdf_name(name): index for name, index in indices.items()})
    outcomes: dict[str, Any] = {str(name): row[name].item() for name in row.data_vars}
    system = theories.load(sweep.config.system)
    try:
        command = theories.command(sweep.case(cell))
    except ParameterError:
        command = None
    point = {name: sweep.axes[name][index] for name, index in indices.items()}
    if as_json:
        values = sweep.config.values(cell)
        print(to_json({"at": point, "values": values, "outcomes": outcomes, "command": command}))
        return DONE
    equations = (f"{n} = {v if isinstance(v, str) else format(v, 'g')}" for n, v in point.items())
    print("cell     " + ", ".join(equations))
    print(f"status   {outcomes.pop('status')}: {outcomes.pop('message')}\n")
    for quantity in system.outcomes:
        value = outcomes[quantity.name]
        shown = "-" if np.isnan(value) else f"{value:.6g}"
        print(f"{quantity.name:<26} {shown:>13}   {quantity.meaning}")
    print(f"\nreproduce this run with:\n{command}" if command else "\nthis cell cannot be run")
    return DONE
