"""`patchdyn reproduce`: run the claims and write the report."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from simulations.commands import DONE, FAILED, INTERRUPTED, BadInput
from simulations.commands.arguments import EXIT_CODES, number

if TYPE_CHECKING:
    from simulations.reproduction.claim import Claim
    from simulations.reproduction.folder import ReportFolder
    from simulations.reproduction.run import Ended

#: A thousand times a seed must fit the 32 bits of some libraries.
LARGEST_SEED = 10**6
HELP = "run the claims and write report.html, report.json, figures and their data"
DESCRIPTION = """\
Run the claims, as many side by side as there are cores, and write DIR/report.html, DIR/report.json,
DIR/figures/*.png and DIR/data/*.nc. The page needs no script and no network, and its figures beside
it, or in it with --single-file. Each finished claim is stored at once: after Ctrl-C the same
command resumes. A folder with results of another version, another seed, or another of quick, full
and thorough, is refused unless --force is given.
"""
EPILOG = f"""\
examples:
  patchdyn reproduce                                 all claims but those on images, into ./report
  patchdyn reproduce --quick --out quick             the same with smaller problems
  patchdyn reproduce --images --out images           the claims on real images (Section 6)
  patchdyn reproduce --only lemma-4.3 events --out some
  patchdyn reproduce --seed 1 --out report-1         everything that is sampled, with another seed
  patchdyn reproduce --single-file --open            the finished report as one file, in a browser

{EXIT_CODES}
A claim whose verdict is "fails" was run and is reported as such: that is exit code 0. Exit code 1
means that a claim could not be run, or that its result could not be written.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="smaller problems and shorter horizons")
    size.add_argument(
        "--thorough",
        action="store_true",
        help="also what is too heavy for the full run (`patchdyn claims` says what)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--images",
        action="store_true",
        help='run the claims on real images instead; they need pip install "patchdyn[vision]"',
    )
    which.add_argument(
        "--only",
        nargs="+",
        action="extend",
        metavar="CLAIM",
        help="run these claims only (ids as in `patchdyn claims`)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("report"), metavar="DIR", help="default: report"
    )
    parser.add_argument(
        "--workers",
        type=number,
        metavar="N",
        help="claims run side by side (default: one per core; the results are the same)",
    )
    parser.add_argument(
        "--seed",
        type=number,
        default=0,
        metavar="N",
        help="root of all random numbers (default: 0)",
    )
    parser.add_argument(
        "--single-file",
        action="store_true",
        help="put the figures into report.html, for mailing",
    )
    parser.add_argument("--open", action="store_true", help="show the report in a browser")
    parser.add_argument(
        "--force",
        action="store_true",
        help="run finished claims again; replace results of another version in DIR "
        "(only files that patchdyn wrote)",
    )


def execute(args: argparse.Namespace) -> int:
    """Run the claims and report."""
    workers = os.cpu_count() or 1 if args.workers is None else args.workers
    if not isinstance(workers, int) or workers < 1:
        raise BadInput(f"--workers {workers} is not allowed: it must be an integer, at least 1")
    if not isinstance(args.seed, int) or not 0 <= args.seed <= LARGEST_SEED:
        raise BadInput(
            f"--seed {args.seed} is not allowed: it must be an integer from 0 to {LARGEST_SEED}"
        )
    code = run_claims(
        choose(args.only, images=args.images),
        args.out,
        quick=args.quick,
        thorough=args.thorough,
        seed=args.seed,
        force=args.force,
        workers=workers,
        single_file=args.single_file,
    )
    if args.open and code != INTERRUPTED:
        _show(args.out / "report.html")
    return code


def _show(page: Path) -> None:
    """Show a page in the browser of the machine; say so where there is none."""
    import webbrowser

    if not (page.is_file() and webbrowser.open(page.resolve().as_uri())):
        print(f"patchdyn: no browser could be opened: open {page} by hand", file=sys.stderr)


def choose(only: list[str] | None, *, images: bool = False) -> tuple[Claim, ...]:
    """Return the claims to run, in the order of the papers.

    By default these are all but those on real images.
    """
    from simulations.reproduction.registry import claim_ids, load

    for wanted in only or ():
        if wanted not in claim_ids():
            raise BadInput(
                f"--only {wanted[:60]} is not allowed: choose among {', '.join(claim_ids())}"
            )
    chosen = only or claim_ids("vision" if images else "")
    return tuple(load(claim) for claim in claim_ids() if claim in chosen)


def run_claims(
    claims: tuple[Claim, ...],
    out: Path,
    *,
    quick: bool,
    thorough: bool = False,
    seed: int = 0,
    force: bool,
    workers: int,
    single_file: bool = False,
) -> int:
    """Run claims into a folder and return the exit code."""
    from simulations.display import choose_display
    from simulations.files.stamp import stamp
    from simulations.files.store import StoreError
    from simulations.reproduction.claim import Context
    from simulations.reproduction.folder import ReportFolder
    from simulations.reproduction.run import reproduce

    try:
        mode = Context(quick, thorough=thorough).mode
        folder = ReportFolder(out, stamp(mode, seed), [claim.id for claim in claims], force=force)
    except StoreError as refusal:
        raise BadInput(str(refusal)) from None
    try:
        with folder:
            result = reproduce(
                claims,
                folder,
                choose_display(),
                quick=quick,
                thorough=thorough,
                seed=seed,
                force=force,
                workers=workers,
                single_file=single_file,
            )
    except StoreError as failure:
        print(f"patchdyn: {failure}; claims finished before are kept in {out}", file=sys.stderr)
        return FAILED
    return _closing_words(result, folder)


def _closing_words(result: Ended, folder: ReportFolder) -> int:
    from simulations.reproduction.predicates import Verdict

    records = folder.records()
    verdicts = [records[claim]["verdict"] for claim in result.finished]
    counts = {kind.value: verdicts.count(kind) for kind in Verdict}
    print(
        ", ".join(f"{number} {kind}" for kind, number in counts.items() if number) or "nothing run"
    )
    print(f"report: {folder.path / 'report.html'}")
    missing = [claim for claim in folder.claims if claim not in records]
    if missing:
        print(f"not run yet: {', '.join(missing)}")
    if result.failed:
        print(f"patchdyn: could not be run: {', '.join(result.failed)}", file=sys.stderr)
    if result.interrupted:
        print("patchdyn: interrupted; the same command resumes", file=sys.stderr)
        return INTERRUPTED
    return FAILED if result.failed else DONE
