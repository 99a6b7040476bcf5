"""`patchdyn falsify`: search for a counterexample to a conjecture about the dynamics."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, FAILED, INTERRUPTED, BadInput
from simulations.commands.arguments import (
    EXIT_CODES,
    add_optimizer,
    assignment,
    given_optimizer,
    number,
    number_range,
)
from simulations.theories import DEFAULT

if TYPE_CHECKING:
    from simulations.falsify import Report, Trial

HELP = "search for a counterexample to a conjecture"
DESCRIPTION = """\
Search for a problem whose run violates a conjecture, and simplify it. A violation counts only if it
exceeds its numerical error and a second run with tolerances a hundred times smaller confirms it.
The largest violation is reported next to the simplest. A search without result proves nothing. With
--certify, prove or refute one statement (gamma >= rho is forward invariant) on a box.
"""
EPILOG = f"""\
the language of conjectures:
  numbers      D C L q p nu beta tau kappa alpha0    constants of the problem (--where: these only)
               alpha gamma rho Lambda Gamma Xi G loss test_error time       functions of time
               T0 T1 onset                           event times; after the horizon if absent
  arithmetic   + - * / ^ (or **), abs(x), exp(x), log(x), sqrt(x), min(x, y), max(x, y)
  over time    min(x), max(x), at_start(x), at_end(x) (or initial, final): numbers of the whole run
  comparison   < <= > >= == !=, chained as in 0 <= q <= 1
  statements   and, or, not, always(s), eventually(s), parentheses
A statement about functions of time means: at all times t >= 0. The violation of a <= b is a - b, of
`and` the larger violation, of `or` the smaller one. For the names of another --system, use an
unknown name: the error message lists them. A theory in a file adds its observables and events.

examples:
  patchdyn falsify 'gamma >= rho'
  patchdyn falsify 'gamma >= rho' --where 'q*D <= C and beta > 0' --budget 30
  patchdyn falsify 'loss <= at_start(loss)' --fix solver=gd --fix steps=300
  patchdyn falsify 'gamma >= rho' --optimizer adam --fix learning_rate=1e-3 --fix steps=4000
  patchdyn falsify 'T0 <= T1 or max(alpha) < alpha0 + 1e-3' --horizon 1e4 --json
  patchdyn falsify 'Phi_1 >= -1' --system masked --fix query=local
  patchdyn falsify 'gamma >= rho' --theory FILE.py --range K=4..200
  patchdyn falsify 'gamma >= rho' --certify --box 'D=64, C=4, qD=0..2, alpha=0..0.2, x=-1..0.9'

In a --box, D, C and p have one value; alpha, x (the common value of gamma and rho), q or qD, nu,
beta, tau and kappa have one value or a range LOW..HIGH (defaults: p=3, x=0, nu=0.01, beta=1, tau=1,
kappa=D).

