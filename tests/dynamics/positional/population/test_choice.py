"""``method="auto"`` evaluates the initial state whenever a certified method can.

Reference: each certified method, which raises an error if it does not reach the tolerance.
"""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dynamics import Population, Problem, State, ToleranceError
from dynamics.positional.population import population as module
from dynamics.positional.population.enumeration import SECONDS_PER_STATE, predicted_states
from dynamics.positional.population.fourier import FourierExpectation, predicted_cost
from dynamics.positional.population.levels import Levels

STEEP = Problem(D=40, C=2, q=2 / 40, p=67)
RARE = Problem(D=128, C=2, q=1e-12, nu=10.0, beta=1e3, temperature=0.125, output_scale=71.2)
OVERFLOWING = Problem(D=6, C=2, q=1e-12, p=67, nu=1e-15, temperature=0.05, output_scale=1e5)
#: Largest ratio of the rounding errors of the two methods, known only after an evaluation.
ROUNDING = 16.0
#: The rounding error is 1.0e-11 for enumeration (eight states) and 1.5e-12 for Fourier.
ROUNDED = Problem(D=6, C=2, q=1.0 - 1e-14, p=99, beta=10.0, temperature=0.05, output_scale=1.0)
#: Fourier integrals truncated for an error of 0.01 have an error of 0.042.
CUT = Problem(D=8000, C=8, q=0.5, nu=1e-300, beta=-1e3)
#: A rare R with an enormous F, of absolute error above 700, is left out.
ENORMOUS = Problem(D=64, C=8, q=1.0 - 1e-14, p=21, nu=1e-15, beta=-1e3)
#: Largest number of states in a table of these tests.
FEW = 2e4

problems = st.builds(
    lambda C, L, **rest: Problem(D=C * L, C=C, **rest),
    C=st.sampled_from([2, 3, 4, 8]),
    L=st.sampled_from([3, 8, 33, 64, 1000]),
    q=st.sampled_from([1e-12, 0.03, 0.3, 1.0 - 1e-14, 1.0]) | st.floats(1e-6, 1.0),
    p=st.sampled_from([3, 5, 9, 21, 67, 99]),
    nu=st.sampled_from([1e-300, 1e-15, 0.01, 10.0]),
    beta=st.sampled_from([-1e3, 0.0, 1.0, 1e3]) | st.floats(-30.0, 30.0),
    temperature=st.sampled_from([0.05, 1.0, 30.0]),
    output_scale=st.sampled_from([None, None, 1.0, 71.2, 1e5]),
)


def error_message(method, problem, tolerance, budget=2.0**29):
    """Evaluate the initial state; return the message of the error raised, or an empty string."""
    try:
        population = Population(problem, method, tolerance, memory_budget=budget)
        population.gradient(problem.initial_state)
        population.certified_loss(problem.initial_state)
    except (ToleranceError, OverflowError) as error:
        return str(error)
    return ""


@pytest.mark.slow
@settings(max_examples=30)
@given(problem=problems, exponent=st.floats(-11.0, -2.0))
@example(problem=STEEP, exponent=-6.0)
@example(problem=RARE, exponent=-8.0)
@example(problem=OVERFLOWING, exponent=-2.0)
@example(problem=ROUNDED, exponent=-11.0)
@example(problem=CUT, exponent=-2.0)
@example(problem=ENORMOUS, exponent=-2.0)
def test_auto_succeeds_whenever_a_certified_method_does(problem, exponent):
    """If auto raises an error, both methods raise it for a slightly smaller tolerance."""
    tolerance = 10.0**exponent
    states, by_fourier = predicted_states(problem, tolerance), predicted_cost(problem, tolerance)
    enumerated = states <= max(module._MAX_STATES, by_fourier / SECONDS_PER_STATE)
    integrated = by_fourier <= module._SLOW
    assume(enumerated or integrated)
    assume(states <= FEW or not enumerated)
    message = error_message("auto", problem, tolerance)
    if message:
        smaller = tolerance / ROUNDING
        assert not enumerated or error_message("enumeration", problem, smaller), message
        assert not integrated or error_message("fourier", problem, smaller), message


