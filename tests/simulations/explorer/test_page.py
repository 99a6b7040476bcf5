"""The page without a browser: what its fields ask for, what it shows, what it refuses."""

from importlib.resources import files

import numpy as np
import pytest

from simulations import theories
from simulations.explorer import state
from simulations.explorer.look import ARROWS, look
from simulations.workers import Event
from tests.closeness import close

bokeh = pytest.importorskip("bokeh", reason="the extra explore is not installed")
from bokeh.document import Document  # noqa: E402

from simulations import maps  # noqa: E402
from simulations.explorer.mapped import places  # noqa: E402
from simulations.explorer.page import Page  # noqa: E402
from simulations.explorer.plots import letters, without_latex  # noqa: E402

TEACHER = files("simulations.stated") / "examples/teacher.py"
SMALL = "D=16&horizon=1e3&tolerance=1e-5"


class Job:
    def __init__(self, task, on_event):
        self.task, self.on_event, self.cancelled = task, on_event, False

    def cancel(self):
        self.cancelled = True

    def run(self):
        """Do the work here and now."""
        try:
            self.on_event(Event("done", look(self.task, self)))
        except ArithmeticError as refusal:
            self.on_event(Event("failed", str(refusal)))

    def report(self, content):
        self.on_event(Event("progress", content))

    def check(self):
        """It is never cancelled."""


class Workers:
    """Collects the jobs; a test runs them."""

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


class Opened:
    """A page, and what a person does on it."""

    def __init__(self, query="", sweep=None, system="positional"):
        self.workers = Workers()
        self.page = Page(Document(), state.read(query, system), self.workers, sweep)

    def run(self):
        self.workers.jobs[-1].run()
        pump(self.page)
        return self

    def type(self, name, text):
        self.page.controls.by_name[name].field.value = text

    def slide(self, name, place):
        self.page.controls.by_name[name].slider.value = place

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


class TestRun:
    @pytest.mark.parametrize("query", [SMALL, "system=masked", "system=shallow", "system=toy"])
    def test_is_shown(self, query):
        opened = Opened(query)
        assert "computing: 0 %" in opened.status
        opened.run()
        page = opened.page
        assert '<b class="good">completed</b>' in opened.status
        assert "Computed in " in opened.status
        assert not page.cancel.visible
        lines = page.lines.data.data
        assert lines["time"][0] > 0.0
        assert list(page.lines.lines) == page.curves.value
        assert len(page.portrait.path.data["x"]) == len(page.course.time)
        assert len(page.portrait.arrows.data["x0"]) > 0.8 * ARROWS**2
        assert "holds</b>" in page.invariants.text
        assert page.matrix.figure.visible == (page.theory.name != "toy")
        assert page.command.tags[0].startswith("patchdyn run ")

    def test_a_theory_of_a_file_has_sliders_and_its_command(self, monkeypatch):
        monkeypatch.setattr(theories, "_STATED", {})
        theory = theories.from_file(TEACHER)
        opened = Opened(system=theory.name)
        opened.run().slide("K", 0)
        opened.run()
        assert opened.case.problem.values == {"D": 16, "K": 2, "nu": 1.0}
        assert '<b class="good">completed</b>' in opened.status
        assert f"--theory {TEACHER}" in opened.page.command.tags[0]
        assert opened.address.startswith("?system=stated%3Ateacher")
        assert Opened(opened.address, system="masked").page.theory is theory
        for one in opened.page.controls.by_name.values():
            assert not one.ticks or float(one.default) in one.ticks

    def test_events_are_marked_where_they_happen(self):
        opened = Opened("D=16&horizon=1e4").run()
        outcomes = opened.page.theory.measure(opened.case)
        marked = dict(zip(*(opened.page.lines.events.data[key] for key in ("name", "time"))))
        assert set(marked) == {"T0", "T1"}
        close(marked, {name: outcomes[name] for name in marked}, 1e-5)
        assert "onset<td>does not happen" in opened.page.outcomes.text

    def test_the_moment_moves_matrix_cursor_and_cross(self):
        opened = Opened("D=16&horizon=1e4").run()
        page, course = opened.page, opened.page.course
        assert page.lines.cursor.location == course.time[-1]
        page.moment.value = 0
        assert np.array_equal(page.matrix.data.data["weight"], course.attention[0].weights.ravel())
        assert page.lines.cursor.location == course.time[0]
        assert page.portrait.moment.data == {"x": [0.0], "y": [0.0]}

    def test_two_tabs_share_nothing(self):
        """Models belong to one document each."""
        first, second = Opened("system=toy"), Opened("system=toy")
        first.type("s", "2")
        assert second.page.controls.texts == {}

    def test_a_run_that_fails_is_told(self):
        opened = Opened("D=16&tolerance=1e-40").run()
        assert opened.status.startswith('<b class="bad">not run</b>: tolerance = 1e-40 is below')
        assert "run before" not in opened.status


@pytest.fixture(scope="module")
def kept():
    """A page that has shown one run, for tests that ask it for another."""
    return Opened(SMALL).run()


@pytest.fixture
def opened(kept):
    """That page with its first values again, and nothing asked for yet."""
    kept.page.show({"D": "16", "horizon": "1e3"})
    kept.page.cancel_run()
    kept.workers.jobs.clear()
    return kept


