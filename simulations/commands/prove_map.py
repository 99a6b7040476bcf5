"""`patchdyn prove --map`: a map of the cells in q and nu of which patch association is proved."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, FAILED, BadInput
from simulations.commands.arguments import (
    Range,
    check_output,
    given_parameters,
    report_written,
    unfinished_file,
)

if TYPE_CHECKING:
    import xarray

_Q = ("q", "qD", "qD/C^2")


def execute(
    args: argparse.Namespace,
    ranges: dict[str, Range],
    problem_and_options: Callable[[dict[str, Any]], tuple[Any, dict[str, Any]]],
) -> int:
    """Prove all cells of a map; print the fraction that is proved."""
    from simulations.commands.sweep import available_cores
    from simulations.display import progress_bar
    from simulations.files import StoreError, remove, to_json, write_json
    from simulations.validated import Axis, prove_map

    names = [name for name in ranges if name in _Q]
    if len(names) != 1 or set(ranges) != {*names, "nu"}:
        raise BadInput(
            "--map needs an interval of nu and one of q, qD or qD/C^2, and no other: for instance "
            "--qD 0.5..4 --nu 0.001..0.1"
        )
    if args.tolerance is not None:
        raise BadInput("--tolerance is not allowed with --map: no trajectory is enclosed")
    check_output(args)
    given = given_parameters(args)
    (low, options), (high, _) = (
        problem_and_options(given | {name: x[i] for name, x in ranges.items()}) for i in range(2)
    )
    if set(options) != {"horizon"}:
        raise BadInput("--map is not allowed with descent or an initial state: see --help")
    q = Axis(names[0], ranges[names[0]], (low.q, high.q))
    nu = Axis("nu", ranges["nu"], (low.nu, high.nu))
    unfinished = None if args.out is None else unfinished_file(args.out)
    try:
        with progress_bar("prove") as bar:
            data = prove_map(
                low.replace(nu=1.0, q=0.5), q, nu, cells=args.map, horizon=options["horizon"],
                workers=available_cores(), unfinished=unfinished, progress=bar,
            )  # fmt: skip
    except StoreError as failure:
        raise BadInput(str(failure)) from None
    except RuntimeError as failure:
        print(f"patchdyn: {failure}; finished cells are stored with --out", file=sys.stderr)
        return FAILED
    if unfinished is not None:
        write_json(args.out, as_record(data))
        remove(unfinished)
        report_written(args.out)
    if args.plot is not None:
        _draw(args.plot, data)
        report_written(args.plot)
    print(to_json(as_record(data)) if args.json else as_text(data))
    return DONE


def as_record(data: xarray.Dataset) -> dict[str, Any]:
    """Return a map as JSON-safe data; rows are nu, columns q."""
    return {
        **data.attrs,
        "x_edges": data["q_edge"].values.tolist(),
        "y_edges": data["nu_edge"].values.tolist(),
        **{name: data[name].values.tolist() for name in ("status", "boxes", "failure")},
    }


def as_text(data: xarray.Dataset) -> str:
    """Return a map as text."""
    from simulations.validated import PROVED

    status, attrs = data["status"].values, data.attrs
    cells, proved = status.size, int((status == PROVED).sum())
    ends = [(name, data[axis].values) for name, axis in ((attrs["x"], "q_edge"), ("nu", "nu_edge"))]
    where = ", ".join(f"{name} from {x[0]:g} to {x[-1]:g}" for name, x in ends)
    lines = [
        f"proved in {proved} of {cells} cells ({proved / cells:.1%} of the area, logarithmic): "
        f"gamma > rho and patch association for 0 < t <= {attrs['horizon']:g}",
        f"  {where}; D = {attrs['D']}, C = {attrs['C']}; "
        "each proof is for all constants of its cell",
    ]
    for other in sorted(set(status.ravel().tolist()) - {PROVED}):
        lines.append(f"  {'not proved, ' + other:<40} {int((status == other).sum())} cells")
    return "\n".join(lines)


def _draw(path: Any, data: xarray.Dataset) -> None:
    from simulations.figures import regime_map, render, report_figure
    from simulations.files import write_bytes

    figure = report_figure("prove", "", "", regime_map.draw_association, data, size=(5.2, 4.2))
    write_bytes(path, render(figure))
