"""Committed snapshot of the results: texts, verdicts and numbers of every claim.

``snapshot.json`` maps the id of a claim to

``texts``
    statement and method of the claim, for lists that import no solver;
``full``
    verdict, finding and counts of the predicates in the full run;
``quick``
    the same in the quick run, and its tables: continuous integration compares a fresh run.

Pages of the repository have parts that are generated from it, between ``<!-- NAME: generated -->``
and ``<!-- end -->``.

``python -m simulations.reproduction.snapshot [REPORT ...]`` writes the snapshot: the texts of the
claims, and the results in the given folders. Other results are preserved.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from simulations.reproduction.claim import TEXTS, Claim

#: Pages with generated parts, relative to the repository.
PAGES = ("README.md", "notebooks/book/claims.md")

_PART = re.compile(r"(<!-- (\w+): generated -->\n)(.*?)(<!-- end -->)", re.DOTALL)
#: Singular and plural of each verdict in a sentence.
_VERBS = {
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "finding": ("is a finding", "are findings"),
}
_COLUMN = ("name", "unit", "rtol", "atol")
Record = Mapping[str, Any]


def path() -> Path:
    """Return the path of the snapshot."""
    return Path(str(files("simulations.reproduction") / "snapshot.json"))


@cache
def read() -> dict[str, dict[str, Any]]:
    """Return the snapshot."""
    content: dict[str, dict[str, Any]] = json.loads(path().read_text("utf-8"))
    return content


def records(mode: str) -> dict[str, dict[str, Any]]:
    """Return the results of a mode, ``"quick"`` or ``"full"``, in the form of report.json."""
    results = {claim: dict(entry[mode]) for claim, entry in read().items() if mode in entry}
    for result in results.values():
        if "tables" in result:
            result["tables"] = [_expanded(table) for table in result["tables"]]
    return results


def texts_of(claim: Claim) -> dict[str, str]:
    """Return the texts of a claim that the snapshot stores: those that are not empty."""
    return {name: text for name, text in claim.texts().items() if text and name in TEXTS}


def merged(snapshot: Mapping[str, Any], records: Iterable[Record]) -> dict[str, Any]:
    """Return a snapshot with the results of the records of a report added or replaced."""
    entries = {claim: dict(entry) for claim, entry in snapshot.items()}
    for record in records:
        entry = entries.setdefault(record["claim"], {})
        if not record.get("thorough") and record["verdict"] != "skipped":
            entry["quick" if record["quick"] else "full"] = _result(record)
    return entries


def _result(record: Record) -> dict[str, Any]:
    result = {"verdict": record["verdict"], "finding": record["finding"]}
    if "predicates" not in record:
        return result
    counts = [
        [test["table"], test["predicate"], test["passed"], test["judged"]]
        for test in record["predicates"]
    ]
    result |= {"headline": record["headline"], "predicates": counts}
    return result | ({"tables": list(map(_compact, record["tables"]))} if record["quick"] else {})


def _compact(table: Record) -> dict[str, Any]:
    """Return a table of a report with lists in place of mappings."""
    return {
        "name": table["name"],
        "index": table["index"],
        "columns": [[column[key] for key in _COLUMN] for column in table["columns"]],
        "rows": [[[*row["at"].values()], row["values"]] for row in table["rows"]],
    }


def _expanded(table: Record) -> dict[str, Any]:
    """Return a table in the form of a report, the inverse of `_compact`."""
    columns = [dict(zip(_COLUMN, column)) for column in table["columns"]]
    return {
        **table,
        "columns": [{"label": column["name"], **column} for column in columns],
        "rows": [
            {"at": dict(zip(table["index"], index)), "values": values}
            for index, values in table["rows"]
        ],
    }


def as_text(snapshot: Mapping[str, Any]) -> str:
    """Return a snapshot as JSON, with one line for each mode of a claim."""
    entries = [
        f"{json.dumps(claim)}: {{\n"
        + ",\n".join(
            f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
            for key, value in entry.items()
        )
        + "\n}"
        for claim, entry in snapshot.items()
    ]
    return "{" + ",\n".join(entries) + "}\n"


def claims_table(snapshot: Mapping[str, Any]) -> str:
    """Return a Markdown table of the claims: place, statement, finding and verdict."""
    from simulations.reproduction.registry import claim_ids

    head = "| claim | place | statement of the paper | result | verdict |"
    rows = (_markdown_row(claim, snapshot.get(claim, {}).get("full", {})) for claim in claim_ids())
    return "\n".join([head, "| --- | --- | --- | --- | --- |", *rows, ""])


def _markdown_row(claim: str, result: Record) -> str:
    from simulations.reproduction.registry import texts
    from simulations.reproduction.typeset import first_point

    text = texts(claim)
    changed = " (changed after a run)" if "amended" in text else ""
    statement = first_point(text.get("statement", "")) + changed
    cells = (text.get("place", ""), statement, result.get("finding", ""))
    escaped = " | ".join(re.sub(r"([|<*_])", r"\\\1", cell) for cell in cells)
    return f"| `{claim}` | {escaped} | {result.get('verdict', '')} |"


def counts(snapshot: Mapping[str, Any]) -> str:
    """Return the number of claims by verdict in the full run, as a sentence."""
    number = Counter(entry["full"]["verdict"] for entry in snapshot.values() if "full" in entry)
    holds, fails, findings = (
        f"{number[verdict]} {singular if number[verdict] == 1 else plural}"
        for verdict, (singular, plural) in _VERBS.items()
    )
    return (
        f"Of the {number.total()} claims, those on real images included, {holds}, {fails} and "
        f"{findings}.\n"
    )


def page_with_parts(page: str, snapshot: Mapping[str, Any]) -> str:
    """Return a page whose generated parts agree with a snapshot."""
    parts = {"claims": claims_table, "counts": counts}
    return _PART.sub(lambda part: part[1] + parts[part[2]](snapshot) + part[4], page)


def _arguments() -> Any:
    import argparse

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--pages",
        type=Path,
        metavar="REPOSITORY",
        help="repository whose pages are brought up to date",
    )
    parser.add_argument("reports", nargs="*", type=Path, help="folders of full and quick reports")
    return parser.parse_args()


def main() -> None:
    """Merge the results of reports into the snapshot."""
    from simulations.reproduction.registry import claim_ids, load

    args = _arguments()
    snapshot = read() if path().exists() else {}
    for report in args.reports:
        snapshot = merged(snapshot, json.loads((report / "report.json").read_text("utf-8")))
    ordered: dict[str, Any] = {}
    for claim in claim_ids():
        entry = snapshot.get(claim, {})
        results = {mode: entry[mode] for mode in ("full", "quick") if mode in entry}
        ordered[claim] = {"texts": texts_of(load(claim)), **results}
    path().write_text(as_text(ordered), "utf-8")
    if args.pages:
        read.cache_clear()
        for name in PAGES:
            page = args.pages / name
            page.write_text(page_with_parts(page.read_text("utf-8"), ordered), "utf-8")


if __name__ == "__main__":
    main()
