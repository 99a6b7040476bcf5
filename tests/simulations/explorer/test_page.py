"""The page without a browser: requested runs, plots and rejected input."""

from importlib.resources import files
from urllib.parse import urlencode

import numpy as np
import pytest

from simulations import theories
from simulations.explorer import state
from simulations.explorer.run_job import ARROWS, compute
from simulations.workers import Event
from tests.closeness import close

bokeh = pytest.importorskip("bokeh", reason="the extra explore is not installed")
from bokeh.document import Document  # noqa: E402
from bokeh.events import ButtonClick  # noqa: E402

from simulations import maps  # noqa: E402
from simulations.explorer.fragments import NO_EQUATIONS  # noqa: E402
from simulations.explorer.page import Page  # noqa: E402
from simulations.explorer.plots import letters, without_latex  # noqa: E402
from simulations.explorer.sweep_panel import map_cells  # noqa: E402
from simulations.figures.style import label_rows  # noqa: E402

TEACHER = files("simulations.stated") / "examples/teacher.py"
SMALL = "D=16&horizon=1e3&tolerance=1e-5"


class Job:
    def __init__(self, task, on_event):
        self.task, self.on_event, self.cancelled = task, on_event, False

    def cancel(self):
        self.cancelled = True

    def run(self):
        """Run the job in this process."""
        try:
            self.on_event(Event("done", compute(self.task, self)))
        except ArithmeticError as error:
            self.on_event(Event("failed", str(error)))

    def report(self, content):
        self.on_event(Event("progress", content))

    def check(self):
        """Do nothing: the job is never cancelled."""


class Workers:
    """Collects jobs, so that a test runs them."""

    def __init__(self):
        self.jobs = []

    def submit(self, task, on_event):
        self.jobs.append(Job(task, on_event))
        return self.jobs[-1]


def pump(page):
    """Let the page handle its queued events."""
    for callback in list(page.document.session_callbacks):
        page.document.remove_next_tick_callback(callback)
        callback.callback()


def shown_panels(page):
    """Return the panels of the curves."""
    return page.lines.panels[: len(page.lines.root.children)]


def plotted(page):
    """Return the values of all curves, by their names."""
    return {name: x for panel in shown_panels(page) for name, x in panel.data.data.items()}


class Opened:
    """A page, and actions of a user."""

    def __init__(self, query="", sweep=None, system="positional"):
        self.workers = Workers()
        self.page = Page(Document(), state.read(query, system), self.workers, sweep)

    def run(self):
        self.workers.jobs[-1].run()
        pump(self.page)
        return self

    def equations(self):
        """Return the text of the tab of the equations."""
        self.page.checks.active = 1
        return self.run().page.equations.text

    def type(self, name, text):
        self.page.controls.by_parameter[name].field.value = text

    def slide(self, name, index):
        self.page.controls.by_parameter[name].slider.value = index

    @property
    def status(self):
        return self.page.status.text

    @property
    def address(self):
        return self.page.address.tags[0]

    @property
    def case(self):
        return self.workers.jobs[-1].task.case


@pytest.fixture(autouse=True)
def toy():
    with theories.registered("toy", "tests.toy"):
        yield


@pytest.fixture(scope="module")
def sweep(sweep_folder):
    return maps.read(sweep_folder)


@pytest.fixture(scope="module")
def long_page():
    """A page that shows a run with two events."""
    return Opened("D=16&horizon=1e4").run()


@pytest.fixture
def long_run(long_page):
    """The page; its marks and the time of its slider are restored after the test."""
    panel, time = long_page.page.loss, long_page.page.time
    before = dict(panel.events.data), time.value
    yield long_page
    panel.events.data, time.value = before


