"""The page: parameters at the left, what becomes of their run at the right, one session a tab."""

import contextlib
import queue
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html import escape
from importlib.resources import files
from typing import Any

from bokeh.document import Document
from bokeh.layouts import column, row
from bokeh.models import Button, CustomJS, Div, MultiChoice, Select, Slider

from dynamics.core.errors import ParameterError
from simulations import theories
from simulations.cli import explain
from simulations.explorer import state, words
from simulations.explorer.controls import Controls, on_change
from simulations.explorer.look import Course, Field, Observed, Outcomes, Progress, Task
from simulations.explorer.plots import AgainstTime, AttentionMatrix, Portrait, letters
from simulations.explorer.sweep import SweepPanel
from simulations.maps import Sweep
from simulations.system import Case
from simulations.workers import Event, Job, WorkerPool

_STYLE = """
  :host { font: 14px/1.45 system-ui, sans-serif; color: #1c1e21; overflow-wrap: anywhere; }
  h2 { font-size: 15px; margin: 6px 0 2px; }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
  th, td { text-align: left; vertical-align: top; padding: 2px 12px 2px 0; font-weight: 400;
           border-bottom: 1px solid #e3e6ea; overflow-wrap: normal; }
  thead th { color: #5b616a; }
  .good { color: #1a7f37; } .bad { color: #b3202b; }
  progress { vertical-align: middle; }
  summary { cursor: pointer; }
  code { font: 13px/1.4 ui-monospace, Menlo, Consolas, monospace; background: #f5f6f8;
         padding: 3px 6px; display: block; overflow-wrap: anywhere; }
  .mark { display: inline-block; width: 1.6em; height: .8em; vertical-align: middle; }
"""
_TO_CLIPBOARD = """
const text = what === "link" ? window.location.href : command.tags[0];
navigator.clipboard.writeText(text).then(() => { cb_obj.label = "Copied"; },
                                         () => { cb_obj.label = "Copying is not allowed"; });
setTimeout(() => { cb_obj.label = "Copy " + what; }, 3000);
"""
#: Rather than one more page of history for each move of a slider.
_TO_ADDRESS = "window.history.replaceState(null, '', cb_obj.tags[0]);"


def text(name: str, html: str = "") -> Div:
    """Return a piece of the page that holds HTML."""
    return Div(text=html, name=name, sizing_mode="stretch_width", stylesheets=[_STYLE])


