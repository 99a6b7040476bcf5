"""`patchdyn derive`: print symbolic derivations and check their identities."""

import argparse
from typing import TYPE_CHECKING

from simulations.commands import DONE, FAILED, BadInput
from simulations.commands.arguments import EXIT_CODES

if TYPE_CHECKING:
    from symbolic.core.coq import Source

HELP = "print symbolic derivations and check their identities"
DESCRIPTION = """\
Print a derivation: its expressions and how each of them is proved. In the formats text and latex,
check every identity symbolically and print the result; this takes a few seconds for Lemmas 4.1 and
4.2. The format coq writes a self-contained file for the proof assistant Coq: for Lemmas 4.1 and 4.2
a proof about the full D x D model for all sizes, for the others one lemma for each identity.
Without NAME, list all derivations in logical order: the model, its symmetries, invariant
quantities, the increments and their leading terms, consequences.
"""
EPILOG = f"""\
examples:
  patchdyn derive                             list the derivations
  patchdyn derive lemma-4.3
  patchdyn derive lemma-4.1 --format latex > lemma-4.1.tex
  patchdyn derive attention --format python   Python functions
  patchdyn derive lemma-4.1 --format coq --check   a proof for all sizes, checked by Coq

{EXIT_CODES}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a derivation (default: list them all)"
    )
    parser.add_argument(
        "--format",
        default="text",
        metavar="text|latex|python|coq",
        help="output format (default: text)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="with --format coq: run coqc, and print what it accepts instead of the file",
    )


def execute(args: argparse.Namespace) -> int:
    """Print a derivation, or the list of all derivations."""
    from simulations import theories
    from symbolic import catalogue

    known = catalogue.Catalogue(theories.packages_of_derivations())
    if args.format not in catalogue.FORMATS:
        raise BadInput(
            f"--format {args.format} is not allowed: choose one of {', '.join(catalogue.FORMATS)}"
        )
    if args.name is None:
        titles = known.titles
        width = max(map(len, titles))
        for name, (title, source) in titles.items():
            print(f"{name:<{width}} {title} ({source})")
        return DONE
    if args.name not in known:
        raise BadInput(f"NAME = {args.name} is not allowed: choose one of {', '.join(known)}")
    if args.check and args.format != "coq":
        raise BadInput("--check is not allowed here: it needs --format coq")
    if args.check:
        return _check(known.coq_source(args.name))
    print(known.render(args.name, args.format))
    return DONE


def _check(source: "Source") -> int:
    """Have Coq check a file, and print the outcome."""
    from symbolic.core import coq

    try:
        outcome = coq.check(source)
    except coq.CoqMissingError as error:
        raise BadInput(str(error)) from None
    print(f"accepted by Coq: {len(outcome.accepted)} of {len(source.lemmas)}")
    for name in outcome.accepted:
        print(f"  {name}: {source.titles.get(name, name)}")
    for name, message in outcome.rejected.items():
        print(f"not accepted: {name}: {source.titles.get(name, name)}: {message}")
    for line in source.left_out:
        print(f"not exported: {line}")
    print(f"axioms: {', '.join(outcome.assumptions) or 'none'}")
    return FAILED if outcome.rejected or not outcome.accepted else DONE
