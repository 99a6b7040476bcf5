"""`patchdyn report compare`: print the differences between two reports."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, FAILED, BadInput
from simulations.commands.arguments import EXIT_CODES, number

if TYPE_CHECKING:
    from simulations.reproduction.compare import Change
    from simulations.reproduction.folder import StoredReport

HELP = "compare two reports: print changed verdicts and numbers"
DESCRIPTION = """\
Compare two folders written by `patchdyn reproduce`, for example before and after a change of the
code, or from two machines. Print the claims whose verdict changed, and table, row and column of
each number that changed by more than its tolerance. A number with a confidence interval may move
within the interval. Any other number may change by --share of its size, or by the tolerances of its
column. Wall times are not compared. With OLD = snapshot, compare with the results stored in the
repository: verdicts of a full run, or verdicts and numbers of a quick run.
"""
EPILOG = f"""\
examples:
  patchdyn report compare report-before report
  patchdyn report compare theirs mine --json
  patchdyn report compare snapshot report

{EXIT_CODES}
The exit code is 1 if a verdict or a number changed.
"""
#: Largest number of changes that are printed for one claim; --json prints all.
_PRINTED = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("action", choices=("compare",), metavar="compare", help="the only action")
    parser.add_argument("old", type=Path, metavar="OLD", help="folder of a report, or snapshot")
    parser.add_argument("new", type=Path, metavar="NEW", help="folder of another report")
    parser.add_argument(
        "--share",
        type=number,
        default=1e-6,
        metavar="X",
        help="relative tolerance of numbers (default: 1e-6)",
    )
    parser.add_argument(
        "--verdicts",
        action="store_true",
        help="compare only verdicts, because numbers depend on the processor",
    )
    parser.add_argument("--json", action="store_true", help="print all changes as JSON")


def execute(args: argparse.Namespace) -> int:
    """Compare two reports; the exit code is 1 if something changed."""
    from simulations.files import to_json
    from simulations.reproduction.compare import compare

    if not 0.0 <= args.share < 1.0:
        raise BadInput(f"--share {args.share} is not allowed: it must be at least 0 and below 1")
    new = _read(args.new)
    stamp, records = _old_records(args.old, new)
    modes = [report.get("mode") for report in (stamp, new.stamp)]
    if modes[0] != modes[1]:
        raise BadInput(
            f"{args.old} is a {modes[0]} run and {args.new} a {modes[1]} run: "
            "compare reports of the same mode"
        )
    changes = compare(records, new.records(), float(args.share))
    if args.verdicts:
        changes = [change for change in changes if change.what != "number"]
    if args.json:
        listed = [asdict(change) for change in changes]
        print(to_json({"old": stamp, "new": new.stamp, "share": args.share, "changes": listed}))
    else:
        common = len(set(records) & set(new.claims))
        print(_as_text([(args.old, stamp), (args.new, new.stamp)], changes, common))
    return FAILED if changes else DONE


def _old_records(path: Path, new: StoredReport) -> tuple[dict[str, str], Mapping[str, Any]]:
    """Return stamp and records of the old report, or those of the snapshot for the new claims."""
    from simulations.reproduction import snapshot

    if str(path) != "snapshot":
        report = _read(path)
        return report.stamp, report.records()
    mode = new.stamp.get("mode", "full")
    records = snapshot.records(mode)
    return {"mode": mode}, {claim: records[claim] for claim in new.claims if claim in records}


def _read(path: Path) -> StoredReport:
    from simulations.files import StoreError
    from simulations.reproduction.folder import StoredReport

    try:
        return StoredReport.read(path)
    except StoreError as error:
        raise BadInput(str(error)) from None


def _as_text(
    reports: Sequence[tuple[Path, Mapping[str, str]]], changes: list[Change], common: int
) -> str:
    """Return the changes of each claim; ``common`` claims are in both reports."""
    lines = [
        f"{which}  {path}: {_origin(stamp)}"
        for which, (path, stamp) in zip(("old", "new"), reports)
    ]
    for claim, group in groupby(changes, key=lambda change: change.claim):
        changed = list(group)
        lines += ["", claim, *(f"  {_line(change)}" for change in changed[:_PRINTED])]
        if len(changed) > _PRINTED:
            lines.append(f"  and {len(changed) - _PRINTED} more (use --json to print all)")
    numbers = sum(change.what == "number" for change in changes)
    counts = f"{len(changes) - numbers} verdicts and {numbers} numbers changed"
    return "\n".join([*lines, "", f"{common} claims in both: {counts if changes else 'no change'}"])


def _origin(stamp: Mapping[str, str]) -> str:
    """Return version, commit, mode and seed of a report."""
    keys = ("patchdyn", "commit", "code", "mode", "seed")
    return ", ".join(f"{key} {stamp[key]}" for key in keys if stamp.get(key))


def _line(change: Change) -> str:
    """Return a change as text: a verdict, or table, row and column of a number."""
    from simulations.reproduction.report import show

    if change.what == "claim":
        there = "new" if change.old is None else "old"
        return f"in the {there} report only: {change.old or change.new}"
    values = f"{_shown(change.old)} -> {_shown(change.new)}"
    if change.what == "verdict":
        return f"verdict: {values}"
    row = f" [{show(change.row)}]" if change.row else ""
    unit = f" {change.unit}" if change.unit else ""
    return f"{change.table}{row}, {change.label}: {values}{unit}"


def _shown(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else "-" if value is None else str(value)
