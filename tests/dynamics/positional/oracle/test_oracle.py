"""The full-matrix oracle compared with independent references.

References: Python loops written from (T) and Assumption 1 alone, complex-step differentiation, and
Gauss-Hermite quadrature of the noise as vectors.
"""

import cmath
import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics.core.errors import ParameterError
from dynamics.positional.oracle.descent import (
    FullPopulation,
    embed,
    gradient_descent,
    population_gradient,
    project,
)
from dynamics.positional.problem import Problem, State
from tests.closeness import close, within

# Random cases below have kappa |alpha| <= 3, so that single terms reach kappa act'(3) ~ 1e3 before
# they cancel: a gradient is good to 1e-16 x 1e3 x tens of operations.
ROUNDING = 1e-12

settings_ = settings(deadline=None, max_examples=15)


def unit(rng, d):
    w = rng.normal(size=d)
    return w / np.linalg.norm(w)


def random_case(seed, D=4, C=2, d=3):
    """Return a problem with its ``w*``, a random partition, and an unstructured ``A``."""
    rng = np.random.default_rng(seed)
    problem = Problem(
        D=D,
        C=C,
        q=rng.uniform(0.05, 1.0),
        p=int(rng.choice([3, 5])),
        nu=rng.uniform(0.01, 0.5),
        temperature=rng.uniform(0.5, 3.0),
        output_scale=rng.uniform(0.5, 2.5),
        d=d,
        sigma=rng.uniform(0.1, 1.0),
    )
    partition = rng.permutation(D).reshape(problem.L, C)
    return rng, problem, unit(rng, d), partition, rng.normal(size=(D, D))


def loop_data(problem, partition):
    """Yield (probability, y, coefficients of w*) of Assumption 1 without noise."""
    mass = {1: problem.q / 2, -1: problem.q / 2, 0: 1 - problem.q}
    for signal, y in itertools.product(partition.tolist(), (1, -1)):
        others = [j for j in range(problem.D) if j not in signal]
        for signs in itertools.product(mass, repeat=len(others)):
            s = dict.fromkeys(signal, y) | dict(zip(others, signs))
            probability = np.prod([mass[sign] for sign in signs]) / (2 * problem.L)
            yield probability, y, [s[j] for j in range(problem.D)]


def loop_output(problem, A, v, X):
    """Return F(X) of model (T) in scalar arithmetic; arguments may be complex."""
    D, total = problem.D, 0.0
    projections = [sum(v[k] * X[j][k] for k in range(len(v))) for j in range(D)]
    for i in range(D):
        row = [cmath.exp(A[i][j] / problem.tau) for j in range(D)]
        O = problem.kappa * sum(r * x for r, x in zip(row, projections)) / sum(row)  # noqa: E741
        total += O**problem.p + problem.nu * O
    return total


def loop_loss(problem, A, v, w, partition):
    """Return the noise-free population risk from a plain loop; arguments may be complex."""
    total = 0.0
    for probability, y, s in loop_data(problem, partition):
        X = [[coefficient * part for part in w] for coefficient in s]
        total += probability * loop_logistic(y * loop_output(problem, A, v, X))
    return total


def loop_logistic(m):
    """Return log(1 + e^{-m}) without overflow."""
    return cmath.log(1 + cmath.exp(-m)) if m.real > 0 else cmath.log(1 + cmath.exp(m)) - m


def complex_step(function, x, step=1e-30):
    """Return the gradient of an analytic real function by the complex step."""
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[index] += 1j * step
        gradient[index] = function(moved).imag / step
    return gradient


def off_diagonal(M):
    return M * (1 - np.eye(len(M)))


