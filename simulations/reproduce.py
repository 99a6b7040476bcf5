"""Run claims one after the other, store each at once, and keep the report up to date."""

from __future__ import annotations

import io
import json
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from simulations.claim import Claim, Context, Figure, Outcome
from simulations.display import Display
from simulations.folder import ReportFolder
from simulations.report import write_report
from simulations.store import plain

DPI = 160


@dataclass
class Result:
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
    seed: int = 0,
    force: bool = False,
) -> Result:
    """Run the claims that the folder does not hold yet and write the report after each.

    A claim that raises is recorded as failed to run and the others still run. Ctrl-C ends the run
    and keeps what is finished.

    Raises
    ------
    StoreError
        If a result cannot be written (a full disk); what was written before is kept.
    """
    result = Result()
    known = {claim.id: claim for claim in claims}
    try:
        if force:
            for claim in claims:
                folder.forget(claim.id)
        write_report(folder, known)
        for claim in claims:
            record = folder.record(claim.id)
            kept = record is not None and "error" not in record
            if record is None or not kept:
                display.start(claim.id, len(claims))
                context = Context(quick=quick, seed=seed, progress=display.progress)
                record, figures = measure(claim, context, folder.stamp)
                folder.save(record, figures)
                write_report(folder, known)
            (result.failed if "error" in record else result.finished).append(claim.id)
            display.finish(record, kept=kept)
    except KeyboardInterrupt:
        result.interrupted = True
        write_report(folder, known)
    finally:
        display.close()
    return result


def measure(
    claim: Claim, context: Context, stamp: dict[str, str]
) -> tuple[dict[str, Any], list[tuple[str, bytes, Any]]]:
    """Run one claim and draw its figures; return its record and (name, PNG, data) of each figure.

    A claim that raises gives a record with ``"error"`` (one sentence) and ``"traceback"``.
    """
    started = time.perf_counter()
    record: dict[str, Any] = {
        "claim": claim.id,
        "place": claim.place,
        "statement": claim.statement,
        "measures": claim.measures,
        "depends": claim.depends,
        "quick": context.quick,
        "quick_note": claim.quick_note,
        "seed": context.seed,
        "provenance": stamp,
    }
    figures: list[tuple[str, bytes, Any]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.simplefilter("default", RuntimeWarning)
        try:
            outcome = claim.run(context)
            record.update(_findings(outcome))
            figures = [_drawn(figure, record) for figure in outcome.figures]
        except Exception as failure:
            figures = []
            record.update(
                figures=[],
                error=f"{type(failure).__name__}: {failure}",
                traceback=traceback.format_exc(),
            )
    record["warnings"] = list(dict.fromkeys(str(entry.message) for entry in caught))
    record["seconds"] = round(time.perf_counter() - started, 3)
    record["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    return record, figures


def _findings(outcome: Outcome) -> dict[str, Any]:
    return plain(
        {
            "verdict": outcome.verdict,
            "measured": outcome.measured,
            "tolerance": outcome.tolerance,
            "parameters": outcome.parameters,
            "summary": outcome.summary,
            "figures": [
                {
                    "name": figure.name,
                    "title": figure.title,
                    "caption": figure.caption,
                    "image": f"figures/{figure.name}.png",
                    "data": f"data/{figure.name}.nc",
                }
                for figure in outcome.figures
            ],
        }
    )


def _drawn(figure: Figure, record: dict[str, Any]) -> tuple[str, bytes, Any]:
    attributes = {
        "title": figure.title,
        "caption": figure.caption,
        "claim": record["claim"],
        "parameters": json.dumps(record["parameters"]),
        "seed": record["seed"],
        "provenance": json.dumps(record["provenance"]),
    }
    return figure.name, render(figure), figure.data.assign_attrs(attributes | figure.data.attrs)


def render(figure: Figure) -> bytes:
    """Return a figure as PNG, without pyplot and its global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=figure.size, dpi=DPI, layout="constrained")
    FigureCanvasAgg(canvas)
    figure.draw(canvas)
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()
