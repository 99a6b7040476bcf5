"""Proofs: enclosures contain the numerical solutions, and conclusions follow only if they hold."""

import math

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import ParameterError, Population, Problem, State, gradient_descent, gradient_flow
from dynamics.positional.validated.field import Field
from dynamics.positional.validated.images import images
from dynamics.positional.validated.outcomes import box_around, floor, outcomes
from dynamics.positional.validated.tail import Tail
from simulations.validated import prove
from tests.closeness import within
from tests.dynamics.positional.ball_reference import reference

SMALL = Problem(D=16, C=2, q=4 / 16)
#: gamma falls below rho at once, as the initial alpha is above the quasi-steady one.
REFUTED = Problem(D=16, C=2, q=8 / 16, nu=0.001, beta=0.5)


def inside(state, enclosure):
    return all(low <= x <= high for x, (low, high) in zip(state, enclosure))


class TestFlow:
    @pytest.fixture(scope="class")
    @staticmethod
    def proof():
        return prove(SMALL, horizon=300)

    def test_is_proved(self, proof):
        assert proof.proved
        assert proof.time == 300.0
        assert proof.association
        assert proof.gap_positive_from == 0.0
        assert proof.gap_negative == ()
        assert "gamma > rho from time 0" in proof.sentence

    def test_numerical_flow_ends_inside(self, proof):
        flow = gradient_flow(Population(SMALL, tolerance=1e-12), horizon=300.0, rtol=1e-11)
        assert inside(flow.final, proof.enclosure)
        assert all(high - low < 1e-3 for low, high in proof.enclosure)

    def test_loss_and_test_error(self, proof):
        value = Population(SMALL, tolerance=1e-11).evaluate(
            State(*(0.5 * (low + high) for low, high in proof.enclosure))
        )
        for (low, high), number in ((proof.loss, value.loss), (proof.test_error, value.test_error)):
            assert low <= number <= high
            assert high - low < 1e-2

    def test_dataset(self, proof):
        data = proof.to_dataset()
        assert np.all(np.diff(data.time) > 0.0)
        assert data.radius.shape == (3, data.time.size)
        assert np.all(data.gap.sel(end="low") <= data.gap.sel(end="high"))

    @pytest.mark.parametrize("time", [0.01, 1.0, 37.0, 150.0, 299.0])
    def test_numerical_flow_is_inside_at_earlier_times(self, proof, time):
        flow = gradient_flow(Population(SMALL, tolerance=1e-12), horizon=time, rtol=1e-11)
        error = 1e-9  # of the numerical flow
        for x, (low, high) in zip(flow.final, proof.at(time)):
            assert low - error <= x <= high + error
            assert high - low < 2e-4

    def test_start_and_end_of_the_tube(self, proof):
        for part, end in zip(proof.at(300.0), proof.enclosure):
            assert part[0] <= end[0] < end[1] <= part[1]
        assert all(low <= x <= high for x, (low, high) in zip(SMALL.initial_state, proof.at(0.0)))
        for time in (-1.0, 300.1, math.nan):
            with pytest.raises(ParameterError, match="time"):
                proof.at(time)


class TestRefuted:
    @pytest.mark.slow
    def test_gamma_below_rho_is_proved(self):
        proof = prove(REFUTED, horizon=2.0, tolerance=1e-7)
        assert proof.proved
        assert proof.gap_positive_from == math.inf
        assert not proof.forever
        ((since, until),) = proof.gap_negative
        assert 0.15 < since < 0.17
        assert 1.9 < until <= 2.0
        flow = gradient_flow(Population(REFUTED, tolerance=1e-12), horizon=2.0, rtol=1e-11)
        for time in (0.2, 1.0, 2.0):
            assert flow.at(time).gamma < flow.at(time).rho

    @pytest.mark.slow
    def test_no_association_without_a_diagonal(self):
        """beta = 0: gamma = rho at all times, so that neither sign of the gap is proved."""
        proof = prove(SMALL.replace(beta=0.0), horizon=1.0)
        assert proof.gap_positive_from == math.inf
        assert proof.gap_negative == ()
        assert not proof.association


class TestDescent:
    @pytest.mark.slow
    def test_iterates_end_inside_and_the_flow_outside(self):
        proof = prove(SMALL, learning_rate=0.02, steps=700)
        assert proof.proved
        run = gradient_descent(Population(SMALL, tolerance=1e-11), learning_rate=0.02, steps=700)
        assert inside(run.final, proof.enclosure)
        early = gradient_descent(Population(SMALL, tolerance=1e-11), learning_rate=0.02, steps=333)
        assert inside(early.final, proof.at(0.02 * 333))
        assert not inside(early.final, proof.at(0.02 * 334))
        flow = gradient_flow(Population(SMALL, tolerance=1e-12), horizon=14.0, rtol=1e-11)
        assert not inside(flow.final, proof.enclosure)
        assert not proof.forever  # the corollary is about the flow


