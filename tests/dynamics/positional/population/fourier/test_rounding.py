"""Rounding errors of the Fourier method, term by term, compared with higher precision."""

import math
import random
from typing import NamedTuple

import mpmath
import numpy as np
import pytest

from dynamics import Problem, State
from dynamics.core.jit import kernel, plain_python
from dynamics.positional.population.fourier.assemble import Integrated, Moments
from dynamics.positional.population.fourier.errors import (
    MARGIN,
    UNIT,
    WeightErrors,
    add_rounding,
    patch_error,
)
from dynamics.positional.population.fourier.node_sums import node_weights
from dynamics.positional.population.fourier.set_law import set_law
from dynamics.positional.population.fourier.tables import Model
from dynamics.positional.population.fourier.tilts import (
    R,
    U,
    allocate_tilting,
    slack,
    tilt_totals,
)
from tests.dynamics.positional.population.fourier.test_terms import Integration
from tests.dynamics.positional.rounded import Rounded, plain_row_gradient


class TestRows:
    """One row compared with a running error analysis of the code itself."""

    def test_running_errors_are_within_the_bounds(self):
        rng, row, bounds = random.Random(0), plain_row_gradient(), plain_python(patch_error)
        most = [0.0] * 4
        for _ in range(4000):
            s, n, T, C, model, errors = row_of(rng)
            _, alpha, *weights, D, kappa, tau, nu = model
            rounded = [Rounded(*pair) for pair in zip(weights, errors)]
            alpha, kappa, tau, nu = map(Rounded, (alpha, kappa, tau, nu))
            worst = row(s, n, T, alpha, *rounded, float(C), D, kappa, tau, model.p, nu)
            for k, bound in enumerate(bounds(s, n, T, C, model, errors, model.p)):
                error = Rounded.of(worst[k]).error
                assert error <= MARGIN * bound
                most[k] = max(most[k], error / bound if bound > 0.0 else 0.0)
        assert min(most) > 0.7


def row_of(rng):
    """Return a random row, a model and errors of its weights: 0, those of rounding, or larger."""
    C, p = rng.choice([2, 3, 4, 8]), rng.choice([3, 3, 5, 7, 9, 21, 99])
    D = float(C * rng.choice([2, 3, 16, 256, 10**5]))
    s = rng.choice([-1, 0, 1])
    n, T = (
        rng.randint(max(-C, s + 1 - C), min(C, s + C - 1)),
        rng.choice([0, C + rng.randint(-30, 30)]),
    )
    balance, lone = (D - C) * (n - s) - (C - 1) * (T - n), n - C * s
    near = [1.0 + rng.uniform(-1, 1) * 10.0 ** rng.uniform(-6, 0) for _ in range(3)]
    weights = rng.choice(
        [
            near,
            [10.0 ** rng.uniform(-8, 0) for _ in range(3)],
            [near[0], near[1], near[0]],  # beta = rho: both differences cancel in c
            [abs(balance) + 1e-9, 1.0, abs(lone) + 1e-9],  # the turn by gamma cancels
        ]
    )
    Lambda, Gamma, Xi = (
        w / (weights[0] + (C - 1) * weights[1] + (D - C) * weights[2]) for w in weights
    )
    kappa, tau, nu = rng.choice([1.0, D]), 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-6, 0)
    alpha = rng.choice([1, -1]) * 10.0 ** rng.uniform(-2, 1) / kappa
    model = Model(p, alpha, Lambda, Gamma, Xi, Lambda - Gamma, Gamma - Xi, D, kappa, tau, nu)
    share = rng.choice([0.0, 0.0, 1.0, 30.0, 1e5]) * UNIT
    return (
        float(s),
        float(n),
        float(T),
        C,
        model,
        WeightErrors(*(share * abs(w) for w in model[2:7])),
    )


class TestNodeWeights:
    @pytest.mark.parametrize("eta", [0.0, 0.03125, 0.5, -0.96875])
    def test_errors_of_node_weights_are_within_the_bounds(self, eta):
        """1 / sin(pi w) near and far from 0, at the first and at the last lane of a block."""
        largest = 0.0
        for start, step, lanes in ((0.5, 0.01, 1), (0.5, 0.2, 48), (60.5, 0.2, 1), (200.5, 0.2, 1)):
            node = np.empty((3, 2, 48))
            wave = np.stack([np.ones((1, 48)), np.zeros((1, 48))])
            errors = []
            for many in (lanes - 1, lanes):
                sums = Sums(*(np.zeros(1) for _ in Sums._fields))
                plain_python(node_weights)(0, start, step, eta, wave, many, node, sums)
                errors.append(sums.error[0])
            with mpmath.workdps(40):
                t = mpmath.mpf(step) * (mpmath.mpf(start) + lanes - 1)
                exact = mpmath.mpf(step) / mpmath.sin(mpmath.pi * mpmath.mpc(eta, t))
                apart = abs(mpmath.mpc(*node[0, :, lanes - 1].tolist()) - exact)
                part = float(apart) / ((errors[1] - errors[0]) * UNIT)
            assert part <= 1.0
            largest = max(largest, part)
        assert largest > 0.02