class TestRun:
    @pytest.mark.parametrize(
        "query",
        [
            pytest.param(SMALL, marks=[pytest.mark.slow, pytest.mark.traced]),
            pytest.param("system=masked", marks=pytest.mark.slow),
            pytest.param("system=shallow", marks=pytest.mark.slow),
            "system=toy",
        ],
    )
    def test_a_run_is_plotted(self, query):
        opened = Opened(query)
        assert "computing: 0 %" in opened.status
        opened.run()
        page = opened.page
        assert '<b class="good">completed</b>' in opened.status
        assert "Computed in " in opened.status
        assert not page.cancel.visible
        panels = shown_panels(page)
        assert all(panel.data.data["time"][0] > 0.0 for panel in panels)
        assert sorted(name for p in panels for name in p.lines) == sorted(page.curves.value)
        for panel, name in ((page.loss, "loss"), (page.bound, "bound")):
            assert list(panel.lines) == [name]
            plotted = panel.data.data[name]
            values = page.run.columns[name].values[page.run.time > 0.0]
            assert np.array_equal(plotted[values > 0.0], values[values > 0.0])
        assert "Section 3, (P)" not in page.invariants.text  # of another paper
        assert len(page.portrait.path.data["x"]) == len(page.run.time)
        assert len(page.portrait.arrows.data["x0"]) > 0.8 * ARROWS**2
        assert "holds</b>" in page.invariants.text
        assert page.matrix.figure.visible == (page.theory.name != "toy")
        assert page.command.tags[0].startswith("patchdyn run ")

    @pytest.mark.slow
    @pytest.mark.traced
    def test_a_user_defined_theory_has_sliders_and_a_command(self, monkeypatch):
        monkeypatch.setattr(theories, "_LOADED", {})
        theory = theories.from_file(TEACHER)
        opened = Opened(system=theory.name)
        opened.run().slide("K", 0)
        opened.run()
        assert opened.case.problem.values == {"D": 16, "K": 2, "nu": 1.0}
        assert '<b class="good">completed</b>' in opened.status
        assert f"--theory {TEACHER}" in opened.page.command.tags[0]
        assert opened.equations().count('<math display="block"') > len(theory.equations) / 2
        assert opened.address.startswith("?system=stated%3Ateacher")
        assert Opened(opened.address, system="masked").page.theory is theory
        for control in opened.page.controls.by_parameter.values():
            assert not control.ticks or float(control.default) in control.ticks

    @pytest.mark.parametrize("name", theories.names())
    def test_the_tab_of_equations_shows_those_of_the_theory(self, name):
        theory = theories.load(name)
        text = Opened(f"system={name}").equations()
        assert len(theory.equations) >= 5
        assert text.count('<math display="block"') == len(theory.equations)
        assert "<pre>" not in text  # every formula is converted

    @pytest.mark.slow
    def test_a_theory_without_equations_has_a_message(self):
        assert Opened("system=toy").equations() == NO_EQUATIONS

    def test_a_failed_derivation_shows_its_reason(self):
        opened = Opened("system=toy")
        opened.page.checks.active = 1
        opened.workers.jobs[-1].on_event(Event("died", "signal 9"))
        pump(opened.page)
        assert opened.page.equations.text == "No equations: signal 9."

    @pytest.mark.slow
    def test_curves_of_one_quantity_share_a_panel(self):
        opened = Opened("system=masked").run()
        titles = [panel.figure.title.text for panel in shown_panels(opened.page)]
        assert titles == ["Φ", "Υ", "Along the run"]
        for panel in shown_panels(opened.page):
            assert {"learned", "attended"} <= {*panel.events.data["name"]}
        opened.page.curves.value = ["Phi_1", "a_n"]
        (panel,) = shown_panels(opened.page)
        assert list(panel.lines) == ["Phi_1", "a_n"]

    @pytest.mark.slow
    @pytest.mark.traced
    def test_events_are_marked_at_their_times(self, long_run):
        opened = long_run
        outcomes = opened.page.theory.measure(opened.case)
        marked = dict(zip(*(opened.page.loss.events.data[key] for key in ("name", "time"))))
        assert set(marked) == {"T0", "T1"}
        close(marked, {name: outcomes[name] for name in marked}, 1e-5)
        assert "onset<td>does not happen" in opened.page.outcomes.text

    @pytest.mark.slow
    @pytest.mark.traced
    def test_labels_of_close_events_are_in_different_rows(self, long_run):
        panel = long_run.page.loss
        panel.mark({"second": 101.0, "first": 100.0, "early": panel.figure.x_range.start})
        assert panel.events.data["name"] == ["early", "first", "second"]
        low, first, second = panel.events.data["y"]
        assert low == first < second

    @pytest.mark.slow
    def test_a_label_at_the_right_end_is_left_of_its_line(self, long_run):
        panel = long_run.page.loss
        extent = panel.figure.x_range
        panel.mark({"first": extent.start, "last": 0.9 * extent.end, "close": 0.8 * extent.end})
        assert panel.events.data["name"] == ["first", "close", "last"]
        assert panel.events.data["align"] == ["left", "right", "right"]
        assert panel.events.data["offset"] == [3, -3, -3]
        assert panel.events.data["y"] == [6, 6, 22]

    @pytest.mark.slow
    @pytest.mark.traced
    def test_the_time_slider_moves_matrix_cursor_and_marker(self, long_run):
        page, run = long_run.page, long_run.page.run
        assert page.loss.cursor.location == run.time[-1]
        page.time.value = 0
        assert np.array_equal(page.matrix.data.data["weight"], run.attention[0].weights.ravel())
        assert page.loss.cursor.location == run.time[0]
        assert page.portrait.marker.data == {"x": [0.0], "y": [0.0]}

    @pytest.mark.slow
    def test_tabs_are_independent(self):
        """Models belong to one document each."""
        first, second = Opened("system=toy"), Opened("system=toy")
        first.type("s", "2")
        assert second.page.controls.texts == {}

    @pytest.mark.slow
    @pytest.mark.traced
    def test_a_failed_run_shows_its_message(self):
        opened = Opened("D=16&tolerance=1e-40").run()
        assert opened.status.startswith('<b class="bad">not run</b>: tolerance = 1e-40 is below')
        assert "previous run" not in opened.status


