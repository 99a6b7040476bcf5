"""`patchdyn run --system NAME`: one run of another theory; its parameters become the flags."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, FAILED, INTERRUPTED
from simulations.commands.arguments import EXIT_CODES, number

if TYPE_CHECKING:
    from dynamics import Trajectory
    from simulations.theories import Case, System

_PREFIX = "parameter "  # keeps parameters apart from the other flags


@dataclass(frozen=True)
class RunOf:
    """The command for one system, with what the parser asks of a command."""

    system: System

    @property
    def HELP(self) -> str:
        """One line."""
        return f"one trajectory of {self.system.title}"

    @property
    def DESCRIPTION(self) -> str:
        """What it does."""
        return (
            f"Solve one problem of {self.system.title}: gradient flow (the default) or gradient "
            "descent. Time is learning rate x steps."
        )

    @property
    def EPILOG(self) -> str:
        """Exit codes."""
        return f"examples:\n  {self.system.command(self.system.build({}))}\n\n{EXIT_CODES}"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the flags."""
        from simulations.commands.run import add_output

        parser.add_argument("--system", required=True, metavar="NAME", help="the theory")
        group = parser.add_argument_group("parameters (numbers may be written 1e-3 or 2/64)")
        for one in self.system.parameters:
            allowed = f"; {one.allowed}" if one.allowed else ""
            group.add_argument(
                f"--{one.name.replace('_', '-')}", dest=_PREFIX + one.name, metavar="X",
                type=str if one.kind is str else number, help=(one.meaning + allowed),
            )  # fmt: skip
        add_output(parser)

    def execute(self, args: argparse.Namespace) -> int:
        """Solve, save, print."""
        from dynamics import Interrupted, Status
        from simulations.commands.run import check_output, save
        from simulations.display import progress_bar
        from simulations.files.as_json import to_json

        check_output(args)
        given = {name.removeprefix(_PREFIX): value for name, value in vars(args).items()
                 if name.startswith(_PREFIX) and value is not None}  # fmt: skip
        code = None
        try:
            case = self.system.build(given)
            with warnings.catch_warnings(), progress_bar(f"run, {self.system.name}") as progress:
                warnings.simplefilter("ignore", UserWarning)  # sampling is told by the error bar
                trajectory = self.system.solve(case, progress)
        except Interrupted as interrupt:
            trajectory, code = interrupt.trajectory, INTERRUPTED
        if not save(args, trajectory):
            code = code or FAILED
        summary = summarize(self.system, case, trajectory)
        print(to_json(summary) if args.json else as_text(self.system, summary))
        if code is None:
            code = DONE if trajectory.status is Status.COMPLETED else FAILED
        return code


def summarize(system: System, case: Case, trajectory: Trajectory) -> dict[str, Any]:
    """Return everything worth saying about a run, JSON-safe (nan becomes null)."""
    from dynamics.core.provenance import provenance
    from simulations.files.as_json import plain

    outcomes = system.summarize(case, trajectory)
    any_record = trajectory.time.size > 0
    return plain(
        {
            "system": system.name,
            "status": outcomes.pop("status"),
            "message": outcomes.pop("message"),
            "problem": asdict(case.problem),
            "constants": system.describe(case),
            "solver": trajectory.solver,
            "settings": dict(trajectory.settings),
            "stats": dict(trajectory.stats),
            "method": trajectory.population.method,
            "reason": trajectory.population.reason,
            "outcomes": outcomes,
            "violations": trajectory.violations() if any_record else None,
            "command": system.command(case),
            "provenance": provenance(),
        }
    )


def as_text(system: System, summary: Mapping[str, Any]) -> str:
    """Return a summary for a person."""
    constants = ", ".join(
        f"{name} = {value:.6g}" for name, value in summary["constants"].items() if value is not None
    )
    lines = [f"problem      {constants}", f"expectation  {summary['reason']}",
             f"solver       {summary['solver']}",
             f"status       {summary['status']}: {summary['message']}", ""]  # fmt: skip
    for quantity in system.outcomes:
        value = summary["outcomes"][quantity.name]
        shown = "-" if value is None else f"{value:.6g}"
        lines.append(f"{quantity.name:<28} {shown:>13}   {quantity.meaning}")
    return "\n".join(lines)


def chosen(arguments: list[str]) -> str | None:
    """Return the system that arguments ask for, ``None`` if they do not."""
    for position, word in enumerate(arguments):
        if word == "--system" and position + 1 < len(arguments):
            return arguments[position + 1]
        if word.startswith("--system="):
            return word.removeprefix("--system=")
    return None
