"""Progress for a person: a live display on a terminal, plain lines elsewhere."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, Protocol

COLOURS = {
    "holds": "green", "fails": "red", "finding": "yellow", "skipped": "cyan", "error": "magenta"
}  # fmt: skip


def outcome_line(record: dict[str, Any]) -> str:
    """Return one line on a finished claim: verdict, id, seconds, and the sentence that decides."""
    verdict = "error" if "error" in record else record["verdict"]
    sentence = record.get("error") or record["finding"]
    return f"{verdict:<8} {record['claim']:<26} {record['seconds']:6.1f} s  {sentence}"


class Display(Protocol):
    """What a run of claims reports to."""

    def start(self, claim: str, total: int) -> None:
        """Tell that a claim begins, one of ``total``."""

    def progress(self, claim: str, fraction: float) -> None:
        """Tell the fraction done of a claim that has begun."""

    def finish(self, record: dict[str, Any], *, kept: bool) -> None:
        """Tell how a claim ended; ``kept`` if its record was stored by an earlier run."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class PlainDisplay:
    """Lines, one when a claim begins and one when it ends."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self.begun = 0

    def start(self, claim: str, total: int) -> None:
        """Write which claim begins."""
        self.begun += 1
        self._write(f"[{self.begun}/{total}] {claim} ...")

    def progress(self, claim: str, fraction: float) -> None:
        """Write nothing: a log has no use for it."""

    def finish(self, record: dict[str, Any], *, kept: bool) -> None:
        """Write how the claim ended."""
        self.begun += kept
        self._write(outcome_line(record) + (" [kept]" if kept else ""))

    def close(self) -> None:
        """Do nothing."""

    def _write(self, line: str) -> None:
        print(line, file=self.stream, flush=True)


class LiveDisplay:
    """A bar for all claims and one for each that has begun."""

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
        self.begun: dict[str, Any] = {}
        self.bars.start()

    def start(self, claim: str, total: int) -> None:
        """Begin a new bar."""
        self.bars.update(self.all, total=float(total))
        self.begun[claim] = self.bars.add_task(claim, total=1.0)

    def progress(self, claim: str, fraction: float) -> None:
        """Move the bar of a claim."""
        self.bars.update(self.begun[claim], completed=min(max(fraction, 0.0), 1.0))

    def finish(self, record: dict[str, Any], *, kept: bool) -> None:
        """Write how the claim ended above the bars."""
        from rich.text import Text

        verdict = "error" if "error" in record else record["verdict"]
        line = Text(outcome_line(record) + (" [kept]" if kept else ""))
        line.stylize(COLOURS[verdict], 0, 8)
        self.bars.console.print(line)
        if record["claim"] in self.begun:
            self.bars.remove_task(self.begun.pop(record["claim"]))
        self.bars.advance(self.all)

    def close(self) -> None:
        """Remove the bars."""
        self.bars.stop()


def choose_display(stream: IO[str] | None = None) -> Display:
    """Return a live display if the stream (standard error) is a terminal, else plain lines."""
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        from rich.console import Console

        console = Console(file=stream)
        if console.is_terminal:
            return LiveDisplay(console)
    return PlainDisplay(stream)


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None] | None]:
    """Yield a function that moves a bar on standard error, ``None`` if that is no terminal."""
    display = choose_display()
    if isinstance(display, PlainDisplay):
        yield None
        return
    try:
        display.start(title, 1)
        yield partial(display.progress, title)
    finally:
        display.close()
