"""`patchdyn claims`: what can be checked."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from itertools import groupby

from simulations.commands import DONE
from simulations.commands.arguments import EXIT_CODES

HELP = "list the claims: id, place in the paper, what is measured"
DESCRIPTION = "List the claims that `patchdyn reproduce` checks, in the order of the papers."
EPILOG = f"""\
examples:
  patchdyn claims
  patchdyn claims --json
  patchdyn reproduce --only lemma-4.3 --out lemma-4.3

{EXIT_CODES}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")


def execute(args: argparse.Namespace) -> int:
    """Print the claims."""
    from simulations.files.as_json import to_json
    from simulations.reproduction.registry import claim_ids, words

    claims = [words(claim) for claim in claim_ids()]
    if args.json:
        keys = (
            "place",
            "statement",
            "measures",
            "criterion",
            "quick_note",
            "thorough_note",
            "depends",
        )
        listed = [{"claim": c.id, "paper": c.paper.name if c.paper else ""} for c in claims]
        for entry, claim in zip(listed, claims):
            entry |= {key: getattr(claim, key) for key in keys}
        print(to_json(listed))
        return DONE
    width = min(max(shutil.get_terminal_size().columns, 40), 100)
    for paper, chapter in groupby(claims, key=lambda claim: claim.paper):
        if paper is not None:
            print(f"{paper.name}: {paper.title}\n")
        for claim in chapter:
            print(f"{claim.id}  ({claim.place})")
            print(textwrap.indent(textwrap.fill(claim.measures, width - 4), "    "))
            if claim.thorough_note:
                note = f"--thorough: {claim.thorough_note}"
                print(textwrap.indent(textwrap.fill(note, width - 4), "    "))
        print()
    return DONE
