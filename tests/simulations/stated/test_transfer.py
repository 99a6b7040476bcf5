"""Chains of many states: transfer matrix, and means over a sample of sequences."""

from fractions import Fraction

import numpy as np
import pytest

import patchdyn
from dynamics import ParameterError, gradient_flow
from dynamics.theory.data import relative_errors
from dynamics.theory.kernel import mean, mean_function
from dynamics.theory.sequences import States, Steps
from simulations.falsify.trial import Conjecture, Result, attempt
from simulations.stated.chains import ChainRisk
from simulations.stated.check import few_sequences
from simulations.stated.law import Balls, law
from simulations.stated.runs import risk
from simulations.stated.system import UserTheorySystem
from symbolic.theory import Chain, Ordered, loop_tables
from symbolic.theory.source import source
from symbolic.theory.transfer import transferred
from tests.closeness import close, within
from tests.simulations.stated.test_export import jax
from tests.simulations.stated.test_sequences import derived, example, theory_of

__all__ = ["jax", "theory_of"]

VALUES = {"p": 0.2, "q": 0.3, "sign": -1}
STATE = [0.7, -0.4, 0.3, 0.2]


def chain(T):
    return example("markov_chain", ("T = 8", f"T = {T}"))


@pytest.fixture
def transfer(monkeypatch):
    """Use the transfer matrix for chains of any length."""
    monkeypatch.setattr(loop_tables, "MOST_STATES", 0)
    loop_tables.layout.cache_clear()
    yield
    loop_tables.layout.cache_clear()


@pytest.mark.parametrize("T", [2, 3, 6])
@pytest.mark.parametrize("p", [0.2, 0.97])
def test_the_transfer_matrix_equals_the_enumeration(theory_of, monkeypatch, T, p):
    loss, gradient = derived(theory_of(chain(T)), VALUES | {"p": p}, STATE)
    monkeypatch.setattr(loop_tables, "MOST_STATES", 0)
    theory = theory_of(chain(T))
    assert loop_tables.layout(theory).is_transferred
    other, slopes = derived(theory, VALUES | {"p": p}, STATE)
    close(other, loss, rel=1e-13)
    within(slopes, gradient, absolute=1e-13 * np.abs(gradient).max())


def test_a_constant_is_counted_once(theory_of, transfer):
    changes = [("T = 8", "T = 3"), ('.sum("t") / (T - 1)', '.sum("t") / (T - 1) + w**2')]
    theory = theory_of(example("markov_chain", *changes))
    assert loop_tables.layout(theory).is_transferred
    loss, gradient = derived(theory, VALUES, STATE)
    plain, slopes = derived(theory_of(chain(3)), VALUES, STATE)
    close(loss, plain + 0.16, rel=1e-13)
    within(gradient - slopes, [0.0, -0.8, 0.0, 0.0], absolute=1e-13)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n == t + 1", "n == t + 2"),
        ("n == t + 1", "n == t - 1"),
        ("int(s <= t), t + 1", "int(s <= t), s + 1"),
        ('x["t"] + a * mean', 'x["t"] + a * (weight * x["s"]).tanh().sum("s")'),
        ('(weight * x["s"])', '(weight * x["s"] * x["s"])'),
        (
            '(weight * x["s"]).sum("s")',
            '(weight * (1 - weight).softmax(over="s") * x["s"]).sum("s")',
        ),
    ],
)
def test_other_losses_have_no_transfer_matrix(theory_of, old, new):
    theory = theory_of(example("markov_chain", (old, new)))
    assert transferred(theory.mean.loss, theory.data[0]) is None


def test_a_chain_may_be_too_long_for_a_transfer_matrix():
    for T, is_possible in ((999, True), (1000, False)):
        position = Ordered("position", T)
        x = Chain("x", position, 0.2, 0.3)
        assert (transferred(x["t"].sum("t"), x) is not None) == is_possible


def test_weights_of_steps_are_those_of_the_chain():
    states, steps = (cls(5, Fraction(0.2), Fraction(0.7)) for cls in (States, Steps))
    rows = {}
    for row, _, weight in states.orbits():
        for t in range(4):
            key = t, row[t], row[t + 1], sum(row[: t + 1])
            rows[key] = rows.get(key, 0) + weight
    own = {row: Fraction(*weight) for row, _, weight in steps.orbits()}
    assert {row: weight for row, weight in own.items() if row[0] < 4} == rows
    assert len(own) == steps.count


@pytest.mark.slow
def test_two_hundred_states(theory_of):
    """T = 200, against a formula of its own for the risk."""
    theory = theory_of(chain(200))
    population = risk(theory, **VALUES)
    assert population.reason.startswith("transfer matrix: 80400 pairs")
    state = np.array([0.7, 0.4, 0.3, 0.2])
    value, other = population.evaluate(state), ChainRisk(0.2, 0.3, 200)
    close(value.loss, other.loss(state, -1), rel=1e-12)
    within(value.gradient, other.gradient(state, -1), absolute=1e-12)
    assert value.bound < 1e-10
    with pytest.raises(ParameterError, match="is not allowed here: it is a sum over positions"):
        population.gradient_covariance(state)


