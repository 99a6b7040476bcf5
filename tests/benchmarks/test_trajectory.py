"""A whole trajectory to flow time 1e5 against full-matrix gradient descent.

The full model cannot be averaged exactly at D = 64 (3^60 patterns), so its peer takes each step on
4,096 sampled images, which is far less accurate than the reduced run; its cost for the whole
horizon is extrapolated from the measured step. The learning rate is the largest stable one.
"""

import numpy as np
import pytest

from dynamics import gradient_descent, gradient_flow
from dynamics.positional.slow_manifold import largest_stable_learning_rate

HORIZON = 1e5


def full_matrix_step(problem, samples=4096):
    """One step of (A, v) on sampled coefficients: O = kappa alpha s S^T, then both gradients."""
    rng = np.random.default_rng(np.random.SeedSequence(0))
    D, C, q, p, tau = problem.D, problem.C, problem.q, problem.p, problem.tau
    s = rng.choice([1.0, -1.0, 0.0], p=[q / 2, q / 2, 1 - q], size=(samples, D))
    first = C * rng.integers(problem.L, size=samples)
    s[np.arange(samples)[:, None], first[:, None] + np.arange(C)] = 1.0
    A = np.where(np.eye(D, dtype=bool), problem.beta, 0.0)
    alpha = problem.initial_state.alpha

    def step():
        weights = np.exp(A / tau)
        weights /= weights.sum(axis=1, keepdims=True)
        O = problem.kappa * alpha * s @ weights.T  # noqa: E741 - the paper's symbol
        F = (O**p + problem.nu * O).sum(axis=1)
        pull = (p * O ** (p - 1) + problem.nu) / (1.0 + np.exp(np.minimum(F, 700.0)))[:, None]
        cross = problem.kappa * alpha * pull.T @ s - (pull * O).sum(axis=0)[:, None]
        d_A = -(weights / tau) * cross / samples
        d_alpha = -problem.kappa * (pull * (s @ weights.T)).sum() / samples
        return d_A, d_alpha

    return step


@pytest.mark.benchmark(group="trajectory to flow time 1e5, D=64 C=4 qD=2")
class TestTrajectory:
    def test_patchdyn_flow(self, benchmark, named, timed):
        horizon = HORIZON if timed else 10.0
        run = benchmark.pedantic(gradient_flow, (named,), {"horizon": horizon}, rounds=3)
        benchmark.extra_info["evaluations"] = run.stats["evaluations"]

    def test_patchdyn_descent_10000_steps(self, benchmark, named, timed):
        steps = 10_000 if timed else 10
        benchmark.pedantic(
            gradient_descent, (named,), {"learning_rate": 0.01, "steps": steps}, rounds=2
        )

    def test_full_matrix_one_step(self, benchmark, named):
        rate = largest_stable_learning_rate(named, named.problem.initial_state)
        benchmark.extra_info["steps_to_horizon"] = HORIZON / rate
        benchmark(full_matrix_step(named.problem))
