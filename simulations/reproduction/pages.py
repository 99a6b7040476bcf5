"""Parts of pages that are generated from the committed snapshot of results.

A part stands between ``<!-- NAME: generated -->`` and ``<!-- end -->``. ``make snapshot`` writes it
into the pages of the repository.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulations.reproduction.registry import claim_ids, texts
from simulations.reproduction.typeset import short

#: Pages with generated parts, relative to the repository.
PAGES = ("README.md", "notebooks/book/claims.md")

_PART = re.compile(r"(<!-- (\w+): generated -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_WORDS = {
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "finding": ("is a finding", "are findings"),
}


def table(snapshot: Mapping[str, Any]) -> str:
    """Return a Markdown table of the claims: place, statement, finding and verdict."""
    rows = [
        f"| `{claim}` | {_cell(text.get('place', ''))} | {_cell(_statement(text))} "
        f"| {_cell(snapshot.get(claim, {}).get('full', {}).get('finding', ''))} "
        f"| {snapshot.get(claim, {}).get('full', {}).get('verdict', '')} |"
        for claim, text in ((claim, texts(claim)) for claim in claim_ids())
    ]
    head = "| claim | place | what the paper says | what was found | verdict |"
    return "\n".join([head, "| --- | --- | --- | --- | --- |", *rows, ""])


def counts(snapshot: Mapping[str, Any]) -> str:
    """Return how many claims hold, fail or are findings in the full run, in a sentence."""
    number = Counter(entry["full"]["verdict"] for entry in snapshot.values() if "full" in entry)
    parts = [
        f"{number[verdict]} {singular if number[verdict] == 1 else plural}"
        for verdict, (singular, plural) in _WORDS.items()
    ]
    total = number.total()
    return (
        f"Of the {total} claims, those on real images included, {parts[0]}, {parts[1]} and "
        f"{parts[2]}.\n"
    )


def generated(page: str, snapshot: Mapping[str, Any]) -> str:
    """Return a page with its generated parts brought up to date."""
    parts = {"claims": table, "counts": counts}
    return _PART.sub(lambda found: found[1] + parts[found[2]](snapshot) + found[4], page)


def write(repository: Path, snapshot: Mapping[str, Any]) -> None:
    """Bring the generated parts of the pages of a repository up to date."""
    for name in PAGES:
        page = repository / name
        page.write_text(generated(page.read_text("utf-8"), snapshot), "utf-8")


def _statement(text: Mapping[str, str]) -> str:
    changed = " (changed after a run)" if "amended" in text else ""
    return short(text.get("statement", "")) + changed


def _cell(text: str) -> str:
    return re.sub(r"([|<*_])", r"\\\1", text)
