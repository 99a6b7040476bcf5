import random
import signal

import pytest

from dynamics import Population, Problem, State
from dynamics.precompile import jobs
from simulations.cli import main

#: Processor seconds after which a case counts as hanging.
LIMIT = 10.0


class TooSlow(BaseException):
    """A case that takes longer than the limit."""


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Compile and import before the clock runs: what happens once is no part of a case."""
    for method in ("enumeration", "fourier", "masked"):
        jobs()[method]()
    Population(Problem(D=8, C=2, q=0.3), "sampling", samples=100).evaluate(State(0.1, 0.0, 0.0))
    for solver in (["--horizon", "10"], ["--solver", "gd", "--steps", "5"]):
        main(["run", "--D", "8", "--C", "2", "--tolerance", "1e-6", *solver])
        main(["run", "--system", "masked", "--P", "64", *solver])


@pytest.fixture
def cases(request):
    """Yield numbered random generators, one a case; on a failure its seed is shown."""
    wanted, seed = request.config.getoption("--fuzz-cases"), request.config.getoption("--fuzz-seed")
    seed = random.SystemRandom().randrange(2**32) if seed == "random" else int(seed)

    def each():
        for number in range(wanted):
            print(f"case {number}, --fuzz-seed {seed}")  # shown where the test fails
            yield random.Random(f"{request.node.name} {seed} {number}")

    return each


@pytest.fixture
def in_time():
    """Return a context that ends a case which takes too long."""

    class Timer:
        def __enter__(self):
            def late(*_):
                raise TooSlow(f"more than {LIMIT:g} s")

            # processor time decides on a busy machine, and wall time where a case waits for nothing
            signal.signal(signal.SIGPROF, late)
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
            signal.signal(signal.SIGALRM, late)
            signal.setitimer(signal.ITIMER_REAL, 30 * LIMIT)

        def __exit__(self, *_):
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    return Timer
