"""Random arguments of the public functions: a finite result or one sentence, in time."""

import math
import warnings

import pytest

from dynamics import (
    ParameterError,
    Population,
    Problem,
    State,
    Status,
    ToleranceError,
    attention,
    gradient_descent,
    gradient_flow,
)
from tests.fuzz.values import number, text

FIELDS = ("D", "C", "q", "p", "nu", "beta", "temperature", "output_scale", "d", "sigma")
SMALL = {"D": 8, "C": 2, "q": 0.3}
#: Documented errors: bad input, unattainable accuracy, overflow.
DOCUMENTED = (ParameterError, ToleranceError, OverflowError)


def _any_value(rng):
    return rng.choice((number, number, text))(rng)


def _problem(rng):
    """Return a random problem, which is usually valid."""
    given = {"D": rng.choice((4, 6, 8, 12, 16, 64, 2048, 10**5)), "C": 2, "q": rng.random()}
    given["C"] = rng.choice([C for C in (2, 3, 4, 8) if given["D"] % C == 0 and given["D"] > C])
    for name in rng.sample(FIELDS[3:], rng.randint(0, 3)):
        given[name] = number(rng)
    if rng.random() < 0.2:
        given[rng.choice(FIELDS)] = _any_value(rng)
    return Problem(**given)


def assert_one_sentence(error):
    message = str(error)
    assert message
    assert "\n" not in message
    assert len(message) < 1000


@pytest.mark.slow
def test_population(cases, in_time):
    for rng in cases():
        with in_time(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                problem = _problem(rng)
                state = State(*(number(rng) for _ in range(3)))
                print(problem, state)
                attention(problem, state)
                method = rng.choice(("auto", "auto", "enumeration", "fourier", "sampling"))
                tolerance = rng.choice((None, None, 1e-6, 1e-3, number(rng)))
                value = Population(problem, method, tolerance, samples=1000).evaluate(state)
            except DOCUMENTED as error:
                assert_one_sentence(error)
                continue
        numbers = (value.loss, *value.gradient, value.test_error, value.ties, value.bound)
        assert all(map(math.isfinite, numbers))
        assert value.loss >= 0.0 or value.loss >= -value.bound
        assert value.bound >= 0.0
        assert 0.0 <= value.ties <= value.test_error + value.test_error_bound <= 3.0


@pytest.mark.slow
def test_solvers(cases, in_time):
    population = Population(Problem(**SMALL), tolerance=1e-6)
    for rng in cases():
        with in_time():
            try:
                initial = rng.choice((None, [number(rng) for _ in range(3)], _any_value(rng)))
                print(initial)
                if rng.random() < 0.5:
                    steps = rng.choice((5, 20, _any_value(rng)))
                    if isinstance(steps, int | float) and 1e4 < steps <= 1e15:
                        continue  # valid, but longer than the time limit
                    run = gradient_descent(
                        population, learning_rate=_any_value(rng), steps=steps, initial=initial
                    )
                else:
                    run = gradient_flow(
                        population,
                        horizon=_any_value(rng),
                        initial=initial,
                        rtol=rng.choice((1e-6, number(rng))),
                    )
                final = run.final
            except DOCUMENTED as error:
                assert_one_sentence(error)
                continue
        assert run.status in Status
        assert all(map(math.isfinite, final))