def test_errors_of_steps_are_known(theory_of, transfer):
    theory = theory_of(chain(4))
    values = theory.checked(VALUES)
    known, balls = law(theory, values), law(theory, values, Balls(values))
    assert 0.0 < relative_errors(known, balls)[0] <= 2.0**-53
    for x, ball in zip(known.orbits().weight, balls.orbits().weight):
        close(x, float(ball.mid()), rel=2.0**-52)


def test_many_states_are_checked_on_a_few_sequences(theory_of):
    check = patchdyn.load_theory(theory_of(chain(30)).location.file).check()
    assert check.agrees
    assert (check.configurations, check.data_orbits) == (4, 120)


def test_the_check_on_a_few_sequences_can_fail(theory_of):
    """The full model differs where the derived program has another relation."""
    theory = theory_of(example("statistical_induction", ("T = 6", "T = 12")))
    values, full, data = few_sequences(theory)
    assert len(data.weight) == 4
    tensors = full.embed(dict.fromkeys(theory.order_parameters, 0.3))
    loss, _ = full.dense.evaluate(tensors)
    function, state = mean_function(source(theory), "x"), [0.3] * len(theory.orders)
    close(mean(function, data, state, list(values.values()))[0], loss, rel=1e-13)
    data.arrays[0][1][0] += 0.1
    assert abs(mean(function, data, state, list(values.values()))[0] - loss) > 1e-6


@pytest.mark.parametrize(
    "name", ["python", pytest.param("jax", marks=[pytest.mark.slow, pytest.mark.traced])]
)
def test_exports_have_the_transfer_matrix(theory_of, transfer, name, request):
    if name == "jax":
        request.getfixturevalue("jax")
    theory, module = theory_of(chain(4)), {}
    exec(compile(theory.export(name), "<exported>", "exec"), module)
    loss, gradient = derived(theory, VALUES, STATE)
    close(float(module["loss"](STATE, **VALUES)), loss, rel=1e-13)
    within(np.asarray(module["gradient"](STATE, **VALUES)), gradient, 1e-14)


SAMPLED = [("bigram", {"S": 3, "stay": 0.8}), ("statistical_induction", {"S": 3}),
           ("causal_structure", {"S": 3, "eps": 0.05}), ("markov_chain", VALUES)]  # fmt: skip


@pytest.mark.parametrize(("name", "values"), SAMPLED)
def test_a_sample_has_the_law_of_the_sequences(theory_of, name, values):
    """Probabilities of data orbits, with four standard errors of a seeded sample."""
    theory = theory_of(example(name, *([("T = 6", "T = 3")] if "statistical" in name else [])))
    known = law(theory, theory.checked(values))
    number, exact = 4000, known.orbits()
    rows = dict(zip(map(tuple, exact.first[0]), exact.weight))
    sample = dict.fromkeys(rows, 0)
    for row in map(tuple, known.sampled(number).first[0]):
        sample[row] += 1
    for row, weight in rows.items():
        error = np.sqrt(weight * (1.0 - weight) / number)
        assert abs(sample[row] / number - weight) <= 4.5 * error + 1.0 / number, row


TOO_MANY = [("T = 6", "T = 12"), ('"S": 3, "horizon": 1e3', '"S": 13, "horizon": 0.1')]


@pytest.mark.slow
def test_a_mean_over_a_sample_is_an_estimate(theory_of, monkeypatch):
    theory = theory_of(example("statistical_induction", *TOO_MANY))
    with pytest.raises(ParameterError, match="or a number of samples for an estimate"):
        risk(theory, S=13)
    population = risk(theory, S=13, samples=500)
    value = population.evaluate(population.problem.initial_state)
    assert population.reason == "an estimate without a bound: the mean over 500 random sequences"
    assert value.bound == np.inf
    assert np.isinf(value.gradient_bound).all()
    error, slopes = population.standard_error(population.problem.initial_state)
    assert 0.0 < error < 1e-2
    other = risk(theory, S=13, samples=5000)
    both = other.standard_error(population.problem.initial_state)
    close(both[0], error / np.sqrt(10.0), rel=0.3)
    difference = other.evaluate(population.problem.initial_state).gradient - value.gradient
    assert np.all(np.abs(difference) <= 5.0 * np.hypot(slopes, both[1]))
    run = gradient_flow(population, horizon=0.1)
    assert run.time[-1] == 0.1
    with pytest.raises(ParameterError, match="uses a sample of data"):
        population.gradient_covariance(run.states[-1])


@pytest.mark.slow
def test_an_estimate_decides_no_conjecture(theory_of, monkeypatch):
    """A violation by far is not counted if the loss is an estimate."""
    monkeypatch.setattr("simulations.stated.runs.SAMPLES", 200)
    theory = theory_of(example("statistical_induction", *TOO_MANY))
    system = UserTheorySystem(theory.location.file)
    for S, result in ((13, Result.INCOMPLETE), (2, Result.VIOLATED)):
        case = system.build({"S": S})
        assert attempt(Conjecture("loss <= 0.1", system), case).result is result
        outcomes = system.measure(case)
        assert (outcomes["standard_error"] > 0.0) == (S == 13)
