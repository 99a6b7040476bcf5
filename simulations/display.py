"""Progress displays: bars on a terminal, plain lines elsewhere."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, Protocol

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
