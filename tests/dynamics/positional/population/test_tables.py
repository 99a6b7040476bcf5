"""Tables are values: what is evaluated at a state depends on that state alone.

Trusts: a population that has evaluated nothing yet.
"""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Population, Problem, State, gradient_descent, gradient_flow
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.positional.population.fourier.assemble import at_once
from dynamics.positional.population.levels import Levels
from dynamics.positional.population.tables import bounds_at, gradient_within

PROBLEM = Problem(D=24, C=3, q=0.08)
STATES = (
    State(0.05, 0.0, 0.0),
    State(0.1, 0.0, 0.0),
    State(0.25, 0.3, -0.02),
    State(0.2, 1.5, -0.1),
    State(0.04, 3.4, -0.2),
    State(2.0, 0.0, 0.0),
    State(-0.3, -1.0, 1.0),
    State(0.0, 0.4, 0.1),
    State(0.3, 1.0, 1.0),
)
MASKED = MaskedProblem(P=8, partitions=(((0, 1, 2, 3), (4, 5), (6, 7)),), query=4)
MASKED_STATES = tuple(0.7 * np.random.default_rng(seed).standard_normal(7) for seed in range(4))

SYSTEMS = {
    "enumeration": (lambda: Population(PROBLEM, "enumeration", 1e-7), STATES),
    "enumeration, coarse": (lambda: Population(PROBLEM, "enumeration", 1e-3), STATES),
    "enumeration, relative": (
        lambda: Population(PROBLEM, "enumeration", 1e-5, relative=True),
        STATES[:5],
    ),
    "fourier": (lambda: Population(PROBLEM, "fourier", 1e-7), STATES[:5]),
    "sampling": (lambda: Population(PROBLEM, "sampling", samples=2000, seed=3), STATES),
    "masked": (lambda: MaskedPopulation(MASKED), MASKED_STATES),
    "masked, sampling": (lambda: MaskedPopulation(MASKED, "sampling", samples=200), MASKED_STATES),
}
VISITS = ("gradient", "jacobian", "certified_loss", "evaluate")
_EXPECTED: dict = {}


def bits(found):
    """What was found, as bytes: equal only where every digit is."""
    if isinstance(found, np.ndarray):
        return found.tobytes()
    if isinstance(found, tuple):
        return np.array(found, float).tobytes()
    return tuple(
        repr(entry) if isinstance(entry, dict) else np.asarray(entry).tobytes()
        for entry in vars_of(found)
    )


def vars_of(value):
    """The fields of a value that has no ``__dict__``."""
    return [getattr(value, field.name) for field in dataclasses.fields(value)]


def fresh(system, index, visit):
    """What a population that was never used finds, kept for the next example."""
    key = system, index, visit
    if key not in _EXPECTED:
        make, states = SYSTEMS[system]
        _EXPECTED[key] = bits(getattr(make(), visit)(states[index]))
    return _EXPECTED[key]


@pytest.mark.parametrize("system", SYSTEMS)
@settings(max_examples=6)
@given(data=st.data())
def test_a_used_population_finds_what_a_fresh_one_does(system, data):
    make, states = SYSTEMS[system]
    used = make()
    visits = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(states) - 1), st.sampled_from(VISITS)),
            min_size=2,
            max_size=8,
        )
    )
    for index, visit in visits:
        assert bits(getattr(used, visit)(states[index])) == fresh(system, index, visit)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_run_after_others_is_the_run_of_a_fresh_population(system):
    make, states = SYSTEMS[system]
    used = make()
    for state in reversed(states):
        used.evaluate(state)
    gradient_flow(used, horizon=3.0, initial=states[2], records=5)
    gradient_descent(used, learning_rate=0.01, steps=7, initial=states[3])
    for population in (used, make()):
        flow = gradient_flow(population, horizon=30.0, records=20)
        descent = gradient_descent(population, learning_rate=0.02, steps=200, records=20)
        found = [
            (run.states.tobytes(), run.loss.tobytes(), run.bound.tobytes())
            for run in (flow, descent)
        ]
        if population is used:
            expected = found
    assert found == expected


