"""`patchdyn falsify`: a conjecture about the dynamics, and the search for its counterexample."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, INTERRUPTED, BadInput
from simulations.commands.arguments import EXIT_CODES, assignment, number
from simulations.theories import DEFAULT

if TYPE_CHECKING:
    from simulations.falsify import Report

HELP = "search for a counterexample to a conjecture of your own"
DESCRIPTION = """\
Search for a problem whose run violates a conjecture, and simplify what is found. The violation is
given with its numerical error, and confirmed by a second run at tolerances a hundred times smaller:
a violation within the error is no counterexample. Not to find one proves nothing; with --certify,
one statement (gamma >= rho is forward invariant) is proved or refuted on a box.
"""
EPILOG = f"""\
the language of conjectures:
  numbers      D C L q p nu beta tau kappa alpha0    constants of the problem (--where: these only)
               alpha gamma rho Lambda Gamma Xi G loss test_error time       along the run, t >= 0
               T0 T1 onset                           events; later than the horizon if not in it
  arithmetic   + - * / ^ (or **), abs(x), exp(x), log(x), sqrt(x), min(x, y), max(x, y)
  over time    min(x), max(x), at_start(x), at_end(x) (or initial, final): numbers of the whole run
  comparison   < <= > >= == !=, chained as in 0 <= q <= 1
  statements   and, or, not, always(s), eventually(s), parentheses
A statement about numbers that change along a run means: at all times t >= 0. How false it is:
a <= b is violated by a - b, `and` takes the larger violation, `or` the smaller. The names of
another --system are listed when an unknown one is used.

examples:
  patchdyn falsify 'gamma >= rho'
  patchdyn falsify 'gamma >= rho' --where 'q*D <= C and beta > 0' --budget 30
  patchdyn falsify 'loss <= at_start(loss)' --fix solver=gd --fix steps=300
  patchdyn falsify 'T0 <= T1 or max(alpha) < alpha0 + 1e-3' --horizon 1e4 --json
  patchdyn falsify 'Phi_1 >= -1' --system masked --fix query=local
  patchdyn falsify 'gamma >= rho' --theory FILE.py
  patchdyn falsify 'gamma >= rho' --certify --box 'D=64, C=4, qD=0..2, alpha=0..0.2, x=-1..0.9'

--box: D, C, p fixed; alpha, x (the common value of gamma and rho), q or qD, nu, beta, tau, kappa
fixed or from LOW to HIGH (defaults: p=3, x=0, nu=0.01, beta=1, tau=1, kappa=D).

