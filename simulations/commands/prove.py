"""`patchdyn prove`: enclose a trajectory rigorously and print the consequences."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations import theories
from simulations.commands import DONE, FAILED, BadInput, prove_file, prove_map
from simulations.commands.arguments import (
    EXIT_CODES,
    Parser,
    Range,
    add_output,
    add_parameters,
    check_output,
    check_output_file,
    given_parameters,
    number_or_range,
    report_written,
    unfinished_file,
)
from simulations.outward import ball, down, interval

if TYPE_CHECKING:
    from simulations.validated import BoxProof, Checked, Proof

HELP = "enclose a trajectory rigorously"
DESCRIPTION = """\
Enclose a trajectory (alpha, gamma, rho) of gradient flow, or of gradient descent with a finite
learning rate, from its start to a horizon. The enclosure accounts for all errors: truncation of the
population expectation, rounding and time stepping. Print from which time on gamma > rho is proved,
whether it is proved for ever, and an enclosure of the test error. If the proof stops before the
horizon, print the time and the reason. With --out, the same command resumes a proof that was
interrupted or killed. With an interval, such as --nu 0.00999..0.01001 or --qD 2..2.001, all that is
printed is proved for each number in it; it is divided where the tube is too wide. With --map, the
intervals of nu and of q are divided into cells, and gamma > rho and patch association are proved in
as many of them as possible, at all times to the horizon, from a region of states that no flow
leaves; --out and --plot write the cells. With FILE.py as first argument, a theory in a file is
proved (patchdyn prove FILE.py --help).
"""
EPILOG = f"""\
examples:
  patchdyn prove --D 16 --C 2 --qD 4 --horizon 1e3
  patchdyn prove --D 64 --C 4 --qD 2 --horizon 1e5 --out proof.json --plot proof.png
  patchdyn prove --D 16 --C 2 --qD 4 --solver gd --learning-rate 0.02 --steps 50000 --json
  patchdyn prove --D 16 --C 2 --qD 4 --nu 0.00999..0.01001 --horizon 1e3
  patchdyn prove --D 16 --C 2 --qD 0.5..4 --nu 0.001..0.1 --horizon 1e3 --map 20 --plot map.png
  patchdyn prove --check proof.json
  patchdyn prove --page page
  patchdyn prove teacher.py --horizon 1e4 --claim 'loss <= 0.1'

