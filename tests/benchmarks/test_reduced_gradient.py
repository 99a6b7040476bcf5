"""One reduced gradient, beside NumPy and JAX versions of the same sum over the same states.

The peers get the table of states as dense arrays (a matrix of multiplicities, one row a state) and
evaluate the formulas of Section 4.1 in vectorised form; all agree to 1e-12 before they are timed.
"""

import numpy as np
import pytest

from dynamics import Population, Problem, State
from dynamics.positional.population.expectation import Constants, gradient_sum
from tests.closeness import close

STATE = State(0.1, 1.0, -0.03)


def dense(population):
    """Multiplicities (states, types), T and weight per state, and the types."""
    states = population.expectation.table(STATE).states
    rows = np.repeat(np.arange(states.weight.size), np.diff(states.start))
    counts = np.zeros((states.weight.size, states.plus.size))
    counts[rows, states.type_index] = states.copies
    group = np.repeat(np.arange(states.total.size), np.diff(states.offset))
    return counts, group, states.total, states.weight, states.plus, states.minus


def vectorised_gradient(xp, problem, table):
    """Return a function of (alpha, gamma, rho) in the array namespace ``xp``."""
    counts, group, total, weight, plus, minus = map(xp.asarray, table)
    D, C, L, p = problem.D, problem.C, problem.L, problem.p
    kappa, tau, nu = problem.kappa, problem.tau, problem.nu

    def rows(s, n, T, alpha, weights):
        Lambda, Gamma, Xi = weights
        own = (Lambda - Gamma) * s + (Gamma - Xi) * n
        c = own + Xi * T
        mass = Lambda + (C - 1) * Gamma
        c_gamma = Gamma / tau * (n - s - (C - 1) * c)
        c_rho = Xi / tau * (T * mass - n - (D - C) * own)
        output = kappa * alpha * c
        slope = p * output ** (p - 1) + nu
        excess = (slope - (p * (kappa * alpha * Xi * T) ** (p - 1) + nu)) * kappa * alpha
        value = output**p + nu * output
        return xp.stack([value, slope * kappa * c, excess * c_gamma, excess * c_rho], axis=-1)

    def sets(a, b, T, alpha, weights):
        n = a - b
        return (
            a[..., None] * rows(1.0, n, T, alpha, weights)
            + b[..., None] * rows(-1.0, n, T, alpha, weights)
            + (C - a - b)[..., None] * rows(0.0, n, T, alpha, weights)
        )

    def gradient(alpha, gamma, rho):
        logits = xp.exp(xp.asarray([problem.beta / tau, gamma / tau, rho / tau]))
        weights = logits / (logits[0] + (C - 1) * logits[1] + (D - C) * logits[2])
        zero = xp.zeros_like(total)
        empty = sets(zero, zero, total, alpha, weights)
        base = sets(zero + C, zero, total, alpha, weights) + (L - 1) * empty
        table = sets(plus[None, :], minus[None, :], total[:, None], alpha, weights)
        table = table - empty[:, None, :]
        F = base[group] + xp.einsum("sk,skq->sq", counts, table[group])
        sigmoid = weight / (1.0 + xp.exp(xp.minimum(F[:, 0], 700.0)))
        return xp.concatenate([sigmoid.sum()[None], -(sigmoid[:, None] * F[:, 1:]).sum(axis=0)])

    return gradient


def ours(population):
    constants = Constants.of(population.problem)
    states = population.expectation.table(STATE).states
    return lambda: gradient_sum(states, constants, *STATE)


@pytest.mark.benchmark(group="one reduced gradient, D=64 C=4 qD=2, tolerance 1e-7")
class TestOneGradient:
    def test_patchdyn(self, benchmark, named):
        benchmark(ours(named))

    def test_patchdyn_with_its_bound(self, benchmark, named):
        benchmark(named.gradient, STATE)

    def test_numpy(self, benchmark, named):
        gradient = vectorised_gradient(np, named.problem, dense(named))
        close(gradient(*STATE), ours(named)(), rel=1e-12)
        benchmark(gradient, *STATE)

    def test_jax(self, benchmark, named):
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        gradient = jax.jit(vectorised_gradient(jax.numpy, named.problem, dense(named)))
        close(gradient(*STATE), ours(named)(), rel=1e-12)
        benchmark(lambda: gradient(*STATE).block_until_ready())


@pytest.mark.benchmark(group="one reduced gradient at fixed qD = 2, growing D")
@pytest.mark.parametrize("D", [64, 1024, 10**4, 10**5, 10**6])
def test_cost_is_flat_in_D(benchmark, D):
    population = Population(Problem(D=D, C=4, q=2 / D, output_scale=1.0), "enumeration", 1e-7)
    benchmark.extra_info["states"] = population.expectation.table(STATE).n_states
    benchmark(ours(population))
