"""Claims measured side by side, in processes of their own.

Claims that share computed runs (`Claim.group`) go to the same process one after the other, so that
nothing is computed twice; a quick one may prefer not to wait (`Claim.alone_if_quick`). What a claim
returns does not depend on the number of processes: it depends on its own seed only.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from simulations.parallel import Team
from simulations.reproduction.claim import Claim, Context

#: Runs one claim and returns its record and its figures, as `simulations.reproduction.run.measure`
#: does.
Measure = Callable[[Claim, Context], tuple[dict[str, Any], list[Any]]]
#: Claims to be measured one after the other, each with its folder for checkpoints.
Group = list[tuple[Claim, Path | None]]


class Message(NamedTuple):
    """What a process tells: a claim begins, gets on (a fraction) or ends (record, figures).

    A claim is ``lost`` with a sentence if its process died under it.
    """

    kind: Literal["start", "progress", "done", "lost"]
    claim: Claim
    content: Any = None


def grouped(claims: Sequence[Claim], *, quick: bool) -> list[list[Claim]]:
    """Return the claims in groups that share computed runs, those of most claims first.

    So that no process is left alone with a long one at the end; else in the order of their firsts.
    """
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        alone = not claim.group or (quick and claim.alone_if_quick)
        groups.setdefault(claim.id if alone else claim.group, []).append(claim)
    return sorted(groups.values(), key=lambda group: -len(group))


def measure_side_by_side(
    claims: Sequence[Claim],
    measure: Measure,
    workers: int,
    *,
    settings: Context,
    scratch: Callable[[str], Path | None],
) -> Iterator[Message]:
    """Yield what happens to each claim; the processes end with the iterator, whatever ends it.

    ``settings`` holds what all claims have in common; ``scratch`` maps the id of a claim to its
    folder for checkpoints.
    """
    groups = grouped(claims, quick=settings.quick)
    waiting = [[(claim, scratch(claim.id)) for claim in group] for group in groups]
    finished = dict.fromkeys((claim.id for claim in claims), False)
    team: Team[Group] = Team(workers, partial(_measure_group, measure, settings))
    for event in team.events(waiting):
        left = [one for one in event.task if not finished[one[0].id]]
        if event.kind == "told":
            kind, content = event.content
            finished[left[0][0].id] = kind == "done"
            yield Message(kind, left[0][0], content)
        elif event.kind == "died":
            (lost, _), *rest = left
            finished[lost.id] = True
            if rest:  # it is not their fault
                team.again(rest)
            yield Message("lost", lost, f"its process ended with {event.content}")


def _measure_group(
    measure: Measure, settings: Context, group: Group, tell: Callable[[Any], None]
) -> None:
    """Measure claims one after the other."""
    for claim, scratch in group:
        tell(("start", None))
        progress = partial(_tell_progress, tell)
        tell(("done", measure(claim, replace(settings, progress=progress, scratch=scratch))))


def _tell_progress(tell: Callable[[Any], None], fraction: float) -> None:
    tell(("progress", fraction))
