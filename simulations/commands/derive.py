"""`patchdyn derive`: print symbolic derivations and check their identities."""

import argparse

from simulations.commands import DONE, BadInput
from simulations.commands.arguments import EXIT_CODES

HELP = "print symbolic derivations and check their identities"
DESCRIPTION = """\
Print a derivation: its expressions and how each of them is proved. In the formats text and latex,
check every identity symbolically and print the result; this takes a few seconds for Lemmas 4.1 and
4.2. Without NAME, list all derivations in logical order: the model, its symmetries, invariant
quantities, the increments and their leading terms, consequences.
"""
EPILOG = f"""\
examples:
  patchdyn derive                             list the derivations
  patchdyn derive lemma-4.3
  patchdyn derive lemma-4.1 --format latex > lemma-4.1.tex
  patchdyn derive attention --format python   Python functions

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
        metavar="text|latex|python",
        help="output format (default: text)",
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
    print(known.render(args.name, args.format))
    return DONE