class TestPlainLoops:
    """The loops above and the complex step are accurate to a few units of rounding."""

    @settings_
    @given(seed=st.integers(0, 10**6))
    def test_loss_and_gradient_equal_complex_step_derivatives(self, seed):
        rng, problem, w, partition, A = random_case(seed)
        v = rng.uniform(-1.2, 1.2) * w
        loss, dA, dv = population_gradient(problem, A, v, w, partition)
        by_A = complex_step(lambda A: loop_loss(problem, A, v, w, partition), A)
        by_v = complex_step(lambda v: loop_loss(problem, A, v, w, partition), v)
        size = 1.0 + np.abs(by_A).max() + np.linalg.norm(by_v)
        close(loss, loop_loss(problem, A, v, w, partition).real, rel=1e-13)
        within(dA, off_diagonal(by_A), ROUNDING * size)
        within(dv, by_v, ROUNDING * size)

    def test_gradient_for_other_numbers_and_sizes_of_sets(self):
        for D, C in ((6, 2), (6, 3)):
            _, problem, w, partition, A = random_case(D + C, D=D, C=C, d=2)
            v = 0.7 * w
            loss, dA, dv = population_gradient(problem, A, v, w, partition)
            moved = A.astype(complex)
            moved[1, 4] += 1e-30j
            by_entry = loop_loss(problem, moved, v, w, partition)
            by_alpha = loop_loss(problem, A, v + 1e-30j * w, w, partition)
            close(loss, by_entry.real, rel=1e-13)
            close(dA[1, 4], by_entry.imag / 1e-30, rel=1e-11)
            close(dv @ w, by_alpha.imag / 1e-30, rel=1e-12)

    def test_gradient_equals_central_differences(self):
        # Third-order error of the difference, h^2 ~ 1e-10, and rounding 1e-16 / h ~ 1e-11.
        rng = np.random.default_rng(3)
        problem = Problem(D=8, C=2, q=0.4, p=5, nu=0.05, temperature=1.4, output_scale=3.0)
        w, A, h = unit(rng, 8), rng.normal(size=(8, 8)), 1e-5
        population = FullPopulation(problem, w, rng.permutation(8).reshape(4, 2))
        v = 0.6 * w
        value = population.evaluate(A, v)
        for i, j in ((0, 1), (2, 7), (5, 3)):
            step = np.zeros((8, 8))
            step[i, j] = h
            change = population.evaluate(A + step, v).loss - population.evaluate(A - step, v).loss
            assert value.dA[i, j] == pytest.approx(change / (2 * h), abs=1e-8)
        change = population.evaluate(A, v + h * w).loss - population.evaluate(A, v - h * w).loss
        assert value.dv @ w == pytest.approx(change / (2 * h), abs=1e-8)

    @settings_
    @given(seed=st.integers(0, 10**6), on_manifold=st.booleans())
    def test_test_error_equals_plain_loops(self, seed, on_manifold):
        rng, problem, w, partition, A = random_case(seed)
        if on_manifold:  # where a random set that negates the signal set gives F = 0
            A, _ = embed(problem, State(1.0, rng.normal(), rng.normal()), w, partition)
        v = rng.uniform(0.2, 1.2) * w
        expected = 0.0
        for probability, y, s in loop_data(problem, partition):
            X = [[coefficient * part for part in w] for coefficient in s]
            F = loop_output(problem, A, v, X).real
            # A tie: the terms cancel to 1e-12 of what they would be if none had a sign.
            unsigned = loop_output(problem, A, v, np.abs(s)[:, None] * w).real
            expected += probability * (y * F <= 1e-12 * unsigned)
        value = FullPopulation(problem, w, partition).evaluate(A, v)
        assert value.test_error == pytest.approx(expected, abs=1e-14)

    def test_test_error_of_uniform_attention_is_a_binomial_tail(self):
        # O_i = alpha (C + R) for every i, so P[F <= 0] = P[R <= -C]; ties R = -C count.
        for score in (0.0, 0.1, -2.3):
            problem = Problem(D=4, C=2, q=0.3, beta=score)
            A, v = embed(problem, State(0.3, score, score), np.eye(4)[0])
            value = FullPopulation(problem, np.eye(4)[0]).evaluate(A, v)
            close(value.test_error, 0.15**2, rel=1e-14)


