"""The sign of F at T = 0 for logits that nearly agree and for terms that nearly cancel.

Reference: the sign in Arb balls and integers (``ball_reference``).
"""

import itertools
import random

import numpy as np
import pytest
from flint import ctx

from dynamics import Population, Problem, State
from dynamics.positional.population.states import StateTable
from dynamics.positional.population.ties import UNKNOWN, tie_law, tie_sign
from tests.dynamics.positional.ball_reference import _model, _sign, contains, reference

LEAST = 5e-324


def draw_image(rng):
    """Return C, L and the number of random sets of each type of a random image with T = 0."""
    while True:
        C, L = rng.choice([2, 3, 4, 5, 8]), rng.choice([3, 4, 6, 10, 30])
        counts = {}
        for _ in range(L - 1):
            a = rng.randint(0, C)
            set_type = (a, rng.randint(0, C - a)) if rng.random() < 0.5 else (0, 0)
            counts[set_type] = counts.get(set_type, 0) + 1
        if C + sum((a - b) * m for (a, b), m in counts.items()) == 0:
            counts.pop((0, 0), None)
            return C, L, tuple(counts.items())


def computed_sign(problem, state, counts):
    """Return the sign of F / alpha^p of one image by the tie law."""
    plus, minus = (np.array([float(set_type[i]) for set_type, _ in counts]) for i in (0, 1))
    states = StateTable(
        plus,
        minus,
        np.zeros(1),
        np.array([0, 1]),
        np.ones(1),
        np.array([0, len(counts)]),
        np.arange(len(counts), dtype=np.int32),
        np.array([float(m) for _, m in counts]),
    )
    return tie_sign(states, 0, tie_law(problem, state, plus, minus))


def exact_sign(problem, state, counts):
    """Return the sign for alpha > 0 from balls of 4000 bits."""
    with ctx.workprec(4000):
        return _sign(problem, state, _model(problem, state), counts, 0, None)


def draw_gap(rng):
    """Return a random difference of logits of any size, down to the smallest float."""
    return rng.choice([-1, 1]) * max(LEAST, 10.0 ** rng.uniform(-324, 2))


def test_signs_of_images_at_extreme_logits():
    """Signs are correct, and nearly all of them are determined."""
    rng = random.Random(0)
    open_signs = 0
    for _ in range(200):
        C, L, counts = draw_image(rng)
        base, tau = rng.choice([0.0, 0.0, 1.0]), 10.0 ** rng.choice([0, rng.uniform(-3, 300)])
        logits = [base, base + draw_gap(rng), base + draw_gap(rng)]
        rng.shuffle(logits)
        p = rng.choice([3, 5, 21, 31, 45, 67, 99])
        problem = Problem(D=C * L, C=C, q=0.5, p=p, beta=logits[0], temperature=tau)
        state = State(0.1, *logits[1:])
        sign = computed_sign(problem, state, counts)
        exact = exact_sign(problem, state, counts)
        assert sign in (exact, UNKNOWN), f"{problem}, {state}, {counts}"
        open_signs += sign == UNKNOWN and exact != 0
    assert open_signs <= 5


def roots(rng, number, scale):
    """Yield problem, rho, gamma next to a sign change of F, and image, for logits of a size."""
    while number:
        C, L, counts = draw_image(rng)
        problem = Problem(
            D=C * L,
            C=C,
            q=0.5,
            p=rng.choice([3, 5, 7, 9]),
            beta=rng.gauss(0, scale),
            temperature=rng.choice([1.0, 0.3, 17.0]),
        )
        rho, grid = rng.gauss(0, scale), sorted(rng.gauss(0, 2 * scale) for _ in range(6))
        for low, high in itertools.pairwise(grid):
            signs = [exact_sign(problem, State(0.1, g, rho), counts) for g in (low, high)]
            if signs[0] * signs[1] >= 0 or low < rho < high:
                continue
            while low < (middle := low + (high - low) / 2) < high:
                same = exact_sign(problem, State(0.1, middle, rho), counts) == signs[0]
                low, high = (middle, high) if same else (low, middle)
            number -= 1
            yield problem, rho, low, counts
            break


