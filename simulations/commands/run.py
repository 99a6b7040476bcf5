"""`patchdyn run`: compute one reduced trajectory of any theory."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from simulations import theories
from simulations.commands import DONE, FAILED, INTERRUPTED, BadInput
from simulations.commands.arguments import (
    EXIT_CODES,
    Parser,
    add_output,
    add_parameters,
    assignment,
    check_output,
    given_parameters,
    report_written,
)
from simulations.commands.image_options import add_image_options, image_options

if TYPE_CHECKING:
    import xarray

    from dynamics import Risk, Trajectory
    from simulations.case import Case
    from simulations.figures.image import Image
    from simulations.system import System

HELP = "compute one reduced trajectory"
#: Axes of the plot with a choice of scale.
_AXES = ("time", "loss")


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
    add_image_options(parser, ", ".join(_AXES))
    parser.add_argument(
        "--with",
        dest="second",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="draw a second run in the same plot, with this parameter changed (repeatable)",
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
    values, image, second = given_parameters(args), None, None
    changes = dict(assignment("--with", text) for text in args.second)
    if args.plot is not None:
        image = image_options(args, _AXES, args.plot)
    if changes:
        if args.plot is None:
            raise BadInput("--with is not allowed without --plot: it draws a second run")
        second = theory.build({**values, **changes})
    plot = None if image is None else Plot(args.plot, image, second, ", ".join(args.second))
    return solve(theory, values, args.out, plot, as_json=args.json)


#: Number of records of a trajectory.
RECORDS = 300


@dataclass(frozen=True)
class Plot:
    """Plot of one run or two.

    Attributes
    ----------
    path, image
        File and options of the image.
    second
        Case of the second run; ``None``: there is none.
    changes
        Parameters in which the second run differs, as text.
    """

    path: Path
    image: Image
    second: Case | None = None
    changes: str = ""

    def write(self, theory: System, case: Case, run: Trajectory, population: Risk) -> None:
        """Write the image of a run and, if there is one, of the second run."""
        from simulations.figures import render, report_figure
        from simulations.figures.shared import draw_run
        from simulations.files import write_bytes

        data = _drawn(run)
        data.attrs = {"scales": json.dumps(dict(self.image.scales))}
        if self.second is None:
            data.attrs["events"] = json.dumps(_events(theory, case, run, population))
        else:
            _, other, _ = _compute(theory, self.second)
            renamed = {name: f"{name} 2" for name in ("time", "state", "loss")}
            data = data.merge(_drawn(other).rename(renamed))
            data.attrs["runs"] = json.dumps(["as given", self.changes])
        if self.image.scales.get("loss") == "log" and not min(run.loss) > 0.0:
            raise BadInput("--scale loss=log is not allowed: the risk of this run is not positive")
        figure = report_figure("run", "", "", draw_run, data, size=(7.0, 6.0))
        write_bytes(self.path, render(figure, self.image))


def _drawn(run: Trajectory) -> xarray.Dataset:
    """Return order parameters and risk of a run."""
    import numpy as np
    import xarray

    return xarray.Dataset(
        {
            "state": (("parameter", "time"), np.array(run.states).T),
            "loss": ("time", np.array(run.loss)),
        },
        coords={"parameter": list(run.order_parameters), "time": np.array(run.time)},
    )


def _events(theory: System, case: Case, run: Trajectory, population: Risk) -> dict[str, float]:
    """Return the times of the events of a run that happen; none of an interrupted run."""
    from dynamics import Status

    if run.status is Status.INTERRUPTED:
        return {}
    outcomes = theory.summarize(case, run, population)
    names = [q.name for q in theory.outcomes if q.unit == "time" and q.name != "time"]
    return {name: float(outcomes[name]) for name in names if math.isfinite(float(outcomes[name]))}


def solve(
    theory: System,
    values: Mapping[str, Any],
    out: Path | None = None,
    plot: Plot | None = None,
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
        NetCDF file and plot to write, each optional.
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
    saved = _save(theory, case, (trajectory, population), out, plot)
    summary = summarize(theory, case, trajectory, population, seconds)
    print(to_json(summary) if as_json else as_text(theory, summary))
    if interrupted:
        return INTERRUPTED
    return DONE if saved and trajectory.status is Status.COMPLETED else FAILED


def _compute(theory: System, case: Case) -> tuple[Risk, Trajectory, bool]:
    """Return the risk, the trajectory and whether it was interrupted; print the warnings."""
    from dynamics import Interrupted
    from simulations.display import progress_bar

    labels = {"flow": "gradient flow", "gd": "gradient descent", "sgd": "runs of SGD"}
    label = labels[case.solver]
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
    theory: System,
    case: Case,
    result: tuple[Trajectory, Risk],
    out: Path | None,
    plot: Plot | None,
) -> bool:
    """Write the requested files and print their names; return whether this succeeded."""
    from simulations.files import StoreError, write_dataset

    run, population = result
    try:
        if out is not None:
            write_dataset(out, theory.dataset(case, run, population))
            report_written(out)
        if plot is not None and run.time.size > 1:
            plot.write(theory, case, run, population)
            report_written(plot.path)
        elif plot is not None:
            print("patchdyn: nothing to plot: the run ended at its start", file=sys.stderr)
    except StoreError as failure:
        print(f"patchdyn: {failure}", file=sys.stderr)
        return False
    return True