{EXIT_CODES}
The exit code is 1 if the tube does not reach the horizon, or if a certificate is rejected.
"""
#: Parameters of a run that a proof does not depend on.
_OMITTED = ("d", "sigma", "rtol", "method", "tolerance")
_HORIZON = 1e5
#: Parameters that may be intervals.
_INTERVALS = ("nu", "q", "qD", "qD/C^2")


def parse(prog: str, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the arguments; a theory in a file has its own options."""
    if arguments and not arguments[0].startswith("-"):
        return prove_file.parse(prog, arguments)
    parser = Parser(prog=prog, description=DESCRIPTION, epilog=EPILOG)
    _add_arguments(parser)
    parser.set_defaults(execute=execute)
    return parser.parse_known_args(arguments)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the default theory."""
    parameters = theories.load(theories.DEFAULT).parameters
    add_parameters(
        parser,
        (
            replace(parameter, default=_HORIZON) if parameter.name == "horizon" else parameter
            for parameter in parameters
            if parameter.name not in _OMITTED
        ),
        number_or_range,
    )
    prove_file.add_tolerance(parser)
    certificate = ("FILE.json", "write the certificate")
    add_output(parser, certificate, "plot the radius of the tube and gamma - rho")
    parser.add_argument(
        "--map", type=int, metavar="CELLS", help="prove a map with this number of cells per axis"
    )
    parser.add_argument(
        "--check",
        type=Path,
        metavar="FILE.json",
        help="check a certificate with a program that shares no code with the prover, and print "
        "what it proves",
    )
    parser.add_argument(
        "--arithmetic",
        choices=("flint", "python"),
        help="arithmetic of --check: FLINT and NumPy (default), or pure Python, which is "
        "independent of both and up to 20 times slower",
    )
    parser.add_argument(
        "--page",
        type=Path,
        metavar="DIR",
        help="write a static page that checks certificates in a browser, without a network; needs "
        "the extra 'page' or --pyodide",
    )
    parser.add_argument(
        "--pyodide",
        type=Path,
        metavar="DIR",
        help="for --page: the unpacked npm package of Pyodide, Python for browsers, instead of the "
        "build in the extra",
    )


def execute(args: argparse.Namespace) -> int:
    """Prove, check a certificate, or write the page that checks certificates."""
    if args.page is None and args.pyodide is not None:
        raise BadInput("--pyodide is not allowed without --page")
    if args.page is not None:
        return _write_page(args)
    if args.check is not None:
        return _check(args)
    if args.arithmetic is not None:
        raise BadInput("--arithmetic is not allowed without --check")
    ranges = {n: x for n, x in given_parameters(args).items() if isinstance(x, Range)}
    if args.map is not None:
        return prove_map.execute(args, ranges, _problem_and_options)
    return _prove_box(args, ranges) if ranges else _prove(args)


def _prove_box(args: argparse.Namespace, ranges: dict[str, Range]) -> int:
    """Prove for all numbers of intervals; print the results."""
    from simulations.display import progress_bar
    from simulations.files import to_json
    from simulations.validated import box_conclusions, prove_box

    for name, (low, high) in ranges.items():
        if name not in _INTERVALS:
            raise BadInput(
                f"{name} = {low}..{high} is not allowed: only {', '.join(_INTERVALS)} may be "
                "intervals"
            )
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise BadInput(
                f"{name} = {low}..{high} is not allowed: the ends must be finite and in increasing "
                "order"
            )
    if args.out is not None or args.plot is not None:
        raise BadInput("--out and --plot are not allowed with an interval: use --json")
    given = given_parameters(args)
    (low, options), (high, _) = (
        _problem_and_options(given | {name: x[i] for name, x in ranges.items()}) for i in range(2)
    )
    if "horizon" not in options:
        raise BadInput("solver = gd is not allowed with an interval: the flow is enclosed")
    with progress_bar("prove") as bar:
        proof = prove_box(low, high, tolerance=args.tolerance, **options, progress=bar)
    print(to_json(box_conclusions(proof)) if args.json else box_as_text(proof))
    return DONE if proof.proved else FAILED


def _prove(args: argparse.Namespace) -> int:
    from simulations.display import progress_bar
    from simulations.files import to_json
    from simulations.validated import conclusions, prove, write_certificate

    check_output(args)
    given = given_parameters(args)
    problem, options = _problem_and_options(given)
    with progress_bar("prove") as bar:
        end = options.get("horizon") or options["learning_rate"] * options["steps"]
        proof = prove(
            problem,
            tolerance=args.tolerance,
            **options,
            checkpoint=None if args.out is None else unfinished_file(args.out),
            progress=None if bar is None else (lambda time, _: bar(fraction_done(time, end))),
        )
    if args.out is not None:
        write_certificate(args.out, proof)
        unfinished_file(args.out).unlink(missing_ok=True)
        report_written(args.out)
    if args.plot is not None and proof.tube.pieces:
        _draw(args.plot, proof)
        report_written(args.plot)
    print(to_json(conclusions(proof)) if args.json else as_text(proof))
    return DONE if proof.proved else FAILED


def _write_page(args: argparse.Namespace) -> int:
    from simulations.validated import write_page

    if given_parameters(args) or any((args.check, args.tolerance, args.out, args.plot)):
        raise BadInput("--page is not allowed with parameters, --check, --out or --plot")
    check_output_file("--page", args.page / "index.html", force=args.force)
    try:
        write_page(args.page, args.pyodide)
    except ValueError as failure:
        option = f"--page {args.page}" if args.pyodide is None else f"--pyodide {args.pyodide}"
        raise BadInput(f"{option} is not allowed: {failure}") from None
    report_written(args.page / "index.html")
    print(f"To open it: python -m http.server -d {args.page}, then http://localhost:8000")
    return DONE


def _check(args: argparse.Namespace) -> int:
    from simulations.display import progress_bar
    from simulations.files import to_json
    from simulations.validated import Rejected, TooLarge, check, checked_as_text

    if given_parameters(args) or any((args.tolerance, args.out, args.plot)):
        raise BadInput("--check is not allowed with parameters, --tolerance, --out or --plot")
    if not args.check.is_file():
        raise BadInput(f"--check {args.check} is not allowed: this file does not exist")
    try:
        with progress_bar("check") as bar:
            checked = check(args.check, bar, args.arithmetic or "flint")
    except TooLarge as limit:
        raise BadInput(f"--check {args.check}: {limit}") from None
    except Rejected as rejection:
        rejected = {"checked": False, "reason": str(rejection)}
        print(to_json(rejected) if args.json else f"rejected: {rejection}")
        return FAILED
    print(to_json(_as_record(checked)) if args.json else checked_as_text(checked))
    return DONE


def _as_record(checked: Checked) -> dict[str, Any]:
    """Return the consequences of a certificate as JSON-safe data, without the gap by pieces."""
    values = checked._asdict() | {"checked": True, "enclosure": checked.enclosure._asdict()}
    del values["gap"]
    return {k: None if isinstance(v, float) and math.isinf(v) else v for k, v in values.items()}


def _problem_and_options(given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the problem and the keyword arguments of `prove` for given parameters."""
    if given.get("solver", "flow") == "flow":
        given = {"horizon": _HORIZON} | given
    case = theories.load(theories.DEFAULT).build(given)
    settings = case.settings
    names = ("horizon",) if case.solver == "flow" else ("learning_rate", "steps")
    if "optimizer" in settings:
        raise BadInput("optimizer and weight_decay are not allowed: prove encloses plain descent")
    options = {name: settings[name] for name in names}
    if any(name in given for name in ("alpha0", "gamma0", "rho0")):
        options["initial"] = settings["initial"]
    return case.problem, options


