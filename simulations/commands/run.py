"""`patchdyn run`: one reduced trajectory from parameters."""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, FAILED, INTERRUPTED, BadInput
from simulations.commands.arguments import EXIT_CODES, number

if TYPE_CHECKING:
    from dynamics import Population, Problem, State, Trajectory

HELP = "one reduced trajectory of (alpha, gamma, rho) from parameters"
DESCRIPTION = """\
Solve the reduced dynamics of one problem: gradient flow (the default) or gradient descent on the
population risk, v = alpha w*, A_ij = gamma within a set and rho across sets. Time is learning rate
x steps: gradient descent with learning rate 0.01 reaches time 100 after 10000 steps.
"""
EPILOG = f"""\
examples:
  patchdyn run                                            D = 64, C = 4, qD = 2 to time 1e6
  patchdyn run --D 24 --C 4 --qD 2 --horizon 1e4 --json
  patchdyn run --D 16 --C 4 --q 0.1 --p 5 --solver gd --learning-rate 1e-3 --steps 20000
  patchdyn run --system masked --P 1e6 --kappa-c 0.9 --kappa-s 0.4     another theory
  patchdyn run --gamma -0.5 --rho 1e-2 --out run.nc       from another initial state

{EXIT_CODES}
A run that diverges, overflows or stalls prints what it has and exits with 1. Ctrl-C keeps what was
computed (in --out if given) and exits with 130.
"""

#: flag -> (field of Problem, help)
_PROBLEM = {
    "--D": ("D", "number of patches (default 64)"),
    "--C": ("C", "size of a set, a divisor of D (default 4)"),
    "--p": ("p", "degree of the activation x^p + nu x, odd, at least 3 (default 3)"),
    "--nu": ("nu", "linear part of the activation, greater than 0 (default 0.01)"),
    "--beta": ("beta", "diagonal of A, the paper's sigma_A (default 1)"),
    "--temperature": ("temperature", "softmax temperature tau, greater than 0 (default 1)"),
    "--output-scale": ("output_scale", "kappa, greater than 0 (default D)"),
    "--d": ("d", "dimension of a patch (default D); does not enter the reduced dynamics"),
    "--sigma": ("sigma", "noise level (default 1/sqrt(d)); does not enter either"),
}
_HORIZON, _LEARNING_RATE, _STEPS = 1e6, 0.01, 1000