class Sums(NamedTuple):
    """Sums that receive the weights of nodes."""

    size: np.ndarray
    size_over_w: np.ndarray
    error: np.ndarray
    size_times_t: np.ndarray
    error_over_w: np.ndarray


class TestTilting:
    @pytest.mark.slow
    def test_chernoff_bounds_exceed_40_digit_values(self):
        """The bound at the same tilt and u with 40 digits is slightly lower."""
        rng = np.random.default_rng(1)
        for D, C, q in (
            (10**6, 2, 1e-2),
            (4096, 4, 0.3),
            (64, 4, 0.1),
            (40, 2, 1.0),
            (10**5, 3, 1e-4),
        ):
            law = set_law(Problem(D=D - D % C, C=C, q=q))
            for r in (0, 1, -3, 5):
                x = rng.uniform(-2.0, 2.0, (len(law.n), 1)) / D
                u, log_f, allowed = tilted(law, x, 0.5, float(r))
                with mpmath.workdps(40):
                    exact = exact_bound(law, q, x[:, 0], 0.5, u, r)
                    over = float((law.L - 1.0) * log_f - mpmath.mpf(r) * u + allowed - exact)
                assert 0.0 <= over <= 2.0 * allowed
                assert allowed < 1e-6


@kernel
def tilted(law, x, lam, r):
    """Return u, log f and the slack of one total at one tilt."""
    tilting = allocate_tilting(law)
    tilting.lam[0], tilting.rows[R * 80] = lam, r
    tilt_totals(0, 1, law, x, tilting)
    u, log_f = tilting.rows[U * 80], tilting.log_f[0]
    return u, log_f, slack(law, log_f, r * u)


def exact_bound(law, q, x, lam, u, r):
    """Return log of f^(L-1) e^(-r u) in the current precision of mpmath."""
    q, C = mpmath.mpf(q), law.C
    f = (1 - q) ** C
    for a, b, value in zip(law.plus, law.minus, x):
        ways = math.comb(C, int(a)) * math.comb(C - int(a), int(b))
        probability = ways * (q / 2) ** int(a + b) * (1 - q) ** int(C - a - b)
        f += probability * mpmath.exp(
            -mpmath.mpf(lam) * mpmath.mpf(value) + mpmath.mpf(u) * int(a - b)
        )
    return (law.L - 1) * mpmath.log(f) - r * mpmath.mpf(u)


class TestPowers:
    @pytest.mark.parametrize(
        ("D", "C", "q"),
        [pytest.param(64, 2, 0.3, marks=pytest.mark.slow), (24, 4, 1.0), (4096, 2, 2.0**-10)],
    )
    def test_rounding_of_powers_is_within_the_bound(self, D, C, q):
        """F = 0 has no phases, and the errors of weights set aside leave those of powers.

        At totals near 0 the tilts are small, and the shares good to a few units in the last place;
        far from it the rounding of their exponents counts, too.
        """
        integration = Integration(Problem(D=D, C=C, q=q), State(0.0, 0.3, -0.1), 1e-10)
        full = np.where(integration.integrated, (2 * (integration.law.L - 1) * C + 5) // 4 * 4, 0)
        lines = integration.lines._replace(angles=np.minimum(full, 4 * integration.lines.angles))
        count = len(integration.integrated)
        lines = lines._replace(alias=np.zeros(count), eta=np.full(count, 0.25))  # the same at F = 0
        sums, front = integration.sums(lines), np.exp(lines.logs)
        integrated = Integrated(
            front,
            np.zeros(count),
            np.zeros((count, 5)),
            np.zeros((count, 5, 5)),
            np.zeros((count, 5)),
        )
        moments = Moments(np.zeros((5, count)), np.zeros((5, count)))
        bare = sums._replace(error=np.zeros(count), error_over_w=np.zeros(count))
        rounding_alone(integration.law, integration.goals.tables, lines, bare, moments, integrated)
        most = 0.0
        center = -integration.goals.tables.first
        for i in np.flatnonzero(integration.integrated):
            weight = node_sum(lines.eta[i], lines.step[i], lines.nodes[i])
            exact = weight * integration.law.p_total[integration.law.center + i - center]
            apart = abs(front[i, 4] * sums.by_type[i].sum() - exact)
            bound = integrated.bounds[i, 4, 4]
            assert apart <= bound + integrated.rounding[i, 4]
            if abs(i - center) <= C:
                assert apart <= bound
                most = max(most, apart / bound)
        assert most > 1e-4


def node_sum(eta, step, nodes):
    """Return the sum of step Re[1 / sin(pi w)]."""
    w = eta + 1j * step * (np.arange(nodes) + 0.5)
    return float(np.sum(step * (1.0 / np.sin(np.pi * w)).real))


@kernel
def rounding_alone(law, tables, lines, sums, moments, integrated):
    """Fill the rounding errors of all integrals."""
    add_rounding(
        law, tables, lines, sums, moments, integrated, np.empty(2 * law.C + 1), np.empty(10)
    )