def fraction_done(time: float, end: float) -> float:
    """Return the fraction of a proof that is done, on a logarithmic time scale."""
    return math.log1p(1e3 * time) / math.log1p(1e3 * end)


def as_text(proof: Proof) -> str:
    """Return a proof as text."""
    lines = [proof.sentence, f"  at time      {proof.time:g}"]
    lines += [f"  {name:<12} {ball(*ends)}" for name, ends in proof.enclosure._asdict().items()]
    for name, ends in (("loss", proof.loss), ("test error", proof.test_error)):
        lines.append(f"  {name:<12} in {interval(*ends)}")
    lines.append(f"  association  {_association(proof)}")
    lines.append(f"  pieces       {len(proof.tube.pieces)}")
    return "\n".join(lines)


def box_as_text(proof: BoxProof) -> str:
    """Return a proof for a box of constants as text."""
    if not proof.proved:
        share = f"  proved part  {100.0 * proof.fraction:.1f} % of the box"
        return "\n".join([proof.sentence, share, f"  boxes        {len(proof.parts)}"])
    lines = [proof.sentence, f"  at time      {proof.horizon:g}"]
    intervals = proof.enclosure._asdict() | {"loss": proof.loss, "test error": proof.test_error}
    lines += [f"  {name:<12} in {interval(*ends)}" for name, ends in intervals.items()]
    lines.append(f"  association  {_association(proof)}")
    lines.append(f"  boxes        {len(proof.parts)}")
    return "\n".join(lines)


def _association(proof: Proof | BoxProof) -> str:
    """Return a description of what is proved about patch association."""
    if not proof.association:
        return "not proved at that time"
    until = proof.association_until
    if not math.isfinite(until):
        return "proved at that time and for ever"
    return "proved at that time" + (f" and until {down(until, 4)}" if until > proof.time else "")


def _draw(path: Path, proof: Proof) -> None:
    """Plot the radius of the tube and gamma - rho against time, as PNG."""
    from simulations.figures import render, report_figure
    from simulations.figures.shared import draw_tube
    from simulations.files import write_bytes

    figure = report_figure("prove", "", "", draw_tube, proof.to_dataset(), size=(7.0, 5.0))
    write_bytes(path, render(figure))
