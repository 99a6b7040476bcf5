"""What a page is told of a run, against roads that share no code with it."""

import numpy as np
import pytest
from scipy.special import softmax

from dynamics.core.errors import ToleranceError
from simulations import theories
from simulations.explorer import look as module
from simulations.explorer.look import Course, Field, Observed, Outcomes, Task, look
from simulations.workers import Cancelled
from tests.closeness import close, within

QUICK = {
    "positional": {"D": 16, "C": 4, "tolerance": 1e-5, "rtol": 1e-5, "horizon": 1e4},
    "masked": {},
    "shallow": {"M": 3, "neurons": 96},
    "toy": {"horizon": 20},
}


class Channel:
    """Collects the reports of a job in this process, until it is cancelled."""

    def __init__(self, until=None):
        self.reports, self.until = [], until

    def check(self):
        if self.until is not None and any(isinstance(one, self.until) for one in self.reports):
            raise Cancelled

    def report(self, content):
        self.check()
        self.reports.append(content)

    def of(self, kind):
        return next((one for one in self.reports if isinstance(one, kind)), None)


@pytest.fixture(scope="module", autouse=True)
def toy():
    with theories.registered("toy", "tests.toy"):
        yield


def task_of(name, **values):
    theory = theories.load(name)
    return Task(theory, theory.build({**QUICK[name], **values}))


@pytest.fixture(scope="module", params=QUICK)
def looked(request):
    """A task and its reports."""
    task, channel = task_of(request.param), Channel()
    assert look(task, channel) > 0.0
    return task, channel


class TestEveryTheory:
    def test_order_of_the_reports(self, looked):
        kinds = [type(one) for one in looked[1].reports if not isinstance(one, module.Progress)]
        assert kinds in ([Course, Outcomes, Field], [Course, Observed, Outcomes, Field])

    def test_columns_are_the_observables_and_the_state(self, looked):
        task, channel = looked
        course, extra = channel.of(Course), channel.of(Observed)
        columns = course.columns | (extra.columns if extra else {})
        observables = {one.name for one in task.theory.observables} - {"time"}
        assert set(columns) == observables | set(course.order_parameters)
        for one in columns.values():
            assert one.values.shape == one.error.shape == course.time.shape
            assert (one.error >= 0.0).all()

    def test_outcomes_are_those_of_the_run(self, looked):
        task, channel = looked
        outcomes = channel.of(Outcomes).values
        assert outcomes["status"] == channel.of(Course).status == "completed"
        assert {one.name for one in task.theory.outcomes} <= set(outcomes)
        close(outcomes["loss"], channel.of(Course).columns["loss"].values[-1], 1e-12)

    def test_arrows_follow_the_path(self, looked):
        """Beside the path the flow goes where the run goes, not back."""
        course, field = looked[1].of(Course), looked[1].of(Field)
        path = np.stack([course.columns[name].values for name in field.axes], axis=-1)
        size = np.ptp(path, axis=0)
        steps, flow = np.diff(path, axis=0) / size, field.flow / size
        nearest = (((path[:-1, None] - field.points) / size) ** 2).sum(axis=-1)
        nearest[np.abs(steps).max(axis=1) == 0.0] = np.inf  # a run that has come to rest
        nearest[:, np.abs(flow).max(axis=1) == 0.0] = np.inf  # where it rests
        left = (((path[:-1] - path[-1]) / size) ** 2).sum(axis=-1)
        nearest[nearest > left[:, None] / 4.0] = np.inf  # arrows may point back to the end of it
        records, arrows = np.unravel_index(np.argsort(nearest, axis=None)[:20], nearest.shape)
        assert np.isfinite(nearest[records, arrows]).all()
        lengths = np.linalg.norm(steps[records], axis=1) * np.linalg.norm(flow[arrows], axis=1)
        cosines = (steps[records] * flow[arrows]).sum(axis=1) / lengths
        assert cosines.min() > 0.9

    def test_attention_is_a_distribution(self, looked):
        course = looked[1].of(Course)
        assert len(course.attention) == len(course.moments)
        for one in course.attention:
            assert one.weights.shape == (len(one.queries), len(one.keys))
            assert (one.weights >= 0.0).all()
            within(one.weights.sum(axis=1), 1.0, 1e-12)


