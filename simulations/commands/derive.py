"""`patchdyn derive`: the paper's argument, symbolically."""

import argparse

from simulations.commands import DONE, BadInput
from simulations.commands.arguments import EXIT_CODES

HELP = "print the symbolic derivations and decide their identities anew"
DESCRIPTION = """\
Print a derivation: its expressions, each with what decides it, and, for text and LaTeX, whether
each identity behind it is exactly zero (decided now, which takes a few seconds for Lemmas 4.1 and
4.2). Without NAME, list the derivations in the order of the argument: the model, its symmetries,
what stays, the increments and their leading terms, what follows.
"""
EPILOG = f"""\
examples:
  patchdyn derive                             the list
  patchdyn derive lemma-4.3
  patchdyn derive lemma-4.1 --format latex > lemma-4.1.tex
  patchdyn derive attention --format python   functions that can be run

{EXIT_CODES}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="a derivation; none: list them")
    parser.add_argument(
        "--format", default="text", metavar="text|latex|python", help="default: text"
    )


def execute(args: argparse.Namespace) -> int:
    """Print a derivation, or the list of them in the order of the argument."""
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
        for name, (title, place) in titles.items():
            print(f"{name:<{width}} {title} ({place})")
        return DONE
    if args.name not in known:
        raise BadInput(f"NAME = {args.name} is not allowed: choose one of {', '.join(known)}")
    print(known.render(args.name, args.format))
    return DONE
