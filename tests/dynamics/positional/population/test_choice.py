"""What ``method="auto"`` picks can evaluate the start wherever a certified method can.

Trusts: each method by name, which refuses what it cannot certify.
"""

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dynamics import Population, Problem, State, ToleranceError
from dynamics.positional.population import population as door
from dynamics.positional.population.enumeration import SECONDS_PER_STATE, predicted_states
from dynamics.positional.population.fourier import FourierExpectation, predicted_cost
from dynamics.positional.population.levels import Levels

STEEP = Problem(D=40, C=2, q=2 / 40, p=67)
RARE = Problem(D=128, C=2, q=1e-12, nu=10.0, beta=1e3, temperature=0.125, output_scale=71.2)
OVERFLOWING = Problem(D=6, C=2, q=1e-12, p=67, nu=1e-15, temperature=0.05, output_scale=1e5)
#: Largest ratio of the two methods' rounding, which is known after an evaluation only.
ROUNDING = 16.0
#: Enumeration rounds to 1.0e-11 of eight states, Fourier to 1.5e-12.
ROUNDED = Problem(D=6, C=2, q=1.0 - 1e-14, p=99, beta=10.0, temperature=0.05, output_scale=1.0)
#: A plan of Fourier integrals for an error of .01 cuts them so that it is .042.
CUT = Problem(D=8000, C=8, q=0.5, nu=1e-300, beta=-1e3)
#: A rare R whose F is enormous, and in error by more than 700, is left out.
ENORMOUS = Problem(D=64, C=8, q=1.0 - 1e-14, p=21, nu=1e-15, beta=-1e3)
#: A test takes tables of at most this many states; what needs more is not drawn.
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


def refused(method, problem, tolerance):
    """Evaluate the start; return why that is refused, or an empty string."""
    try:
        population = Population(problem, method, tolerance)
        population.gradient(problem.initial_state)
        population.certified_loss(problem.initial_state)
    except (ToleranceError, OverflowError) as refusal:
        return str(refusal)
    return ""


@settings(max_examples=30)
@given(problem=problems, exponent=st.floats(-11.0, -2.0))
@example(problem=STEEP, exponent=-6.0)
@example(problem=RARE, exponent=-8.0)
@example(problem=OVERFLOWING, exponent=-2.0)
@example(problem=ROUNDED, exponent=-11.0)
@example(problem=CUT, exponent=-2.0)
@example(problem=ENORMOUS, exponent=-2.0)
def test_auto_evaluates_what_a_certified_method_can(problem, exponent):
    """Where it refuses, both refuse what is a little harder."""
    tolerance = 10.0**exponent
    states, by_fourier = predicted_states(problem, tolerance), predicted_cost(problem, tolerance)
    enumerated = states <= max(door._TABLE, by_fourier / SECONDS_PER_STATE)
    integrated = by_fourier <= door._SLOW
    assume(enumerated or integrated)
    assume(states <= FEW or not enumerated)
    why = refused("auto", problem, tolerance)
    if why:
        surely = tolerance / ROUNDING
        assert not enumerated or refused("enumeration", problem, surely), why
        assert not integrated or refused("fourier", problem, surely), why


@pytest.mark.parametrize(
    ("problem", "tolerance", "chosen", "out_of_reach"),
    [
        (STEEP, 1e-6, "enumeration", "fourier"),
        (RARE, 1e-8, "enumeration", ""),
        (CUT, 1e-2, "fourier", "enumeration"),
        (Problem(D=64, C=4, q=2 / 64), 1e-6, "fourier", ""),
    ],
)
def test_the_choice_at_a_corner_is_the_method_that_reaches_it(
    problem, tolerance, chosen, out_of_reach
):
    """Its numbers are those of each method that reaches the tolerance, within both bounds."""
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
        assert refused(out_of_reach, problem, tolerance)


def test_what_overflows_is_refused_as_an_overflow():
    assert "overflow" in refused("auto", OVERFLOWING, 1e-2)


def test_an_enormous_output_is_enumerated_and_the_reason_says_why():
    """Fourier would be cheaper, and certify nothing."""
    population = Population(STEEP, tolerance=1e-6)
    assert population.method == "enumeration"
    foreseen = population.reason.partition("error of the Fourier method would be about ")[2]
    assert float(foreseen) > 1.0


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
def test_the_error_is_foreseen(problem, relative):
    """Within the factor by which the choice doubts it, where rounding and not the goal decides."""
    expectation = FourierExpectation(problem, 1e-15, relative)
    for state in (problem.initial_state, State(0.3 * problem.initial_state.alpha, 0.5, -0.1)):
        foreseen = expectation.foreseen_error(state)
        certified = expectation._error(state, expectation._run(state))
        assert certified > expectation.tolerance
        ratio = 1.0 if foreseen == certified else foreseen / certified
        assert 1.0 / door._DOUBT < ratio < door._DOUBT


def test_the_last_table_that_the_budget_holds_leaves_out_no_image_of_its_K():
    levels = Levels(Problem(D=64, C=4, q=0.1), 2.0**20)
    assert not levels.is_complete
    assert levels.K(levels.top) == levels.affordable
    beyond = levels.groups.beyond(levels.affordable)
    assert levels.neglected(levels.top).mass.sum() == beyond.mass.sum()
    assert levels.neglected(levels.top - 1).mass.sum() > beyond.mass.sum()