@pytest.fixture(scope="module")
def used_page():
    """A page that shows a run, for tests that request another run."""
    return Opened(SMALL).run()


@pytest.fixture
def opened(used_page):
    """The page with its initial values and no requested runs."""
    used_page.page.show({"D": "16", "horizon": "1e3"})
    used_page.page.cancel_run()
    used_page.workers.jobs.clear()
    return used_page


class TestRequests:
    @pytest.mark.slow
    @pytest.mark.traced
    def test_a_slider_sets_its_field(self, opened):
        opened.slide("nu", 0)
        assert opened.page.controls.by_parameter["nu"].field.value == "1e-5"
        assert opened.case.problem.nu == 1e-5
        assert opened.address == "?system=positional&D=16&nu=1e-5&horizon=1e3"

    @pytest.mark.slow
    @pytest.mark.traced
    def test_a_field_moves_its_slider(self, opened):
        opened.type("qD", "4")
        control = opened.page.controls.by_parameter["qD"]
        assert control.ticks[control.slider.value] == 4.0
        assert len(opened.workers.jobs) == 1
        assert opened.case.problem.q == 4 / 16

    @pytest.mark.slow
    @pytest.mark.traced
    def test_each_change_cancels_the_previous_run(self, opened):
        for index in (5, 6, 7):
            opened.slide("nu", index)
        cancelled = [job.cancelled for job in opened.workers.jobs]
        assert cancelled == [True, True, False]

    @pytest.mark.slow
    @pytest.mark.traced
    def test_events_of_cancelled_runs_are_ignored(self, opened):
        """The event was sent before the run was cancelled."""
        before = opened.page.run
        opened.type("nu", "0.02")
        late = opened.workers.jobs[0]
        opened.type("nu", "0.1")
        late.run()
        pump(opened.page)
        assert opened.page.run is before
        opened.run()
        assert opened.page.run is not before

    @pytest.mark.slow
    @pytest.mark.traced
    def test_invalid_values_show_a_message_and_start_no_run(self, opened):
        command = opened.page.command.tags
        opened.type("nu", "<img src=x onerror=alert(1)>")
        assert "<img" not in opened.status
        assert "nu = &#x27;&lt;img src=x onerror=alert(1)&gt;&#x27; is not allowed" in opened.status
        assert "The plots show the previous run" in opened.status
        assert opened.workers.jobs == []
        assert opened.page.command.tags == command

    @pytest.mark.parametrize(
        ("query", "message"),
        [("system=nothing", "system = &#x27;nothing&#x27; is not allowed: system must be one of"),
         ("mu=1", "mu is not a parameter of this system: choose among D, C"),
         ("solver=euler", "solver = &#x27;euler&#x27; is not allowed"),
         ("C=5", "C = 5 is not allowed: C must be a divisor of D = 64")],
    )  # fmt: skip
    def test_an_invalid_address_shows_a_message(self, query, message):
        opened = Opened(query)
        assert message in opened.status
        assert opened.workers.jobs == []

    @pytest.mark.slow
    @pytest.mark.traced
    def test_cancel(self, opened):
        opened.type("nu", "0.1")
        assert opened.page.cancel.visible
        opened.page.cancel_run()
        assert opened.workers.jobs[0].cancelled
        assert opened.status == "cancelled"
        assert not opened.page.cancel.visible

    @pytest.mark.slow
    @pytest.mark.traced
    def test_reset_to_defaults(self, opened):
        opened.page.show({"nu": "0.2", "solver": "gd"})
        assert opened.case.solver == "gd"
        opened.page.show({})
        assert opened.page.controls.texts == {}
        assert opened.address == "?system=positional"

    @pytest.mark.slow
    def test_an_address_reproduces_the_page(self):
        first = Opened(SMALL).run()
        first.type("qD/C^2", "0.25")
        first.run()
        first.page.curves.value = ["alpha", "loss"]
        first.page.axes[0].value = "alpha"
        first.run()
        again = Opened(first.address.removeprefix("?")).run()
        assert again.address == first.address
        assert again.page.curves.value == ["alpha", "loss"]
        assert again.page.run.axes == ("alpha", "rho")
        assert again.case.problem == first.case.problem
        for name, values in plotted(first.page).items():
            assert np.array_equal(plotted(again.page)[name], values)

    @pytest.mark.slow
    @pytest.mark.traced
    def test_two_runs_are_compared(self):
        opened = Opened(SMALL).run()
        before = opened.page.run
        opened.page.compare._trigger_event(ButtonClick(opened.page.compare))
        opened.type("nu", "0.1")
        opened.run()
        page, run = opened.page, opened.page.run
        (panel,) = shown_panels(page)
        for name in ("gamma", "rho"):
            old, new = before.columns[name].values, run.columns[name].values
            assert not np.array_equal(old, new)
            assert np.array_equal(panel.reference.data[name], old[before.time > 0.0])
            assert np.array_equal(panel.data.data[name], new[run.time > 0.0])
        assert np.array_equal(page.loss.reference.data["loss"], before.columns["loss"].values[1:])
        assert np.array_equal(page.portrait.reference.data["x"], before.columns["gamma"].values)
        assert "--nu 0.01 " in page.compared.text
        assert "--nu 0.1 " in page.command.tags[0]
        again = Opened(opened.address.removeprefix("?")).run().run()
        assert [job.task.case.problem.nu for job in again.workers.jobs] == [0.01, 0.1]
        assert again.address == opened.address
        assert again.page.compared.text == page.compared.text
        for name, values in shown_panels(again.page)[0].reference.data.items():
            assert np.array_equal(values, panel.reference.data[name])
        page.compare._trigger_event(ButtonClick(page.compare))
        assert not page.compared.visible
        assert panel.reference.data["gamma"] == []
        assert ".with" not in opened.address

    @pytest.mark.slow
    def test_a_run_that_cannot_be_compared_with_does_not_prevent_the_other(self):
        reference = state.address(state.View("positional", {"nu": "-1"}))
        opened = Opened(urlencode({"D": "16", "horizon": "1e3", ".with": reference})).run()
        assert '<b class="good">completed</b>' in opened.status
        assert opened.page.reference is None