@settings(max_examples=30)
@given(
    st.tuples(st.floats(0.01, 0.6), st.floats(-1.0, 3.0), st.floats(-1.0, 1.0)),
    st.sampled_from([1e-3, 1e-5, 1e-7]),
)
def test_the_loop_knows_the_table_of_a_state(state, tolerance):
    """Its kernel accepts the table for a state, and neither neighbouring level."""
    state = State(*state)
    expectation = Population(PROBLEM, "enumeration", tolerance).expectation
    table, out = expectation.table(state), np.empty(3)
    assert gradient_within(table.plan, np.array(state), out)
    assert State(*out.tolist()) == expectation.gradient(state)
    if 0 < table.level < expectation._large:
        for level in (table.level - 1, table.level + 1):
            assert not gradient_within(expectation._table(level).plan, np.array(state), out)


@pytest.mark.parametrize(
    "problem",
    [PROBLEM, Problem(D=64, C=2, q=4 / 64, p=5), Problem(D=10**6, C=4, q=1e-6), Problem(6, 2, 1.0)],
)
def test_what_is_neglected_falls_from_level_to_level(problem):
    """By far more than rounding, until nothing is left: the search may begin anywhere."""
    levels = Levels(problem, 2.0**24)
    for state in STATES[:7]:
        lost = [levels.bounds(level, state) for level in range(min(levels.top, 24) + 1)]
        for coarse, fine in pairwise(lost):
            assert np.all((fine < coarse * (1.0 - 1e-9)) | (coarse < 1e-200) | (fine == coarse))
        target = np.full(4, lost[len(lost) // 2].max())
        every = [np.all(bound <= target) for bound in lost]
        assert levels.first(state, target) == every.index(True)


@pytest.mark.parametrize("relative", [False, True])
def test_a_table_neglects_what_its_level_states(relative):
    expectation = Population(PROBLEM, "enumeration", 1e-5, relative=relative).expectation
    table = expectation.table(STATES[2])
    share = bounds_at(table.plan.neglected, table.plan.constants, *STATES[2])
    np.testing.assert_array_equal(share, expectation._levels.bounds(table.level, STATES[2]))
    whole = expectation._levels.groups
    kept, left = table.states.weight.sum(), table.plan.neglected.mass.sum()
    assert abs(kept + left - whole.mass.sum()) < 1e-12


def test_no_constructor_evaluates(monkeypatch):
    """It refuses by predictions: a table, a gradient or an integral would be an evaluation."""

    def evaluated(*arguments):
        raise AssertionError("evaluated")

    def foreseen_only(*arguments):
        return at_once(*arguments) if arguments[-1] else evaluated()

    population = "dynamics.positional.population"
    monkeypatch.setattr(f"{population}.tables.gradient_within", evaluated)
    monkeypatch.setattr(f"{population}.tables.relative_gradient_within", evaluated)
    monkeypatch.setattr(f"{population}.levels.enumerate_states", evaluated)
    monkeypatch.setattr(f"{population}.fourier.assemble.at_once", foreseen_only)
    for method in ("enumeration", "fourier", "auto"):
        for relative in (False, True):
            used = Population(PROBLEM, method, 1e-5, relative=relative)
    with pytest.raises(AssertionError, match="evaluated"):
        used.gradient(STATES[1])


def test_a_prediction_refuses_no_start_that_can_be_had():
    """The gradient is 34 there, by images with features, so that a coarser table will do."""
    problem = Problem(D=32, C=2, q=0.125, nu=0.1, beta=2.0)
    population = Population(problem, "enumeration", 1e-8, memory_budget=2.0**21)
    usual = Population(problem, "enumeration", 1e-10)
    gap = np.subtract(*(one.gradient(problem.initial_state) for one in (population, usual)))
    assert np.abs(gap).max() <= 1e-8 * 35.0
