"""`patchdyn reproduce`: check the claims and write a report."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from simulations.commands import DONE, FAILED, INTERRUPTED, BadInput
from simulations.commands.arguments import EXIT_CODES, number

if TYPE_CHECKING:
    from simulations.reproduction.claim import Claim, Context
    from simulations.reproduction.folder import ReportFolder
    from simulations.reproduction.run import Outcome

#: A thousand times a seed must fit the 32 bits of some libraries.
LARGEST_SEED = 10**6
HELP = "check the claims and write a report with figures and data"
DESCRIPTION = """\
Check the claims of the papers, in parallel, and write DIR/report.html, DIR/report.json,
DIR/figures/*.png and DIR/data/*.nc. The page report.html needs neither scripts nor a network
connection; it loads its figures from DIR/figures, or contains them with --single-file. Results are
stored when a claim finishes: after Ctrl-C, the same command resumes. A folder with results of
another version, seed or mode (quick, full, thorough) is rejected unless --force is given.
"""
EPILOG = f"""\
examples:
  patchdyn reproduce                                 all claims but those on images
  patchdyn reproduce --quick --out quick             the same with smaller problems
  patchdyn reproduce --images --out images           the claims on real images (Section 6)
  patchdyn reproduce --only lemma-4.3 events --out some
  patchdyn reproduce --seed 1 --out report-1         another seed for all random numbers
  patchdyn reproduce --single-file --open            open the report as a single file

{EXIT_CODES}
The exit code is 0 even if the verdict of a claim is "fails". It is 1 if a claim could not be run,
or if a result could not be written.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    _add_choice(parser)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="DIR",
        help="folder of the report (default: report)",
    )
    parser.add_argument(
        "--workers",
        type=number,
        metavar="N",
        help="number of worker processes (default: one per core); it does not affect the results",
    )
    parser.add_argument(
        "--seed",
        type=number,
        default=0,
        metavar="N",
        help="root seed of all random numbers (default: 0)",
    )
    parser.add_argument(
        "--single-file",
        action="store_true",
        help="embed the figures in report.html",
    )
    parser.add_argument("--open", action="store_true", help="open the report in a browser")
    parser.add_argument(
        "--force",
        action="store_true",
        help="run finished claims again; replace results of another version, seed or mode in DIR "
        "(only files written by patchdyn)",
    )


def _add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the claims and the size of their problems."""
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="smaller problems and shorter horizons")
    size.add_argument(
        "--thorough",
        action="store_true",
        help="add experiments too expensive for the full run (listed by `patchdyn claims`)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--images",
        action="store_true",
        help='check only the claims on real images; requires pip install "patchdyn[vision]"',
    )
    which.add_argument(
        "--only",
        nargs="+",
        action="extend",
        metavar="CLAIM",
        help="check only these claims (ids as in `patchdyn claims`)",
    )


def execute(args: argparse.Namespace) -> int:
    """Check the arguments, run the claims and write the report."""
    workers = os.cpu_count() or 1 if args.workers is None else args.workers
    if not isinstance(workers, int) or workers < 1:
        raise BadInput(f"--workers {workers} is not allowed: it must be an integer, at least 1")
    if not isinstance(args.seed, int) or not 0 <= args.seed <= LARGEST_SEED:
        raise BadInput(
            f"--seed {args.seed} is not allowed: it must be an integer from 0 to {LARGEST_SEED}"
        )
    from simulations.reproduction.claim import Context

    code = run_claims(
        choose(args.only, images=args.images),
        args.out,
        Context(args.quick, args.seed, thorough=args.thorough),
        force=args.force,
        workers=workers,
        single_file=args.single_file,
    )
    if args.open and code != INTERRUPTED:
        _open(args.out / "report.html")
    return code


def _open(page: Path) -> None:
    """Open a page in a browser; print a message if that fails."""
    import webbrowser

    if not (page.is_file() and webbrowser.open(page.resolve().as_uri())):
        print(f"patchdyn: cannot open a browser: open {page} yourself", file=sys.stderr)


def choose(only: list[str] | None, *, images: bool = False) -> tuple[Claim, ...]:
    """Return the claims to run, in the order of the papers.

    Parameters
    ----------
    only
        Ids of claims; by default all claims except those on real images.
    images
        Choose the claims on real images instead.

    Raises
    ------
    BadInput
        If an id is unknown.
    """
    from simulations.reproduction.registry import claim_ids, load

    for claim in only or ():
        if claim not in claim_ids():
            raise BadInput(
                f"--only {claim[:60]} is not allowed: choose among {', '.join(claim_ids())}"
            )
    chosen = only or claim_ids("vision" if images else "")
    return tuple(load(claim) for claim in claim_ids() if claim in chosen)


def run_claims(
    claims: tuple[Claim, ...],
    out: Path,
    settings: Context,
    *,
    force: bool,
    workers: int,
    single_file: bool = False,
) -> int:
    """Run claims and write a report.

    Parameters
    ----------
    claims
        Claims to run.
    out
        Folder of the report.
    settings
        Mode and root seed.
    force
        Run finished claims again, and replace results of another version, seed or mode.
    workers
        Number of worker processes.
    single_file
        Embed the figures in the page.

    Returns
    -------
    int
        Exit code.
    """
    from simulations.display import choose_display
    from simulations.files import StoreError, stamp
    from simulations.reproduction.folder import ReportFolder
    from simulations.reproduction.run import reproduce

    try:
        versions = stamp(settings.mode, settings.seed)
        folder = ReportFolder(out, versions, [claim.id for claim in claims], force=force)
    except StoreError as error:
        raise BadInput(str(error)) from None
    try:
        with folder:
            outcome = reproduce(
                claims,
                folder,
                choose_display(),
                settings,
                force=force,
                workers=workers,
                single_file=single_file,
            )
    except StoreError as error:
        print(f"patchdyn: {error}; finished claims are stored in {out}", file=sys.stderr)
        return FAILED
    return _print_outcome(outcome, folder)


def _print_outcome(outcome: Outcome, folder: ReportFolder) -> int:
    """Print the number of claims by verdict and the errors; return the exit code."""
    from simulations.reproduction.predicates import Verdict

    records = folder.records()
    verdicts = [records[claim]["verdict"] for claim in outcome.finished]
    counts = ((verdicts.count(verdict), verdict.value) for verdict in Verdict)
    print(", ".join(f"{count} {verdict}" for count, verdict in counts if count) or "nothing run")
    print(f"report: {folder.path / 'report.html'}")
    missing = [claim for claim in folder.claims if claim not in records]
    if missing:
        print(f"not run yet: {', '.join(missing)}")
    if outcome.failed:
        print(f"patchdyn: could not be run: {', '.join(outcome.failed)}", file=sys.stderr)
    if outcome.interrupted:
        print("patchdyn: interrupted; the same command resumes", file=sys.stderr)
        return INTERRUPTED
    return FAILED if outcome.failed else DONE
