"""The limit of many patches compared with the exact expectation, brute force and asymptotes."""

import math

import numpy as np
import pytest
from scipy import special, stats

from dynamics import ParameterError, Population, Problem, SlowManifold, State, attention
from dynamics.positional.many_patch_limit import (
    Limit,
    attended_slope,
    branch,
    drift,
    first_fold,
    linear_constant,
    power_constant,
    quasi_steady,
    time_to_lead,
)
from tests.closeness import close

LIMIT = Limit(4, 4.0)


def by_two_poissons(features, F, values):
    """Return E[s(-F(T)) values(T)], T = 4 + plus - minus, with Poisson variables plus and minus."""
    count = np.arange(80)
    law = np.outer(*(2 * [stats.poisson.pmf(count, features / 2)]))
    T = 4.0 + count[:, None] - count[None, :]
    return float((law * special.expit(-F(T)) * values(T)).sum())


def patches(D, features=4, p=3, nu=None, beta=1.5):
    return Problem(D, 4, features / D, p, nu=1.0 / D if nu is None else nu, beta=beta)


class TestLaw:
    @pytest.mark.parametrize("features", [0.3, 4.0, 250.0])
    def test_moments_of_the_total(self, features):
        limit = Limit(3, features)
        assert limit.probability.sum() == pytest.approx(1.0, abs=1e-13)
        assert limit.probability @ limit.T == pytest.approx(3.0, abs=1e-11)
        close(limit.probability @ limit.R**2, features, rel=1e-11)

    def test_mean_equals_two_poisson_variables(self):
        result = LIMIT.mean(0.1 * LIMIT.T**3, LIMIT.T**2)
        brute = by_two_poissons(4.0, lambda T: 0.1 * T**3, lambda T: T**2)
        close(result, brute, rel=1e-11)

    @pytest.mark.parametrize("bad", [{"C": 1}, {"features": 0.0}, {"p": 4}, {"features": math.inf}])
    def test_invalid_constants_raise(self, bad):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            Limit(**({"C": 4, "features": 4.0} | bad))

    def test_other_scales_raise(self):
        with pytest.raises(ParameterError, match="temperature"):
            Limit.of(patches(100).replace(temperature=2.0))
        with pytest.raises(ParameterError, match="output_scale"):
            Limit.of(patches(100).replace(output_scale=1.0))


class TestQuasiSteadyAlpha:
    @pytest.mark.parametrize("p", [3, 5, 7])
    @pytest.mark.parametrize("features", [1.0, 4.0, 16.0])
    def test_constants_solve_their_equations(self, p, features):
        limit = Limit(4, features, p)
        A, b = power_constant(limit) ** p, linear_constant(limit)
        for F, g in ((lambda T: A * T**p, lambda T: T**p), (lambda T: b * T, lambda T: T)):
            size = by_two_poissons(features, lambda T: 0.0 * T, lambda T: abs(g(T)))  # noqa: B023
            assert abs(by_two_poissons(features, F, g)) < 1e-11 * size

    def test_branch_has_both_asymptotes_and_is_monotone(self):
        for p in (3, 5, 7):
            limit = Limit(4, 16.0, p)
            curve = branch(limit, np.linspace(-30.0, 30.0, 61))
            assert (np.diff(curve.nu_hat) > 0.0).all()
            close(curve.a[0], power_constant(limit), rel=1e-6)
            close(curve.B[-1], linear_constant(limit), rel=1e-4)

    @pytest.mark.parametrize("nu", [1e-12, 1e-3, 0.3])
    def test_quasi_steady_alpha_solves_the_equation(self, nu):
        D = 1e5
        alpha = quasi_steady(LIMIT, D, nu)
        power, linear = D * alpha**3, D * nu * alpha
        left = by_two_poissons(
            4.0, lambda T: power * T**3 + linear * T, lambda T: 3 * power * T**3 + linear * T
        )
        assert abs(left) < 1e-9 * (power + linear)

    @pytest.mark.parametrize("p", [3, 5])
    def test_quasi_steady_alpha_converges_at_rate_one_over_D(self, p):
        apart = []
        for D in (4_000, 40_000):
            problem = patches(D, 16, p)
            exact = SlowManifold(Population(problem, "fourier", 1e-8)).alpha(0.0, 0.0)
            apart.append(exact / quasi_steady(Limit.of(problem), D, problem.nu) - 1.0)
        assert abs(apart[1]) < 3e-3
        assert abs(apart[1]) < 0.25 * abs(apart[0])


class TestDrift:
    @pytest.mark.parametrize("p", [3, 5])
    @pytest.mark.parametrize("nu", [1e-5, 0.01])
    def test_drift_agrees_with_the_population_gradient(self, p, nu):
        D = 100_000
        problem = patches(D, 16, p, nu, beta=1.2)
        limit = Limit.of(problem)
        alpha = quasi_steady(limit, D, nu)
        gradient = Population(problem, "fourier", 1e-8).gradient(State(alpha, 0.0, 0.0))
        result = drift(limit, D, nu, problem.beta, alpha)
        close(result, gradient.rho - gradient.gamma, rel=0.01)

    def test_drift_at_p_3_equals_the_formula(self):
        alpha, h = 0.01, math.expm1(1.3)
        result = drift(LIMIT, 1e6, 1e-6, 1.3, alpha)
        mean = by_two_poissons(
            4.0, lambda T: 1e6 * (alpha**3 * T**3 + 1e-6 * alpha * T), lambda T: h * h + 2 * h * T
        )
        close(result, 3 * 4 * alpha**3 / 1e6 * mean, rel=1e-9)

    @pytest.mark.parametrize(("nu", "power"), [(1e-12, 1.0), (0.3, 3.0)])
    def test_T1_is_proportional_to_the_derived_power_of_D(self, nu, power):
        times = [time_to_lead(patches(D, nu=nu), 20.0 / D) for D in (10**6, 10**8)]
        assert math.log(times[1] / times[0]) / math.log(100) == pytest.approx(power, abs=2e-3)


class TestFolds:
    def test_quasi_steady_alpha_with_attention_to_the_own_set(self):
        """At gamma = 4, D = 1e5 the exact alpha* lies within the neglected Lambda of the limit."""
        problem = patches(100_000, 4, nu=1e-5, beta=1.0)
        exact = SlowManifold(Population(problem, "fourier", 1e-8)).alpha(4.0, 0.0)
        G = attention(problem, State(exact, 4.0, 0.0)).G
        low, high = attended_slope(Limit.of(problem), 1e5, 1e-5, [0.95 * exact, 1.05 * exact], G)
        assert low > 0.0 > high

    def test_fold_is_a_double_zero(self):
        limit = Limit(4, 16.0)
        fold = first_fold(limit, 1e5, 0.01)
        assert abs(fold.G - 578.4) < 1.0
        around = np.geomspace(0.7, 1.4, 41) * fold.alpha
        below, above = (attended_slope(limit, 1e5, 0.01, around, s * fold.G) for s in (0.98, 1.02))
        assert below.min() < 0.0 < above.min()

    def test_no_fold_for_nu_that_decreases_with_D(self):
        fold = first_fold(Limit(4, 16.0), 1e5, 1e-5)
        assert math.isnan(fold.G)
        assert fold.curve[-1, 0] > 4e4