{EXIT_CODES}
The exit code is 0 whether a counterexample was found or not: the first line of the output says so.
"""
_ONLY = "gamma >= rho"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("conjecture", metavar="CONJECTURE", help="such as 'gamma >= rho'")
    parser.add_argument("--where", metavar="STATEMENT", help="only problems that satisfy this")
    parser.add_argument("--budget", type=number, metavar="SECONDS", help="default 60")
    parser.add_argument("--horizon", type=number, metavar="T", help="of each run (default 1e5)")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the search (default 0)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--system", default=DEFAULT, metavar="NAME", help=f"the theory (default: {DEFAULT})"
    )
    which.add_argument("--theory", metavar="FILE.py", help="a theory stated in your own file")
    parser.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter of the system instead of drawing it (may be repeated)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    certified = parser.add_argument_group("certified mode, ball arithmetic")
    certified.add_argument(
        "--certify", action="store_true", help=f"prove or refute '{_ONLY}' on the --box"
    )
    certified.add_argument("--box", metavar="BOX", help="parameters and states, see below")
    certified.add_argument(
        "--precision", type=int, metavar="BITS", help="of ball arithmetic (default 96)"
    )


def execute(args: argparse.Namespace) -> int:
    """Search, or certify, and print."""
    if args.theory is not None:
        from simulations import theories

        args.system = theories.from_file(args.theory).name
    return _certify(args) if args.certify else _search(args)


def _search(args: argparse.Namespace) -> int:
    for flag in ("box", "precision"):
        if getattr(args, flag) is not None:
            raise BadInput(f"--{flag} is not allowed without --certify")
    from simulations.display import progress_bar
    from simulations.falsify import falsify
    from simulations.files.as_json import to_json

    with warnings.catch_warnings(), progress_bar("falsify") as bar:
        warnings.simplefilter("ignore")  # of single runs: what became of them is counted
        report = falsify(
            args.conjecture,
            where=args.where,
            system=args.system,
            budget=60 if args.budget is None else args.budget,
            seed=args.seed,
            fixed=dict(assignment("--fix", text) for text in args.fix),
            horizon=args.horizon,
            progress=None if bar is None else (lambda fraction, _: bar(fraction)),
        )
    print(to_json(as_record(report)) if args.json else as_text(report))
    if report.interrupted:
        print("patchdyn: interrupted", file=sys.stderr)
    return INTERRUPTED if report.interrupted else DONE


def _certify(args: argparse.Namespace) -> int:
    from simulations import theories
    from simulations.display import progress_bar
    from simulations.files.as_json import to_json

    for flag in ("where", "budget", "horizon"):
        if getattr(args, flag) is not None:
            raise BadInput(f"--{flag} is not allowed with --certify")
    precision = 96 if args.precision is None else args.precision
    if not 32 <= precision <= 4096:
        raise BadInput(f"--precision {precision} is not allowed: it must be in 32 .. 4096 bits")
    theory = theories.load(args.system)
    with progress_bar("certify") as bar:
        record, text = theory.certify(args.conjecture, args.box or "", precision, bar)
    print(to_json(record) if args.json else text)
    return DONE


def as_record(report: Report) -> dict[str, Any]:
    """Return a report as plain data."""
    from dynamics.core.provenance import provenance

    trial = report.counterexample
    return {
        "outcome": "falsified" if report.falsified else "not falsified",
        "conjecture": report.conjecture,
        "where": report.where,
        "system": report.system.name,
        "interrupted": report.interrupted,
        "counterexample": trial
        and {
            "values": dict(trial.case.values),
            "problem": trial.case.problem,
            "time": trial.time,
            "first time": trial.since,
            "violation": trial.violation,
            "numerical error": trial.bound,
            "at that time": dict(trial.values),
        },
        "command": report.command,
        "problems tried": report.tried,
        "results": {str(result): count for result, count in report.results.items()},
        "undecided": report.undecided,
        "not confirmed": report.unconfirmed,
        "ranges": {name: list(ends) for name, ends in report.ranges.items()},
        "seed": report.seed,
        "seconds": report.seconds,
        "provenance": provenance(),
    }


def as_text(report: Report) -> str:
    """Return a report as lines for a person."""
    lines = [f"{'falsified' if report.falsified else 'not falsified'}: {report.conjecture}"]
    if (trial := report.counterexample) is not None:
        values = ", ".join(f"{name} = {value}" for name, value in trial.case.values.items())
        lines.append(f"  problem     {values}")
        if trial.time is not None:
            lines.append(f"  time        {trial.time:.6g}, false since {trial.since:.6g}")
        here = ", ".join(f"{name} = {value:.9g}" for name, value in trial.values.items())
        lines += [
            f"  violation   {trial.violation:.6g}, numerical error {trial.bound:.1g}",
            f"  values      {here}",
            f"  rerun       {report.command}",
            f"  plot        {report.command} --plot counterexample.png",
        ]
    counts = ", ".join(f"{result} in {count}" for result, count in report.results.items())
    lines.append(f"  tried       {report.tried} problems in {report.seconds:.1f} s: {counts}")
    if report.unconfirmed:
        lines.append(
            f"  dismissed   {report.unconfirmed} violations that no more precise run confirmed"
        )
    if report.tried == 0:
        return f"{lines[0]}\n  nothing was tried: the budget ended before the first run did"
    varied = [
        f"{name} {low:g}" if low == high else f"{name} {low:g}..{high:g}"
        for name, (low, high) in report.ranges.items()
    ]
    where = f" with {report.where}" if report.where else ""
    return "\n".join([*lines, f"  where       {', '.join(varied) or 'nowhere'}{where}"])
