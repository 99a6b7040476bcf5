"""Arguments of the public names, valid and not: a finite answer or one sentence, in time."""

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
#: What may be raised, each a sentence: bad input, an accuracy out of reach, an overflow.
FORESEEN = (ParameterError, ToleranceError, OverflowError)


def _hostile(rng):
    return rng.choice((number, number, text))(rng)


def _problem(rng):
    """Draw a problem, valid more often than not."""
    given = {"D": rng.choice((4, 6, 8, 12, 16, 64, 2048, 10**5)), "C": 2, "q": rng.random()}
    given["C"] = rng.choice([C for C in (2, 3, 4, 8) if given["D"] % C == 0 and given["D"] > C])
    for name in rng.sample(FIELDS[3:], rng.randint(0, 3)):
        given[name] = number(rng)
    if rng.random() < 0.2:
        given[rng.choice(FIELDS)] = _hostile(rng)
    return Problem(**given)


def _sentence(failure):
    said = str(failure)
    assert said
    assert "\n" not in said
    assert len(said) < 1000


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
            except FORESEEN as failure:
                _sentence(failure)
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
                initial = rng.choice((None, [number(rng) for _ in range(3)], _hostile(rng)))
                print(initial)
                if rng.random() < 0.5:
                    steps = rng.choice((5, 20, _hostile(rng)))
                    if isinstance(steps, int | float) and 1e4 < steps <= 1e15:
                        continue  # a long run is a run: it shows its progress and stops at Ctrl-C
                    run = gradient_descent(
                        population, learning_rate=_hostile(rng), steps=steps, initial=initial
                    )
                else:
                    run = gradient_flow(
                        population,
                        horizon=_hostile(rng),
                        initial=initial,
                        rtol=rng.choice((1e-6, number(rng))),
                    )
                final = run.final
            except FORESEEN as failure:
                _sentence(failure)
                continue
        assert run.status in Status
        assert all(map(math.isfinite, final))
