"""The Fourier method where numbers underflow: a ball around the exact value, or one sentence.

``python -m tests.dynamics.positional.population.fourier.test_extremes 10000`` draws as many.
"""

import argparse
import collections
import random

import pytest

from dynamics import Problem, State
from dynamics.core.errors import ToleranceError
from dynamics.positional.population.fourier import FourierExpectation
from tests.dynamics.positional.population.fourier.test_balls import outside

SHAPES = [(4, 2), (8, 2), (6, 3), (9, 3), (8, 4), (12, 4), (18, 6), (16, 8), (24, 12), (32, 16)]
LEAST = 5e-324


def random_case(rng):
    """Return a random problem, state and tolerance of any size that floats allow."""

    def size(low, high):
        return 10.0 ** rng.uniform(low, high)

    D, C = rng.choice(SHAPES)
    beta = rng.choice([0.0, 1.0, rng.gauss(0, 3), rng.gauss(0, 100), size(-323, 3)])
    tau = rng.choice([1.0, size(-3, 3), size(-100, 100), size(-300, 300)])
    problem = Problem(
        D=D,
        C=C,
        p=rng.choice([3, 3, 5, 9, 21, 99]),
        beta=beta,
        temperature=tau,
        q=rng.choice([size(-300, 0), size(-60, 0), rng.random(), 1 - size(-16, -1), 1.0, 1e-300]),
        nu=rng.choice([size(-2, 1), size(-300, 2), size(-15, 300)]),
        output_scale=rng.choice([None, 1.0, size(-3, 3), size(-300, 300)]),
    )

    def logit(other):
        near = rng.choice([LEAST, 1e-323, size(-323, -290), tau * size(-300, -3)])
        away = rng.choice([rng.gauss(0, 3), rng.gauss(0, 100), tau * rng.gauss(0, 3)])
        return rng.choice([0.0, other, other + near, other - near, near, -near, away, away])

    gamma = logit(beta)
    rho = logit(rng.choice([beta, gamma]))
    alpha = rng.choice([1, 1, -1]) * rng.choice([size(-2, 0.5), size(-14, 1), size(-323, 2), 0.0])
    if problem.kappa > 1e-290 and rng.random() < 0.4:
        alpha = min(max(alpha / problem.kappa, -1e300), 1e300)
    return problem, State(alpha, gamma, rho), rng.choice([1e-3, 1e-6, 1e-9, 1e-11])


def verdict(problem, state, tolerance, relative):
    """Return "held", "out of reach", "overflow", or the results outside their bounds."""
    try:
        value = FourierExpectation(problem, tolerance, relative=relative).evaluate(state)
    except ToleranceError as error:
        assert str(error).startswith("tolerance = ")  # noqa: PT017
        return "out of reach"
    except OverflowError as error:
        assert str(error).startswith("the output F or its derivatives overflow")  # noqa: PT017
        return "overflow"
    result = outside(problem, state, value)
    return f"outside: {', '.join(result)}" if result else "held"


@pytest.mark.slow
def test_values_are_within_their_bounds_at_extremes():
    """Of 964 of 18,000 such evaluations the logarithm of an underflown q^C was taken."""
    rng, counts = random.Random(5), collections.Counter()
    for _ in range(300):
        case = *random_case(rng), rng.random() < 0.3
        result = verdict(*case)
        assert result in ("held", "out of reach", "overflow"), (result, case)
        counts[result] += 1
    assert counts["held"] >= 150


@pytest.mark.parametrize(("D", "C", "q"), [(32, 16, 1e-21), (18, 6, 3e-55), (12, 4, 1e-300)])
def test_sets_with_underflowing_probability(D, C, q):
    problem = Problem(D=D, C=C, q=q)
    value = FourierExpectation(problem, 1e-9).evaluate(State(0.3, 0.4, -0.1))
    assert outside(problem, State(0.3, 0.4, -0.1), value) == []
    assert value.test_error_bound < 1e-11


def test_q_close_to_one():
    """1 - q is 1e-16, and its C-th power underflows."""
    problem, state = Problem(D=48, C=24, q=1 - 2.0**-53, output_scale=1.0), State(0.3, 0.4, -0.1)
    value = FourierExpectation(problem, 1e-9).evaluate(state)
    assert outside(problem, state, value) == []
    assert value.test_error_bound < 1e-3


NEAR = [LEAST, 1e-323, 1e-316, 1e-300, 1e-290]


class TestUnderflowingDifferences:
    @pytest.mark.parametrize("near", [sign * size for size in NEAR for sign in (1, -1)])
    @pytest.mark.parametrize("tau", [1.0, 1e-60, 1e60])
    def test_signs_at_nearly_equal_logits(self, near, tau):
        """For beta = gamma or beta = rho a difference too small for the weights matters."""
        for D, C in ((8, 2), (9, 3), (12, 4)):
            problem = Problem(D=D, C=C, q=0.5, beta=0.0, temperature=tau)
            for state in (State(0.1, 0.0, near), State(-0.1, near, 0.0)):
                value = FourierExpectation(problem, 1e-9).evaluate(state)
                assert outside(problem, state, value) == []
                assert value.test_error_bound < 1e-11
                assert value.ties_bound < 1e-11

    @pytest.mark.parametrize("near", NEAR)
    @pytest.mark.parametrize("beta", [0.0, 1.0])
    @pytest.mark.parametrize("scale", [None, 1e-20, 70.0])
    def test_signs_at_distinct_logits(self, near, beta, scale):
        """All three differ, or beta is far away: the bound is at most P[T = 0]."""
        problem = Problem(D=9, C=3, q=0.5, p=5, beta=beta, output_scale=scale)
        for state in (
            State(0.1, beta + near, beta - near),
            State(0.1, near, -3 * near),
            State(0.1, -near, 2 * near),
            State(0.1, near, near),
        ):
            value = FourierExpectation(problem, 1e-9).evaluate(state)
            assert outside(problem, state, value) == []
            assert value.test_error_bound < 0.06

    @pytest.mark.parametrize(
        ("problem", "state"),
        [
            (  # both slopes were reported as 0 within 1e-290, and are 1e-270 and more
                Problem(D=24, C=12, q=1.0, nu=0.02, beta=0.0, temperature=5e-61, output_scale=0.03),
                State(-1.9e-21, 0.0, -1e-323),
            ),
            (
                Problem(D=8, C=4, q=0.99, p=9, nu=0.23, beta=0.0, temperature=1.6e-62),
                State(4.1e-10, LEAST, -6.55e-310),
            ),
        ],
    )
    def test_slopes_at_small_temperature(self, problem, state):
        value = FourierExpectation(problem, 1e-9).evaluate(state)
        assert outside(problem, state, value) == []


def main():
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("draws", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, counts = random.Random(given.seed), collections.Counter()
    for _ in range(given.draws):
        case = *random_case(rng), rng.random() < 0.3
        result = verdict(*case)
        counts[result.split(":")[0]] += 1
        if result.startswith("outside"):
            print(result, case, flush=True)
    print(f"{given.draws} draws from seed {given.seed}: {dict(counts)}")


if __name__ == "__main__":
    main()
