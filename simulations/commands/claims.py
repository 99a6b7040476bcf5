"""`patchdyn claims`: list the claims of the papers."""

import argparse
import json
import shutil
import textwrap
from itertools import groupby

from simulations.commands import DONE
from simulations.commands.arguments import EXIT_CODES

HELP = "list the claims: id, place in the paper, measurement"
DESCRIPTION = "List the claims that `patchdyn reproduce` checks, in the order of the papers."
EPILOG = f"""\
examples:
  patchdyn claims
  patchdyn claims --json
  patchdyn reproduce --only lemma-4.3 --out lemma-4.3

{EXIT_CODES}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")


def execute(args: argparse.Namespace) -> int:
    """Print the claims of each paper, as text or JSON."""
    from simulations.reproduction.registry import claim_ids, texts

    claims = [texts(claim) for claim in claim_ids()]
    if args.json:
        print(json.dumps(claims, indent=2, ensure_ascii=False))
        return DONE
    width = min(max(shutil.get_terminal_size().columns, 40), 100)
    for paper, chapter in groupby(claims, key=lambda claim: (claim["paper"], claim["title"])):
        print(f"{paper[0]}: {paper[1]}\n")
        for claim in chapter:
            print(f"{claim['claim']}  ({claim.get('place', '')})")
            print(textwrap.indent(textwrap.fill(claim.get("method", ""), width - 4), "    "))
            notes = (("--thorough", "thorough_note"), ("changed after a run", "amended"))
            for label, name in notes:
                if name in claim:
                    text = textwrap.fill(f"{label}: {claim[name]}", width - 4)
                    print(textwrap.indent(text, "    "))
        print()
    return DONE
