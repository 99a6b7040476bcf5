"""Run claims, in parallel if requested, store each at once, and keep the report up to date."""

import json
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from simulations.display import Display
from simulations.files.as_json import plain
from simulations.reproduction.claim import Claim, Context, Figure, Result, SkipClaim
from simulations.reproduction.folder import ReportFolder
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.record import without_folders
from simulations.reproduction.report import write_report
from simulations.reproduction.workers import measure_parallel


@dataclass
class Ended:
    """How a run of claims ended."""

    finished: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    interrupted: bool = False


def reproduce(
    claims: Sequence[Claim],
    folder: ReportFolder,
    display: Display,
    *,
    quick: bool = False,
    thorough: bool = False,
    seed: int = 0,
    force: bool = False,
    workers: int = 1,
    single_file: bool = False,
) -> Ended:
    """Run the claims that the folder does not contain yet, then write the report.

    Each claim is stored as soon as it is finished. A claim that raises is recorded as failed to run
    and the others still run. Ctrl-C ends the run and writes the report of what is finished. With
    more than one worker, claims run in parallel in processes; the report is the same. With
    ``single_file`` the page contains its figures.

    Raises
    ------
    StoreError
        If a result cannot be written (a full disk); what was written before is kept.
    """
    known = {claim.id: claim for claim in claims}
    settings = Context(quick, seed, thorough=thorough)
    run = _Run(folder, display, known, settings, total=len(claims), single_file=single_file)
    try:
        if force:
            for claim in claims:
                folder.forget(claim.id)
        missing = [claim for claim in claims if not run.kept(claim)]
        if workers > 1 and len(missing) > 1:
            run.in_parallel(missing, workers)
        else:
            run.in_order(missing)
    except KeyboardInterrupt:
        run.result.interrupted = True
    finally:
        display.close()
        run.write()
    order = list(known)
    run.result.finished.sort(key=order.index)
    run.result.failed.sort(key=order.index)
    return run.result


class _Run:
    """What has been finished so far, and where it goes."""

    def __init__(
        self,
        folder: ReportFolder,
        display: Display,
        known: dict[str, Claim],
        settings: Context,
        total: int,
        single_file: bool,
    ) -> None:
        self.folder, self.display, self.known, self.total = folder, display, known, total
        self.single_file = single_file
        self.settings = settings
        self.result = Ended()

    def write(self) -> None:
        """Write the report as far as it is known."""
        write_report(self.folder, self.known, single_file=self.single_file)

    def kept(self, claim: Claim) -> bool:
        """Return whether the folder holds the claim already; then it counts as finished."""
        record = self.folder.record(claim.id)
        if record is None or "error" in record or record["verdict"] == Verdict.SKIPPED:
            return False
        self._count(record, kept=True)
        return True

    def in_order(self, claims: Sequence[Claim]) -> None:
        """Run claims one after the other, in this process."""
        for claim in claims:
            self.display.start(claim.id, self.total)
            progress = partial(self.display.progress, claim.id)
            scratch = self.folder.scratch(claim.id)
            context = replace(self.settings, progress=progress, scratch=scratch)
            self._finish(*measure(claim, context, stamp=self.folder.stamp))

    def in_parallel(self, claims: Sequence[Claim], workers: int) -> None:
        """Run claims in worker processes."""
        stamped = partial(measure, stamp=self.folder.stamp)
        for message in measure_parallel(
            claims, stamped, workers, settings=self.settings, scratch=self.folder.scratch
        ):
            claim = message.claim
            if message.kind == "start":
                self.display.start(claim.id, self.total)
            elif message.kind == "progress":
                self.display.progress(claim.id, message.content)
            elif message.kind == "done":
                self._finish(*message.content)
            else:
                record = _blank(claim, self.settings, self.folder.stamp)
                error = f"the claim was lost: its process ended with {message.content}"
                self._finish(record | _failure(error, "") | _closing(0.0, []), [])

    def _finish(self, record: dict[str, Any], figures: list[tuple[str, bytes, Any]]) -> None:
        self.folder.save(record, figures)
        self._count(record, kept=False)

    def _count(self, record: dict[str, Any], *, kept: bool) -> None:
        ended = self.result.failed if "error" in record else self.result.finished
        ended.append(record["claim"])
        self.display.finish(record, reused=kept)


def measure(
    claim: Claim, context: Context, *, stamp: dict[str, str]
) -> tuple[dict[str, Any], list[tuple[str, bytes, Any]]]:
    """Run one claim and draw its figures; return its record and (name, PNG, data) of each figure.

    A claim that raises gives a record with ``"error"`` (one sentence) and ``"traceback"``.
    """
    started = time.perf_counter()
    record = _blank(claim, context, stamp)
    figures: list[tuple[str, bytes, Any]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.simplefilter("default", RuntimeWarning)
        try:
            result = claim.run(context)
            record.update(_findings(result))
            figures = [_drawn(figure, record) for figure in result.measured.figures]
        except SkipClaim as reason:
            record |= _skipped(str(reason))
        except Exception as failure:
            figures = []
            record |= _failure(f"{type(failure).__name__}: {failure}", traceback.format_exc())
    messages = list(dict.fromkeys(without_folders(str(entry.message)) for entry in caught))
    record |= _closing(time.perf_counter() - started, messages)
    return record, figures


def _blank(claim: Claim, context: Context, stamp: dict[str, str]) -> dict[str, Any]:
    return {
        **claim.texts(),
        "quick": context.quick,
        "thorough": context.thorough,
        "seed": context.seed,
        "provenance": stamp,
    }


def _failure(error: str, trace: str) -> dict[str, Any]:
    told = {"error": without_folders(error), "traceback": without_folders(trace)}
    return {"figures": [], **told}


def _closing(seconds: float, messages: list[str]) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"warnings": messages, "seconds": round(seconds, 3), "date": now}


def _findings(result: Result) -> dict[str, Any]:
    """Return the part of a record that depends on the measurement."""
    predicates = result.predicates()
    values = {
        "verdict": result.verdict,
        "finding": result.finding,
        "headline": result.headline,
        "summary": "; ".join(
            f"{test['predicate']}: {test['passed']} of {test['judged']}" for test in predicates
        ),
        "predicates": predicates,
        "measured": result.numbers(),
        "tables": result.layouts(),
        "tolerance": result.claim.tolerance,
        "parameters": result.measured.settings,
        "equations": list(result.measured.equations),
    }
    figures = [
        {
            "name": figure.name,
            "title": figure.title,
            "caption": figure.caption,
            "image": f"figures/{figure.name}.png",
            "data": f"data/{figure.name}.nc",
        }
        for figure in result.measured.figures
    ]
    return {**plain(values), "figures": figures}


def _skipped(reason: str) -> dict[str, Any]:
    return {
        "verdict": Verdict.SKIPPED,
        "finding": reason,
        "summary": reason,
        "predicates": [],
        "measured": [],
        "tables": [],
        "tolerance": None,
        "parameters": {},
        "figures": [],
    }


def _drawn(figure: Figure, record: dict[str, Any]) -> tuple[str, bytes, Any]:
    from simulations.figures import render

    attributes = {
        "title": figure.title,
        "caption": figure.caption,
        "claim": record["claim"],
        "parameters": json.dumps(record["parameters"]),
        "seed": record["seed"],
        "provenance": json.dumps(record["provenance"]),
    }
    return figure.name, render(figure), figure.data.assign_attrs(attributes | figure.data.attrs)