class TestAsking:
    def test_a_slider_types(self, opened):
        opened.slide("nu", 0)
        assert opened.page.controls.by_name["nu"].field.value == "1e-5"
        assert opened.case.problem.nu == 1e-5
        assert opened.address == "?system=positional&D=16&nu=1e-5&horizon=1e3"

    def test_typing_moves_the_slider(self, opened):
        opened.type("qD", "4")
        control = opened.page.controls.by_name["qD"]
        assert control.ticks[control.slider.value] == 4.0
        assert len(opened.workers.jobs) == 1
        assert opened.case.problem.q == 4 / 16

    def test_each_change_cancels_the_run_before(self, opened):
        for place in (5, 6, 7):
            opened.slide("nu", place)
        cancelled = [job.cancelled for job in opened.workers.jobs]
        assert cancelled == [True, True, False]

    def test_what_is_told_late_is_not_shown(self, opened):
        """An event that was sent before its run was cancelled."""
        before = opened.page.course
        opened.type("nu", "0.02")
        late = opened.workers.jobs[0]
        opened.type("nu", "0.1")
        late.run()
        pump(opened.page)
        assert opened.page.course is before
        opened.run()
        assert opened.page.course is not before

    def test_refused_values_are_told_and_nothing_is_run(self, opened):
        command = opened.page.command.tags
        opened.type("nu", "<img src=x onerror=alert(1)>")
        assert "<img" not in opened.status
        assert "nu = &#x27;&lt;img src=x onerror=alert(1)&gt;&#x27; is not allowed" in opened.status
        assert "What is drawn is the run before" in opened.status
        assert opened.workers.jobs == []
        assert opened.page.command.tags == command

    @pytest.mark.parametrize(
        ("query", "words"),
        [("system=nothing", "system = &#x27;nothing&#x27; is not allowed: system must be one of"),
         ("mu=1", "mu is not a parameter of this system: choose among D, C"),
         ("solver=euler", "solver = &#x27;euler&#x27; is not allowed"),
         ("C=5", "C = 5 is not allowed: C must be a divisor of D = 64")],
    )  # fmt: skip
    def test_an_address_that_is_refused(self, query, words):
        opened = Opened(query)
        assert words in opened.status
        assert opened.workers.jobs == []

    def test_cancel(self, opened):
        opened.type("nu", "0.1")
        assert opened.page.cancel.visible
        opened.page.cancel_run()
        assert opened.workers.jobs[0].cancelled
        assert opened.status == "cancelled"
        assert not opened.page.cancel.visible

    def test_back_to_the_usual_values(self, opened):
        opened.page.show({"nu": "0.2", "solver": "gd"})
        assert opened.case.solver == "gd"
        opened.page.show({})
        assert opened.page.controls.texts == {}
        assert opened.address == "?system=positional"

    def test_an_address_gives_the_page_again(self):
        first = Opened(SMALL).run()
        first.type("qD/C^2", "0.25")
        first.run()
        first.page.curves.value = ["alpha", "loss"]
        first.page.axes[0].value = "alpha"
        first.run()
        again = Opened(first.address.removeprefix("?")).run()
        assert again.address == first.address
        assert again.page.curves.value == ["alpha", "loss"]
        assert again.page.course.axes == ("alpha", "rho")
        assert again.case.problem == first.case.problem
        for name, values in first.page.lines.data.data.items():
            assert np.array_equal(again.page.lines.data.data[name], values)


class TestSweep:
    def test_a_cell_is_its_run(self, sweep):
        """The event on the page is the outcome that the sweep stored, computed by other calls."""
        opened = Opened("", sweep)
        panel = opened.page.sweep
        panel.fixed["beta"].value = "1.0"
        panel.source.selected.indices = [2]  # second row of qD/C^2, first column of nu
        opened.run()
        cell = sweep.data.isel(beta=1, qD_over_C2=1, nu=0)
        marked = dict(zip(*(opened.page.lines.events.data[key] for key in ("name", "time"))))
        assert np.isfinite(cell["T1"].item())
        close(marked["T1"], cell["T1"].item(), 1e-6)
        assert opened.case.problem.nu == 0.01
        assert opened.page.command.tags == [theories.command(sweep.case(8))]
        assert f"{cell['T1'].item():.6g}" in panel.cell.text

    def test_address_holds_map_and_plane(self, sweep):
        first = Opened("", sweep)
        first.page.sweep.which.value = "risk"
        first.page.sweep.fixed["beta"].value = "1.0"
        assert first.address == "?system=positional&.map=risk&.at+beta=1.0"
        again = Opened(first.address.removeprefix("?"), sweep)
        assert again.page.sweep.chosen == first.page.sweep.chosen
        assert "Final population risk" in again.page.sweep.legend.text

    def test_every_map_is_drawn_as_it_is(self, sweep):
        opened = Opened("", sweep)
        panel = opened.page.sweep
        for name, one in panel.maps.items():
            panel.which.value = name
            data = maps.draw_data(sweep, one, panel.at)
            cells, log = places(data)
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
def test_letters(name, written):
    assert letters(name) == written
