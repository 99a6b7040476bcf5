"""`patchdyn run`: compute one reduced trajectory of any theory."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from simulations import theories
from simulations.commands import DONE, FAILED, INTERRUPTED
from simulations.commands.arguments import (
    EXIT_CODES,
    Parser,
    add_output,
    add_parameters,
    check_output,
    given_parameters,
    report_written,
)

if TYPE_CHECKING:
    import xarray

    from dynamics import Risk, Trajectory
    from simulations.case import Case
    from simulations.system import System

HELP = "compute one reduced trajectory"


def parse(prog: str, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the choice of the theory, then the other arguments with the options of that theory.

    Returns
    -------
    tuple
        Namespace and unrecognized arguments, as `argparse.ArgumentParser.parse_known_args`.
    """
    choice = Parser(prog=prog, add_help=False)
    which = choice.add_mutually_exclusive_group()
    which.add_argument(
        "--system",
        choices=theories.names(),
        default=theories.DEFAULT,
        help=f"theory (default: {theories.DEFAULT}); see run --system NAME --help for its options",
    )
    which.add_argument("--theory", metavar="FILE.py", help="file of a theory")
    chosen, rest = choice.parse_known_args(arguments)
    theory = theories.load(chosen.system)
    if chosen.theory is not None:
        theory = theories.from_file(chosen.theory)
    return _subparser(theory, prog, choice).parse_known_args(rest, chosen)


def _subparser(theory: System, prog: str, choice: Parser) -> Parser:
    """Return the parser of the options of a theory."""
    description = f"""\
Compute one trajectory of {theory.title}:
gradient flow or gradient descent on the population risk.
Time is learning rate x steps: 10000 steps with learning rate 0.01 reach time 100.
"""
    parser = Parser(prog=prog, parents=[choice], description=description, epilog=_epilog(theory))
    add_parameters(parser, theory.parameters)
    add_output(
        parser, ("FILE.nc", "write the trajectory (NetCDF)"), "plot order parameters and risk"
    )
    parser.set_defaults(execute=partial(_execute, theory))
    return parser


def _epilog(theory: System) -> str:
    """Return examples and exit codes."""
    examples = [(theories.command(theory.build({})), ""), *theory.examples]
    others = [name for name in theories.names() if name != theory.name]
    examples += [
        (f"patchdyn run --system {name} --help", "options of another theory") for name in others
    ]
    examples += [("patchdyn run --theory FILE.py --help", "options of your own theory")]
    lines = "\n".join(f"  {command:<68} {comment}".rstrip() for command, comment in examples)
    return f"""\
examples:
{lines}

{EXIT_CODES}
If a run diverges, overflows or stalls, the results so far are printed and the exit code is 1. After
Ctrl-C the results so far are printed, and written to --out, and the exit code is 130.
"""


def _execute(theory: System, args: argparse.Namespace) -> int:
    """Check the output files and run."""
    check_output(args)
    return solve(theory, given_parameters(args), args.out, args.plot, as_json=args.json)


#: Number of records of a trajectory.
RECORDS = 300


def solve(
    theory: System,
    values: Mapping[str, Any],
    out: Path | None = None,
    plot: Path | None = None,
    *,
    as_json: bool = False,
) -> int:
    """Compute a trajectory, write it and print its summary.

    Parameters
    ----------
    theory
        Theory of the problem.
    values
        Mapping from parameter to value, without defaults.
    out, plot
        NetCDF file and PNG image to write, each optional.
    as_json
        Print JSON instead of text.

    Returns
    -------
    int
        Exit code: 0 if the trajectory reached its horizon.
    """
    from dynamics import Status
    from simulations.commands.run_summary import as_text, summarize
    from simulations.files import to_json

    case = theory.build(values)
    began = perf_counter()
    population, trajectory, interrupted = _compute(theory, case)
    seconds = perf_counter() - began
    dataset = partial(theory.dataset, case, trajectory, population)
    saved = _save(out, plot, trajectory, dataset)
    summary = summarize(theory, case, trajectory, population, seconds)
    print(to_json(summary) if as_json else as_text(theory, summary))
    if interrupted:
        return INTERRUPTED
    return DONE if saved and trajectory.status is Status.COMPLETED else FAILED


def _compute(theory: System, case: Case) -> tuple[Risk, Trajectory, bool]:
    """Return the risk, the trajectory and whether it was interrupted; print the warnings."""
    from dynamics import Interrupted
    from simulations.display import progress_bar

    label = "gradient flow" if case.solver == "flow" else "gradient descent"
    if rule := case.settings.get("optimizer"):
        label += f" ({rule})"
    try:
        with warnings.catch_warnings(record=True) as caught, progress_bar(label) as progress:
            warnings.simplefilter("always", UserWarning)
            population = theory.population(case)
            theory.check_start(case, population)
            trajectory = theory.solve(case, progress, RECORDS, population)
        for note in dict.fromkeys(str(warning.message) for warning in caught):
            print(f"patchdyn: note: {note}", file=sys.stderr)
    except Interrupted as interrupt:
        return population, interrupt.trajectory, True
    return population, trajectory, False


def _save(
    out: Path | None, plot: Path | None, run: Trajectory, dataset: Callable[[], xarray.Dataset]
) -> bool:
    """Write the requested files and print their names; return whether this succeeded."""
    from simulations.files import StoreError, write_bytes, write_dataset

    try:
        if out is not None:
            write_dataset(out, dataset())
            report_written(out)
        if plot is not None and run.time.size > 1:
            write_bytes(plot, _plot(run))
            report_written(plot)
        elif plot is not None:
            print("patchdyn: nothing to plot: the run ended at its start", file=sys.stderr)
    except StoreError as failure:
        print(f"patchdyn: {failure}", file=sys.stderr)
        return False
    return True


def _plot(trajectory: Trajectory) -> bytes:
    """Return a PNG image of order parameters and risk against time."""
    import numpy as np
    import xarray

    from simulations.figures import render, report_figure
    from simulations.figures.shared import draw_run

    data = xarray.Dataset(
        {
            "state": (("parameter", "time"), np.array(trajectory.states).T),
            "loss": ("time", np.array(trajectory.loss)),
        },
        coords={"parameter": list(trajectory.order_parameters), "time": np.array(trajectory.time)},
    )
    return render(report_figure("run", "", "", draw_run, data, size=(7.0, 6.0)))
