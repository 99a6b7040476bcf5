"""The model with a trained diagonal.

References: `dynamics.positional.oracle.descent`, which does not use the reduction, and the
population with the frozen diagonal.
"""

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings

from dynamics import (
    ParameterError,
    Population,
    Problem,
    State,
    attention,
    gradient_descent,
    gradient_flow,
)
from dynamics.positional.diagonal import DiagonalPopulation, DiagonalProblem, DiagonalState
from dynamics.positional.oracle.descent import FullPopulation, embed
from dynamics.positional.oracle.descent import gradient_descent as full_descent
from simulations.strategies import problems, reals, states
from tests.closeness import close, within
from tests.dynamics.positional.oracle_rounding import oracle_rounding

SMALL = Problem(D=8, C=2, q=0.3, temperature=1.3, output_scale=5.0, beta=0.7)
#: Three shapes: tau and kappa away from their defaults, C = 3, and p = 5.
ORACLE = (SMALL, Problem(D=9, C=3, q=0.3), Problem(D=8, C=2, q=0.3, p=5))
ROUNDING = 1e-12


def unit(problem, seed=0):
    w = np.random.default_rng(seed).normal(size=problem.dimension)
    return w / np.linalg.norm(w)


class TestFullMatrix:
    @settings(max_examples=20)
    @given(problems(max_D=8), states(max_alpha=0.4, max_logit=2.0), reals(-2.0, 2.0))
    @example(
        Problem(D=4, C=2, q=1.0, p=7, nu=1.0, beta=0.0, output_scale=14.0),
        State(0.25, 0.0, 2.0),
        0.0,
    )
    @example(Problem(D=6, C=2, q=0.5, nu=1.0, beta=0.0), State(-0.25, 1.0, 1.175494351e-38), 0.0)
    def test_values_agree_with_the_full_matrix(self, problem, state, beta):
        population = DiagonalPopulation(Population(problem, tolerance=1e-9))
        here = DiagonalState(*state, beta)
        w, partition = unit(problem), np.random.default_rng(1).permutation(problem.D)
        partition = partition.reshape(problem.L, problem.C)
        full = FullPopulation(problem, w, partition, train_diagonal=True)
        value = full.evaluate(*embed(problem, state, w, partition, diagonal=beta))
        entries = population.gradient(here)
        result, lost = population.evaluate(here), oracle_rounding(problem, state.alpha)
        # a row of dL/dA sums to 0: its diagonal has the errors of all others
        within(np.diagonal(value.dA), entries.beta, problem.D * (result.bound + lost.entry))
        inside = value.dA[partition[0, 0], partition[0, 1]]
        across = value.dA[partition[0, 0], partition[1, 0]]
        within(inside, entries.gamma, result.bound + lost.entry)
        within(across, entries.rho, result.bound + lost.entry)
        within(value.dv @ w, entries.alpha, result.bound + lost.alpha)
        within(result.loss, value.loss, result.bound + lost.loss)
        # F within rounding of 0 counts as a tie in the oracle, but its sign is exact here
        assert result.test_error <= value.test_error + 1e-9
        logits = state.gamma - state.rho, beta - state.gamma, beta - state.rho
        if min(map(abs, (state.alpha, *logits))) > 0.1:
            within(result.test_error, value.test_error, 1e-9)

    @pytest.mark.parametrize(
        "problem",
        [ORACLE[0], *(pytest.param(x, marks=pytest.mark.slow) for x in ORACLE[1:])],
        ids=str,
    )
    def test_descent_agrees_with_the_full_matrix_over_300_steps(self, problem):
        population = DiagonalPopulation(Population(problem, tolerance=1e-12))
        start = population.problem.initial_state
        rate = 0.2 * population.largest_stable_learning_rate(start)
        w = unit(problem)
        partition = np.random.default_rng(2).permutation(problem.D).reshape(problem.L, problem.C)
        A, v = embed(problem, problem.initial_state, w, partition)
        options = {"learning_rate": rate, "steps": 300}
        full = full_descent(problem, A, v, w, partition=partition, train_diagonal=True, **options)
        reduced = gradient_descent(population, record="linear", records=301, **options)
        four = np.column_stack([full.states(), full.diagonal()])
        assert np.abs(reduced.states - four).max() <= ROUNDING
        assert np.ptp(reduced.beta) > 1e-4
        assert full.leakage() <= ROUNDING
        assert "diagonal of A fixed" not in full.violations()
        frozen = gradient_descent(population.population, record="linear", records=301, **options)
        assert np.abs(frozen.states - four[:, :3]).max() > 1e-6

    def test_diagonal_is_constant_if_not_trained(self):
        w = unit(SMALL)
        A, v = embed(SMALL, SMALL.initial_state, w)
        full = full_descent(SMALL, A, v, w, learning_rate=0.01, steps=3)
        assert full.violations()["diagonal of A fixed"] == 0.0
        assert np.ptp(full.diagonal()) == 0.0


