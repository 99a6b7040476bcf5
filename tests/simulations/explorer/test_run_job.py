"""Results of a run for the page, compared with independent computations."""

import numpy as np
import pytest
from scipy.special import softmax

from dynamics.core.errors import ToleranceError
from simulations import theories
from simulations.explorer import run_job as module
from simulations.explorer.run_job import FlowField, Observed, Outcomes, RunData, Task, compute_run
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
        if self.until is not None and any(
            isinstance(report, self.until) for report in self.reports
        ):
            raise Cancelled

    def report(self, content):
        self.check()
        self.reports.append(content)

    def first(self, cls):
        return next((report for report in self.reports if isinstance(report, cls)), None)


@pytest.fixture(scope="module", autouse=True)
def toy():
    with theories.registered("toy", "tests.toy"):
        yield


def task_of(name, **values):
    theory = theories.load(name)
    return Task(theory, theory.build({**QUICK[name], **values}))


@pytest.fixture(scope="module", params=QUICK)
def computed(request):
    """A task and its reports."""
    task, channel = task_of(request.param), Channel()
    assert compute_run(task, channel) > 0.0
    return task, channel


class TestEveryTheory:
    def test_order_of_the_reports(self, computed):
        reports = computed[1].reports
        types = [type(report) for report in reports if not isinstance(report, module.Progress)]
        assert types in ([RunData, Outcomes, FlowField], [RunData, Observed, Outcomes, FlowField])

    def test_columns_are_observables_and_order_parameters(self, computed):
        task, channel = computed
        run, extra = channel.first(RunData), channel.first(Observed)
        columns = run.columns | (extra.columns if extra else {})
        observables = {quantity.name for quantity in task.theory.observables} - {"time"}
        assert set(columns) == observables | set(run.order_parameters)
        for column in columns.values():
            assert column.values.shape == column.error.shape == run.time.shape
            assert (column.error >= 0.0).all()

    def test_outcomes_agree_with_the_run(self, computed):
        task, channel = computed
        outcomes = channel.first(Outcomes).values
        assert outcomes["status"] == channel.first(RunData).status == "completed"
        assert {quantity.name for quantity in task.theory.outcomes} <= set(outcomes)
        close(outcomes["loss"], channel.first(RunData).columns["loss"].values[-1], 1e-12)

    def test_arrows_follow_the_path(self, computed):
        """Near the path the flow has the direction of the run."""
        run, field = computed[1].first(RunData), computed[1].first(FlowField)
        path = np.stack([run.columns[name].values for name in field.axes], axis=-1)
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

    def test_attention_is_a_distribution(self, computed):
        run = computed[1].first(RunData)
        assert len(run.attention) == len(run.attention_records)
        for attention in run.attention:
            assert attention.weights.shape == (len(attention.queries), len(attention.keys))
            assert (attention.weights >= 0.0).all()
            within(attention.weights.sum(axis=1), 1.0, 1e-12)


class TestAttention:
    def test_positional_is_the_softmax_of_A(self):
        task, channel = task_of("positional"), Channel()
        compute_run(task, channel)
        run, (D, C) = channel.first(RunData), (16, 4)
        sets = np.arange(D) // C
        same = sets[:, None] == sets
        for record, attention in zip(run.attention_records, run.attention):
            gamma, rho = (run.columns[name].values[record] for name in ("gamma", "rho"))
            A = np.where(same, gamma, rho)
            np.fill_diagonal(A, 1.0)
            within(attention.weights, softmax(A, axis=1), 1e-13)

    def test_a_large_matrix_is_truncated(self):
        positional = theories.load("positional")
        case = positional.build({"D": 1024, "tolerance": 1e-4, "rtol": 1e-4, "horizon": 10})
        run = positional.solve(case, records=3)
        attention = positional.attention(case, run, -1)
        assert attention.weights.shape == (64, 64)
        assert "rows sum to one over all 1024 patches" in attention.caption
        rest = 1.0 - attention.weights.sum(axis=1)
        within(rest, (1024 - 64) * attention.weights[0, -1], 1e-12)

    def test_masked_own_area_agrees_with_the_population(self):
        """The mean-field expectation of many patches consists of mean counts."""
        task, channel = task_of("masked", P=10**12), Channel()
        compute_run(task, channel)
        run = channel.first(RunData)
        for record, attention in zip(run.attention_records, run.attention):
            own = attention.weights[0, attention.keys.index("own, unmasked")]
            within(own, run.columns["a_n"].values[record], 1e-6)

    def test_shallow_mean_over_queries_agrees_with_the_population(self):
        """With three patterns there is only one irrelevant pattern."""
        task, channel = task_of("shallow"), Channel()
        compute_run(task, channel)
        run, problem = channel.first(RunData), task.case.problem
        counts = np.array([problem.relevant, problem.confusion, problem.irrelevant])
        for record, attention in zip(run.attention_records, run.attention):
            mean = counts @ attention.weights[:, 0] / problem.L
            close(mean, run.columns["attention"].values[record], 1e-12)

    def test_a_theory_without_attention(self):
        task, channel = task_of("toy"), Channel()
        compute_run(task, channel)
        assert channel.first(RunData).attention == ()


def test_the_flow_field_of_the_toy_is_its_gradient():
    """Both order parameters are axes, so that the field does not depend on the run."""
    channel = Channel()
    compute_run(task_of("toy", s=1.5), channel)
    field = channel.first(FlowField)
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
        compute_run(Task(task.theory, task.case, axes), channel)
        assert channel.first(FlowField).axes == channel.first(RunData).axes == expected


def test_a_violation_exceeds_its_error():
    """With dense features gamma falls below rho."""
    channel = Channel()
    compute_run(task_of("positional", qD=12, horizon=100, rtol=1e-8), channel)
    run = channel.first(RunData)
    gamma, rho = (run.columns[name].values for name in ("gamma", "rho"))
    checks = {check.name: check for check in run.invariants}
    gap, simplex = checks["gamma >= rho"], checks["simplex"]
    assert gap.worst == (rho - gamma).max() > 100.0 * gap.error > 0.0
    assert gap.description.startswith(f"gamma >= rho is violated by {gap.worst:.6g} (at time ")
    assert (simplex.worst, simplex.description) == (0.0, "")


def test_another_portrait_reuses_the_run(monkeypatch):
    task, made = task_of("toy", s=1.25), []
    population = type(task.theory).population
    monkeypatch.setattr(type(task.theory), "population",
                        lambda self, case: made.append(1) or population(self, case))  # fmt: skip
    compute_run(task, Channel())
    compute_run(Task(task.theory, task.case, ("b", "a")), Channel())
    assert made == [1]
    compute_run(task_of("toy", s=1.125), Channel())
    assert made == [1, 1]


@pytest.mark.parametrize("after", [module.Progress, RunData, Outcomes])
def test_a_cancelled_run_stops(after):
    module._last.clear()
    channel = Channel(until=after)
    with pytest.raises(Cancelled):
        compute_run(task_of("masked"), channel)
    assert isinstance(channel.reports[-1], after)


def test_a_run_without_records_raises():
    """The risk rejects tolerances below rounding at the start."""
    with pytest.raises(ToleranceError):
        compute_run(task_of("positional", tolerance=1e-40), Channel())


def test_windows_have_margins():
    assert module.window(np.array([2.0, 2.0])) == (1.8, 2.2)
    assert module.window(np.array([0.0])) == (-1.0, 1.0)
    low, high = module.window(np.array([0.0, 10.0]))
    assert (low, high) == (-1.5, 11.5)