class TestKnownValues:
    """The reference is a 30-digit evaluation of the reduced sum by other code."""

    problem = Problem(D=8, C=2, q=0.3, p=3, nu=0.01, beta=1.0, temperature=1.3)

    @pytest.mark.parametrize("w", [np.eye(8)[0], unit(np.random.default_rng(0), 8)])
    def test_values_equal_30_digit_reference(self, w):
        A, v = embed(self.problem, State(0.37, 0.2, -0.03), w)
        loss, dA, dv = population_gradient(self.problem, A, v, w)
        same = np.kron(np.eye(4), np.ones((2, 2))).astype(bool) & ~np.eye(8, dtype=bool)
        different = np.kron(1 - np.eye(4), np.ones((2, 2))).astype(bool)
        assert loss == pytest.approx(0.19523298425368842, abs=1e-14)
        assert dv @ w == pytest.approx(-0.23712811189972516, abs=1e-14)
        within(dA[same], -0.003931929555507072, 1e-15)
        within(dA[different], 0.001489724841890816, 1e-15)
        assert np.all(np.diagonal(dA) == 0.0)

    def test_values_at_alpha_zero(self):
        value = FullPopulation(self.problem, np.eye(8)[0]).evaluate(np.ones((8, 8)), np.zeros(8))
        close(value.loss, np.log(2.0), rel=1e-14)  # a sum of 5,832 states
        close(value.test_error, 1.0, rel=1e-14)
        assert not np.any(value.dA)

    def test_extreme_margins_give_finite_values(self):
        problem = self.problem.replace(q=1e-3)
        w = unit(np.random.default_rng(1), 8)  # alpha w* is stored with roundings off the span
        for alpha in (1e-12, 30.0, -30.0, 1e8):
            A, v = embed(problem, State(alpha, 40.0, -40.0), w)
            value = FullPopulation(problem, w).evaluate(A, v)
            assert value.neglected == 0.0
            assert np.isfinite(value.loss)
            assert np.all(np.isfinite(value.dA))
            if alpha < 0:
                assert value.loss > 1.0


