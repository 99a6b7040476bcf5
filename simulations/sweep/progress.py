"""How far a sweep is and how long it will take, for a terminal or for a log."""

import sys
from collections import Counter
from time import monotonic
from typing import IO, Any

_SECONDS_BETWEEN_LINES = 10.0
_FIRST_LINE = 2.0


def duration(seconds: float) -> str:
    """Return a duration in words, to the precision of a guess."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Progress:
    """Counts finished cells; shows a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, total: int, kept: int, stream: IO[str] | None = None) -> None:
        self.total, self.kept, self.done = total, kept, 0
        self.statuses: Counter[str] = Counter()
        self.stream = sys.stderr if stream is None else stream
        self.began = monotonic()
        self._last = self.began - _SECONDS_BETWEEN_LINES + _FIRST_LINE
        self._bar = self._task = None
        if self.stream.isatty():
            self._bar, self._task = _bar(self.stream, total, kept)
        elif kept:
            self.say(f"{kept} of {total} cells are there already")

    def add(self, status: str) -> None:
        """Tell that a cell is finished."""
        self.done += 1
        self.statuses[status] += 1
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=self._unusual() or "cells")
        elif monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = monotonic()
            self.say(self.sentence())

    def sentence(self) -> str:
        """Return the state in one line."""
        finished = self.kept + self.done
        elapsed = monotonic() - self.began
        left = elapsed / max(1, self.done) * (self.total - finished)
        unusual = self._unusual()
        return f"{finished}/{self.total} cells, {duration(left)} left" + (
            f" ({unusual})" if unusual else ""
        )

    def _unusual(self) -> str:
        """Return how many cells did not complete, by status."""
        rest = {status: n for status, n in self.statuses.items() if status != "completed"}
        return ", ".join(f"{number} {status}" for status, number in rest.items())

    def say(self, sentence: str) -> None:
        """Write a line, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(sentence, markup=False, highlight=False)
        else:
            print(sentence, file=self.stream, flush=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()


def _bar(stream: IO[str], total: int, kept: int) -> tuple[Any, Any]:
    from rich import progress
    from rich.console import Console

    bar = progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        console=Console(file=stream),
        transient=True,
    )
    task = bar.add_task("cells", total=total, completed=kept)
    bar.start()
    return bar, task