class TestSweep:
    @pytest.mark.slow
    @pytest.mark.traced
    def test_a_clicked_cell_shows_its_run(self, sweep):
        """The event on the page equals the stored outcome of the sweep."""
        opened = Opened("", sweep)
        panel = opened.page.sweep
        panel.fixed["beta"].value = "1.0"
        panel.source.selected.indices = [2]  # second row of qD/C^2, first column of nu
        opened.run()
        cell = sweep.data.isel(beta=1, qD_over_C2=1, nu=0)
        marked = dict(zip(*(opened.page.loss.events.data[key] for key in ("name", "time"))))
        assert np.isfinite(cell["T1"].item())
        close(marked["T1"], cell["T1"].item(), 1e-6)
        assert opened.case.problem.nu == 0.01
        assert opened.page.command.tags == [theories.command(sweep.case(8))]
        assert f"{cell['T1'].item():.6g}" in panel.cell.text

    @pytest.mark.slow
    @pytest.mark.traced
    def test_the_address_contains_map_and_plane(self, sweep):
        first = Opened("", sweep)
        first.page.sweep.which.value = "risk"
        first.page.sweep.fixed["beta"].value = "1.0"
        assert first.address == "?system=positional&.map=risk&.at+beta=1.0"
        again = Opened(first.address.removeprefix("?"), sweep)
        assert again.page.sweep.chosen == first.page.sweep.chosen
        assert "Final population risk" in again.page.sweep.legend.text

    @pytest.mark.slow
    def test_every_map_is_plotted_with_its_values(self, sweep):
        opened = Opened("", sweep)
        panel = opened.page.sweep
        for name, regime_map in panel.maps.items():
            panel.which.value = name
            data = maps.map_data(sweep, regime_map, panel.at)
            cells, log = map_cells(data)
            assert log == {"x": True, "y": True}
            shown = np.array(panel.source.data["value"]).reshape(3, 2)
            assert np.array_equal(shown, data["value"].values, equal_nan=True)
            wide = np.array(cells["right"]) > np.array(cells["left"])
            assert wide.all()
            assert (np.array(cells["top"]) > np.array(cells["bottom"])).all()


@pytest.mark.parametrize(
    ("text", "plain"),
    [(r"Where $\gamma\geq\rho$ is violated", "Where γ≥ρ is violated"),
     (r"$\alpha(0)=\alpha^*$", "α(0)=α*"),
     (r"$\frac{d}{dt}(\gamma-\rho)=0$", "d/dt(γ-ρ)=0")],
)  # fmt: skip
def test_titles_without_latex(text, plain):
    assert without_latex(text) == plain


@pytest.mark.parametrize(
    ("name", "written"),
    [("gamma", "γ"), ("Phi_global", "Φ global"), ("alpha0", "α(0)"), ("K2_kk", "K2 kk"),
     ("loss", "loss"), ("rho0", "ρ(0)")],
)  # fmt: skip
def test_greek_letters(name, written):
    assert letters(name) == written


@pytest.mark.parametrize(
    ("left", "rows"),
    [([0, 100, 200], [0, 0, 0]), ([0, 5, 100], [0, 1, 0]), ([0, 1, 2, 21], [0, 1, 2, 0])],
)
def test_a_label_is_in_the_lowest_free_row(left, rows):
    assert label_rows(left, [20] * len(left)) == rows