class TestSymmetries:
    """Symmetries of the model hold up to rounding."""

    @settings_
    @given(seed=st.integers(0, 10**6), D_C=st.sampled_from([(4, 2), (6, 2), (6, 3), (8, 4)]))
    def test_permutation_of_patches_and_partition(self, seed, D_C):
        rng, problem, w, partition, A = random_case(seed, *D_C)
        v = 0.5 * w
        order = rng.permutation(problem.D)  # new patch k is old patch order[k]
        loss, dA, dv = population_gradient(problem, A, v, w, partition)
        moved = population_gradient(
            problem, A[np.ix_(order, order)], v, w, np.argsort(order)[partition]
        )
        size = 1.0 + np.abs(dA).max() + np.abs(dv).max()
        close(moved[0], loss, rel=1e-13)
        within(moved[1], dA[np.ix_(order, order)], ROUNDING * size)
        within(moved[2], dv, ROUNDING * size)

    @settings_
    @given(seed=st.integers(0, 10**6))
    def test_rotation_of_the_space_and_w_star(self, seed):
        rng, problem, w, partition, A = random_case(seed, d=5)
        v = 0.5 * w + 1e-8 * rng.normal(size=5)
        rotation, _ = np.linalg.qr(rng.normal(size=(5, 5)))
        loss, dA, dv = population_gradient(problem, A, v, w, partition)
        rotated = population_gradient(problem, A, rotation @ v, rotation @ w, partition)
        size = 1.0 + np.abs(dA).max() + np.abs(dv).max()
        close(rotated[0], loss, rel=1e-13)
        within(rotated[1], dA, ROUNDING * size)
        within(rotated[2], rotation @ dv, ROUNDING * size)

    @settings_
    @given(seed=st.integers(0, 10**6))
    def test_single_labels_give_the_same_risk(self, seed):
        # F is odd in X, so y = +1 may be assumed. The oracle does not assume it.
        rng, problem, w, partition, A = random_case(seed)
        v = 0.5 * w + 1e-8 * rng.normal(size=3)
        population = FullPopulation(problem, w, partition)
        both = population.evaluate(A, v)
        weights = population._weights
        for y in (1.0, -1.0):
            population._weights = np.where(population._labels == y, 2.0 * weights, 0.0)
            single = population.evaluate(A, v)
            size = 1.0 + np.abs(both.dA).max() + np.abs(both.dv).max()
            for result, expected in zip(single, both):
                within(result, expected, ROUNDING * size)

    @settings_
    @given(
        seed=st.integers(0, 10**6),
        D_C=st.sampled_from([(4, 2), (6, 3), (8, 2)]),
        state=st.tuples(st.floats(-1, 1), st.floats(-3, 3), st.floats(-3, 3)),
    )
    def test_gradient_is_tangential_to_the_manifold(self, seed, D_C, state):
        # Lemmas 4.1 and 4.2: dA symmetric with two values, dv along w*.
        _, problem, w, partition, _ = random_case(seed, *D_C)
        A, v = embed(problem, State(*state), w, partition)
        _, dA, dv = population_gradient(problem, A, v, w, partition)
        slopes = project(problem, dA, dv, w, partition)
        expected_dA, expected_dv = embed(problem.replace(beta=0.0), slopes, w, partition)
        size = 1.0 + np.abs(dv).max() + np.abs(dA).max()
        within(dA, expected_dA, ROUNDING * size)
        within(dv, expected_dv, ROUNDING * size)

    def test_probabilities_of_all_patterns(self):
        # The very table, pattern by pattern: 2 labels x 3 signal sets x 3^4 sign patterns.
        problem, partition = Problem(D=6, C=2, q=0.37), np.array([[4, 1], [0, 3], [5, 2]])
        population = FullPopulation(problem, np.eye(6)[0], partition)
        table = zip(population._labels, population._coefficients.T.tolist(), population._weights)
        expected = sorted((y, s, mass) for mass, y, s in loop_data(problem, partition))
        assert len(expected) == 2 * 3 * 3**4
        for result, (y, s, mass) in zip(sorted(table), expected, strict=True):
            assert result[:2] == (y, s)
            close(result[2], mass, rel=1e-14)
        close(population._weights.sum(), 1.0, rel=1e-14)

    def test_arguments_are_unchanged_and_chunk_size_has_no_effect(self, monkeypatch):
        rng, problem, w, partition, A = random_case(5, D=6, C=2)
        v = 0.5 * w + 1e-8 * rng.normal(size=3)
        copies = A.copy(), v.copy(), w.copy(), partition.copy()
        whole = FullPopulation(problem, w, partition).evaluate(A, v)
        monkeypatch.setattr("dynamics.positional.oracle.expectation._ENTRIES", 7 * problem.D)
        pieces = FullPopulation(problem, w, partition).evaluate(A, v)
        for result, expected in zip(pieces, whole):
            np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-16)
        for array, copy in zip((A, v, w, partition), copies):
            np.testing.assert_array_equal(array, copy)


def quadrature_loss(problem, A, v, w, partition, nodes):
    """Return the risk at d = 2, where the noise of each patch is one Gaussian number.

    The noise is a vector of the plane and is integrated by Gauss-Hermite quadrature, exactly for
    polynomials up to degree ``2 nodes - 1`` in each of the D numbers. Arguments may be complex.
    """
    z, mass = np.polynomial.hermite_e.hermegauss(nodes)
    z = np.array(list(itertools.product(z, repeat=problem.D)))
    mass = np.prod(list(itertools.product(mass / mass.sum(), repeat=problem.D)), axis=1)
    across = np.array([-w[1], w[0]])
    S = np.exp(A / problem.tau)
    S = S / S.sum(axis=1, keepdims=True)
    total = 0.0
    for probability, y, s in loop_data(problem, partition):
        X = np.multiply.outer(np.array(s), w) + problem.noise * np.multiply.outer(z, across)
        O = problem.kappa * (X @ v) @ S.T  # noqa: E741
        F = np.sum(O**problem.p + problem.nu * O, axis=1)
        total += probability * (mass @ np.log(1.0 + np.exp(-y * F)))
    return total