class TestShift:
    def test_gradient_at_the_frozen_diagonal_equals_the_population(self):
        population = Population(SMALL, tolerance=1e-12)
        state, four = SMALL.initial_state, DiagonalPopulation(population)
        entries = four.gradient(DiagonalState(*state, SMALL.beta))
        assert entries[:3] == population.gradient(state)

    def test_constant_added_to_the_scores_has_no_effect(self):
        four = DiagonalPopulation(Population(SMALL, tolerance=1e-12))
        here = DiagonalState(0.2, 0.5, -0.25, 1.0)
        shifted = DiagonalState(0.2, 0.5 + 2.0, -0.25 + 2.0, 1.0 + 2.0)
        close(four.gradient(shifted), four.gradient(here), rel=1e-12)
        close(four.evaluate(shifted).loss, four.evaluate(here).loss, rel=1e-14)

    def test_values_equal_those_of_a_problem_with_this_diagonal(self):
        here = DiagonalState(0.2, 0.5, -0.25, 1.6)
        other = Population(SMALL.replace(beta=1.6), tolerance=1e-12).evaluate(here[:3])
        value = DiagonalPopulation(Population(SMALL, tolerance=1e-12)).evaluate(here)
        close(value.loss, other.loss, rel=1e-12)
        close(value.test_error, other.test_error, rel=1e-12)


class TestTrajectory:
    def test_attributes_of_a_trajectory(self):
        population = DiagonalPopulation(Population(SMALL, tolerance=1e-10))
        run = gradient_flow(population, horizon=1e4, records=50)
        assert isinstance(run.problem, DiagonalProblem)
        assert run.final == (run.alpha[-1], run.gamma[-1], run.rho[-1], run.beta[-1])
        assert np.ptp(run.row_sum) < 1e-12 < np.ptp(run.beta)
        weights = attention(SMALL.replace(beta=float(run.beta[-1])), run.final)
        close(run.attention[-1], weights, rel=1e-12)
        errors = [population.evaluate(population.state(row)).test_error for row in run.states]
        np.testing.assert_array_equal(run.test_error, errors)
        back = pickle.loads(pickle.dumps(run))
        assert back.final == run.final
        np.testing.assert_array_equal(back.to_dataset()["beta"], run.beta)

    def test_drifting_row_sum_is_a_violation(self):
        class Leaking(DiagonalPopulation):
            def gradient(self, state):
                entries = super().gradient(state)
                return entries._replace(beta=1.001 * entries.beta)

        run = gradient_flow(Leaking(Population(SMALL, tolerance=1e-10)), horizon=1e3)
        assert run.violations()["row sum of A"] > 1e-7

    def test_patch_association_uses_the_current_diagonal(self):
        """The patch association holds although rho exceeds the initial diagonal."""
        problem = Problem(D=8, C=2, q=0.3, beta=-1.0)
        population = DiagonalPopulation(Population(problem, tolerance=1e-10))
        start = DiagonalState(0.1, 1.0, -0.5, 1.0)
        run = gradient_flow(population, horizon=1.0, initial=start)
        assert run.violations()["patch association"] == 0.0
        assert (run.rho > problem.beta).all()

    def test_other_types_than_population_raise(self):
        with pytest.raises(ParameterError, match="must be a Population"):
            DiagonalPopulation(SMALL)
