"""Measure claims in parallel, in worker processes.

Claims that share computed runs (`Claim.group`) are measured one after the other in the same
process, so that nothing is computed twice; in a quick run a claim may be measured alone
(`Claim.alone_if_quick`). The result of a claim depends on its own seed only, not on the number of
processes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from simulations.reproduction.claim import Claim, Context
from simulations.workers import Channel, WorkerPool

#: Runs a claim and returns its record and its figures, as `simulations.reproduction.run.measure`.
Measure = Callable[[Claim, Context], tuple[dict[str, Any], list[Any]]]
#: Claims to be measured one after the other, each with its folder for checkpoints.
Group = list[tuple[Claim, Path | None]]


class Message(NamedTuple):
    """An event of a claim: ``start``, ``progress`` (fraction) or ``done`` (record, figures).

    ``lost``: its worker process ended (exit code or signal).
    """

    kind: str
    claim: Claim
    content: Any = None


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


def measure_parallel(
    claims: Sequence[Claim],
    measure: Measure,
    workers: int,
    *,
    settings: Context,
    scratch: Callable[[str], Path | None],
) -> Iterator[Message]:
    """Yield the events of all claims; the processes end with the iterator.

    ``settings`` are common to all claims; ``scratch`` maps the id of a claim to its folder for
    checkpoints.
    """
    pool = WorkerPool(workers, partial(_measure_group, measure, settings))
    tasks: list[Group] = [
        [(claim, scratch(claim.id)) for claim in group]
        for group in grouped(claims, quick=settings.quick)
    ]
    ended: set[str] = set()
    for group, event in pool.events(tasks):
        if event.type == "done":
            continue
        (claim, _), *rest = (entry for entry in group if entry[0].id not in ended)
        kind, content = event.content if event.type == "progress" else ("lost", event.content)
        if kind in ("done", "lost"):
            ended.add(claim.id)
        if kind == "lost" and rest:
            pool.retry(rest)
        yield Message(kind, claim, content)


def _measure_group(measure: Measure, settings: Context, group: Group, channel: Channel) -> None:
    """Measure claims one after the other."""
    for claim, scratch in group:
        channel.report(("start", None))
        progress = partial(_report_progress, channel)
        context = replace(settings, progress=progress, scratch=scratch)
        channel.report(("done", measure(claim, context)))


def _report_progress(channel: Channel, fraction: float) -> None:
    channel.report(("progress", fraction))