def plane_case(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(D=4, C=2, q=0.4, p=(3, 5)[seed % 2], nu=0.05, temperature=1.2, d=2, sigma=0.7)
    problem = problem.replace(output_scale=2.5)
    w = unit(rng, 2)
    across = np.array([-w[1], w[0]])
    return problem, w, across, rng.permutation(4).reshape(2, 2), rng.normal(size=(4, 4))


class TestNoise:
    """References: Gauss-Hermite quadrature (d = 2) and samples of vector noise (d = 3)."""

    @pytest.mark.parametrize("seed", [0, 1, 2, 3])
    def test_noise_expansion_equals_quadrature(self, seed):
        # |v_perp| just inside what is accepted: the risk must agree to the neglected bound,
        # dA and the part along w* to that order times their sensitivity, the part along v_perp to
        # the square root of it; the correction itself is a thousand times larger.
        problem, w, across, partition, A = plane_case(seed)
        population = FullPopulation(problem, w, partition)
        v = 0.6 * w + largest_distance(population, A, 0.6 * w, across) * across
        value = population.evaluate(A, v)
        clean = population.evaluate(A, 0.6 * w)
        with_noise = (problem, A, v, w, partition)
        by_A = complex_step(lambda A: quadrature_loss(problem, A, v, w, partition, 5), A)
        by_v = complex_step(lambda v: quadrature_loss(problem, A, v, w, partition, 5), v)
        assert abs(value.loss - quadrature_loss(*with_noise, 5)) <= value.neglected + 4e-16
        within(value.dA, off_diagonal(by_A), 1e-11)
        assert value.dv @ w == pytest.approx(by_v @ w, abs=1e-11)
        close(value.dv @ across, by_v @ across, rel=1e-5)
        assert abs(value.loss - clean.loss) > 1e3 * value.neglected
        assert np.abs(value.dA - clean.dA).max() > 1e-10
        assert abs((value.dv - clean.dv) @ w) > 1e-10

    def test_neglected_term_is_within_its_bound(self, monkeypatch):
        # The error is of fourth order in |v_perp| and below its bound where that order dominates.
        monkeypatch.setattr("dynamics.positional.oracle.expectation.NEGLIGIBLE", np.inf)
        problem, w, across, partition, A = plane_case(0)
        population = FullPopulation(problem, w, partition)
        distances = np.array([0.01, 0.02, 0.04])
        errors, bounds = np.zeros(3), np.zeros(3)
        for k, distance in enumerate(distances):
            v = 0.6 * w + distance * across
            value = population.evaluate(A, v)
            errors[k] = abs(value.loss - quadrature_loss(problem, A, v, w, partition, 7))
            bounds[k] = value.neglected
        assert np.all(errors < bounds)
        slope = np.polyfit(np.log(distances), np.log(errors), 1)[0]
        assert slope == pytest.approx(4.0, abs=0.1)
        close(bounds / bounds[0], (distances / 0.01) ** 4, rel=1e-12)

    @settings_
    @given(seed=st.integers(0, 10**6))
    def test_gradient_in_v_perp_is_the_derivative_of_the_noise_term(self, seed):
        # Noise term t E[Q] / 2, force sigma^2 E[Q] v_perp, t = sigma^2 |v_perp|^2. The noise term
        # is a difference of losses: known to a few eps of them.
        rng, problem, w, partition, A = random_case(seed)
        population = FullPopulation(problem, w, partition)
        clean = population.evaluate(A, 0.5 * w)
        across = np.cross(w, unit(rng, 3))
        v_perp = largest_distance(population, A, 0.5 * w, across) * across
        value = population.evaluate(A, 0.5 * w + v_perp)
        noise_term = value.loss - clean.loss
        assert value.dv @ v_perp == pytest.approx(2.0 * noise_term, rel=1e-12, abs=1e-14)

    def test_noise_expansion_agrees_with_samples(self):
        # d = 3. Antithetic pairs, the noise-free loss subtracted pattern by pattern: what is left
        # is the noise term itself, known to a few per cent; accepted within 5 standard errors.
        rng, problem, w, partition, A = random_case(12)
        A = A / 2
        across = np.cross(w, unit(rng, 3))
        population = FullPopulation(problem, w, partition)
        v = 0.5 * w + 0.9 * largest_distance(population, A, 0.5 * w, across) * across
        projector = np.eye(3) - np.outer(w, w)
        S = np.exp(A / problem.tau)
        S /= S.sum(axis=1, keepdims=True)

        def losses(X, y):
            O = problem.kappa * (X @ v) @ S.T  # noqa: E741
            return np.log1p(np.exp(-y * np.sum(O**problem.p + problem.nu * O, axis=-1)))

        samples = 0.0
        xi = problem.noise * rng.normal(size=(20_000, 4, 3)) @ projector
        for probability, y, s in loop_data(problem, partition):
            X = np.multiply.outer(np.array(s), w)
            samples += probability * (0.5 * (losses(X + xi, y) + losses(X - xi, y)) - losses(X, y))
        measured = population.evaluate(A, v).loss - population.evaluate(A, 0.5 * w).loss
        error = samples.std() / np.sqrt(len(samples))
        assert abs(measured - samples.mean()) < 5 * error
        assert error < 0.1 * abs(measured)

    def test_too_large_distance_from_the_span_raises(self):
        problem, w, across, partition, A = plane_case(1)
        population = FullPopulation(problem, w, partition)
        with pytest.raises(ParameterError, match="from span\\(w_star\\) is not allowed") as error:
            population.evaluate(A, 0.6 * w + 0.1 * across)
        assert_single_line(error)
        # The distance named in the message is where the expansion stops, at 1e-12 of the loss.
        largest = float(re.search("up to distance ([0-9.e-]+)", str(error.value))[1])
        bound = population.evaluate(A, 0.6 * w + 1e-6 * across)
        close(largest, 1e-6 * (1e-12 * bound.loss / bound.neglected) ** 0.25, rel=5e-3)
        inside = population.evaluate(A, 0.6 * w + 0.99 * largest * across)
        assert 0.9e-12 * inside.loss < inside.neglected <= 1e-12 * inside.loss
        with pytest.raises(ParameterError, match="from span"):
            population.evaluate(A, 0.6 * w + 1.01 * largest * across)
        value = FullPopulation(problem.replace(sigma=0.0), w, partition).evaluate(
            A, 0.6 * w + 0.1 * across
        )
        assert value.neglected == 0.0
        assert value.dv @ across == pytest.approx(0.0, abs=1e-15)


def largest_distance(population, A, v, across):
    """Return the largest allowed distance from the span, from the fourth power of the bound."""
    value = population.evaluate(A, v + 1e-6 * across)
    return 1e-6 * (0.99e-12 * value.loss / value.neglected) ** 0.25


class TestGradientDescent:
    """References: `population_gradient`, and the linear response to a small v_perp."""

    problem = Problem(D=8, C=2, q=0.3, p=3, nu=0.01, beta=1.0, temperature=1.3)

    @pytest.mark.parametrize(
        "w",
        [
            pytest.param(np.eye(8)[0], marks=pytest.mark.slow),
            unit(np.random.default_rng(1), 8),
        ],
    )
    def test_1000_steps_remain_on_the_manifold_up_to_rounding(self, w):
        partition = np.random.default_rng(2).permutation(8).reshape(4, 2)
        start = embed(self.problem, self.problem.initial_state, w, partition)
        trajectory = gradient_descent(
            self.problem,
            *start,
            w,
            learning_rate=0.1,
            steps=1000,
            partition=partition,
            record_every=100,
        )
        # A thousand roundings of numbers of order 1, partly of one sign: far below 1000 eps.
        assert trajectory.leakage() < 2e-14
        assert trajectory.violations()["diagonal of A fixed"] == 0.0
        close(trajectory.time, 0.1 * np.arange(0, 1001, 100), rel=1e-12)
        assert np.all(np.diff(trajectory.loss) < 0.0)
        alpha, gamma, rho = trajectory.states()[-1]
        assert alpha > 0.3
        assert gamma > abs(rho) > 0.0

    @pytest.mark.slow
    def test_v_perp_follows_the_linear_response(self):
        # v_perp(n) = prod (1 - lr sigma^2 E[Q]) v_perp(0), E[Q] from quadrature of the true noise.
        # At small alpha E[Q] < 0: the span is invariant but repels at first, and attracts later.
        problem, w, across, partition, _ = plane_case(2)
        A, v = embed(problem, State(0.1, 0.0, 0.0), w, partition)
        rate, distance, steps = 0.1, 1e-7, 150
        trajectory = gradient_descent(
            problem,
            A,
            v + distance * across,
            w,
            learning_rate=rate,
            steps=steps,
            partition=partition,
            record_every=5,
        )
        clean = gradient_descent(
            problem, A, v, w, learning_rate=rate, steps=steps, partition=partition
        )
        growth, predicted = 1.0, [distance]
        for A, v in zip(clean.A[:-1], clean.v[:-1]):
            probe = 1e-4  # the quadratic term of the true risk, to about probe^2 relative
            change = quadrature_loss(problem, A, v + probe * across, w, partition, 3)
            change -= quadrature_loss(problem, A, v, w, partition, 1)
            growth *= 1.0 - rate * 2.0 * change / probe**2
            predicted.append(distance * growth)
        measured = trajectory.v @ across
        # Rounding of the quadrature, 1e-16 / 1e-8 per step, is the weakest link here.
        close(measured, predicted[::5], rel=1e-4)
        assert measured.max() > 1.05 * distance
        assert measured[-1] < measured.max()
        leak = trajectory.violations()["v in span(w*)"]
        close(leak, np.abs(measured).max(), rel=1e-6)
        assert trajectory.violations()["A takes three values"] < 1e-14

    def test_violations_of_each_property(self):
        w = np.eye(8)[0]
        A, v = embed(self.problem, State(0.3, 0.2, 0.1), w)
        A[0, 2] += 0.3
        trajectory = gradient_descent(self.problem, A, v, w, learning_rate=1e-3, steps=1)
        result = trajectory.violations()
        close(result["symmetry of A"], 0.3, rel=1e-2)
        close(result["A takes three values"], 0.3 * 47 / 48, rel=1e-2)
        assert result["v in span(w*)"] == 0.0

    def test_restarted_descent_is_identical(self):
        rng = np.random.default_rng(4)
        w, A = unit(rng, 8), rng.normal(size=(8, 8))
        run = lambda A, v, **options: gradient_descent(  # noqa: E731
            self.problem, A, v, w, learning_rate=0.05, **options
        )
        whole = run(A, 0.3 * w, steps=20, record_every=7)
        half = run(A, 0.3 * w, steps=10)
        rest = run(half.A[-1], half.v[-1], steps=10)
        np.testing.assert_array_equal(whole.step, [0, 7, 14, 20])
        np.testing.assert_array_equal(whole.A[-1], rest.A[-1])
        np.testing.assert_array_equal(whole.v[-1], rest.v[-1])
        np.testing.assert_array_equal(whole.A[0], A)
        assert whole.A.shape == (4, 8, 8)
        assert whole.v.shape == (4, 8)
        value = FullPopulation(self.problem, w).evaluate(half.A[3], half.v[3])
        assert half.loss[3] == value.loss
        np.testing.assert_array_equal(half.A[4], half.A[3] - 0.05 * value.dA)
        np.testing.assert_array_equal(half.v[4], half.v[3] - 0.05 * value.dv)

    @settings_
    @given(state=st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.floats(-5, 5)))
    def test_project_inverts_embed(self, state):
        w = unit(np.random.default_rng(6), 8)
        partition = np.random.default_rng(7).permutation(8).reshape(2, 4)
        problem = self.problem.replace(C=4)
        A, v = embed(problem, State(*state), w, partition)
        np.testing.assert_array_equal(np.diagonal(A), problem.beta)
        result = project(problem, A, v, w, partition)
        np.testing.assert_allclose(result, state, rtol=1e-14, atol=1e-15)


