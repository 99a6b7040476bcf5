"""The committed snapshot of results: texts, verdicts and numbers of every claim.

``snapshot.json`` maps the id of a claim to

``texts``
    what the claim states and how it is tested, for lists that import no solver;
``full``
    verdict, finding and counts of the predicates in the full run;
``quick``
    the same in the quick run, and its tables: continuous integration compares a fresh run.

``python -m simulations.reproduction.snapshot [REPORT ...]`` writes it, with the texts of the
modules of the claims and the results of the given folders of reports; others stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from simulations.reproduction.claim import TEXTS, Claim

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
    found = {claim: entry[mode] for claim, entry in read().items() if mode in entry}
    return {
        claim: entry | ({"measured": list(_measured(entry["tables"]))} if "tables" in entry else {})
        for claim, entry in found.items()
    }


def _measured(tables: Iterable[Record]) -> Iterable[dict[str, Any]]:
    for table in tables:
        for number, (name, unit, rtol, atol) in enumerate(table["columns"]):
            for *at, values in table["rows"]:
                place = dict(zip(table["index"], at[0]))
                yield {
                    "name": name, "label": name, "at": place, "value": values[number],
                    "unit": unit, "rtol": rtol, "atol": atol,
                }  # fmt: skip


def merged(snapshot: Mapping[str, Any], records: Iterable[Record]) -> dict[str, Any]:
    """Return a snapshot with the results of the records of a report added or replaced."""
    entries = {claim: dict(entry) for claim, entry in snapshot.items()}
    for record in records:
        entry = entries.setdefault(record["claim"], {})
        if not record.get("thorough") and record["verdict"] != "skipped":
            entry["quick" if record["quick"] else "full"] = _result(record)
    return entries


def texts_of(claim: Claim) -> dict[str, str]:
    """Return what the snapshot stores of a claim's texts: those that are not empty."""
    return {name: text for name, text in claim.texts().items() if text and name in TEXTS}


def _results(entry: Record) -> dict[str, Any]:
    return {mode: entry[mode] for mode in ("full", "quick") if mode in entry}


def _result(record: Record) -> dict[str, Any]:
    result = {"verdict": record["verdict"], "finding": record["finding"]}
    if "predicates" not in record:
        return result
    counts = [
        [test["table"], test["predicate"], test["passed"], test["judged"]]
        for test in record["predicates"]
    ]
    result |= {"headline": record["headline"], "predicates": counts}
    return result | ({"tables": list(_tables(record))} if record["quick"] else {})


def _tables(record: Record) -> Iterable[dict[str, Any]]:
    for table in record["tables"]:
        yield {
            "name": table["name"],
            "index": table["index"],
            "columns": [
                [column[key] for key in ("name", "unit", "rtol", "atol")]
                for column in table["columns"]
            ],
            "rows": [[[*row["at"].values()], row["values"]] for row in table["rows"]],
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


def main() -> None:
    """Merge the results of reports into the snapshot."""
    import argparse

    from simulations.reproduction import pages
    from simulations.reproduction.registry import claim_ids, load

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--pages",
        type=Path,
        metavar="REPOSITORY",
        help="repository whose pages are brought up to date",
    )
    parser.add_argument("reports", nargs="*", type=Path, help="folders of full and quick reports")
    snapshot = read() if path().exists() else {}
    args = parser.parse_args()
    for report in args.reports:
        snapshot = merged(snapshot, json.loads((report / "report.json").read_text("utf-8")))
    ordered = {
        claim: {"texts": texts_of(load(claim)), **_results(snapshot.get(claim, {}))}
        for claim in claim_ids()
    }
    path().write_text(as_text(ordered), "utf-8")
    if args.pages:
        read.cache_clear()
        pages.write(args.pages, ordered)


if __name__ == "__main__":
    main()
