"""Run claims, in parallel if requested, store each at once, and keep the report up to date.

Claims that share computed runs (`Claim.group`) are measured one after the other in the same
process, so that nothing is computed twice; in a quick run a claim may be measured alone
(`Claim.alone_if_quick`). The result of a claim depends on the seed only, not on the number of
processes.
"""

import json
import re
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from simulations.display import Display
from simulations.files import plain
from simulations.reproduction.claim import Claim, Context, Figure, Result, SkipClaim
from simulations.reproduction.folder import ReportFolder, StoredFigure
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.report import write_report
from simulations.workers import Channel, WorkerPool

#: The folders of an absolute path, on any system.
_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[/\\](?:[^\s:'\"<>|,;()\[\]/\\]+[/\\])+")
#: Claims that are measured one after the other, each with its folder for checkpoints.
Group = list[tuple[Claim, Path | None]]


@dataclass
class Outcome:
    """Ids of the claims of a run that finished and that could not be run."""

    finished: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    interrupted: bool = False


def reproduce(
    claims: Sequence[Claim],
    folder: ReportFolder,
    display: Display,
    settings: Context,
    *,
    force: bool = False,
    workers: int = 1,
    single_file: bool = False,
) -> Outcome:
    """Run the claims that a folder does not contain yet, then write the report.

    Each claim is stored as soon as it is finished. If a claim raises, the error is stored and the
    others still run. Ctrl-C ends the run; the report of the finished claims is written.

    Parameters
    ----------
    claims
        Claims of the report, in order.
    folder
        Folder of the report.
    display
        Shows the progress.
    settings
        Mode and root seed.
    force
        Run claims again that the folder contains.
    workers
        Number of worker processes; with 1, claims run in this process. The report is the same.
    single_file
        Embed the figures in the page.

    Raises
    ------
    StoreError
        If a result cannot be written (a full disk); earlier results are preserved.
    """
    run = _Run(folder, display, settings, len(claims))
    try:
        if force:
            for claim in claims:
                folder.forget(claim.id)
        missing = [claim for claim in claims if not run.reuse(claim)]
        if workers > 1 and len(missing) > 1:
            run.in_parallel(missing, workers)
        else:
            run.in_order(missing)
    except KeyboardInterrupt:
        run.outcome.interrupted = True
    finally:
        display.close()
        write_report(folder, {claim.id: claim for claim in claims}, single_file=single_file)
    order = [claim.id for claim in claims]
    run.outcome.finished.sort(key=order.index)
    run.outcome.failed.sort(key=order.index)
    return run.outcome


class _Run:
    """A run of ``total`` claims into a folder."""

    def __init__(
        self, folder: ReportFolder, display: Display, settings: Context, total: int
    ) -> None:
        self.folder, self.display, self.settings, self.total = folder, display, settings, total
        self.outcome = Outcome()

    def reuse(self, claim: Claim) -> bool:
        """Count a claim as finished if the folder contains its result; return whether it does."""
        record = self.folder.record(claim.id)
        if record is None or "error" in record or record["verdict"] == Verdict.SKIPPED:
            return False
        self._count(record, reused=True)
        return True

    def in_order(self, claims: Sequence[Claim]) -> None:
        """Run claims one after the other, in this process."""
        for claim in claims:
            self.display.start(claim.id, self.total)
            progress = partial(self.display.progress, claim.id)
            scratch = self.folder.scratch(claim.id)
            context = replace(self.settings, progress=progress, scratch=scratch)
            self._finish(*measure(claim, context, self.folder.stamp))

    def in_parallel(self, claims: Sequence[Claim], workers: int) -> None:
        """Run claims in worker processes, which end with this call."""
        pool = WorkerPool(workers, partial(_measure_group, self.settings, self.folder.stamp))
        groups: list[Group] = [
            [(claim, self.folder.scratch(claim.id)) for claim in group]
            for group in grouped(claims, quick=self.settings.quick)
        ]
        ended: set[str] = set()
        for group, event in pool.events(groups):
            if event.type == "done":
                continue
            (claim, _), *rest = (entry for entry in group if entry[0].id not in ended)
            if event.type != "progress":
                ended.add(claim.id)
                if rest:
                    pool.retry(rest)
                self._lose(claim, event.content)
            elif event.content is None:
                self.display.start(claim.id, self.total)
            elif isinstance(event.content, float):
                self.display.progress(claim.id, event.content)
            else:
                ended.add(claim.id)
                self._finish(*event.content)

    def _lose(self, claim: Claim, reason: str) -> None:
        """Store a claim whose process ended."""
        record = _blank(claim, self.settings, self.folder.stamp)
        error = f"the claim was lost: its process ended with {reason}"
        self._finish(record | _failure(error, "") | _closing(0.0, []), [])

    def _finish(self, record: dict[str, Any], figures: list[StoredFigure]) -> None:
        self.folder.save(record, figures)
        self._count(record, reused=False)

    def _count(self, record: dict[str, Any], *, reused: bool) -> None:
        ids = self.outcome.failed if "error" in record else self.outcome.finished
        ids.append(record["claim"])
        self.display.finish(record, reused=reused)


def grouped(claims: Sequence[Claim], *, quick: bool) -> list[list[Claim]]:
    """Return the claims in groups that share computed runs, the largest groups first.

    Otherwise a single process could be left with a large group at the end. Groups of equal size are
    in the order of their first claims.
    """
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        alone = not claim.group or (quick and claim.alone_if_quick)
        groups.setdefault(claim.id if alone else claim.group, []).append(claim)
    return sorted(groups.values(), key=lambda group: -len(group))


def _measure_group(
    settings: Context, stamp: dict[str, str], group: Group, channel: Channel
) -> None:
    """Measure claims one after the other in a worker process.

    Report ``None`` at the start of each claim, then fractions, and its record and figures.
    """
    for claim, scratch in group:
        channel.report(None)
        progress = partial(_report_fraction, channel)
        channel.report(measure(claim, replace(settings, progress=progress, scratch=scratch), stamp))


def _report_fraction(channel: Channel, fraction: float) -> None:
    channel.report(float(fraction))


def measure(
    claim: Claim, context: Context, stamp: dict[str, str]
) -> tuple[dict[str, Any], list[StoredFigure]]:
    """Run one claim and draw its figures.

    Returns
    -------
    record
        Texts, results and provenance of the claim. If the claim raised, the record contains
        ``"error"`` (one sentence) and ``"traceback"``.
    figures
        Name, PNG image and data of each figure.
    """
    start = time.perf_counter()
    record = _blank(claim, context, stamp)
    figures: list[StoredFigure] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.simplefilter("default", RuntimeWarning)
        try:
            result = claim.run(context)
            record |= _results(result)
            figures = [_rendered(figure, record) for figure in result.measurement.figures]
        except SkipClaim as reason:
            record |= _skipped(str(reason))
        except Exception as error:
            figures = []
            record |= _failure(f"{type(error).__name__}: {error}", traceback.format_exc())
    messages = list(dict.fromkeys(without_folders(str(entry.message)) for entry in caught))
    record |= _closing(time.perf_counter() - start, messages)
    return record, figures


def _blank(claim: Claim, context: Context, stamp: dict[str, str]) -> dict[str, Any]:
    """Return the part of a record that does not depend on the run."""
    return {
        **claim.texts(),
        "quick": context.quick,
        "thorough": context.thorough,
        "seed": context.seed,
        "provenance": stamp,
    }


def _failure(error: str, trace: str) -> dict[str, Any]:
    return {"figures": [], "error": without_folders(error), "traceback": without_folders(trace)}


def _closing(seconds: float, messages: list[str]) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"warnings": messages, "seconds": round(seconds, 3), "date": now}


def _results(result: Result) -> dict[str, Any]:
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
        "tables": result.records(),
        "tolerance": result.claim.tolerance,
        "parameters": result.measurement.settings,
        "equations": list(result.measurement.equations),
    }
    figures = [
        {
            "name": figure.name,
            "title": figure.title,
            "caption": figure.caption,
            "image": f"figures/{figure.name}.png",
            "data": f"data/{figure.name}.nc",
        }
        for figure in result.measurement.figures
    ]
    return {**plain(values), "figures": figures}


def _skipped(reason: str) -> dict[str, Any]:
    """Return the results of a claim that was skipped."""
    texts = {"verdict": Verdict.SKIPPED, "finding": reason, "summary": reason}
    lists: dict[str, Any] = {name: [] for name in ("predicates", "measured", "tables", "figures")}
    return {**texts, **lists, "tolerance": None, "parameters": {}}


def _rendered(figure: Figure, record: dict[str, Any]) -> StoredFigure:
    """Return name, PNG image and data of a figure; attributes of the data identify its run."""
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


def without_folders(text: str) -> str:
    """Return a text in which absolute paths are replaced by the names of their files.

    A report does not contain the folders of the machine on which it was made.
    """
    return _FOLDERS.sub("", text)
