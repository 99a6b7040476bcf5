"""`patchdyn report compare`: two reports side by side."""

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

HELP = "compare two reports: which verdicts and numbers changed"
DESCRIPTION = """\
Compare two folders that `patchdyn reproduce` wrote, after a change of the code or on another
machine: which claims have another verdict, and which numbers changed by more than they may. A
number with a measured interval may move within it, any other by --share of its size, or by the
tolerance of a claim that allows rounding alone; wall times may be anything. `snapshot` as OLD is
the committed snapshot of results: verdicts of a full run, verdicts and numbers of a quick one.
"""
EPILOG = f"""\
examples:
  patchdyn report compare report-before report
  patchdyn report compare theirs mine --json
  patchdyn report compare snapshot report

{EXIT_CODES}
Exit code 1 means that something changed.
"""
#: Numbers of a claim that are told at most; --json tells all.
_TOLD = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("action", choices=("compare",), metavar="compare", help="what to do")
    parser.add_argument("old", type=Path, metavar="OLD", help="folder of a report")
    parser.add_argument("new", type=Path, metavar="NEW", help="folder of another")
    parser.add_argument(
        "--share",
        type=number,
        default=1e-6,
        metavar="X",
        help="relative change of a number that counts as none (default 1e-6)",
    )
    parser.add_argument(
        "--verdicts",
        action="store_true",
        help="compare verdicts alone: numbers depend on processors",
    )
    parser.add_argument("--json", action="store_true", help="print an object, with every number")


def execute(args: argparse.Namespace) -> int:
    """Compare and tell."""
    from simulations.files.as_json import to_json
    from simulations.reproduction.compare import compare

    if not 0.0 <= args.share < 1.0:
        raise BadInput(f"--share {args.share} is not allowed: it must be at least 0 and below 1")
    new = _read(args.new)
    stamp, records = _old(args.old, new)
    modes = [origin.get("mode") for origin in (stamp, new.stamp)]
    if modes[0] != modes[1]:
        raise BadInput(
            f"{args.old} is a {modes[0]} run and {args.new} a {modes[1]} one: "
            "compare reports of one size"
        )
    changes = compare(records, new.records(), float(args.share))
    if args.verdicts:
        changes = [change for change in changes if change.what in ("verdict", "claim")]
    if args.json:
        listed = [asdict(change) for change in changes]
        print(to_json({"old": stamp, "new": new.stamp, "share": args.share, "changes": listed}))
    else:
        common = len(set(records) & set(new.claims))
        print(_as_text([(args.old, stamp), (args.new, new.stamp)], changes, common))
    return FAILED if changes else DONE


def _old(path: Path, new: StoredReport) -> tuple[dict[str, str], Mapping[str, Any]]:
    """Return stamp and records of the older report, or of the snapshot's claims in the new one."""
    from simulations.reproduction import snapshot

    if str(path) != "snapshot":
        report = _read(path)
        return report.stamp, report.records()
    mode = new.stamp.get("mode", "full")
    records = snapshot.records(mode)
    return {"mode": mode}, {claim: records[claim] for claim in new.claims if claim in records}


def _read(path: Path) -> StoredReport:
    from simulations.files.store import StoreError
    from simulations.reproduction.folder import StoredReport

    try:
        return StoredReport.read(path)
    except StoreError as refusal:
        raise BadInput(str(refusal)) from None


def _as_text(
    reports: Sequence[tuple[Path, Mapping[str, str]]], changes: list[Change], common: int
) -> str:
    lines = [
        f"{word}  {path}: {_origin(stamp)}" for word, (path, stamp) in zip(("old", "new"), reports)
    ]
    for claim, group in groupby(changes, key=lambda change: change.claim):
        members = list(group)
        lines += ["", claim, *(f"  {_line(change)}" for change in members[:_TOLD])]
        if len(members) > _TOLD:
            lines.append(f"  and {len(members) - _TOLD} more (--json tells all)")
    verdicts = sum(change.what in ("verdict", "claim") for change in changes)
    counts = f"{verdicts} verdicts and {len(changes) - verdicts} numbers changed"
    return "\n".join([*lines, "", f"{common} claims in both: {counts if changes else 'no change'}"])


def _origin(stamp: Mapping[str, str]) -> str:
    keys = ("patchdyn", "commit", "code", "mode", "seed")
    return ", ".join(f"{key} {stamp[key]}" for key in keys if stamp.get(key))


def _line(change: Change) -> str:
    from simulations.reproduction.report import show

    if change.what == "claim":
        there = "new" if change.old is None else "old"
        return f"in the {there} report only: {change.old or change.new}"
    values = f"{_shown(change.old)} -> {_shown(change.new)}"
    if change.what == "verdict":
        return f"verdict: {values}"
    place = f" at {show(change.at)}" if change.at else ""
    unit = f" {change.unit}" if change.unit else ""
    return f"{change.label}{place}: {values}{unit}"


def _shown(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else "-" if value is None else str(value)
