"""`patchdyn claims`: what can be checked."""

import argparse
import shutil
import textwrap
from dataclasses import fields
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
    from simulations.reproduction.claim import Words
    from simulations.reproduction.registry import claim_ids, words

    claims = [words(claim) for claim in claim_ids()]
    if args.json:
        told = [field.name for field in fields(Words) if field.name not in ("id", "paper")]
        print(to_json([
            {"claim": claim.id, "paper": claim.paper.name if claim.paper else ""}
            | {name: getattr(claim, name) for name in told}
            for claim in claims
        ]))  # fmt: skip
        return DONE
    width = min(max(shutil.get_terminal_size().columns, 40), 100)
    for paper, chapter in groupby(claims, key=lambda claim: claim.paper):
        if paper is not None:
            print(f"{paper.name}: {paper.title}\n")
        for claim in chapter:
            print(f"{claim.id}  ({claim.place})")
            print(textwrap.indent(textwrap.fill(claim.measures, width - 4), "    "))
            notes = (("--thorough", claim.thorough_note), ("changed after a run", claim.amended))
            for label, note in notes:
                if note:
                    print(textwrap.indent(textwrap.fill(f"{label}: {note}", width - 4), "    "))
        print()
    return DONE
