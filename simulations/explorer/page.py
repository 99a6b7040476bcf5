"""Page of the explorer: parameters on the left, plots of their run on the right."""

import contextlib
import queue
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from html import escape
from importlib.resources import files
from typing import Any

from bokeh.document import Document
from bokeh.layouts import column, row
from bokeh.models import (
    Button,
    CustomJS,
    Div,
    MultiChoice,
    Select,
    Slider,
    TabPanel,
    Tabs,
)

from dynamics.core.errors import ParameterError
from simulations import theories
from simulations.case import Case
from simulations.cli import explain
from simulations.explorer import fragments, state
from simulations.explorer.controls import Controls
from simulations.explorer.plots import (
    AgainstTime,
    AttentionMatrix,
    Curves,
    Portrait,
    letters,
    on_change,
)
from simulations.explorer.run_job import (
    EquationsTask,
    FlowField,
    Observed,
    Outcomes,
    Progress,
    RunData,
    Task,
)
from simulations.explorer.sweep_panel import SweepPanel
from simulations.maps import Sweep
from simulations.workers import Event, Job, WorkerPool

_STYLE = """
  :host { font: 14px/1.45 system-ui, sans-serif; color: #1c1e21; overflow-wrap: anywhere; }
  .bk-clearfix { max-width: 100%; }
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
  .equation { overflow: auto hidden; padding: 3px 0; }
  .mark { display: inline-block; width: 1.6em; height: .8em; vertical-align: middle; }
"""
#: Tabs that are not wider than the page.
_NARROW_TABS = ":host(.bk-above) { grid-template-columns: minmax(0, 1fr); }"
_TO_CLIPBOARD = """
const text = what === "link" ? window.location.href : command.tags[0];
navigator.clipboard.writeText(text).then(() => { cb_obj.label = "Copied"; },
                                         () => { cb_obj.label = "Copying is not allowed"; });
setTimeout(() => { cb_obj.label = "Copy " + what; }, 3000);
"""
#: Serial number of the job that derives the equations; runs have numbers from 1.
_OF_EQUATIONS = 0
#: Open the page of the chosen theory.
_TO_THEORY = "window.location.search = '?system=' + encodeURIComponent(cb_obj.value);"
#: Replace the address without an entry in the history of the browser.
_TO_ADDRESS = "window.history.replaceState(null, '', cb_obj.tags[0]);"


Texts = Mapping[str, str]


def text(name: str, html: str = "") -> Div:
    """Return a part of the page for HTML."""
    return Div(text=html, name=name, sizing_mode="stretch_width", stylesheets=[_STYLE])