class TestAttention:
    def test_positional_is_the_softmax_of_A(self):
        task, channel = task_of("positional"), Channel()
        look(task, channel)
        course, (D, C) = channel.of(Course), (16, 4)
        sets = np.arange(D) // C
        same = sets[:, None] == sets
        for record, attention in zip(course.moments, course.attention):
            gamma, rho = (course.columns[name].values[record] for name in ("gamma", "rho"))
            A = np.where(same, gamma, rho)
            np.fill_diagonal(A, 1.0)
            within(attention.weights, softmax(A, axis=1), 1e-13)

    def test_part_of_a_large_one_is_told(self):
        positional = theories.load("positional")
        case = positional.build({"D": 1024, "tolerance": 1e-4, "rtol": 1e-4, "horizon": 10})
        run = positional.solve(case, records=3)
        attention = positional.attention(case, run, -1)
        assert attention.weights.shape == (64, 64)
        assert "rows sum to one over all 1024 patches" in attention.caption
        rest = 1.0 - attention.weights.sum(axis=1)
        within(rest, (1024 - 64) * attention.weights[0, -1], 1e-12)

    def test_masked_own_area_is_what_the_population_observes(self):
        """Mean counts are what the mean-field expectation of many patches is made of."""
        task, channel = task_of("masked", P=10**12), Channel()
        look(task, channel)
        course = channel.of(Course)
        for record, attention in zip(course.moments, course.attention):
            own = attention.weights[0, attention.keys.index("own, unmasked")]
            within(own, course.columns["a_n"].values[record], 1e-6)

    def test_shallow_mean_over_queries_is_what_the_population_observes(self):
        """With three patterns there is one irrelevant pattern: no spreading is left to choose."""
        task, channel = task_of("shallow"), Channel()
        look(task, channel)
        course, problem = channel.of(Course), task.case.problem
        counts = np.array([problem.relevant, problem.confusion, problem.irrelevant])
        for record, attention in zip(course.moments, course.attention):
            mean = counts @ attention.weights[:, 0] / problem.L
            close(mean, course.columns["attention"].values[record], 1e-12)

    def test_none_is_told_as_such(self):
        task, channel = task_of("toy"), Channel()
        look(task, channel)
        assert channel.of(Course).attention == ()


def test_field_of_the_toy_is_its_gradient():
    """Both order parameters are axes: nothing is taken from the run."""
    channel = Channel()
    look(task_of("toy", s=1.5), channel)
    field = channel.of(Field)
    a, b = field.points.T
    expected = -np.stack([(a * b - 1.5) * b, (a * b - 1.5) * a], axis=-1)
    assert field.axes == ("a", "b")
    within(field.flow, expected, 1e-13)
    assert np.abs(expected).max() > 0.1


def test_axes_can_be_chosen():
    task = task_of("positional")
    for axes, expected in ((("rho", "alpha"), ("rho", "alpha")), (("rho", "rho"), ("gamma", "rho")),
                           (("x", "y"), ("gamma", "rho"))):  # fmt: skip
        channel = Channel()
        look(Task(task.theory, task.case, axes), channel)
        assert channel.of(Field).axes == channel.of(Course).axes == expected


def test_a_violation_stands_beside_its_error():
    """Where features are dense gamma falls behind rho: the table says by how much, and when."""
    channel = Channel()
    look(task_of("positional", qD=12, horizon=100, rtol=1e-8), channel)
    course = channel.of(Course)
    gamma, rho = (course.columns[name].values for name in ("gamma", "rho"))
    (found,) = (one for one in course.invariants if one.name == "gamma >= rho")
    assert found.worst == (rho - gamma).max() > 100.0 * found.error > 0.0
    assert found.words.startswith(f"gamma >= rho is violated by {found.worst:.6g} (at time ")
    (simplex,) = (one for one in course.invariants if one.name == "simplex")
    assert (simplex.worst, simplex.words) == (0.0, "")


def test_another_portrait_needs_no_other_run(monkeypatch):
    task, made = task_of("toy", s=1.25), []
    population = type(task.theory).population
    monkeypatch.setattr(type(task.theory), "population",
                        lambda self, case: made.append(1) or population(self, case))  # fmt: skip
    look(task, Channel())
    look(Task(task.theory, task.case, ("b", "a")), Channel())
    assert made == [1]
    look(task_of("toy", s=1.125), Channel())
    assert made == [1, 1]


@pytest.mark.parametrize("after", [module.Progress, Course, Outcomes])
def test_a_cancelled_run_stops(after):
    module._last.clear()
    channel = Channel(until=after)
    with pytest.raises(Cancelled):
        look(task_of("masked"), channel)
    assert isinstance(channel.reports[-1], after)


def test_a_run_without_a_state_is_refused():
    """Tolerances below rounding are refused by the risk itself, at the start."""
    with pytest.raises(ToleranceError):
        look(task_of("positional", tolerance=1e-40), Channel())


def test_a_window_of_a_point_is_no_point():
    assert module.window(np.array([2.0, 2.0])) == (1.8, 2.2)
    assert module.window(np.array([0.0])) == (-1.0, 1.0)
    low, high = module.window(np.array([0.0, 10.0]))
    assert (low, high) == (-1.5, 11.5)
