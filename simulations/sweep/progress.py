"""Progress of a sweep: a bar on a terminal, lines elsewhere."""

import sys
from collections import Counter
from time import monotonic
from typing import IO, Any

#: Seconds between two lines, and before the first.
_SECONDS_BETWEEN_LINES = 10.0
_FIRST_LINE = 2.0


def duration(seconds: float) -> str:
    """Return a rounded duration as text, such as ``"12 min"``."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Progress:
    """Counter of finished cells that is shown as a bar on a terminal, as lines elsewhere.

    Parameters
    ----------
    total
        Number of cells.
    stored
        Number of cells that were finished before.
    stream
        Stream to write to; by default standard error.
    """

    def __init__(self, total: int, stored: int, stream: IO[str] | None = None) -> None:
        self.total, self.stored, self.done = total, stored, 0
        self.statuses: Counter[str] = Counter()
        self.stream = sys.stderr if stream is None else stream
        self.start = monotonic()
        self._last = self.start - _SECONDS_BETWEEN_LINES + _FIRST_LINE
        self._bar = self._task = None
        if self.stream.isatty():
            self._bar, self._task = _bar(self.stream, total, stored)
        elif stored:
            self.write(f"{stored} of {total} cells are finished already")

    def add(self, status: str) -> None:
        """Count a finished cell."""
        self.done += 1
        self.statuses[status] += 1
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=self._not_completed() or "cells")
        elif monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = monotonic()
            self.write(self.sentence())

    def sentence(self) -> str:
        """Return the progress as one line."""
        finished = self.stored + self.done
        elapsed = monotonic() - self.start
        left = elapsed / max(1, self.done) * (self.total - finished)
        counts = self._not_completed()
        suffix = f" ({counts})" if counts else ""
        return f"{finished}/{self.total} cells, {duration(left)} left{suffix}"

    def _not_completed(self) -> str:
        """Return the numbers of cells by status, except completed ones, as text."""
        rest = {status: n for status, n in self.statuses.items() if status != "completed"}
        return ", ".join(f"{number} {status}" for status, number in rest.items())

    def write(self, sentence: str) -> None:
        """Write a line, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(sentence, markup=False, highlight=False)
        else:
            print(sentence, file=self.stream, flush=True)

    def close(self) -> None:
        """Restore the terminal."""
        if self._bar is not None:
            self._bar.stop()


def _bar(stream: IO[str], total: int, stored: int) -> tuple[Any, Any]:
    """Start a progress bar; return it and its task."""
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
    task = bar.add_task("cells", total=total, completed=stored)
    bar.start()
    return bar, task
