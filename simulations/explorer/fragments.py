"""HTML fragments of the page: status, outcomes and invariants of a run; all text is escaped."""

import math
import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from simulations.case import Quantity
from simulations.explorer.run_job import InvariantCheck, RunData
from simulations.reproduction.typeset import displayed
from simulations.system import System

NO_EQUATIONS = "No derived equations can be shown for this theory."
_FORMULA = re.compile(r"\$([^$]+)\$")


def formulas(text: str) -> str:
    """Return a sentence as HTML, with formulas between dollar signs as MathML."""
    from latex2mathml.converter import convert

    parts = _FORMULA.split(text)  # parts with odd numbers are formulas
    return "".join(convert(p) if number % 2 else escape(p) for number, p in enumerate(parts))


def equations(formulas: Iterable[str]) -> str:
    """Return derived equations in LaTeX as HTML."""
    rows = "".join(f'<div class="equation">{displayed(formula)}</div>' for formula in formulas)
    return f"<p>Derived for all sizes.</p>{rows}" if rows else NO_EQUATIONS


def status(run: RunData, seconds: float | None) -> str:
    """Return the status of a run and the method of its expectation."""
    time = "" if seconds is None else f" Computed in {seconds:.2f} s."
    css = "good" if run.status == "completed" else "bad"
    notes = "".join(f"<br>{escape(note)}." for note in run.notes)
    return (
        f'<b class="{css}">{escape(run.status)}</b>: {escape(run.message)}.{time}<br>'
        f"Expectation: {escape(run.expectation)} (bound: {escape(run.bound)}).{notes}"
    )


def not_run(reason: str, has_previous: bool) -> str:
    """Return why a problem was not run; ``has_previous``: the page shows an earlier run."""
    note = "<br>The plots show the previous run." if has_previous else ""
    return f'<b class="bad">not run</b>: {escape(reason)}.{note}'


def comparison(command: str) -> str:
    """Return the command of the run that is shown for comparison; empty without one."""
    return f"Dotted: <small>{escape(command)}</small>" if command else ""


def computing(fraction: float) -> str:
    """Return the progress of a run."""
    return (
        f'<progress value="{fraction:.3f}" max="1" aria-label="progress of the run"></progress> '
        f"computing: {100 * fraction:.0f} %"
    )


def events(theory: System, outcomes: Mapping[str, Any]) -> dict[str, float]:
    """Return name and time of the events that happen."""
    return {
        quantity.name: float(outcomes[quantity.name])
        for quantity in theory.outcomes
        if _is_event(quantity) and math.isfinite(outcomes[quantity.name])
    }


def _is_event(quantity: Quantity) -> bool:
    """Return whether an outcome is the time of an event; ``time`` is the end of the run."""
    return quantity.unit == "time" and quantity.name != "time"


def table_of_outcomes(theory: System, outcomes: Mapping[str, Any]) -> str:
    """Return a table of the events, and a collapsed table of the other outcomes."""
    event_rows: list[tuple[str, str, str]] = []
    others: list[tuple[str, str, str]] = []
    for quantity in theory.outcomes:
        is_event = _is_event(quantity)
        value = _number(outcomes[quantity.name], is_event)
        (event_rows if is_event else others).append((quantity.name, value, quantity.meaning))
    table = _table(("event", "time", ""), event_rows) if event_rows else ""
    return (
        f"<h2>Events</h2>{table}<details><summary>All {len(others)} other outcomes</summary>"
        f"{_table(('outcome', 'value', ''), others)}</details>"
    )


def _number(value: Any, is_event: bool) -> str:
    """Return an outcome as text."""
    if isinstance(value, str):
        return value
    return ("does not happen" if is_event else "-") if math.isnan(value) else f"{value:.6g}"


def table_of_invariants(invariants: Iterable[InvariantCheck]) -> str:
    """Return a table of the invariants with their violations and numerical errors."""
    rows = []
    for check in invariants:
        verdict = (
            '<b class="bad">violated</b>' if check.description else '<b class="good">holds</b>'
        )
        worst = f"{check.worst:.2g}" if check.graded else "-"
        text = f"{escape(check.statement)} ({escape(check.source)})"
        text += f"<br>{escape(check.description)}" if check.description else ""
        cells = f"<td>{verdict}<td>{worst}<td>{check.error:.2g}<td>{text}"
        rows.append(f"<tr><th>{escape(check.name)}{cells}")
    head = "<tr><th>invariant<th><th>violation<th>error<th>statement"
    return f"<table><thead>{head}<tbody>{''.join(rows)}</table>"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def row(cells: Iterable[str]) -> str:
        first, *others = map(escape, cells)
        return f"<tr><th>{first}{''.join(f'<td>{cell}' for cell in others)}"

    body = "".join(map(row, rows))
    return f"<table><thead>{row(head)}<tbody>{body}</table>"


def legend_of_map(
    title: str, label: str, fixed: str, entries: Iterable[tuple[str, str, str]]
) -> str:
    """Return the title and the legend of a map."""
    marks = "".join(
        f'<span class="mark" style="{_mark(colour, dash)}"></span> {formulas(text)}&emsp;'
        for colour, dash, text in entries
    )
    where = f" ({escape(fixed)})" if fixed else ""
    return f"<b>{formulas(title)}</b>{where}<br>Colour: {formulas(label)}&emsp;{marks}"


def _mark(colour: str, dash: str) -> str:
    """Return the CSS of a line or of a coloured box."""
    if dash:
        return f"border-bottom: 2.5px {dash} {colour}; height: .5em"
    return f"background: {colour}; border: 1px solid #888888"
