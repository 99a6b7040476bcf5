"""Progress displays: bars on a terminal, plain lines elsewhere."""

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from time import monotonic
from typing import IO, Any, Protocol

#: Seconds between two lines of `CellProgress`, and before the first.
_SECONDS_BETWEEN_LINES, _FIRST_LINE = 10.0, 2.0
COLOURS = {
    "holds": "green",
    "fails": "red",
    "finding": "yellow",
    "skipped": "cyan",
    "error": "magenta",
}


def outcome_line(record: dict[str, Any]) -> str:
    """Return one line on a finished claim: verdict, id, seconds and finding."""
    verdict = "error" if "error" in record else record["verdict"]
    sentence = record.get("error") or record["finding"]
    return f"{verdict:<8} {record['claim']:<26} {record['seconds']:6.1f} s  {sentence}"


class Display(Protocol):
    """Receiver of the progress of a run of claims."""

    def start(self, claim: str, total: int) -> None:
        """Show that a claim starts, one of ``total``."""

    def progress(self, claim: str, fraction: float) -> None:
        """Show the fraction of a started claim that is done."""

    def finish(self, record: dict[str, Any], *, reused: bool) -> None:
        """Show the result of a claim; ``reused`` if an earlier run stored it."""

    def close(self) -> None:
        """Restore the terminal."""


class PlainDisplay:
    """One line when a claim starts and one when it ends."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self.started = 0

    def start(self, claim: str, total: int) -> None:
        """Write that a claim starts."""
        self.started += 1
        self._write(f"[{self.started}/{total}] {claim} ...")

    def progress(self, claim: str, fraction: float) -> None:
        """Write nothing."""

    def finish(self, record: dict[str, Any], *, reused: bool) -> None:
        """Write the result of a claim."""
        self.started += reused
        self._write(outcome_line(record) + (" [reused]" if reused else ""))

    def close(self) -> None:
        """Do nothing."""

    def _write(self, line: str) -> None:
        print(line, file=self.stream, flush=True)


class LiveDisplay:
    """One progress bar for all claims and one for each running claim."""

    def __init__(self, console: Any) -> None:
        from rich import progress

        self.bars = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self.all = self.bars.add_task("all claims", total=1.0)
        self.running: dict[str, Any] = {}
        self.bars.start()

    def start(self, claim: str, total: int) -> None:
        """Add a bar for a claim."""
        self.bars.update(self.all, total=float(total))
        self.running[claim] = self.bars.add_task(claim, total=1.0)

    def progress(self, claim: str, fraction: float) -> None:
        """Update the bar of a claim."""
        self.bars.update(self.running[claim], completed=min(max(fraction, 0.0), 1.0))

    def finish(self, record: dict[str, Any], *, reused: bool) -> None:
        """Write the result of a claim above the bars."""
        from rich.text import Text

        verdict = "error" if "error" in record else record["verdict"]
        line = Text(outcome_line(record) + (" [reused]" if reused else ""))
        line.stylize(COLOURS[verdict], 0, 8)
        self.bars.console.print(line)
        if record["claim"] in self.running:
            self.bars.remove_task(self.running.pop(record["claim"]))
        self.bars.advance(self.all)

    def close(self) -> None:
        """Remove the bars."""
        self.bars.stop()


def choose_display(stream: IO[str] | None = None) -> Display:
    """Return a display: bars if the stream (standard error) is a terminal, else plain lines."""
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        from rich.console import Console

        console = Console(file=stream)
        if console.is_terminal:
            return LiveDisplay(console)
    return PlainDisplay(stream)


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None] | None]:
    """Yield a function that updates a progress bar, or ``None`` if there is no terminal."""
    display = choose_display()
    if isinstance(display, PlainDisplay):
        yield None
        return
    try:
        display.start(title, 1)
        yield partial(display.progress, title)
    finally:
        display.close()


def duration(seconds: float) -> str:
    """Return a rounded duration as text, such as ``"12 min"``."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class CellProgress:
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
            self._bar, self._task = _cell_bar(self.stream, total, stored)
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


def _cell_bar(stream: IO[str], total: int, stored: int) -> tuple[Any, Any]:
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