class TestFloor:
    @pytest.mark.parametrize("q", [0.05, 0.4, 1.0])
    def test_equals_log_2_times_a_probability(self, q):
        """log 2 P[C + R <= 0] by convolution of the law of one patch."""
        problem = Problem(D=12, C=3, q=q)
        law = np.array([1.0])
        for _ in range(9):
            law = np.convolve(law, [q / 2, 1 - q, q / 2])
        exact = math.log(2) * law[: 9 - 3 + 1].sum()
        assert exact * (1 - 1e-12) <= floor(problem) * (1 + 1e-12)
        assert floor(problem) <= exact * (1 + 1e-12)

    @settings(max_examples=25)
    @given(
        q=st.floats(0.05, 1.0),
        beta=st.floats(-3.0, 4.0),
        alpha=st.floats(-2.0, 2.0),
        x=st.floats(-4.0, 4.0),
        nu=st.floats(1e-3, 1.0),
        shape=st.sampled_from([(6, 2), (6, 3)]),
    )
    def test_is_a_lower_bound_on_gamma_equal_rho(self, q, beta, alpha, x, nu, shape):
        problem = Problem(D=shape[0], C=shape[1], q=q, beta=beta, nu=nu)
        assert reference(problem, State(alpha, x, x)).loss.upper() >= arb(floor(problem))

    @settings(max_examples=15)
    @given(
        q=st.floats(0.05, 1.0),
        beta=st.floats(-3.0, 4.0),
        alpha=st.floats(-2.0, 2.0),
        gamma=st.floats(-4.0, 4.0),
        nu=st.floats(1e-3, 1.0),
    )
    def test_is_a_lower_bound_on_rho_equal_beta_in_sets_of_two(self, q, beta, alpha, gamma, nu):
        problem = Problem(D=6, C=2, q=q, beta=beta, nu=nu)
        assert reference(problem, State(alpha, gamma, beta)).loss.upper() >= arb(floor(problem))

    def test_is_no_lower_bound_on_rho_equal_beta_in_sets_of_three(self):
        """The two other patches of a set determine the label without the patch itself."""
        problem = Problem(D=9, C=3, q=0.5)
        assert reference(problem, State(0.15, 12.0, 1.0)).loss < arb(floor(problem))

    def test_is_negligible_for_two_sets(self):
        assert floor(Problem(D=8, C=4, q=0.9)) <= math.log(2) * 0.45**4 * (1 + 1e-9)

    def test_conclusions_for_all_later_times(self):
        """A short tube around a state with association and a small loss suffices."""
        proof = prove(SMALL, horizon=1e-3, initial=State(0.084, 1.0, -10.0))
        assert proof.loss[1] < floor(SMALL)
        assert proof.forever
        assert proof.association_until == math.inf
        early = prove(SMALL, horizon=1e-3)
        assert not early.forever
        assert early.association
        assert early.association_until == early.time

    def test_association_lasts_until_rho_could_reach_beta(self):
        """In sets of four there is no floor on rho = beta, and the remaining loss bounds rho."""
        problem = Problem(D=16, C=4, q=0.1)
        proof = prove(problem, horizon=1e-4, initial=State(0.15, 2.0, -1.0))
        assert proof.forever
        until = 1e-4 + 16 * 12 * (1.0 - proof.enclosure.rho[1]) ** 2 / proof.loss[1]
        assert proof.association_until <= until * (1 + 1e-12)
        assert proof.association_until >= until * (1 - 1e-9)

    def test_association_includes_the_diagonal(self):
        """gamma > rho > beta: the patch itself is not among the C largest entries of its row."""
        proof = prove(SMALL.replace(beta=0.2), horizon=1e-3, initial=State(0.084, 1.0, 0.5))
        assert proof.gap_positive_from == 0.0
        assert not proof.association
        assert proof.association_until == 0.0


class TestOutcomes:
    @settings(max_examples=15)
    @given(
        q=st.floats(0.05, 1.0),
        alpha=st.floats(0.05, 0.6),
        gamma=st.floats(-2.0, 3.0),
        rho=st.floats(-2.0, 2.0),
        K=st.integers(1, 4),
        radius=st.sampled_from([0.0, 1e-3]),
    )
    def test_enclose_the_exact_values(self, q, alpha, gamma, rho, K, radius):
        problem = Problem(D=6, C=2, q=q)
        field = Field(problem, images(problem, 4), K)
        box = box_around(np.array([alpha, gamma, rho]), np.full(3, radius))
        result = outcomes(field, Tail(problem), box)
        exact = reference(problem, State(alpha, gamma, rho))
        for (low, high), value in zip(result, (exact.loss, exact.test_error)):
            assert arb(low) <= value.upper()
            assert arb(high) >= value.lower()

    def test_mirrored_sets_are_errors(self):
        """Exact ties are decided: a quarter of P[T = 0] and all of T < 0 are errors."""
        problem = Problem(D=6, C=2, q=1.0)
        box = box_around(np.array([0.3, 0.2, -0.1]), np.zeros(3))
        result = outcomes(Field(problem, images(problem, 4), 4), Tail(problem), box)
        exact = reference(problem, State(0.3, 0.2, -0.1))
        assert result.test_error[1] - result.test_error[0] < 1e-12
        within(float(exact.test_error.mid()), result.test_error[1], 1e-12)


class TestInvalidArguments:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "a horizon is missing"),
            ({"horizon": -1.0}, "horizon = -1"),
            ({"horizon": math.nan}, "horizon = nan"),
            ({"horizon": 1.0, "steps": 3}, "choose one"),
            ({"learning_rate": 0.0, "steps": 3}, "learning_rate = 0"),
            ({"learning_rate": 0.1, "steps": 0}, "steps = 0"),
            ({"horizon": 1.0, "tolerance": 1.0}, "tolerance = 1"),
            ({"horizon": 1.0, "initial": State(-0.1, 0.0, 0.0)}, "alpha > 0"),
        ],
    )
    def test_are_rejected(self, options, message):
        with pytest.raises(ParameterError, match=message):
            prove(SMALL, **options)

    def test_too_many_features(self):
        proof = prove(Problem(D=256, C=8, q=0.5), horizon=1.0)
        assert not proof.proved
        assert "no field is accurate enough" in proof.reason
        assert proof.time == 0.0
        assert proof.gap_positive_from == math.inf
        assert not proof.forever
