"""`patchdyn report compare`: two reports side by side."""

from __future__ import annotations

import argparse
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
tolerance of a claim that allows rounding alone; wall times may be anything.
"""
EPILOG = f"""\
examples:
  patchdyn report compare report-before report
  patchdyn report compare theirs mine --json

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
    parser.add_argument("--json", action="store_true", help="print an object, with every number")


def execute(args: argparse.Namespace) -> int:
    """Compare and tell."""
    from simulations.files.as_json import to_json
    from simulations.reproduction.compare import compare

    if not 0.0 <= args.share < 1.0:
        raise BadInput(f"--share {args.share} is not allowed: it must be at least 0 and below 1")
    old, new = _read(args.old), _read(args.new)
    modes = [report.stamp.get("mode") for report in (old, new)]
    if modes[0] != modes[1]:
        raise BadInput(
            f"{args.old} is a {modes[0]} run and {args.new} a {modes[1]} one: "
            "compare reports of one size"
        )
    changes = compare(old.records(), new.records(), float(args.share))
    if args.json:
        told = [asdict(change) for change in changes]
        print(to_json({"old": old.stamp, "new": new.stamp, "share": args.share, "changes": told}))
    else:
        print(_as_text(old, new, changes))
    return FAILED if changes else DONE


def _read(path: Path) -> StoredReport:
    from simulations.files.store import StoreError
    from simulations.reproduction.folder import StoredReport

    try:
        return StoredReport.read(path)
    except StoreError as refusal:
        raise BadInput(str(refusal)) from None


def _as_text(old: StoredReport, new: StoredReport, changes: list[Change]) -> str:
    lines = [f"{word}  {report.path}: {_origin(report.stamp)}"
             for word, report in (("old", old), ("new", new))]  # fmt: skip
    for claim, group in groupby(changes, key=lambda change: change.claim):
        members = list(group)
        lines += ["", claim, *(f"  {_line(change)}" for change in members[:_TOLD])]
        if len(members) > _TOLD:
            lines.append(f"  and {len(members) - _TOLD} more (--json tells all)")
    verdicts = sum(change.what in ("verdict", "claim") for change in changes)
    common = len(set(old.claims) & set(new.claims))
    counts = f"{verdicts} verdicts and {len(changes) - verdicts} numbers changed"
    return "\n".join([*lines, "", f"{common} claims in both: {counts if changes else 'no change'}"])


def _origin(stamp: dict[str, str]) -> str:
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
