"""`patchdyn prove FILE.py`: enclose a trajectory of a user-defined theory and decide its claims."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from simulations import theories
from simulations.commands import DONE, FAILED
from simulations.commands.arguments import (
    EXIT_CODES,
    Parser,
    add_parameters,
    given_parameters,
    number,
)
from simulations.outward import ball, interval

if TYPE_CHECKING:
    from simulations.stated.prove import TheoryProof
    from simulations.stated.system import UserTheorySystem

DESCRIPTION = """\
Enclose a trajectory of gradient flow, or of gradient descent with a finite learning rate, of a
theory in a file, and decide on which times each claim is proved and on which it is false. The
emitted source of the theory is evaluated in ball arithmetic, so that all errors are included. The
derivation of that source from the file is trusted.
"""
EPILOG = f"""\
examples:
  patchdyn prove teacher.py --horizon 1e4
  patchdyn prove teacher.py --D 32 --claim 'loss <= 0.1' --claim 'c_in >= c_out' --json

{EXIT_CODES}
The exit code is 1 if the tube does not reach the horizon, or if a claim is not proved at its end.
"""


def parse(prog: str, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the file, then the options of its theory."""
    file, *rest = arguments
    system: Any = theories.from_file(file)
    parser = Parser(prog=f"{prog} {file}", description=DESCRIPTION, epilog=EPILOG)
    add_parameters(parser, system.parameters)
    parser.add_argument(
        "--claim",
        action="append",
        default=[],
        metavar="STATEMENT",
        help="statement about each time, such as 'loss <= 0.1'; may be repeated (default: the "
        "claims of the file)",
    )
    add_tolerance(parser)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(execute=partial(execute, system))
    return parser.parse_known_args(rest)


def add_tolerance(parser: argparse.ArgumentParser) -> None:
    """Add the tolerance of a proof."""
    parser.add_argument(
        "--tolerance",
        type=number,
        metavar="X",
        help="tolerance of the approximate solution, relative to its arc length (default: 1e-3, "
        "smaller if the proof fails)",
    )


def execute(system: UserTheorySystem, args: argparse.Namespace) -> int:
    """Prove and print the results."""
    from simulations.commands.prove import fraction_done
    from simulations.display import progress_bar
    from simulations.files import to_json
    from simulations.stated.prove import prove_theory

    values = given_parameters(args)
    with progress_bar("prove") as bar:
        end = float(values.get("horizon", system.horizon))
        proof = prove_theory(
            system,
            values,
            claims=args.claim,
            tolerance=args.tolerance,
            progress=None if bar is None else (lambda time: bar(fraction_done(time, end))),
        )
    print(to_json(as_record(proof)) if args.json else as_text(proof))
    return DONE if proof.all_proved else FAILED


def as_record(proof: TheoryProof) -> dict[str, Any]:
    """Return the statements of a proof as plain data; ``since`` is None if it is not proved."""
    return {
        "proved": proof.proved,
        "theory": proof.problem.theory,
        "values": dict(proof.problem.values),
        "horizon": proof.horizon,
        "time": proof.time,
        "reason": proof.reason,
        "enclosure": {name: list(ends) for name, ends in proof.enclosure.items()},
        "loss": list(proof.loss),
        "claims": [
            {
                "claim": claim.text,
                "since": claim.since if claim.at_end else None,
                "forever": claim.forever,
                "true": [list(ends) for ends in claim.true],
                "false": [list(ends) for ends in claim.false],
            }
            for claim in proof.claims
        ],
    }


def as_text(proof: TheoryProof) -> str:
    """Return a proof as text."""
    lines = [proof.sentence, f"  at time      {proof.time:g}"]
    lines += [f"  {name:<12} {ball(*ends)}" for name, ends in proof.enclosure.items()]
    lines.append(f"  {'loss':<12} in {interval(*proof.loss)}")
    lines += [f"  {claim.text}: {claim.sentence}" for claim in proof.claims]
    lines.append(f"  pieces       {len(proof.tube.pieces)}")
    return "\n".join(lines)
