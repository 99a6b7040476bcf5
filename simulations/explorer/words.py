"""What the page says in words: status, outcomes, invariants of a run, as HTML that is escaped."""

import math
import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from simulations.explorer.look import Course, Held
from simulations.system import System

_FORMULA = re.compile(r"\$([^$]+)\$")


def formulas(text: str) -> str:
    """Return a sentence as HTML, its formulas between dollars as MathML."""
    from latex2mathml.converter import convert

    pieces = _FORMULA.split(text)
    return "".join(convert(one) if number % 2 else escape(one) for number, one in enumerate(pieces))


def status(course: Course, seconds: float | None) -> str:
    """Return how a run ended and what its loss is worth."""
    took = "" if seconds is None else f" Computed in {seconds:.2f} s."
    kind = "good" if course.status == "completed" else "bad"
    notes = "".join(f"<br>{escape(note)}." for note in course.notes)
    return (
        f'<b class="{kind}">{escape(course.status)}</b>: {escape(course.message)}.{took}<br>'
        f"Expectation: {escape(course.expectation)} (bound: {escape(course.bound)}).{notes}"
    )


def refusal(sentence: str, before: bool) -> str:
    """Return a sentence that tells why nothing new is drawn; ``before``: something else is."""
    rest = "<br>What is drawn is the run before." if before else ""
    return f'<b class="bad">not run</b>: {escape(sentence)}.{rest}'


def computing(fraction: float) -> str:
    """Return how far a run is."""
    return (
        f'<progress value="{fraction:.3f}" max="1" aria-label="progress of the run"></progress> '
        f"computing: {100 * fraction:.0f} %"
    )


def events(theory: System, outcomes: Mapping[str, Any]) -> dict[str, float]:
    """Return the moments among the outcomes that happen: those in flow time, but for the end."""
    return {
        one.name: float(outcomes[one.name])
        for one in theory.outcomes
        if one.unit == "time" and one.name != "time" and math.isfinite(outcomes[one.name])
    }


def table_of_outcomes(theory: System, outcomes: Mapping[str, Any]) -> str:
    """Return the events, and all other outcomes folded."""
    moments: list[tuple[str, str, str]] = []
    rest: list[tuple[str, str, str]] = []
    for one in theory.outcomes:
        event = one.unit == "time" and one.name != "time"
        (moments if event else rest).append(
            (one.name, _number(outcomes[one.name], event), one.meaning)
        )
    shown = _table(("event", "time", ""), moments) if moments else ""
    return (
        f"<h2>Events</h2>{shown}<details><summary>All {len(rest)} other outcomes</summary>"
        f"{_table(('outcome', 'value', ''), rest)}</details>"
    )


def _number(value: Any, event: bool) -> str:
    if isinstance(value, str):
        return value
    return ("does not happen" if event else "-") if math.isnan(value) else f"{value:.6g}"


def table_of_invariants(invariants: Iterable[Held]) -> str:
    """Return each invariant with its violation beside the numerical error of it."""
    rows = []
    for one in invariants:
        verdict = '<b class="bad">violated</b>' if one.words else '<b class="good">holds</b>'
        worst = f"{one.worst:.2g}" if one.graded else "-"
        told = f"{escape(one.statement)} ({escape(one.place)})"
        told += f"<br>{escape(one.words)}" if one.words else ""
        cells = f"<td>{verdict}<td>{worst}<td>{one.error:.2g}<td>{told}"
        rows.append(f"<tr><th>{escape(one.name)}{cells}")
    head = "<tr><th>invariant<th><th>violation<th>error<th>statement"
    return f"<h2>Invariants</h2><table><thead>{head}<tbody>{''.join(rows)}</table>"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def row(cells: Iterable[str]) -> str:
        first, *others = map(escape, cells)
        return f"<tr><th>{first}{''.join(f'<td>{cell}' for cell in others)}"

    body = "".join(map(row, rows))
    return f"<table><thead>{row(head)}<tbody>{body}</table>"


def legend_of_map(
    title: str, label: str, fixed: str, entries: Iterable[tuple[str, str, str]]
) -> str:
    """Return the title of a map, what its colours are, and what else is drawn."""
    marks = "".join(
        f'<span class="mark" style="{_mark(colour, dash)}"></span> {formulas(words)}&emsp;'
        for colour, dash, words in entries
    )
    where = f" ({escape(fixed)})" if fixed else ""
    return f"<b>{formulas(title)}</b>{where}<br>Colour: {formulas(label)}&emsp;{marks}"


def _mark(colour: str, dash: str) -> str:
    if dash:
        return f"border-bottom: 2.5px {dash} {colour}; height: .5em"
    return f"background: {colour}; border: 1px solid #888888"
