"""One gradient at C = 4, qD = 16 by Fourier integrals, compared with their naive form and sampling.

``extra_info`` of each gradient holds the operations counted by ``FourierExpectation.effort`` and
their rate over the whole call, tables and windows included: 0.9 to 5 million real operations (a
complex multiply-add is four), 10 to 25 complex multiply-adds for each node and angle, from arrays
in the first-level cache. A core that does one vector of eight a cycle has a limit of about 24 to 30
a nanosecond; the inner loop reaches about half of it, and what comes before it takes a quarter to a
third of the time. The notebook ``fourier_method`` derives the numbers.
"""

import time

import numpy as np
import pytest

from dynamics import Population, Problem, State
from tests.benchmarks.naive_fourier import naive_fourier

#: Early patch association, alpha near its quasi-steady value at each size.
STATES = {
    64: State(0.05, 1.0, -0.06),
    1024: State(0.0206, 0.5, -0.01),
    10**6: State(3.3e-4, 0.5, 0.0),
}
#: The same, the start, after a flow to time 1e5, and where alpha is at rest first.
CASES = {
    "64": (64, STATES[64]),
    "64 start": (64, State(0.1, 0.0, 0.0)),
    "64 at time 1e5": (64, State(0.0222, 5.75, -0.373)),
    "64 late": (64, State(0.0215, 12.1, -0.744)),
    "1024": (1024, STATES[1024]),
    "1e6": (10**6, STATES[10**6]),
    "1e6 at rest": (10**6, State(5.004e-5, 0.0, 0.0)),
}
SAMPLES = 200_000
#: Outputs so large that saddle points lie far off, alpha = 3 D^(-1/3).
LARGE = State(0.75, 0.0, 0.0)


def crowded(D):
    return Problem(D=D, C=4, q=16 / D)


def test_large_outputs_take_no_longer_than_others():
    """Six times as long, if saddle points are searched from 0; the least of many calls in turn."""
    population = Population(crowded(64), "fourier", tolerance=1e-6)
    least = dict.fromkeys((STATES[64], LARGE), np.inf)
    for _ in range(200):
        for state, before in least.items():
            start = time.perf_counter()
            population.gradient(state)
            least[state] = min(before, time.perf_counter() - start)
    assert least[LARGE] < 2.0 * least[STATES[64]]


@pytest.mark.parametrize("case", list(CASES))
class TestOneGradient:
    @pytest.fixture(autouse=True)
    def _group(self, benchmark, case):
        benchmark.group = f"one gradient, C=4 qD=16, tolerance 1e-8, D={case}"

    def test_patchdyn(self, benchmark, case):
        D, state = CASES[case]
        population = Population(crowded(D), "fourier", tolerance=1e-8)
        benchmark(population.gradient, state)
        work = population.expectation.effort(state)
        benchmark.extra_info["operations"] = work.operations
        if benchmark.stats:
            rate = work.operations / benchmark.stats["min"] / 1e9
            benchmark.extra_info["operations a nanosecond"] = rate

    def test_patchdyn_with_loss_and_test_error(self, benchmark, case):
        D, state = CASES[case]
        population = Population(crowded(D), "fourier", tolerance=1e-8)
        value = benchmark(population.evaluate, state)
        benchmark.extra_info["certified bound"] = value.bound

    def test_naive(self, benchmark, case):
        D, state = CASES[case]
        value = Population(crowded(D), "fourier", tolerance=1e-8).evaluate(state)
        naive = benchmark.pedantic(naive_fourier, (crowded(D), state, 1e-8), rounds=3)
        error = np.abs(np.array(value.derivatives) - naive.derivatives) / value.magnitude[1:4]
        benchmark.extra_info["difference, relative"] = float(error.max())
        assert error.max() < 2e-8


@pytest.mark.benchmark(group="time to equal error, D=64 C=4 qD=16")
@pytest.mark.parametrize("error", [1e-3, 1e-6])
class TestTimeToEqualError:
    """Errors of the gradient, relative to its largest entry."""

    def test_fourier(self, benchmark, error):
        population = Population(crowded(64), "fourier", tolerance=error)
        value = population.evaluate(STATES[64])
        benchmark.extra_info["certified relative error"] = relative(value.bound, value.gradient)
        benchmark(population.gradient, STATES[64])

    def test_sampling(self, benchmark, error, timed):
        """Times what fits into memory; ``extra_info`` extrapolates to the error by 1/sqrt(N)."""
        state = STATES[64]
        exact = np.array(Population(crowded(64), "fourier", 1e-9).gradient(state))
        samples = SAMPLES if timed else SAMPLES // 20
        errors, seconds = [], []
        for seed in range(8):
            population = Population(crowded(64), "sampling", samples=samples, seed=seed)
            start = time.perf_counter()
            gradient = population.gradient(state)
            seconds.append(time.perf_counter() - start)
            errors.append(relative(np.abs(np.array(gradient) - exact).max(), exact))
        reached = float(np.sqrt(np.mean(np.square(errors))))
        benchmark.extra_info["samples"] = samples
        benchmark.extra_info["root mean square relative error reached"] = reached
        benchmark.extra_info["seconds to equal error, extrapolated by 1/sqrt(N)"] = (
            min(seconds) * max(1.0, reached / error) ** 2
        )
        benchmark(population.gradient, state)


def relative(error, gradient):
    return float(error / np.abs(gradient).max())
