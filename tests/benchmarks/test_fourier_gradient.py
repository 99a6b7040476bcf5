"""One gradient at C = 4, qD = 16 by Fourier integrals, beside their naive form and sampling."""

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
SAMPLES = 200_000


def crowded(D):
    return Problem(D=D, C=4, q=16 / D)


@pytest.mark.parametrize("D", list(STATES))
class TestOneGradient:
    @pytest.fixture(autouse=True)
    def _group(self, benchmark, D):
        benchmark.group = f"one gradient, C=4 qD=16, tolerance 1e-8, D={D}"

    def test_patchdyn(self, benchmark, D):
        population = Population(crowded(D), "fourier", tolerance=1e-8)
        benchmark(population.gradient, STATES[D])

    def test_patchdyn_with_loss_and_test_error(self, benchmark, D):
        population = Population(crowded(D), "fourier", tolerance=1e-8)
        value = benchmark(population.evaluate, STATES[D])
        benchmark.extra_info["certified bound"] = value.bound

    def test_naive(self, benchmark, D):
        value = Population(crowded(D), "fourier", tolerance=1e-8).evaluate(STATES[D])
        naive = benchmark.pedantic(naive_fourier, (crowded(D), STATES[D], 1e-8), rounds=3)
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

    def test_sampling(self, benchmark, error):
        """Times what fits into memory; ``extra_info`` extrapolates to the error by 1/sqrt(N)."""
        state = STATES[64]
        exact = np.array(Population(crowded(64), "fourier", 1e-9).gradient(state))
        errors, seconds = [], []
        for seed in range(8):
            population = Population(crowded(64), "sampling", samples=SAMPLES, seed=seed)
            start = time.perf_counter()
            gradient = population.gradient(state)
            seconds.append(time.perf_counter() - start)
            errors.append(relative(np.abs(np.array(gradient) - exact).max(), exact))
        reached = float(np.sqrt(np.mean(np.square(errors))))
        benchmark.extra_info["samples"] = SAMPLES
        benchmark.extra_info["root mean square relative error reached"] = reached
        benchmark.extra_info["seconds to equal error, extrapolated by 1/sqrt(N)"] = (
            min(seconds) * max(1.0, reached / error) ** 2
        )
        benchmark(population.gradient, state)


def relative(error, gradient):
    return float(error / np.abs(gradient).max())
