"""Claims measured side by side, in processes of their own.

Claims that share computed runs (`Claim.shares`) go to the same process one after the other, so that
nothing is computed twice. What a claim returns does not depend on the number of processes: it
depends on its own seed only.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal, NamedTuple

from simulations.interrupts import held_back
from simulations.reproduction.claim import Claim, Context

#: Runs one claim and returns its record and its figures, as `simulations.reproduction.run.measure`
#: does.
Measure = Callable[[Claim, Context], tuple[dict[str, Any], list[Any]]]


class Message(NamedTuple):
    """What a process tells: a claim begins, gets on (a fraction) or ends (record, figures).

    A claim is ``lost`` with a sentence if its process died under it.
    """

    kind: Literal["start", "progress", "done", "lost"]
    claim: Claim
    content: Any = None


def grouped(claims: Sequence[Claim]) -> list[list[Claim]]:
    """Return the claims in groups that share computed runs, in the order of their first ones."""
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.shares or claim.id, []).append(claim)
    return list(groups.values())


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
    waiting = deque(grouped(claims))
    team: list[_Worker] = []
    try:
        while waiting or any(worker.group for worker in team):
            while waiting and len(team) < workers:
                team.append(_Worker(measure, settings))
            for worker in team:
                if waiting and not worker.group:
                    worker.take(waiting.popleft(), scratch)
            for pipe in wait([worker.pipe for worker in team if worker.group]):
                worker = next(worker for worker in team if worker.pipe is pipe)
                message = worker.message()
                if message.kind == "lost":
                    team.remove(worker)
                    if worker.group:  # the rest of the group is not its fault
                        waiting.appendleft(worker.group)
                yield message
    finally:
        for worker in team:
            worker.stop()


class _Worker:
    """A process, the group of claims it has been given and not finished, and a pipe to it."""

    def __init__(self, measure: Measure, settings: Context) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, inside = context.Pipe()
        self.group: list[Claim] = []
        self.process = context.Process(
            target=_serve, args=(inside, measure, settings), daemon=False
        )
        with held_back():
            self.process.start()
        inside.close()

    def take(self, group: list[Claim], scratch: Callable[[str], Path | None]) -> None:
        """Give the process claims to measure."""
        self.group = list(group)
        with contextlib.suppress(OSError):  # a process that has just died: its pipe tells
            self.pipe.send([(claim, scratch(claim.id)) for claim in group])

    def message(self) -> Message:
        """Return the next message; a process that died gives up the claim it was at."""
        try:
            kind, content = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            claim = self.group.pop(0)
            reason = f"its process ended with exit code {self.process.exitcode}"
            return Message("lost", claim, reason)
        claim = self.group[0]
        if kind == "done":
            self.group.pop(0)
        return Message(kind, claim, content)

    def stop(self) -> None:
        """End the process now."""
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection, measure: Measure, settings: Context) -> None:
    """Measure the groups that come through the pipe, until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(threads, "1")
    with contextlib.suppress(EOFError, OSError):
        while True:
            for claim, scratch in pipe.recv():
                pipe.send(("start", None))
                progress = partial(_tell_progress, pipe)
                context = replace(settings, progress=progress, scratch=scratch)
                pipe.send(("done", measure(claim, context)))


def _tell_progress(pipe: Connection, fraction: float) -> None:
    pipe.send(("progress", fraction))