@pytest.mark.parametrize(
    ("problem", "tolerance", "chosen", "out_of_reach"),
    [
        (STEEP, 1e-6, "enumeration", "fourier"),
        (RARE, 1e-8, "enumeration", ""),
        pytest.param(CUT, 1e-2, "fourier", "enumeration", marks=pytest.mark.slow),
        (Problem(D=64, C=4, q=2 / 64), 1e-6, "fourier", ""),
    ],
)
def test_auto_chooses_a_method_that_reaches_the_tolerance(problem, tolerance, chosen, out_of_reach):
    """The values agree with every method that reaches the tolerance, within both bounds."""
    population = Population(problem, tolerance=tolerance)
    assert population.method == chosen
    value = population.evaluate(problem.initial_state)
    assert value.bound <= tolerance * max(1.0, value.loss, *map(abs, value.gradient))
    for method in {"enumeration", "fourier"} - {out_of_reach}:
        other = Population(problem, method, tolerance).evaluate(problem.initial_state)
        assert abs(value.loss - other.loss) <= value.loss_bound + other.loss_bound
        for entry in zip(
            value.gradient, other.gradient, value.gradient_bound, other.gradient_bound
        ):
            assert abs(entry[0] - entry[1]) <= entry[2] + entry[3]
    if out_of_reach:
        assert error_message(out_of_reach, problem, tolerance)


@pytest.mark.parametrize(
    ("problem", "tolerance"), [(Problem(D=64, C=4, q=2 / 64), 1e-4), (STEEP, 1e-6)]
)
def test_chosen_method_works_with_every_memory_budget(problem, tolerance):
    """The Fourier method does not reach the initial state of STEEP."""
    chosen = set()
    for budget in 2.0 ** np.linspace(18.0, 24.0, 25):
        try:
            population = Population(problem, tolerance=tolerance, memory_budget=budget)
            population.certified_loss(problem.initial_state)
        except ToleranceError:
            assert problem is STEEP
            assert error_message("enumeration", problem, tolerance, budget)
            continue
        chosen.add(population.method)
    assert chosen == {"enumeration"} | ({"fourier"} if problem is not STEEP else set())


def test_overflow_is_reported_as_an_overflow():
    assert "overflow" in error_message("auto", OVERFLOWING, 1e-2)


def test_reason_contains_the_predicted_error_of_fourier():
    """The Fourier method would be cheaper, but its bound exceeds the values."""
    population = Population(STEEP, tolerance=1e-6)
    assert population.method == "enumeration"
    predicted = population.reason.partition("error of the Fourier method would be about ")[2]
    assert float(predicted) > 1.0


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize(
    "problem",
    [
        Problem(D=64, C=4, q=2 / 64),
        Problem(D=64, C=4, q=2 / 64, p=9),
        Problem(D=1024, C=8, q=0.1, beta=-3.0),
        Problem(D=10**6, C=4, q=16e-6),
        Problem(D=66, C=2, q=0.06, p=21, output_scale=71.2),
    ],
)
def test_predicted_error_is_within_the_assumed_factor(problem, relative):
    """At a tolerance below rounding, where rounding determines the error."""
    expectation = FourierExpectation(problem, 1e-15, relative)
    for state in (problem.initial_state, State(0.3 * problem.initial_state.alpha, 0.5, -0.1)):
        predicted = expectation.predicted_error(state)
        certified = expectation._error(state, expectation._run(state))
        assert certified > expectation.tolerance
        ratio = 1.0 if predicted == certified else predicted / certified
        assert 1.0 / module._UNCERTAINTY < ratio < module._UNCERTAINTY


def test_last_affordable_table_contains_all_images_up_to_its_K():
    levels = Levels(Problem(D=64, C=4, q=0.1), 2.0**20)
    assert not levels.is_complete
    assert levels.K(levels.top) == levels.affordable
    beyond = levels.groups.beyond(levels.affordable)
    assert levels.neglected(levels.top).mass.sum() == beyond.mass.sum()
    assert levels.neglected(levels.top - 1).mass.sum() > beyond.mass.sum()
