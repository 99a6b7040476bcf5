"""Events on trajectories with known behaviour, and the error of the labelling function."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dynamics import Population, Problem, SlowManifold, State, gradient_descent, gradient_flow
from dynamics.core.crossing import every_step, excursions, with_extrema
from dynamics.positional.events import _turning_points, attention_leads, find_events
from dynamics.positional.labelling import label_error
from tests.closeness import close, within


@pytest.fixture(scope="module")
def rising():
    """D=64, C=2, qD=8: alpha falls, rises by about a half around time 1e5, then falls."""
    problem = Problem(D=64, C=2, q=8 / 64, nu=0.001, beta=0.5)
    population = Population(problem, tolerance=1e-7)
    run = gradient_flow(population, horizon=1e8)
    return population, run, find_events(run, population)


@pytest.fixture(scope="module")
def falling():
    """D=64, C=4, qD=0.5: alpha only falls after Event I."""
    population = Population(Problem(D=64, C=4, q=0.5 / 64), tolerance=1e-8)
    run = gradient_flow(population, horizon=1e7)
    return population, run, find_events(run, population)


class TestT0:
    def test_alpha_at_T0_is_within_one_per_cent_of_alpha_star(self, falling):
        population, run, events = falling
        state = run.at(events.T0.time)
        root = SlowManifold(population).alpha(state.gamma, state.rho)
        close(abs(state.alpha / root - 1.0), 0.01, rel=1e-3)

    @pytest.mark.slow
    def test_alpha_star_at_the_initial_state(self, falling, rising):
        assert falling[2].alpha_star == pytest.approx(0.352, abs=1e-3)
        assert rising[2].alpha_star == pytest.approx(0.0736, abs=1e-4)

    def test_start_on_the_manifold_has_T0_zero(self, falling):
        population = falling[0]
        start = State(falling[2].alpha_star, 0.0, 0.0)
        run = gradient_flow(population, horizon=10.0, initial=start)
        assert find_events(run, population).T0.time == 0.0

    @pytest.mark.slow
    @pytest.mark.traced
    def test_start_above_the_manifold(self, rising):
        """Start in the middle of the rise of the other trajectory, with alpha 20 % above alpha*."""
        population, run, events = rising
        manifold = SlowManifold(population)
        state = run.at(math.sqrt(events.onset.time * events.end_of_rise.time))
        start = state._replace(alpha=1.2 * manifold.alpha(state.gamma, state.rho))
        again = find_events(gradient_flow(population, horizon=1e5, initial=start), population)
        arrived = again.T0.state
        assert 0.0 < again.T0.time < 1.0
        close(arrived.alpha / manifold.alpha(arrived.gamma, arrived.rho), 1.01, rel=1e-6)
        assert again.rises_at_once
        assert again.alpha_after_event_I == "rises, then falls"
        assert again.onset.time == again.T0.time
        assert again.rise > 1.1

    def test_short_trajectory_has_no_T0(self, falling):
        run = gradient_flow(falling[0], horizon=0.1)
        events = find_events(run, falling[0])
        assert not events.T0.happens
        assert events.alpha_after_event_I == "does not settle"


class TestT1:
    def test_gamma_at_T1_equals_the_largest_rho(self, falling):
        _, run, events = falling
        close(events.T1.state.gamma, np.abs(run.rho).max(), rel=1e-5)
        assert 1e4 < events.T1.time < 1e6

    @pytest.mark.slow
    @pytest.mark.traced
    def test_no_T1_if_rho_grows_faster(self, rising):
        assert not rising[2].T1.happens
        assert math.isnan(rising[2].T1.time)

    def test_horizon_is_equivalent_to_a_shorter_trajectory(self, falling):
        population, run, events = falling
        shorter = attention_leads(run, 1e5)
        ended = find_events(gradient_flow(population, horizon=1e5), population).T1
        close(shorter.time, ended.time, rel=1e-4)
        assert shorter.time < events.T1.time
        assert attention_leads(run, 10.0).time < 10.0  # |rho| has hardly changed at this time
        assert attention_leads(run, 1e99) == events.T1

    def test_times_after_the_horizon_are_ignored(self, falling):
        """gamma = t; |rho| = 1.5 until time 3 and 9 from time 4 on."""
        time = np.arange(12.0)
        rho = np.where(time < 3.5, -1.5, -9.0)
        states = np.stack([np.ones(12), time, rho], axis=1)
        run = replace(falling[1], time=time, states=states, interpolant=None)
        assert not attention_leads(run, 1.0).happens
        close(attention_leads(run, 3.0).time, 1.5, rel=1e-5)
        close(attention_leads(run).time, 9.0, rel=1e-5)


class TestCrossings:
    """Crossings of known functions of time, on the dense output of a flow."""

    @pytest.fixture(scope="class")
    @classmethod
    def clock(cls):
        """Return a flow with few records: gamma grows steadily, so that it measures time."""
        population = Population(Problem(D=8, C=2, q=0.3), tolerance=1e-9)
        return gradient_flow(population, horizon=100.0, records=12)

    def test_intervals_end_at_crossings_of_the_level(self, clock):
        low, high = 0.3 * clock.final.gamma, 0.7 * clock.final.gamma

        def bump(state):
            return (state.gamma - low) * (high - state.gamma)

        (interval,) = excursions(clock, bump)
        close(clock.at(interval.start).gamma, low, rel=1e-5)
        close(clock.at(interval.end).gamma, high, rel=1e-5)
        close(interval.largest, (high - low) ** 2 / 4, rel=1e-6)

    def test_crossing_between_two_records(self, clock):
        gammas = clock.gamma
        centre = (gammas[5] + gammas[6]) / 2
        width = (gammas[6] - gammas[5]) / 20

        def needle(state):
            return width**2 - (state.gamma - centre) ** 2

        assert all(needle(State(*row)) < 0.0 for row in clock.states)
        (interval,) = excursions(clock, needle)
        assert clock.time[5] < interval.start < interval.end < clock.time[6]
        close(interval.largest, width**2, rel=1e-3)

    def test_levels_that_are_never_or_always_exceeded(self, clock):
        assert excursions(clock, lambda state: -1.0) == []
        (interval,) = excursions(clock, lambda state: 1.0)
        assert (interval.start, interval.end, interval.largest) == (0.0, 100.0, 1.0)

    def test_with_extrema_is_in_order_and_contains_the_records(self, clock):
        gamma = clock.gamma[4]
        times, values = with_extrema(clock, lambda state: -((state.gamma - 1.01 * gamma) ** 2))
        assert (np.diff(times) >= 0.0).all()
        assert set(clock.time) <= set(times)
        assert values.max() == pytest.approx(0.0, abs=1e-9 * gamma**2)


def test_events_of_a_flow_with_two_records(falling):
    population, flow, _ = falling
    run = gradient_flow(population, horizon=1e3, records=2)
    steps = every_step(run)
    assert steps.time.size == run.stats["steps"] + 1 > 100
    assert steps.states[[0, -1]].tolist() == run.states.tolist()
    middle = steps.time.size // 2
    close(steps.states[middle], flow.at(float(steps.time[middle])), rel=1e-5)
    assert np.isnan(steps.loss).all()
    cut = every_step(replace(run, time=steps.time[[0, middle]]))
    assert cut.time.tolist() == steps.time[: middle + 1].tolist()
    descent = gradient_descent(population, learning_rate=1e-3, steps=3)
    assert every_step(descent) is descent


class TestEventIII:
    @pytest.mark.slow
    @pytest.mark.traced
    def test_rise_with_an_end(self, rising):
        _, run, events = rising
        assert events.alpha_after_event_I == "falls, then rises, then falls"
        assert 3e4 < events.onset.time < events.end_of_rise.time < 3e5
        assert events.rise == pytest.approx(1.4976, abs=2e-3)
        inside = (run.time > events.onset.time) & (run.time < events.end_of_rise.time)
        assert (np.diff(run.alpha[inside]) > 0).all()

    @pytest.mark.slow
    @pytest.mark.traced
    @pytest.mark.parametrize(("part", "counts"), [(0.9, True), (0.99, True), (0.997, False)])
    def test_rises_below_1e_4_are_ignored(self, rising, part, counts):
        """The flow starts late in the rise of the other one: alpha rises by 2e-2, 2e-4 or 2e-5."""
        population, run, events = rising
        onset, end = events.onset.time, events.end_of_rise.time
        start = run.at(onset ** (1.0 - part) * end**part)
        again = find_events(gradient_flow(population, horizon=1e6, initial=start), population)
        rest = run.at(end).alpha / start.alpha
        within(again.rise, rest if counts else 1.0, 1e-7)
        assert again.alpha_after_event_I == ("rises, then falls" if counts else "falls")

    @pytest.mark.slow
    @pytest.mark.traced
    def test_rise_at_the_end_of_the_trajectory_has_no_end(self, rising):
        population, run, events = rising
        start = run.at(math.sqrt(events.onset.time * events.end_of_rise.time))
        shorter = gradient_flow(population, horizon=1e4, initial=start)
        again = find_events(shorter, population)
        assert again.alpha_after_event_I == "rises"
        assert not again.end_of_rise.happens
        close(again.rise, shorter.alpha[-1] / start.alpha, rel=1e-6)

    def test_trajectory_without_rise(self, falling):
        _, run, events = falling
        assert events.alpha_after_event_I == "falls"
        assert events.rise == 1.0
        assert not events.onset.happens
        settled = run.time > 10.0 * events.T0.time  # at T0 alpha is still 1 per cent below alpha*
        assert (np.diff(run.alpha[settled]) < 0).all()


def test_turning_points_ignore_small_changes():
    time = np.linspace(0.0, 3.0, 601)
    noise = 1e-6 * (-1.0) ** np.arange(601)
    values = 2.0 + np.cos(np.pi * time) + noise  # falls to t = 1, rises to t = 2, falls
    within(time[_turning_points(values, 1e-4)], [1.0, 2.0], 0.011)
    assert _turning_points(3.0 - time / 3 + noise, 1e-4).size == 0
    assert _turning_points(2.0 + noise, 1e-4).size == 0


@pytest.mark.slow
def test_events_of_descent_and_flow_agree():
    population = Population(Problem(D=8, C=2, q=0.3), tolerance=1e-9)
    flow = find_events(gradient_flow(population, horizon=2000.0), population)
    steps = find_events(
        gradient_descent(population, learning_rate=0.005, steps=400_000, records=2000), population
    )
    # descent lags the flow by a few learning rates, here 0.005 against T0 of 0.45
    assert steps.T0.time == pytest.approx(flow.T0.time, abs=0.015)
    close(steps.T1.time, flow.T1.time, rel=0.01)


@pytest.mark.parametrize(("D", "C", "q"), [(8, 2, 0.3), (9, 3, 0.9), (8, 4, 1.0)])
def test_label_error_equals_the_sum_over_all_patterns(D, C, q):
    wrong = ties = 0.0
    for pattern in itertools.product((1, -1, 0), repeat=D - C):
        features = sum(map(abs, pattern))
        probability = (q / 2) ** features * (1 - q) ** (D - C - features)
        sums = [sum(pattern[i : i + C]) for i in range(0, D - C, C)]
        label = C + sum(n for n in sums if abs(n) > 0.9 * C)
        wrong += probability * (label <= 0)
        ties += probability * (label == 0)
    result = label_error(Problem(D=D, C=C, q=q))
    close(result.error, wrong, rel=1e-12)
    close(result.ties, ties, rel=1e-12)


def test_label_error_of_a_large_problem_is_the_probability_of_one_negated_set():
    problem = Problem(D=10**6, C=4, q=2e-3)
    expected = (problem.L - 1) * 1e-3**4
    close(label_error(problem).error, expected, rel=1e-3)


def test_threshold_includes_nearly_full_sets_for_large_C():
    """At C = 20 a sum of 19 is beyond 0.9 C = 18."""
    law = label_error(Problem(D=40, C=20, q=1.0))
    imitations = (1 + 20 * 0) / 2**20  # with q = 1 the sum is even: only -20 cancels +20
    close(law.error, imitations, rel=1e-12)


@pytest.mark.parametrize(("L", "C", "q"), [(6, 2, "1/3"), (12, 4, "1/64"), (9, 5, "1/1000"),
                                           (7, 11, "1/10"), (4, 20, "1/7")])  # fmt: skip
def test_label_error_equals_rational_arithmetic(L, C, q):
    """The distribution of f* set by set in fractions; relative accuracy for small errors too."""
    q, exact = Fraction(q), {C: Fraction(1)}
    law = {}
    for plus in range(C + 1):
        for minus in range(C + 1 - plus):
            ways = math.comb(C, plus) * math.comb(C - plus, minus)
            n = plus - minus if 10 * abs(plus - minus) > 9 * C else 0
            probability = ways * (q / 2) ** (plus + minus) * (1 - q) ** (C - plus - minus)
            law[n] = law.get(n, 0) + probability
    for _ in range(L - 1):
        after = {}
        for (total, probability), (n, step) in itertools.product(exact.items(), law.items()):
            after[total + n] = after.get(total + n, 0) + probability * step
        exact = after
    wrong = float(sum(probability for total, probability in exact.items() if total <= 0))
    result = label_error(Problem(D=L * C, C=C, q=float(q)))
    close(result.error, wrong, rel=1e-12)
    close(result.ties, float(exact.get(0, 0)), rel=1e-12)
    assert result.bound < 1e-11 * result.error


def test_label_error_agrees_with_samples():
    """The labelling function of random coefficients, within five standard errors."""
    problem, number = Problem(D=32, C=4, q=0.6), 40_000
    rng = np.random.default_rng(5)
    s = rng.choice((1, -1, 0), p=(0.3, 0.3, 0.4), size=(number, problem.L - 1, 4))
    sums = s.sum(axis=2)
    wrong = float(np.mean(4 + np.where(np.abs(sums) > 3.6, sums, 0).sum(axis=1) <= 0))
    exact = label_error(problem).error
    assert abs(wrong - exact) < 5.0 * math.sqrt(exact / number)


def test_label_error_that_underflows_is_zero():
    assert label_error(Problem(D=8, C=4, q=1e-200)).error == 0.0