class Page:
    """Content of one browser tab.

    Parameters
    ----------
    document
        Bokeh document of the tab.
    view
        Initial state.
    workers
        Pool that computes the runs.
    sweep
        Sweep whose maps are shown.
    start
        Start the first run now; otherwise `begin` starts it.
    """

    def __init__(
        self,
        document: Document,
        view: state.View,
        workers: WorkerPool,
        sweep: Sweep | None = None,
        *,
        start: bool = True,
    ) -> None:
        self.document, self.workers, self.view = document, workers, view
        try:
            self.theory, reason = theories.load(view.system), ""
        except ParameterError as error:
            self.theory, reason = theories.load(theories.DEFAULT), str(error)
        self.job: Job | None = None
        self.serial = 0
        self._queue: queue.SimpleQueue[tuple[int, Event]] = queue.SimpleQueue()
        self.run: RunData | None = None
        #: Run that is shown for comparison, and parameters of the runs and of one that waits.
        self.reference: RunData | None = None
        self._requested: Texts = {}
        self._texts_of_run: Texts = {}
        self._waiting: Texts | None = None
        self._quiet = True
        self.controls = Controls(self.theory, self.changed)
        self._panels(sweep)
        self.controls.set(view.texts)
        self._lay_out()
        self._quiet = False
        if reason:
            self.status.text = fragments.not_run(reason, has_previous=False)
        self._begun = bool(reason)
        if start:
            self.begin()

    def begin(self) -> None:
        """Start the first run, unless it was started before."""
        if self._begun:
            return
        self._begun = True
        if reference := self.view.choices.get("with", ""):
            self._waiting = self.view.texts
            self._guarded(lambda: self._start(state.read(reference).texts))
        if self.job is None:
            self._request(self.view.texts)

    def _panels(self, sweep: Sweep | None) -> None:
        self.status, self.command = text("status"), text("command")
        self.cancel = Button(label="Cancel", name="cancel", visible=False, width=90)
        self.cancel.on_click(self.cancel_run)
        self.lines = Curves()
        self.loss = AgainstTime("Population risk", 210, positive=True)
        self.bound = AgainstTime("Error bound of the population risk", 156, positive=True)
        self.portrait, self.matrix = Portrait(300), AttentionMatrix(330)
        self.curves = MultiChoice(title="Curves", name="curves", sizing_mode="stretch_width")
        on_change(self.curves, "value", self._curves_chosen)
        self.axes = [Select(title=f"{axis} axis", name=f"axis {axis}", width=150) for axis in "xy"]
        for select in self.axes:
            on_change(select, "value", self._axes_chosen)
        self.time = Slider(
            start=0,
            end=1,
            value=1,
            step=1,
            title="time",
            show_value=False,
            name="time",
            sizing_mode="stretch_width",
            tooltips=False,
        )
        on_change(self.time, "value", self._time_chosen)
        self.caption = text("caption")
        self.outcomes, self.invariants = text("outcomes"), text("invariants")
        self.equations, self.compared = text("equations"), text("compared")
        self.checks = Tabs(
            tabs=[
                TabPanel(child=self.invariants, title="Invariants"),
                TabPanel(child=self.equations, title="Equations"),
            ],
            name="checks",
            sizing_mode="stretch_width",
            stylesheets=[_NARROW_TABS],
        )
        on_change(self.checks, "active", self._tab_chosen)
        self.sweep = None
        if sweep is not None:
            self.sweep = SweepPanel(sweep, self.view.choices, text, self._cell, self._write_address)

    def _lay_out(self) -> None:
        document = self.document
        document.title = f"patchdyn explorer: {self.theory.name}"
        template = files("simulations.explorer") / "templates/page.html"
        document.template = template.read_text("utf-8")
        document.template_variables.update(
            subtitle=escape(self.theory.title), swept=self.sweep is not None
        )
        reset = Button(label="Reset to defaults", width=280)
        reset.on_click(lambda: self.show({}))
        stretch: Any = {"sizing_mode": "stretch_width"}
        self.address = column(
            row(self.status, self.cancel, **stretch),
            self.command,
            self.compared,
            row(self._buttons(), styles={"flex-wrap": "wrap"}, **stretch),
            name="top",
            **stretch,
        )
        self.address.js_on_change("tags", CustomJS(code=_TO_ADDRESS))
        for root in (
            column(self._menu_of_theories(), reset, name="chosen"),
            self.controls.main,
            self.controls.more,
            self.address,
            *([] if self.sweep is None else [self.sweep.root]),
            column(self.lines.root, self.curves, name="run", **stretch),
            column(self.loss.figure, self.bound.figure, name="loss", **stretch),
            column(self.portrait.figure, row(self.axes), name="portrait", **stretch),
            column(self.matrix.figure, self.time, self.caption, name="attention", **stretch),
            self.outcomes,
            self.checks,
        ):
            document.add_root(root)

    def _menu_of_theories(self) -> Select:
        """Return the menu that opens the page of another theory."""
        names = [*theories.names(), *theories.names_from_files()]
        menu = Select(
            title="Theory",
            value=self.theory.name,
            options=names,
            name="system",
            width=280,
            visible=self.sweep is None,
        )
        menu.js_on_change("value", CustomJS(code=_TO_THEORY))
        return menu

    def _buttons(self) -> list[Button]:
        """Return the buttons that compare runs, and copy the command or the link."""
        self.compare = Button(name="compare", width=160)
        self.compare.on_click(self._compare_clicked)
        self._label_comparison("")
        buttons = [self.compare]
        for what in ("command", "link"):
            button = Button(label=f"Copy {what}", name=f"copy {what}", width=130)
            button.js_on_click(
                CustomJS(args={"command": self.command, "what": what}, code=_TO_CLIPBOARD)
            )
            buttons.append(button)
        return buttons

    # Requests

    def show(self, texts: dict[str, str]) -> None:
        """Show these parameters and start their run."""
        self.controls.set(texts)
        self._request(texts)

    def changed(self) -> None:
        """Cancel the current run and start the run of the fields."""
        self._request(self.controls.texts)

    def _request(self, texts: Texts) -> None:
        self._waiting = None
        self.cancel_run()
        self._guarded(partial(self._start, texts))

    def _guarded(self, act: Callable[[], None]) -> None:
        """Call ``act()``; show the message of an expected error."""
        try:
            act()
        except Exception as error:
            explanation = explain(error)
            if explanation is None:
                raise
            self.status.text = fragments.not_run(explanation[0], self.run is not None)

    def _start(self, texts: Texts) -> None:
        case = state.case(self.theory, texts)
        self._requested = texts
        self.serial += 1
        on_event = partial(self._receive, self.serial)
        self.job = self.workers.submit(Task(self.theory, case, self._axes()), on_event)
        self.status.text, self.cancel.visible = fragments.computing(0.0), True
        self._show_command(case)
        self._write_address()

    def _axes(self) -> tuple[str, str] | None:
        chosen = [self.view.choices.get(axis, "") for axis in "xy"]
        return (chosen[0], chosen[1]) if all(chosen) else None

    def _show_command(self, case: Case) -> None:
        command = theories.command(case)
        self.command.text, self.command.tags = f"<code>{escape(command)}</code>", [command]

    def _write_address(self) -> None:
        choices = dict(self.view.choices) | ({} if self.sweep is None else self.sweep.chosen)
        self.view = state.View(self.theory.name, self.controls.texts, choices)
        self.address.tags = [state.address(self.view)]

    def _cell(self, values: dict[str, Any]) -> None:
        self.show(state.texts_of(self.theory, values))

    def cancel_run(self) -> None:
        """Cancel the current run."""
        if self.job is not None:
            self.job.cancel()
            self.job = None
            self.status.text, self.cancel.visible = "cancelled", False

    # Events of the run

    def _receive(self, serial: int, event: Event) -> None:
        """Queue an event; the thread of the page handles it."""
        self._queue.put((serial, event))
        self.document.add_next_tick_callback(partial(self._read))

    def _read(self) -> None:
        """Handle the queued events, in order."""
        with contextlib.suppress(queue.Empty):
            while True:
                serial, event = self._queue.get_nowait()
                if serial == _OF_EQUATIONS:
                    self._show_equations(event)
                elif self.job is not None and serial == self.serial:
                    self._handle(event)  # other events belong to earlier runs

    def _handle(self, event: Event) -> None:
        if event.type == "progress":
            self._show(event.content)
            return
        self.job, self.cancel.visible = None, False
        if event.type == "done" and self.run is not None:
            self.status.text = fragments.status(self.run, event.content)
        elif event.type != "done":
            died = f"the process that computed this run ended ({event.content})"
            reason = died if event.type == "died" else event.content
            self.status.text = fragments.not_run(reason, self.run is not None)
        if self._waiting is not None:  # the run to compare with is complete
            if event.type == "done":
                self.keep()
            self._request(self._waiting)

    def _show(self, content: Any) -> None:
        if isinstance(content, Progress):
            self.status.text = fragments.computing(content.fraction)
        elif isinstance(content, RunData):
            self.run, self._texts_of_run = content, self._requested
            self._draw(content)
        elif isinstance(content, Observed):
            assert self.run is not None
            self.run = replace(self.run, columns={**self.run.columns, **content.columns})
            self._curves(self.run)
        elif isinstance(content, Outcomes):
            times = fragments.events(self.theory, content.values)
            for panel in (self.lines, self.loss, self.bound):
                panel.mark(times)
            self.outcomes.text = fragments.table_of_outcomes(self.theory, content.values)
        elif isinstance(content, FlowField):
            self.portrait.flow(content)

    def _draw(self, run: RunData) -> None:
        self._quiet = True
        self.status.text = fragments.status(run, None)
        self.invariants.text = fragments.table_of_invariants(run.invariants)
        self._curves(run)
        for panel, name in ((self.loss, "loss"), (self.bound, "bound")):
            panel.show(run, [name] if name in run.columns else [], self.reference)
        options = [(name, letters(name)) for name in run.order_parameters]
        for select, axis in zip(self.axes, run.axes or ()):
            if select.options != options:
                select.options = options
            select.value = axis
        self.portrait.show(run, self.reference)
        self.matrix.figure.visible = self.time.visible = bool(run.attention)
        if run.attention:
            at_end = self.time.value >= self.time.end
            last = len(run.attention_records) - 1
            self.time.update(end=max(last, 1), value=last if at_end else min(self.time.value, last))
            self._show_attention()
        else:
            self.caption.text = "This theory has no attention matrix."
        self._quiet = False

    def _curves(self, run: RunData) -> None:
        """Plot the chosen curves; update the list of curves only if it changes."""
        quiet, self._quiet = self._quiet, True
        options = [(name, letters(name)) for name in run.columns]
        if {*options} - {*self.curves.options}:
            self.curves.options = options
        chosen = self.view.choices.get("curves", "").split(",")
        names = [name for name in chosen if name in run.columns] or default_curves(run)
        if names != self.curves.value:
            self.curves.value = names
        self.lines.show(run, names, self.reference)
        self._quiet = quiet

    def _show_attention(self) -> None:
        """Show the attention matrix at the chosen time."""
        run = self.run
        if run is None or not run.attention:
            return
        index = min(round(self.time.value), len(run.attention_records) - 1)
        record = run.attention_records[index]
        time = float(run.time[record])
        largest = max(float(attention.weights.max()) for attention in run.attention)
        self.matrix.show(run.attention[index], largest)
        self.time.title = f"time t = {time:.4g}"
        self.caption.text = escape(run.attention[index].caption)
        for panel in (self.lines, self.loss, self.bound):
            panel.point(time)
        self.portrait.point(record)

    # Comparison and equations

    def keep(self) -> None:
        """Keep the present run, to compare later runs with it."""
        if self.run is None:
            return
        self.reference = self.run
        case = state.case(self.theory, self._texts_of_run)
        self._label_comparison(theories.command(case))
        reference = state.address(state.View(self.theory.name, self._texts_of_run))
        self._choose({"with": reference if len(reference) <= state.LONGEST else ""})
        self._draw(self.run)

    def _compare_clicked(self) -> None:
        if self.reference is None:
            self.keep()
        elif self.run is not None:
            self.reference = None
            self._label_comparison("")
            self._choose({"with": ""})
            self._draw(self.run)

    def _label_comparison(self, command: str) -> None:
        self.compared.text = fragments.comparison(command)
        self.compared.visible = bool(command)
        self.compare.label = "End comparison" if command else "Keep to compare"

    def _tab_chosen(self) -> None:
        """Request the equations when their tab is shown."""
        if not self.equations.text:
            self.equations.text = "deriving ..."
            on_event = partial(self._receive, _OF_EQUATIONS)
            self.workers.submit(EquationsTask(self.theory), on_event)

    def _show_equations(self, event: Event) -> None:
        if event.type == "done":
            self.equations.text = fragments.equations(event.content)
        else:
            self.equations.text = f"No equations: {escape(str(event.content))}."

    # Choices of plots

    def _time_chosen(self) -> None:
        if not self._quiet:
            self._show_attention()

    def _curves_chosen(self) -> None:
        if self._quiet or self.run is None:
            return
        self.lines.show(self.run, self.curves.value, self.reference)
        self._choose({"curves": ",".join(self.curves.value)})

    def _axes_chosen(self) -> None:
        if not self._quiet:
            self._choose(dict(zip("xy", (select.value for select in self.axes))))
            self.changed()

    def _choose(self, choices: dict[str, str]) -> None:
        """Store choices of plots in the view and in the address."""
        self.view = state.View(self.view.system, self.view.texts, {**self.view.choices, **choices})
        self._write_address()


def default_curves(run: RunData) -> list[str]:
    """Return the curves of the first plot: observables that are order parameters, else all."""
    observed = [n for n, column in run.columns.items() if column.meaning != "order parameter"]
    both = [name for name in observed if name in run.order_parameters]
    return both or [name for name in observed if name not in ("loss", "bound")]