{EXIT_CODES}
The exit code is 0 with or without a counterexample; the first line of the output is "falsified" or
"not falsified". If fewer than two problems were decided, it is "not searched" and the exit code is
1.
"""
#: The only conjecture with certificates.
_CERTIFIED = "gamma >= rho"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("conjecture", metavar="CONJECTURE", help="statement such as 'gamma >= rho'")
    parser.add_argument(
        "--where", metavar="STATEMENT", help="search only problems that satisfy this statement"
    )
    parser.add_argument(
        "--budget", type=number, metavar="SECONDS", help="time of the search (default: 60)"
    )
    parser.add_argument(
        "--horizon",
        type=number,
        metavar="T",
        help="final time of each run (default: 1e5; for a theory in a file, the file's horizon)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the search (default: 0)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--system", default=DEFAULT, metavar="NAME", help=f"theory (default: {DEFAULT})"
    )
    which.add_argument("--theory", metavar="FILE.py", help="file of a theory")
    parser.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="fix a parameter at this value (repeatable)",
    )
    parser.add_argument(
        "--range",
        action="append",
        default=[],
        metavar="NAME=LOW..HIGH",
        help="search a parameter in this range (repeatable; default: small values; sizes of a "
        "theory in a file also near its defaults)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_optimizer(parser)
    certified = parser.add_argument_group("certified mode (ball arithmetic)")
    certified.add_argument(
        "--certify", action="store_true", help=f"prove or refute '{_CERTIFIED}' on the --box"
    )
    certified.add_argument(
        "--box", metavar="BOX", help="ranges of parameters and states, see below"
    )
    certified.add_argument(
        "--precision", type=int, metavar="BITS", help="precision of ball arithmetic (default: 96)"
    )


def execute(args: argparse.Namespace) -> int:
    """Search for a counterexample, or certify; print the result."""
    if args.theory is not None:
        from simulations import theories

        args.system = theories.from_file(args.theory).name
    return _certify(args) if args.certify else _search(args)


def _search(args: argparse.Namespace) -> int:
    for flag in ("box", "precision"):
        if getattr(args, flag) is not None:
            raise BadInput(f"--{flag} is not allowed without --certify")
    optimizer = given_optimizer(args)
    descent: dict[str, Any] = {"solver": "gd", **optimizer} if optimizer else {}
    return search(
        args.conjecture, args.system, as_json=args.json, where=args.where,
        budget=60 if args.budget is None else args.budget, seed=args.seed, horizon=args.horizon,
        fixed=descent | dict(assignment("--fix", text) for text in args.fix),
        ranges=dict(number_range("--range", text) for text in args.range),
    )  # fmt: skip


def search(conjecture: str, system: str, *, as_json: bool = False, **options: Any) -> int:
    """Search for a counterexample and print the result.

    Parameters
    ----------
    conjecture
        Statement in the language of conjectures.
    system
        Name of the theory.
    as_json
        Print JSON instead of text.
    options
        Keyword arguments of `simulations.falsify.falsify`.

    Returns
    -------
    int
        Exit code.
    """
    from simulations.display import progress_bar
    from simulations.falsify import falsify
    from simulations.files import to_json

    with warnings.catch_warnings(), progress_bar("falsify") as bar:
        warnings.simplefilter("ignore")  # of single runs: the report counts their outcomes
        progress = None if bar is None else (lambda fraction, _: bar(fraction))
        report = falsify(conjecture, system=system, progress=progress, **options)
    print(to_json(as_record(report)) if as_json else as_text(report))
    if report.interrupted:
        print("patchdyn: interrupted", file=sys.stderr)
    if report.interrupted:
        return INTERRUPTED
    return DONE if report.searched else FAILED


def _certify(args: argparse.Namespace) -> int:
    from simulations import theories
    from simulations.display import progress_bar
    from simulations.files import to_json

    for flag in ("where", "budget", "horizon", "range", *given_optimizer(args)):
        if getattr(args, flag) not in (None, []):
            raise BadInput(f"--{flag.replace('_', '-')} is not allowed with --certify")
    precision = 96 if args.precision is None else args.precision
    if not 32 <= precision <= 4096:
        raise BadInput(f"--precision {precision} is not allowed: it must be in 32 .. 4096 bits")
    theory = theories.load(args.system)
    with progress_bar("certify") as bar:
        record, text = theory.certify(args.conjecture, args.box or "", precision, bar)
    print(to_json(record) if args.json else text)
    return DONE


def as_record(report: Report) -> dict[str, Any]:
    """Return a report as JSON-safe data."""
    from dynamics.core.provenance import provenance

    return {
        "outcome": report.outcome,
        "conjecture": report.conjecture,
        "where": report.where,
        "system": report.system.name,
        "interrupted": report.interrupted,
        "counterexample": report.counterexample and _record(report.counterexample),
        "command": report.command,
        "largest violation": report.largest
        and {**_record(report.largest), "command": report.rerun(report.largest)},
        "problems tried": report.tried,
        "results": {str(result): count for result, count in report.results.items()},
        "undecided": report.undecided,
        "not confirmed": report.unconfirmed,
        "ranges": {name: list(ends) for name, ends in report.ranges.items()},
        "seed": report.seed,
        "seconds": report.seconds,
        "provenance": provenance(),
    }


def _record(trial: Trial) -> dict[str, Any]:
    """Return a violation as JSON-safe data."""
    return {
        "values": dict(trial.case.values),
        "problem": trial.case.problem,
        "time": trial.time,
        "first time": trial.since,
        "violation": trial.violation,
        "numerical error": trial.bound,
        "at that time": dict(trial.values),
    }


def as_text(report: Report) -> str:
    """Return a report as text."""
    lines = [f"{report.outcome}: {report.conjecture}"]
    if (trial := report.counterexample) is not None:
        lines += _lines(report, trial)
        lines.append(f"  plot        {report.command} --plot counterexample.png")
    if (largest := report.largest) is not None:
        same = largest.case == report.counterexample.case if report.counterexample else False
        lines.append(f"largest violation: {'the same' if same else ''}".rstrip())
        lines += [] if same else _lines(report, largest)
    counts = ", ".join(f"{result} in {count}" for result, count in report.results.items())
    tried = f"{report.tried} problems in {report.seconds:.1f} s" + (counts and f": {counts}")
    lines.append(f"  tried       {tried}")
    if report.unconfirmed:
        lines.append(
            f"  dismissed   {report.unconfirmed} violations that a more precise run did not confirm"
        )
    if not report.searched:
        lines.append(
            "  reason      fewer than two problems were decided: increase --budget, widen --where "
            "or --range, or fix fewer parameters"
        )
    varied = [
        f"{name} {low:g}" if low == high else f"{name} {low:g}..{high:g}"
        for name, (low, high) in report.ranges.items()
    ]
    where = f" with {report.where}" if report.where else ""
    return "\n".join([*lines, f"  where       {', '.join(varied) or 'nowhere'}{where}"])


def _lines(report: Report, trial: Trial) -> list[str]:
    """Return the lines that describe a violation, with the command that reruns it."""
    values = ", ".join(f"{name} = {value}" for name, value in trial.case.values.items())
    lines = [f"  problem     {values}"]
    if trial.time is not None:
        since = trial.time if trial.since is None else trial.since
        lines.append(f"  time        {trial.time:.6g}, false since {since:.6g}")
    here = ", ".join(f"{name} = {value:.9g}" for name, value in trial.values.items())
    return [
        *lines,
        f"  violation   {trial.violation:.6g}, numerical error {trial.bound:.1g}",
        f"  values      {here}",
        f"  rerun       {report.rerun(trial)}",
    ]
