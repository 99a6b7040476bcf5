"""One full-batch gradient of (E), compared with NumPy, PyTorch, JAX and a mere reading of the data.

What no program can avoid: to read X once, N D d numbers, and to multiply and add 2 N D d times
for ``X v`` and its transpose and 3 N D^2 times for the products with S and their transpose,
4 N D d + 6 N D^2 operations. A step takes no less than the larger of bytes over bandwidth and
operations over rate.

==================  ==============================  ==================  =======================
N, D, d             megabytes (float64, float32)    10^6 operations     operations per byte
==================  ==============================  ==================  =======================
4096, 64, 64        134.2, 67.1                     167.8               1.25, 2.50
50000, 10, 100      400.0, 200.0                    230.0               0.58, 1.15
2000, 16, 16        4.1, 2.0                        5.1                 1.25, 2.50
1024, 256, 256      536.9, 268.4                    671.1               1.25, 2.50
==================  ==============================  ==================  =======================

A processor that does more operations per byte of bandwidth than the last column is bound by
memory; the third size fits into a cache, and there a call also costs 2000 exponentials and the
interpreter's share. `test_one_read_of_the_data` measures the first bound; it is the goal to
stay within 1.5 times of it where memory binds.
"""

import numba
import numpy as np
import pytest

from dynamics import Problem
from dynamics.positional.samples import EmpiricalRisk, sample
from tests.benchmarks.empirical_peers import with_jax, with_numpy, with_torch

SIZES = [(4096, 64, 64), (50_000, 10, 100), (2000, 16, 16), (1024, 256, 256)]
ROUNDS = dict(rounds=15, iterations=1, warmup_rounds=2)


@numba.njit(fastmath={"reassoc", "nsz"}, nogil=True)
def total(entries):
    result = entries.dtype.type(0)
    for k in range(entries.size):
        result += entries[k]
    return result


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: "x".join(map(str, size)))
def size(request):
    return request.param


@pytest.fixture(scope="module", params=[np.float64, np.float32], ids=["float64", "float32"])
def setting(request, size, timed):
    N, D, d = size if timed else (size[0] // 64, *size[1:])
    problem = Problem(D=D, C=2, d=d, q=0.3, nu=0.1, output_scale=1.0)
    rng = np.random.default_rng(0)
    X, y = sample(problem, N, rng, dtype=request.param)
    return problem, X, y, 0.1 * rng.normal(size=(D, D)), 0.05 * rng.normal(size=d)


class TestEmpiricalGradient:
    @pytest.fixture(autouse=True)
    def _group(self, benchmark, setting):
        X = setting[1]
        benchmark.group = f"one gradient of (E), N, D, d = {X.shape}, {X.dtype}"

    def compare(self, benchmark, setting, gradient):
        """Time a peer, and see that it computes the same."""
        problem, X, y, A, v = setting
        theirs = benchmark.pedantic(gradient, **ROUNDS)
        exact = EmpiricalRisk(problem, X.astype(float), y).gradient(A, v)
        tolerance = 1e-11 if X.dtype == np.float64 else 2e-3
        for ours, other in zip(exact, theirs):
            assert np.abs(np.asarray(other) - ours).max() <= tolerance * np.abs(ours).max()

    def test_patchdyn(self, benchmark, setting):
        problem, X, y, A, v = setting
        risk = EmpiricalRisk(problem, X, y)
        self.compare(benchmark, setting, lambda: risk.gradient(A, v))

    def test_patchdyn_one_thread(self, benchmark, setting):
        problem, X, y, A, v = setting
        risk = EmpiricalRisk(problem, X, y, threads=1)
        self.compare(benchmark, setting, lambda: risk.gradient(A, v))

    def test_one_read_of_the_data(self, benchmark, setting):
        """Sum all entries, with the threads and the chunks of the gradient."""
        problem, X, y, _, _ = setting
        risk = EmpiricalRisk(problem, X, y)

        def work(tasks):
            for index, first, last, sums in tasks:
                sums[index] = total(X[first:last].reshape(-1))

        result = benchmark.pedantic(risk.run_tasks, args=(work,), **ROUNDS)
        assert result * len(X) == pytest.approx(X.sum(dtype=float), rel=1e-2, abs=1.0)

    def test_numpy(self, benchmark, setting):
        self.compare(benchmark, setting, with_numpy(*setting))

    def test_jax(self, benchmark, setting):
        pytest.importorskip("jax")
        self.compare(benchmark, setting, with_jax(*setting))

    @pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
    def test_torch(self, benchmark, setting, compiled):
        pytest.importorskip("torch")
        gradient = with_torch(*setting, compiled=compiled)
        try:
            gradient()
        except Exception as failure:  # torch.compile needs a C++ compiler and much else
            if not compiled:
                raise
            pytest.skip(f"torch.compile failed: {type(failure).__name__}")
        self.compare(benchmark, setting, gradient)


@pytest.mark.benchmark(group="v alone at fixed A, N, D, d = (4096, 64, 64), float32")
@pytest.mark.parametrize("shortcut", [False, True], ids=["whole gradient", "S X precomputed"])
def test_fixed_scores(benchmark, shortcut, timed):
    from dynamics.positional.samples.gradient import FixedScores

    problem = Problem(D=64, C=2, d=64, q=0.3, nu=0.1, output_scale=1.0)
    rng = np.random.default_rng(0)
    X, y = sample(problem, 4096 if timed else 64, rng, dtype=np.float32)
    A, v = 0.1 * rng.normal(size=(64, 64)), 0.05 * rng.normal(size=64)
    risk = EmpiricalRisk(problem, X, y)
    evaluator = FixedScores(risk, A) if shortcut else risk
    benchmark.pedantic(evaluator.gradient, args=(A, v), **ROUNDS)
