"""`patchdyn run`: one reduced trajectory of a problem of any theory, from its parameters."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from simulations import theories
from simulations.commands import DONE, FAILED, INTERRUPTED, BadInput
from simulations.commands.arguments import EXIT_CODES, number, refuse_to_replace

if TYPE_CHECKING:
    from dynamics import Risk, Trajectory
    from simulations.theory import Theory

HELP = "one reduced trajectory of a problem from its parameters"
_PREFIX = "parameter "  # keeps parameters apart from the other flags


def variant(arguments: Sequence[str]) -> RunOf:
    """Return the command of the theory that is asked for: its parameters are the flags."""
    file, name = _given("--theory", arguments), _given("--system", arguments)
    if file is not None and name is None:  # of both the parser says that they exclude each other
        return RunOf(theories.from_file(file))
    return RunOf(theories.load(name if name in theories.names() else theories.DEFAULT))


def _given(flag: str, arguments: Sequence[str]) -> str | None:
    """Return the value of a flag before the parser, which depends on it, is there."""
    for position, word in enumerate(arguments):
        if word == flag and position + 1 < len(arguments):
            return arguments[position + 1]
        if word.startswith(f"{flag}="):
            return word.removeprefix(f"{flag}=")
    return None


@dataclass(frozen=True)
class RunOf:
    """The command for one theory, with what the parser asks of a command."""

    theory: Theory

    HELP = HELP

    @property
    def DESCRIPTION(self) -> str:
        """What it does."""
        return (
            f"Solve one problem of {self.theory.title}:\n"
            "gradient flow or gradient descent on the population risk.\n"
            "Time is learning rate x steps: 10000 steps with learning rate 0.01 reach time 100.\n"
        )

    @property
    def EPILOG(self) -> str:
        """Examples and exit codes."""
        examples = [(theories.command(self.theory.build({})), ""), *self.theory.examples]
        others = [name for name in theories.names() if name != self.theory.name]
        examples += [(f"patchdyn run --system {name} --help", "another theory") for name in others]
        examples += [("patchdyn run --theory FILE.py --help", "a theory of your own, in a file")]
        lines = "\n".join(f"  {command:<68} {words}".rstrip() for command, words in examples)
        return f"""\
examples:
{lines}

{EXIT_CODES}
A run that diverges, overflows or stalls prints what it has and exits with 1. Ctrl-C keeps what was
computed (in --out if given) and exits with 130.
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the flags."""
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--system", choices=theories.names(), default=theories.DEFAULT,
            help=f"the theory (default {theories.DEFAULT}); its flags: run --system NAME --help",
        )  # fmt: skip
        which.add_argument("--theory", metavar="FILE.py", help="a theory stated in your own file")
        group = parser.add_argument_group("parameters (numbers may be written 1e-3 or 2/64)")
        for one in self.theory.parameters:
            allowed = f"; {one.allowed}" if one.allowed else ""
            group.add_argument(
                one.flag, dest=_PREFIX + one.name, metavar="X",
                type=str if one.kind is str else number, help=one.meaning + allowed,
            )  # fmt: skip
        output = parser.add_argument_group("output")
        output.add_argument("--json", action="store_true", help="print the result as JSON")
        output.add_argument(
            "--out", type=Path, metavar="FILE.nc", help="write the trajectory as NetCDF"
        )
        output.add_argument(
            "--plot", type=Path, metavar="FILE.png", help="draw order parameters and risk"
        )
        output.add_argument("--force", action="store_true", help="overwrite existing files")

    def execute(self, args: argparse.Namespace) -> int:
        """Solve, save, print."""
        from dynamics import Interrupted, Status
        from simulations.commands.run_summary import as_text, summarize
        from simulations.display import progress_bar
        from simulations.files.as_json import to_json

        _check_output(args)
        given = {
            name.removeprefix(_PREFIX): value
            for name, value in vars(args).items()
            if name.startswith(_PREFIX) and value is not None
        }
        case, code = self.theory.build(given), None
        label = "gradient flow" if case.solver == "flow" else "gradient descent"
        began = perf_counter()
        try:
            with warnings.catch_warnings(record=True) as caught, progress_bar(label) as progress:
                warnings.simplefilter("always", UserWarning)
                population = self.theory.population(case)
                self.theory.refuse_hopeless(case, population)
                trajectory = self.theory.solve(case, progress, RECORDS, population)
            for note in dict.fromkeys(str(warning.message) for warning in caught):
                print(f"patchdyn: note: {note}", file=sys.stderr)
        except Interrupted as interrupt:
            trajectory, code = interrupt.trajectory, INTERRUPTED
        seconds = perf_counter() - began
        if not _save(args, trajectory, population):
            code = code or FAILED
        summary = summarize(self.theory, case, trajectory, population, seconds)
        print(to_json(summary) if args.json else as_text(self.theory, summary))
        if code is None:
            code = DONE if trajectory.status is Status.COMPLETED else FAILED
        return code


#: Records of a run that is looked at.
RECORDS = 300


def _check_output(args: argparse.Namespace) -> None:
    """Refuse to write over something else; only regular files are replaced, with --force."""
    for flag, file in (("--out", args.out), ("--plot", args.plot)):
        if file is not None:
            refuse_to_replace(flag, file, force=args.force)
    if args.out is not None and args.plot is not None and _same(args.out, args.plot):
        raise BadInput(f"--out and --plot are not allowed to be the same file: {args.out}")


def _same(one: Path, other: Path) -> bool:
    """Tell whether two paths name one file, on systems that ignore case too."""
    if one.exists() and other.exists() and one.samefile(other):
        return True
    return str(one.resolve()).casefold() == str(other.resolve()).casefold()


def _save(args: argparse.Namespace, trajectory: Trajectory, population: Risk) -> bool:
    """Write what was asked for and say so; return whether it could be written."""
    from simulations.files.store import StoreError, write_bytes, write_dataset

    try:
        if args.out is not None:
            write_dataset(args.out, population.observe(trajectory).to_dataset())
            print(f"patchdyn: wrote {args.out}", file=sys.stderr)
        if args.plot is not None and trajectory.time.size > 1:
            write_bytes(args.plot, _drawn(trajectory))
            print(f"patchdyn: wrote {args.plot}", file=sys.stderr)
        elif args.plot is not None:
            print("patchdyn: nothing to plot: the run did not leave its start", file=sys.stderr)
    except StoreError as failure:
        print(f"patchdyn: {failure}", file=sys.stderr)
        return False
    return True


def _drawn(trajectory: Trajectory) -> bytes:
    """Return order parameters and risk along a run as PNG."""
    import numpy as np
    import xarray

    from simulations.figures import one_run, render, report_figure

    data = xarray.Dataset(
        {
            "state": (("parameter", "time"), np.array(trajectory.states).T),
            "loss": ("time", np.array(trajectory.loss)),
        },
        coords={"parameter": list(trajectory.order_parameters), "time": np.array(trajectory.time)},
    )
    return render(report_figure("run", "", "", one_run.draw, data, size=(7.0, 6.0)))
