"""Rounding bounds of the enumeration hold and are sharp.

Reference: running errors (``running_errors``) of the unmodified kernels.
"""

import math
import random

import numpy as np
import pytest

from dynamics.positional._emitted import attention_weights
from dynamics.positional.population.expectation import Constants, add_set, tabulate
from dynamics.positional.population.rounding import (
    OUTWARD,
    TINY,
    add_row_error,
    weights_error,
    with_errors,
)
from dynamics.positional.population.states import StateTable
from tests.dynamics.positional.running_errors import KERNELS, Running, plain


def near(rng, number):
    """Return a random number at a random relative distance from a number."""
    return number * (1.0 + rng.gauss(0, 1) * 10 ** rng.uniform(-16, 0))


def draw_constants(rng, sets=(2, 3, 8, 100, 10**6)):
    C, L = rng.choice([2, 2, 3, 4, 8, 64]), rng.choice(sets)
    D = C * L
    return Constants(
        beta=rng.choice([0.0, 1.0, rng.gauss(0, 3), rng.gauss(0, 30)]),
        tau=rng.choice([1.0, 10 ** rng.uniform(-2, 2)]),
        C=float(C),
        D=float(D),
        L=float(L),
        kappa=rng.choice([float(D), 1.0, 71.2]),
        nu=10 ** rng.uniform(-12, 2),
        p=rng.choice([3, 3, 5, 9, 21, 99]),
    )


def draw_state(rng, constants, s, n, T):
    """Return a random state, often one with a nearly vanishing output of the row."""
    beta, tau, C, D = constants[:4]
    gamma = rng.choice([near(rng, beta), rng.gauss(0, 3), rng.gauss(0, 30)])
    rho = rng.choice([0.0, rng.gauss(0, 3), near(rng, gamma), rng.gauss(0, 30)])
    alpha = rng.choice([-1, 1]) * 10 ** rng.uniform(-10, 1)
    if rng.random() < 0.1:
        alpha *= 10 ** rng.uniform(-300, 0)

    def output(rho):
        weights = attention_weights(beta, gamma, rho, tau, C, D)
        return weights[3] * s + weights[4] * n + weights[2] * T

    low, high = sorted((rng.gauss(0, 3), rng.gauss(0, 30)))
    if T and rng.random() < 0.5 and output(low) * output(high) < 0.0:
        for _ in range(rng.choice([10, 30, 45, 60])):
            middle = (low + high) / 2
            same = output(middle) * output(low) > 0.0
            low, high = (middle, high) if same else (low, middle)
        rho = low
    return alpha, gamma, rho


def rows(seed, number):
    """Yield constants, (s, n, T), a state, its weights and the running numbers of the row."""
    rng = random.Random(seed)
    while number:
        constants = draw_constants(rng)
        C, D = int(constants.C), int(constants.D)
        a = rng.randint(0, C)
        b = rng.randint(0, C - a)
        s = rng.choice([s for s, many in ((1, a), (-1, b), (0, C - a - b)) if many])
        row = (
            float(s),
            float(a - b),
            float(rng.choice([0, a - b, rng.randint(-9, 9), rng.randint(-D, D)])),
        )
        state = draw_state(rng, constants, *row)
        beta, tau, kappa = map(Running, (constants.beta, constants.tau, constants.kappa))
        size = constants.C, constants.D
        weights = KERNELS.attention_weights(beta, *map(Running, state[1:]), tau, *size)
        try:
            values = KERNELS.row_gradient(
                *row, Running(state[0]), *weights, *size, kappa, tau, constants.p, Running(0.0)
            )
        except OverflowError:
            continue
        if all(math.isfinite(value.value + value.error) for value in values):
            number -= 1
            yield constants, row, state, weights, values


def test_bounds_of_rows_and_weights_exceed_running_errors():
    """The smallest ratio of bound to running error is close to 1."""
    closest = np.full(5, math.inf)
    for constants, (s, n, T), (alpha, gamma, rho), weights, values in rows(0, 2500):
        relative, errors = weights_error(constants, gamma, rho), np.zeros(4)
        plain_weights = tuple(weight.value for weight in weights)
        assert plain_weights == attention_weights(
            constants.beta, gamma, rho, constants.tau, constants.C, constants.D
        )
        add_row_error(errors, 1.0, s, n, T, alpha, plain_weights, relative, constants)
        weight_errors = [relative * abs(weight.value) + TINY for weight in weights]
        ratios = [
            bound * OUTWARD / number.error if number.error else math.inf
            for number, bound in zip((*values, *weights), (*errors, *weight_errors))
        ]
        assert min(ratios) >= 1.0, f"{constants}, {(s, n, T)}, {(alpha, gamma, rho)}"
        closest = np.minimum(closest, [*ratios[:4], min(ratios[4:])])
    assert np.all(closest < [1.05, 1.05, 1.3, 1.3, 1.01])


def draw_table(rng, constants):
    """Return a table of a single image with sets of different random types."""
    C, sets = int(constants.C), int(constants.L) - 1
    types = [(a, b) for a in range(C + 1) for b in range(C + 1 - a) if a + b]
    chosen = rng.sample(types, min(len(types), sets, rng.choice([1, 3, 200])))
    T = C + sum(a - b for a, b in chosen)
    plus, minus = (np.array([float(set_type[i]) for set_type in chosen]) for i in (0, 1))
    return StateTable(
        plus,
        minus,
        np.array([float(T)]),
        np.array([0, 1]),
        np.ones(1),
        np.array([0, len(chosen)]),
        np.arange(len(chosen), dtype=np.int32),
        np.ones(len(chosen)),
    )


@pytest.mark.parametrize("linear", [False, True])
def test_bounds_of_tables_and_of_the_sum_over_an_image(linear):
    """With a large linear part the rounding of that part dominates."""
    rng = random.Random(1)
    kernels = plain(
        add_set,
        tabulate,
        **{name: getattr(KERNELS, name) for name in ("row_gradient", "attention_weights")},
    )
    closest = math.inf
    for _ in range(40):
        constants = draw_constants(rng, sets=(2, 3, 8, 300))
        states = draw_table(rng, constants)
        alpha, gamma, rho = draw_state(rng, constants, 0.0, 0.0, 0.0)
        if linear:
            constants, alpha = constants._replace(nu=1e3), 1e-6 * alpha
        exact = Constants(*map(Running, constants[:-1]), constants.p)
        base, table = kernels.tabulate(
            states, exact, Running(alpha), Running(gamma), Running(rho), 4
        )
        wide_base, wide_table = with_errors(
            states, constants, alpha, gamma, rho, *tabulate(states, constants, alpha, gamma, rho, 4)
        )
        for m in range(4):
            total, bound = base[0, m], wide_base[0, 4 + m]
            assert total.value == wide_base[0, m]
            assert total.error <= bound * OUTWARD
            for k in range(states.plus.size):
                assert table[0, k, m].error <= wide_table[0, k, 4 + m] * OUTWARD
                total, bound = total + table[0, k, m], bound + wide_table[0, k, 4 + m]
            assert total.error <= bound * OUTWARD
            closest = min(closest, float(bound) / total.error if total.error > 1e-200 else math.inf)
    assert closest < (1.6 if linear else 4.0)