class Page:
    """What one tab shows, and the run that it waits for.

    Parameters
    ----------
    document
        Where it is drawn.
    view
        What it shows at first.
    workers
        Who computes it.
    sweep
        The sweep whose map is drawn above, if there is one.
    waits
        Whether the first run waits for `begin`.
    """

    def __init__(
        self,
        document: Document,
        view: state.View,
        workers: WorkerPool,
        sweep: Sweep | None = None,
        *,
        waits: bool = False,
    ) -> None:
        self.document, self.workers, self.view = document, workers, view
        try:
            self.theory, refused = theories.load(view.system), ""
        except ParameterError as failure:
            self.theory, refused = theories.load(theories.DEFAULT), str(failure)
        self.job: Job | None = None
        self.serial = 0
        self._mail: queue.SimpleQueue[tuple[int, Event]] = queue.SimpleQueue()
        self.course: Course | None = None
        self._quiet = True
        self.controls = Controls(self.theory, self.changed)
        self._panels(sweep)
        self.controls.set(view.texts)
        self._lay_out()
        self._quiet = False
        if refused:
            self.status.text = words.refusal(refused, before=False)
        self._begun = bool(refused)
        if not waits:
            self.begin()

    def begin(self) -> None:
        """Start the first run, once: with names that are no parameters, which are rejected."""
        if not self._begun:
            self._begun = True
            self._ask(self.view.texts)

    def _panels(self, sweep: Sweep | None) -> None:
        self.status, self.command = text("status"), text("command")
        self.cancel = Button(label="Cancel", name="cancel", visible=False, width=90)
        self.cancel.on_click(self.cancel_run)
        self.lines = AgainstTime("Along the run", 330)
        self.loss = AgainstTime("Population risk and its bound", 366, positive=True)
        self.portrait, self.matrix = Portrait(300), AttentionMatrix(330)
        self.curves = MultiChoice(title="Curves", name="curves", sizing_mode="stretch_width")
        on_change(self.curves, "value", self._redraw)
        self.axes = [Select(title=f"{axis} axis", name=f"axis {axis}", width=150) for axis in "xy"]
        for select in self.axes:
            on_change(select, "value", self._turn)
        self.moment = Slider(
            start=0, end=1, value=1, step=1, title="moment", show_value=False, name="moment",
            sizing_mode="stretch_width", tooltips=False,
        )  # fmt: skip
        on_change(self.moment, "value", self._point)
        self.caption = text("caption")
        self.outcomes, self.invariants = text("outcomes"), text("invariants")
        self.sweep = None
        if sweep is not None:
            self.sweep = SweepPanel(sweep, self.view.drawn, text, self._cell, self._write_address)

    def _lay_out(self) -> None:
        document = self.document
        document.title = f"patchdyn explorer: {self.theory.name}"
        document.template = (files("simulations.explorer") / "templates/page.html").read_text(
            "utf-8"
        )
        document.template_variables.update(
            subtitle=escape(self.theory.title), swept=self.sweep is not None
        )
        known = [*theories.names(), *theories.of_files()]
        system = Select(title="Theory", value=self.theory.name, options=known, name="system",
                        width=280)  # fmt: skip
        system.js_on_change("value", CustomJS(code="window.location.search = "
                            "'?system=' + encodeURIComponent(cb_obj.value);"))  # fmt: skip
        back = Button(label="Back to the usual values", width=280)
        back.on_click(lambda: self.show({}))
        copies = []
        for what in ("command", "link"):
            button = Button(label=f"Copy {what}", name=f"copy {what}", width=130)
            button.js_on_click(CustomJS(args={"command": self.command, "what": what},
                                        code=_TO_CLIPBOARD))  # fmt: skip
            copies.append(button)
        stretch: Any = {"sizing_mode": "stretch_width"}
        top = column(row(self.status, self.cancel, **stretch),
                     row(self.command, *copies, **stretch), name="top", **stretch)  # fmt: skip
        top.js_on_change("tags", CustomJS(code=_TO_ADDRESS))
        self.address = top
        swept = [] if self.sweep is None else [self.sweep.root]
        system.visible = self.sweep is None
        for root in (
            column(system, back, name="chosen"), self.controls.main, self.controls.more, top,
            *swept,
            column(self.lines.figure, self.curves, name="course", **stretch),
            column(self.loss.figure, name="loss", **stretch),
            column(self.portrait.figure, row(self.axes), name="portrait", **stretch),
            column(self.matrix.figure, self.moment, self.caption, name="attention", **stretch),
            self.outcomes, self.invariants,
        ):  # fmt: skip
            document.add_root(root)

    # What is asked for

    def show(self, texts: dict[str, str]) -> None:
        """Show the run of these values."""
        self.controls.set(texts)
        self._ask(texts)

    def changed(self) -> None:
        """Run what the fields say, and nothing that was asked before."""
        self._ask(self.controls.texts)

    def _ask(self, texts: Any) -> None:
        self.cancel_run()
        self._guarded(partial(self._start, texts))

    def _guarded(self, act: Callable[[], None]) -> None:
        """Do what may be refused, and tell why in a sentence."""
        try:
            act()
        except Exception as failure:
            told = explain(failure)
            if told is None:
                raise
            self.status.text = words.refusal(told[0], self.course is not None)

    def _start(self, texts: Any) -> None:
        case = state.case(self.theory, texts)
        self.serial += 1
        on_event = partial(self._receive, self.serial)
        self.job = self.workers.submit(Task(self.theory, case, self._axes()), on_event)
        self.status.text, self.cancel.visible = words.computing(0.0), True
        self._tell_command(case)
        self._write_address()

    def _axes(self) -> tuple[str, str] | None:
        chosen = [self.view.drawn.get(axis, "") for axis in "xy"]
        return (chosen[0], chosen[1]) if all(chosen) else None

    def _tell_command(self, case: Case) -> None:
        command = theories.command(case)
        self.command.text, self.command.tags = f"<code>{escape(command)}</code>", [command]

    def _write_address(self) -> None:
        drawn = dict(self.view.drawn) | ({} if self.sweep is None else self.sweep.chosen)
        self.view = state.View(self.theory.name, self.controls.texts, drawn)
        self.address.tags = [state.address(self.view)]

    def _cell(self, values: dict[str, Any]) -> None:
        self.show(state.texts_of(self.theory, values))

    def cancel_run(self) -> None:
        """Cancel the current run."""
        if self.job is not None:
            self.job.cancel()
            self.job = None
            self.status.text, self.cancel.visible = "cancelled", False

    # Its events

    def _receive(self, serial: int, event: Event) -> None:
        """Queue an event for the thread of the page."""
        self._mail.put((serial, event))
        self.document.add_next_tick_callback(partial(self._read))

    def _read(self) -> None:
        """Handle the queued events, in order."""
        with contextlib.suppress(queue.Empty):
            while True:
                serial, event = self._mail.get_nowait()
                if self.job is not None and serial == self.serial:
                    self._handle(event)  # else it is of an earlier run

    def _handle(self, event: Event) -> None:
        if event.kind == "progress":
            self._show(event.content)
            return
        self.job, self.cancel.visible = None, False
        if event.kind == "done" and self.course is not None:
            self.status.text = words.status(self.course, event.content)
        elif event.kind != "done":
            died = f"the process that computed this run ended ({event.content})"
            reason = died if event.kind == "died" else event.content
            self.status.text = words.refusal(reason, self.course is not None)

    def _show(self, content: Any) -> None:
        if isinstance(content, Progress):
            self.status.text = words.computing(content.fraction)
        elif isinstance(content, Course):
            self.course = content
            self._draw(content)
        elif isinstance(content, Observed):
            assert self.course is not None
            self.course = replace(self.course, columns={**self.course.columns, **content.columns})
            self._curves(self.course)
        elif isinstance(content, Outcomes):
            happened = words.events(self.theory, content.values)
            for panel in (self.lines, self.loss):
                panel.mark(happened)
            self.outcomes.text = words.table_of_outcomes(self.theory, content.values)
        elif isinstance(content, Field):
            self.portrait.flow(content)

    def _draw(self, course: Course) -> None:
        self._quiet = True
        self.status.text = words.status(course, None)
        self.invariants.text = words.table_of_invariants(course.invariants)
        self._curves(course)
        self.loss.show(course, [name for name in ("loss", "bound") if name in course.columns])
        options = [(name, letters(name)) for name in course.order_parameters]
        for select, axis in zip(self.axes, course.axes or ()):
            if select.options != options:
                select.options = options
            select.value = axis
        self.portrait.show(course)
        self.matrix.figure.visible = self.moment.visible = bool(course.attention)
        if course.attention:
            at_end = self.moment.value >= self.moment.end
            last = len(course.moments) - 1
            self.moment.update(
                end=max(last, 1), value=last if at_end else min(self.moment.value, last)
            )
            self._picture()
        else:
            self.caption.text = "This theory tells of no attention matrix."
        self._quiet = False

    def _curves(self, course: Course) -> None:
        """Draw the curves that are chosen; a list that stays is not made anew."""
        quiet, self._quiet = self._quiet, True
        options = [(name, letters(name)) for name in course.columns]
        if {*options} - {*self.curves.options}:
            self.curves.options = options
        wanted = self.view.drawn.get("curves", "").split(",")
        asked = [name for name in wanted if name in course.columns] or usual_curves(course)
        if asked != self.curves.value:
            self.curves.value = asked
        self.lines.show(course, asked)
        self._quiet = quiet

    def _picture(self) -> None:
        """Show the attention at the moment that is chosen."""
        course = self.course
        if course is None or not course.attention:
            return
        place = min(round(self.moment.value), len(course.moments) - 1)
        record = course.moments[place]
        time = float(course.time[record])
        largest = max(float(one.weights.max()) for one in course.attention)
        self.matrix.show(course.attention[place], largest)
        self.moment.title = f"moment (t = {time:.4g})"
        self.caption.text = escape(course.attention[place].caption)
        for panel in (self.lines, self.loss):
            panel.point(time)
        self.portrait.point(record)

    # What is only drawn in another way

    def _point(self) -> None:
        if not self._quiet:
            self._picture()

    def _redraw(self) -> None:
        if self._quiet or self.course is None:
            return
        self.lines.show(self.course, self.curves.value)
        self._choose({"curves": ",".join(self.curves.value)})

    def _turn(self) -> None:
        if not self._quiet:
            self._choose(dict(zip("xy", (select.value for select in self.axes))))
            self.changed()

    def _choose(self, drawn: dict[str, str]) -> None:
        self.view = state.View(self.view.system, self.view.texts, {**self.view.drawn, **drawn})
        self._write_address()


def usual_curves(course: Course) -> list[str]:
    """Return what is drawn at first: order parameters among the observables, else observables."""
    observed = [name for name, one in course.columns.items() if one.meaning != "order parameter"]
    both = [name for name in observed if name in course.order_parameters]
    return both or [name for name in observed if name not in ("loss", "bound")]