def variant(arguments: list[str]) -> Any:
    """Return the command for the system that ``--system`` names: its flags are its parameters."""
    from simulations.commands.run_system import RunOf, chosen
    from simulations.systems.names import DEFAULT, NAMES

    name = chosen(arguments)
    if name is None or name == DEFAULT or name not in NAMES:
        return sys.modules[__name__]
    from simulations.theories import load

    return RunOf(load(name))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    from simulations.systems.names import DEFAULT, NAMES

    parser.add_argument(
        "--system", choices=NAMES, default=DEFAULT,
        help=f"the theory (default {DEFAULT}); its flags: patchdyn run --system NAME --help",
    )  # fmt: skip
    problem = parser.add_argument_group("problem (numbers may be written 1e-3 or 2/64)")
    for flag, (field, text) in _PROBLEM.items():
        problem.add_argument(flag, dest=field, type=number, metavar="X", help=text)
    density = problem.add_mutually_exclusive_group()
    density.add_argument(
        "--q", type=number, metavar="X",
        help="probability that a patch outside the signal set carries a feature (default 2/D, "
        "that is 2/64 for D = 64)",
    )  # fmt: skip
    density.add_argument("--qD", type=number, metavar="X", help="the same as q times D (default 2)")

    solver = parser.add_argument_group("solver")
    solver.add_argument("--solver", choices=("flow", "gd"), default="flow", help="default: flow")
    for flag, text in {
        "--horizon": f"final time (default {_HORIZON:g} for flow; for gd: instead of --steps)",
        "--rtol": "relative tolerance of the flow (default 1e-8); the absolute one is a thousandth",
        "--learning-rate": f"of gd (default {_LEARNING_RATE:g})",
        "--steps": f"of gd (default {_STEPS})",
        "--alpha": "initial alpha (default nu^(1/(p-1)), Parametrization 3.1)",
        "--gamma": "initial gamma (default 0)",
        "--rho": "initial rho (default 0)",
        "--tolerance": "certified error of loss and gradient at every step (default 1e-10)",
    }.items():
        solver.add_argument(flag, type=number, metavar="X", help=text)
    solver.add_argument(
        "--method", default="auto", metavar="NAME",
        help="how the expectation is computed: auto (the default, which says what it chose), "
        "enumeration, fourier, sampling",
    )  # fmt: skip

    add_output(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say where a run goes, in any theory."""
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the result as JSON")
    output.add_argument(
        "--out", type=Path, metavar="FILE.nc", help="write the trajectory as NetCDF"
    )
    output.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="draw order parameters and risk"
    )
    output.add_argument("--force", action="store_true", help="overwrite existing files")


def execute(args: argparse.Namespace) -> int:
    """Solve, save, print."""
    _check_times(args)
    check_output(args)
    from dynamics import Interrupted, Population

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            population = Population(_problem(args), args.method, args.tolerance)
        for warning in caught:
            print(f"patchdyn: note: {warning.message}", file=sys.stderr)
        initial = _initial(args, population)
        trajectory, code = _solve(args, population, initial), None
    except Interrupted as interrupt:
        trajectory, code = interrupt.trajectory, INTERRUPTED
    return _deliver(args, trajectory, population, code)


def _check_times(args: argparse.Namespace) -> None:
    """Refuse flags that the chosen solver would ignore, and times that it cannot reach."""
    if args.solver == "flow":
        for flag, value in (("--learning-rate", args.learning_rate), ("--steps", args.steps)):
            if value is not None:
                raise BadInput(f"{flag} is not allowed with --solver flow: use --horizon")
    elif args.rtol is not None:
        raise BadInput("--rtol is not allowed with --solver gd: it is of the flow")
    elif args.steps is not None and args.horizon is not None:
        raise BadInput("--steps and --horizon are not allowed together: time is rate x steps")
    else:
        _steps(args)


def check_output(args: argparse.Namespace) -> None:
    """Refuse to write over something else; only regular files are replaced, with --force."""
    from dynamics.core.files import FileError, obstacle

    for flag, file in (("--out", args.out), ("--plot", args.plot)):
        if file is None:
            continue
        try:
            what, exists = obstacle(file), file.exists()
        except FileError as refusal:
            raise BadInput(f"{flag} is not allowed: {refusal}") from None
        if what is not None:
            raise BadInput(f"{flag} {file} is not allowed: it is {what}, not a regular file")
        if exists and not args.force:
            raise BadInput(
                f"{flag} {file} exists: choose another name, or overwrite it with --force"
            )
    if args.out is not None and args.plot is not None and _same(args.out, args.plot):
        raise BadInput(f"--out and --plot are not allowed to be the same file: {args.out}")


def _same(one: Path, other: Path) -> bool:
    """Tell whether two paths name one file, on systems that ignore case too."""
    if one.exists() and other.exists() and one.samefile(other):
        return True
    return str(one.resolve()).casefold() == str(other.resolve()).casefold()


def _problem(args: argparse.Namespace) -> Problem:
    from dynamics import ParameterError, Problem

    fields = {field: getattr(args, field) for field, _ in _PROBLEM.values()}
    given = {"D": 64, "C": 4} | {name: value for name, value in fields.items() if value is not None}
    if args.q is not None:
        return Problem(**given, q=args.q)
    expected = 2 if args.qD is None else args.qD
    problem = Problem(**given, q=1.0)  # D is valid before q is derived from it
    if not 0.0 < expected <= problem.D:
        raise ParameterError(f"qD = {expected} is not allowed: qD must be in (0, D = {problem.D}]")
    return problem.replace(q=expected / problem.D)


def _initial(args: argparse.Namespace, population: Population) -> State:
    """Return the start; a tolerance that cannot be met even there is refused at once."""
    given = {name: getattr(args, name) for name in ("alpha", "gamma", "rho")}
    initial = population.problem.initial_state._replace(
        **{name: value for name, value in given.items() if value is not None}
    )
    with contextlib.suppress(OverflowError):  # the solver tells it with its status
        population.evaluate(initial)
    return initial


def _solve(args: argparse.Namespace, population: Population, initial: State) -> Trajectory:
    from dynamics import gradient_descent, gradient_flow
    from simulations.display import progress_bar

    with progress_bar("gradient flow" if args.solver == "flow" else "gradient descent") as progress:
        if args.solver == "flow":
            settings = {} if args.rtol is None else {"rtol": args.rtol, "atol": 1e-3 * args.rtol}
            settings["horizon"] = _HORIZON if args.horizon is None else args.horizon
            return gradient_flow(population, initial=initial, progress=progress, **settings)
        rate, steps = _steps(args)
        return gradient_descent(
            population,
            learning_rate=rate,
            steps=steps,
            initial=initial,
            progress=progress,
        )


def _steps(args: argparse.Namespace) -> tuple[float, int]:
    """Return the learning rate and the number of steps of gradient descent."""
    from dynamics.core.descent import MOST_STEPS
    from dynamics.positional.problem import finite, require, whole

    rate = _LEARNING_RATE if args.learning_rate is None else args.learning_rate
    require(finite("learning_rate", rate) > 0.0, "learning_rate", rate, "greater than 0")
    if args.horizon is None:
        return rate, whole("steps", _STEPS if args.steps is None else args.steps, 1, MOST_STEPS)
    horizon = finite("horizon", args.horizon)
    allowed = f"at least one step of {rate:g}, at most {MOST_STEPS:g} of them"
    require(rate <= horizon <= MOST_STEPS * rate, "horizon", horizon, allowed)
    return rate, round(horizon / rate)


def save(args: argparse.Namespace, trajectory: Trajectory) -> bool:
    """Write what was asked for and say so; return whether it could be written."""
    from simulations.files.store import StoreError, write_bytes, write_dataset

    try:
        if args.out is not None:
            write_dataset(args.out, trajectory.to_dataset())
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
    from simulations.figures import one_run, report_figure
    from simulations.reproduction.run import render

    data = one_run.gather(trajectory)
    return render(report_figure("run", "", "", one_run.draw, data, size=(7.0, 6.0)))


def _deliver(
    args: argparse.Namespace, trajectory: Trajectory, population: Population, code: int | None
) -> int:
    """Save and print a trajectory; return ``code`` or, without one, what its status means."""
    from dynamics import Status
    from simulations.commands.run_summary import as_text, summarize
    from simulations.files.as_json import to_json

    if not save(args, trajectory):
        code = code or FAILED
    summary = summarize(trajectory, population)
    print(to_json(summary) if args.json else as_text(summary))
    if code is None:
        code = DONE if trajectory.status is Status.COMPLETED else FAILED
    return code