def assert_single_line(error):
    message = str(error.value)
    assert message
    assert "\n" not in message
    assert ". " not in message
    assert not message.endswith(".")


class TestInvalidArguments:
    """Each violated constraint raises an error that contains the argument."""

    good = dict(A=np.eye(4), v=np.eye(4)[0] * 0.3, w_star=np.eye(4)[0], partition=[[0, 1], [2, 3]])  # noqa: RUF012

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("A", np.eye(3)),
            ("A", np.full((4, 4), np.nan)),
            ("A", np.eye(4) + 1j),
            ("A", "scores"),
            ("A", [[1, 2], [3]]),
            ("v", np.ones(3)),
            ("v", np.array([np.inf, 0, 0, 0])),
            ("v", np.ones((4, 1))),
            ("v", np.array([1e200, 0, 0, 0])),
            ("w_star", np.ones(4)),
            ("w_star", np.zeros(4)),
            ("w_star", np.array([1.0 + 1e-9, 0, 0, 0])),
            ("w_star", np.eye(3)[0]),
            ("w_star", np.array([np.nan, 0, 0, 0])),
            ("partition", [[0, 1], [2, 2]]),
            ("partition", [[0, 1], [2, 4]]),
            ("partition", [[0, 1], [2, 2.5]]),
            ("partition", [[0, 1, 2, 3]]),
            ("partition", [[0, 1, 2], [3]]),
            ("partition", [[0, 1], [2, -1]]),
        ],
    )
    def test_invalid_arguments_raise(self, name, value):
        problem = Problem(D=4, C=2, q=0.3)
        with pytest.raises(ParameterError, match=name) as error:
            population_gradient(problem, **(self.good | {name: value}))
        assert_single_line(error)

    @pytest.mark.parametrize(("D", "C"), [(16, 4), (64, 4), (10**9, 2), (14, 2)])
    def test_too_many_patterns_raise(self, D, C):
        problem = Problem(D=D, C=C, q=1e-9, d=2)
        with pytest.raises(ParameterError, match="at most 2000000") as error:
            population_gradient(problem, np.eye(4), [1.0, 0.0], [1.0, 0.0])
        assert_single_line(error)

    @pytest.mark.parametrize(
        "options",
        [
            {"learning_rate": 0.0},
            {"learning_rate": np.nan},
            {"learning_rate": "fast"},
            {"steps": 0},
            {"steps": 1.5},
            {"steps": True},
            {"record_every": 0},
            {"learning_rate": 1e200, "steps": 50},
        ],
    )
    def test_invalid_options_of_descent_raise(self, options):
        problem = Problem(D=4, C=2, q=0.3)
        arguments = self.good | {"learning_rate": 0.1, "steps": 3} | options
        pattern = "step [0-9]+" if "steps" in options and "learning_rate" in options else None
        with pytest.raises(ParameterError, match=pattern or next(iter(options))) as error:
            gradient_descent(problem, **arguments)
        assert_single_line(error)

    def test_invalid_state_raises(self):
        with pytest.raises(ParameterError, match="gamma") as error:
            embed(Problem(D=4, C=2, q=0.3), State(0.1, np.nan, 0.0), np.eye(4)[0])
        assert_single_line(error)
