"""Results at a state depend on that state alone, not on earlier evaluations.

Reference: a population without earlier evaluations.
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
METHODS = ("gradient", "jacobian", "certified_loss", "evaluate")
_EXPECTED: dict = {}


def bits(result):
    """Return a result as bytes, which are equal only if every bit is."""
    if isinstance(result, np.ndarray):
        return result.tobytes()
    if isinstance(result, tuple):
        return np.array(result, float).tobytes()
    return tuple(
        repr(entry) if isinstance(entry, dict) else np.asarray(entry).tobytes()
        for entry in (getattr(result, field.name) for field in dataclasses.fields(result))
    )


def fresh(system, index, method):
    """Return the result of an unused population at a state, from a cache."""
    key = system, index, method
    if key not in _EXPECTED:
        make, states = SYSTEMS[system]
        _EXPECTED[key] = bits(getattr(make(), method)(states[index]))
    return _EXPECTED[key]


@pytest.mark.parametrize("system", SYSTEMS)
@settings(max_examples=6)
@given(data=st.data())
def test_used_and_fresh_populations_agree_bit_for_bit(system, data):
    make, states = SYSTEMS[system]
    used = make()
    calls = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(states) - 1), st.sampled_from(METHODS)),
            min_size=2,
            max_size=8,
        )
    )
    for index, method in calls:
        assert bits(getattr(used, method)(states[index])) == fresh(system, index, method)


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(x, marks=pytest.mark.slow if x == "enumeration, relative" else ())
        for x in SYSTEMS
    ],
)
def test_runs_of_used_and_fresh_populations_agree_bit_for_bit(system):
    make, states = SYSTEMS[system]
    used = make()
    for state in reversed(states):
        used.evaluate(state)
    gradient_flow(used, horizon=3.0, initial=states[2], records=5)
    gradient_descent(used, learning_rate=0.01, steps=7, initial=states[3])
    for population in (used, make()):
        flow = gradient_flow(population, horizon=30.0, records=20)
        descent = gradient_descent(population, learning_rate=0.02, steps=200, records=20)
        runs = [
            (run.states.tobytes(), run.loss.tobytes(), run.bound.tobytes())
            for run in (flow, descent)
        ]
        if population is used:
            expected = runs
    assert runs == expected


@settings(max_examples=30)
@given(
    st.tuples(st.floats(0.01, 0.6), st.floats(-1.0, 3.0), st.floats(-1.0, 1.0)),
    st.sampled_from([1e-3, 1e-5, 1e-7]),
)
def test_compiled_gradient_accepts_only_the_table_of_the_state(state, tolerance):
    """The kernel rejects the tables of the two adjacent levels."""
    state = State(*state)
    expectation = Population(PROBLEM, "enumeration", tolerance).expectation
    table, out = expectation.table(state), np.empty(3)
    assert gradient_within(table.gradient_data, np.array(state), out)
    assert State(*out.tolist()) == expectation.gradient(state)
    if 0 < table.level < expectation._large:
        for level in (table.level - 1, table.level + 1):
            assert not gradient_within(
                expectation._table(level).gradient_data, np.array(state), out
            )


@pytest.mark.parametrize(
    "problem",
    [PROBLEM, Problem(D=64, C=2, q=4 / 64, p=5), Problem(D=10**6, C=4, q=1e-6), Problem(6, 2, 1.0)],
)
def test_truncation_bounds_decrease_from_level_to_level(problem):
    """They decrease by more than rounding, so that the search may start at any level."""
    levels = Levels(problem, 2.0**24)
    for state in STATES[:7]:
        lost = [levels.bounds(level, state) for level in range(min(levels.top, 24) + 1)]
        for coarse, fine in pairwise(lost):
            assert np.all((fine < coarse * (1.0 - 1e-9)) | (coarse < 1e-200) | (fine == coarse))
        target = np.full(4, lost[len(lost) // 2].max())
        sufficient = [np.all(bound <= target) for bound in lost]
        assert levels.lowest(state, target) == sufficient.index(True)


@pytest.mark.parametrize("relative", [False, True])
def test_table_and_level_have_equal_truncation_bounds(relative):
    expectation = Population(PROBLEM, "enumeration", 1e-5, relative=relative).expectation
    table = expectation.table(STATES[2])
    share = bounds_at(table.gradient_data.neglected, table.gradient_data.constants, *STATES[2])
    np.testing.assert_array_equal(share, expectation._levels.bounds(table.level, STATES[2]))
    whole = expectation._levels.groups
    included, dropped = table.states.weight.sum(), table.gradient_data.neglected.mass.sum()
    assert abs(included + dropped - whole.mass.sum()) < 1e-12


def test_constructors_make_no_evaluation(monkeypatch):
    """They compute no table, gradient or integral."""

    def evaluated(*arguments):
        raise AssertionError("evaluated")

    def predict_only(*arguments):
        return at_once(*arguments) if arguments[-1] else evaluated()

    population = "dynamics.positional.population"
    monkeypatch.setattr(f"{population}.tables.gradient_within", evaluated)
    monkeypatch.setattr(f"{population}.tables.relative_gradient_within", evaluated)
    monkeypatch.setattr(f"{population}.levels.enumerate_states", evaluated)
    monkeypatch.setattr(f"{population}.fourier.assemble.at_once", predict_only)
    for method in ("enumeration", "fourier", "auto"):
        for relative in (False, True):
            used = Population(PROBLEM, method, 1e-5, relative=relative)
    with pytest.raises(AssertionError, match="evaluated"):
        used.gradient(STATES[1])


def test_predicted_bound_does_not_exclude_a_reachable_start():
    """The gradient of 34 comes from images with features, so that a coarse table is enough."""
    problem = Problem(D=32, C=2, q=0.125, nu=0.1, beta=2.0)
    population = Population(problem, "enumeration", 1e-8, memory_budget=2.0**21)
    reference = Population(problem, "enumeration", 1e-10)
    gap = np.subtract(*(p.gradient(problem.initial_state) for p in (population, reference)))
    assert np.abs(gap).max() <= 1e-8 * 35.0
