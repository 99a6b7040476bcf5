"""Strategies for problems and states."""

import pytest
from hypothesis import find, given, settings

from dynamics import Population, State
from simulations.strategies import invalid_problem_arguments, problems, states


@given(problems(max_D=12, max_C=3))
def test_problems_respect_their_limits(problem):
    assert problem.D <= 12
    assert problem.C <= 3
    assert problem.D % problem.C == 0
    assert problem.L >= 2


@given(problems(D=12, C=3, p=3, nu=0.5))
def test_fields_can_be_fixed(problem):
    assert (problem.D, problem.C, problem.p, problem.nu) == (12, 3, 3, 0.5)


@given(states(max_alpha=0.5, max_logit=1.0, positive=True))
def test_states_respect_their_limits(state):
    assert isinstance(state, State)
    assert 0.0 < state.alpha <= 0.5
    assert max(abs(state.gamma), abs(state.rho)) <= 1.0


@settings(max_examples=25)
@given(problems())
def test_enumeration_of_a_sampled_problem_is_small(problem):
    table = Population(problem, tolerance=1e-8).expectation.table(problem.initial_state)
    assert table.n_states <= 1000


@pytest.mark.parametrize("name", ["D", "C", "q", "p", "nu", "beta", "temperature", "sigma"])
def test_invalid_arguments_cover_every_field(name):
    assert find(invalid_problem_arguments(), lambda invalid: invalid[0] == name)


@pytest.mark.slow
def test_examples_shrink_to_small_problems():
    problem = find(problems(), lambda problem: True)
    assert (problem.D, problem.C, problem.p) == (4, 2, 3)
    assert problem.output_scale is None
    assert find(states(), lambda state: True) == State(0.0, 0.0, 0.0)