@pytest.mark.parametrize(("scale", "stride"), [(1.0, 1), (1e-150, 15)])
def test_signs_next_to_a_root_are_correct_or_unknown(scale, stride):
    """With a hundredth of the error bound some signs would be wrong.

    Logarithms of differences of 1e-150 have errors of a hundred units in the last place.
    """
    open_signs = 0
    for problem, rho, gamma, counts in roots(random.Random(3), 12, scale):
        for step in range(-6 * stride, 6 * stride + 1, stride):
            state = State(0.1, gamma + step * np.spacing(gamma), rho)
            sign = computed_sign(problem, state, counts)
            open_signs += sign == UNKNOWN
            assert sign in (exact_sign(problem, state, counts), UNKNOWN)
        far = State(0.1, gamma * (1.0 + 1e-9), rho)
        assert computed_sign(problem, far, counts) == exact_sign(problem, far, counts)
    assert open_signs > 50


SUBNORMAL = [
    (0.0, 1.0, (0.0, -LEAST)), (0.0, 1.0, (0.0, LEAST)), (0.0, 1.0, (-2 * LEAST, 0.0)),
    (LEAST, 1.0, (0.0, 0.0)), (LEAST, 1.0, (0.0, -LEAST)), (1e-310, 1.0, (3e-310, -2e-310)),
    (0.0, 1e200, (1e-200, 0.0)), (1e-200, 1e200, (3e-200, -2e-200)), (1.0, 1e200, (3e-200, 0.0)),
    (1e-5, 1e300, (3e-100, 0.0)), (1.0, 1.0, (0.0, LEAST)),
]  # fmt: skip


@pytest.mark.parametrize("logits", SUBNORMAL)
@pytest.mark.parametrize("shape", [(9, 3, 3), (8, 2, 45)])
def test_errors_at_differences_of_logits_that_underflow(logits, shape):
    (beta, tau, (gamma, rho)), (D, C, p) = logits, shape
    problem = Problem(D=D, C=C, q=0.5, p=p, beta=beta, temperature=tau)
    state = State(0.1, gamma, rho)
    value = Population(problem, "enumeration", 1e-3).evaluate(state)
    exact = reference(problem, state)
    assert contains(exact.test_error, value.test_error, value.test_error_bound)
    assert contains(exact.ties, value.ties, value.ties_bound)
    assert p > 3 or value.test_error_bound < 1e-14


@pytest.mark.parametrize("logits", [(1.0, 0.0, 1e-100), (-1.0, 0.0, -1e-100), (-1e-40, 1.0, 0.0)])
@pytest.mark.parametrize("shape", [(6, 2), (9, 3)])
def test_errors_of_a_steep_activation(shape, logits):
    """Powers of the ratio of two differences overflow or underflow."""
    beta, gamma, rho = logits
    problem, state = Problem(*shape, q=0.5, p=45, beta=beta), State(0.1, gamma, rho)
    value = Population(problem, "enumeration", 1e-3).evaluate(state)
    exact = reference(problem, state)
    assert contains(exact.test_error, value.test_error, value.test_error_bound)
    assert contains(exact.ties, value.ties, value.ties_bound)


def test_moments_beyond_exact_integers_determine_no_tie():
    """With C = 8 and p = 31 the powers exceed 2^53; the error covers only mirrored sets."""
    problem, state = Problem(D=24, C=8, q=0.5, p=31, beta=1.0), State(0.1, 0.3, -0.2)
    mirrored = (((0, 8), 1), ((0, 0), 1))
    assert exact_sign(problem, state, mirrored) == 0
    assert computed_sign(problem, state, mirrored) == UNKNOWN
    apart = (((0, 7), 1), ((0, 1), 1))
    assert computed_sign(problem, state, apart) == exact_sign(problem, state, apart)
