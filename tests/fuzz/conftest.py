import random
import signal

import pytest

from dynamics import Population, Problem, State
from dynamics.precompile import jobs
from simulations.cli import main

#: Time limit of a case, in seconds of processor time.
LIMIT = 10.0


class TooSlow(BaseException):
    """A case exceeded the time limit."""


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Compile and import before any case, because the time limit does not include either."""
    for method in ("enumeration", "fourier", "masked"):
        jobs()[method]()
    Population(Problem(D=8, C=2, q=0.3), "sampling", samples=100).evaluate(State(0.1, 0.0, 0.0))
    for solver in (["--horizon", "10"], ["--solver", "gd", "--steps", "5"]):
        main(["run", "--D", "8", "--C", "2", "--tolerance", "1e-6", *solver])
        main(["run", "--system", "masked", "--P", "64", *solver])


@pytest.fixture
def cases(request):
    """Return a function that yields a random generator for each case and prints its seed."""
    number_of_cases, seed = (
        request.config.getoption("--fuzz-cases"),
        request.config.getoption("--fuzz-seed"),
    )
    seed = random.SystemRandom().randrange(2**32) if seed == "random" else int(seed)

    def generators():
        for number in range(number_of_cases):
            print(f"case {number}, --fuzz-seed {seed}")  # shown if the test fails
            yield random.Random(f"{request.node.name} {seed} {number}")

    return generators


@pytest.fixture
def in_time():
    """Return a context manager that raises `TooSlow` at the time limit."""

    class Timer:
        def __enter__(self):
            def late(*_):
                raise TooSlow(f"more than {LIMIT:g} s")

            # processor time is fair on a busy machine; wall time limits a case that only waits
            signal.signal(signal.SIGPROF, late)
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
            signal.signal(signal.SIGALRM, late)
            signal.setitimer(signal.ITIMER_REAL, 30 * LIMIT)

        def __exit__(self, *_):
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    return Timer
