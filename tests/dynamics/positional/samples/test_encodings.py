"""Descent in the encodings P with A = P^T P: gradient, training, and errors raised."""

import numpy as np
import pytest

from dynamics import Problem
from dynamics.core.errors import ParameterError
from dynamics.positional.oracle.descent import population_gradient
from dynamics.positional.samples import EmpiricalRisk, sample
from dynamics.positional.samples.encodings import (
    encodings_gradient,
    initial_encodings,
    train_encodings,
)
from tests.closeness import close, within

PROBLEM = Problem(D=8, C=2, q=0.3, nu=0.1, beta=1.2, output_scale=1.0, d=5)


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    X, y = sample(PROBLEM, 200, rng)
    return X, y, initial_encodings(PROBLEM, rng), rng.standard_normal(5)


def plain_loss(X, y, P, v):
    """Return the risk from the definition (T); P may be complex."""
    A = P.T @ P
    S = np.exp(A - A.real.max(axis=1, keepdims=True))
    S /= S.sum(axis=1, keepdims=True)
    O = np.einsum("ij,njk,k->ni", S, X, v)  # noqa: E741 - the paper's name
    F = (O**3 + PROBLEM.nu * O).sum(axis=1)
    return np.mean(np.log(1.0 + np.exp(-y * F)))


class TestGradient:
    @pytest.mark.parametrize("m", [3, 8, 11])
    def test_gradient_equals_complex_step_derivative(self, case, m):
        X, y, _, v = case
        rng = np.random.default_rng(m)
        P = initial_encodings(PROBLEM, rng, m)
        gradient = encodings_gradient(EmpiricalRisk(PROBLEM, X, y), P, v)
        close(gradient.loss, plain_loss(X, y, P, v).real, rel=1e-12)
        for _ in range(3):
            direction = rng.standard_normal(P.shape)
            slope = plain_loss(X, y, P + 1e-30j * direction, v).imag / 1e-30
            assert np.sum(gradient.dP * direction) == pytest.approx(slope, rel=1e-10, abs=1e-14)

    def test_gradient_equals_finite_differences(self, case):
        X, y, P, v = case
        gradient = encodings_gradient(EmpiricalRisk(PROBLEM, X, y), P, v)
        for index in ((0, 0), (3, 5), (7, 1)):
            high, low = P.copy(), P.copy()
            high[index] += 1e-5
            low[index] -= 1e-5
            slope = (plain_loss(X, y, high, v) - plain_loss(X, y, low, v)).real / 2e-5
            assert gradient.dP[index] == pytest.approx(slope, rel=1e-6, abs=1e-9)

    def test_rotated_encodings_have_rotated_gradients(self, case):
        X, y, P, v = case
        risk = EmpiricalRisk(PROBLEM, X, y)
        R = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 8)))[0]
        plain, rotated = encodings_gradient(risk, P, v), encodings_gradient(risk, R @ P, v)
        within(rotated.dP, R @ plain.dP, 1e-14)
        within(rotated.dv, plain.dv, 1e-14)

    def test_many_samples_approach_the_population_gradient(self):
        """Row sums of the gradient in A vanish for the exact expectation too."""
        rng = np.random.default_rng(2)
        X, y = sample(PROBLEM, 60_000, rng)
        P, v = initial_encodings(PROBLEM, rng), 0.8 * np.eye(1, 5)[0]
        _, G, dv = population_gradient(PROBLEM, P.T @ P, v, np.eye(1, 5)[0])
        np.fill_diagonal(G, -G.sum(axis=1))
        gradient = encodings_gradient(EmpiricalRisk(PROBLEM, X, y), P, v)
        assert np.abs(gradient.dP - P @ (G + G.T)).max() < 0.02 * np.abs(gradient.dP).max() + 5e-4
        assert np.abs(gradient.dv[0] - dv[0]) < 0.02 * abs(dv[0])


class TestTraining:
    def test_loss_decreases_and_every_step_is_recorded(self, case):
        X, y, P, v = case
        result = train_encodings(
            PROBLEM, X, y, initial=(P, v), learning_rate_P=0.05, learning_rate_v=0.05, steps=30
        )
        assert np.all(np.diff(result.loss) < 0.0)
        np.testing.assert_array_equal(result.A[0], P.T @ P)
        np.testing.assert_array_equal(result.A[-1], result.P.T @ result.P)
        np.testing.assert_array_equal(result.v_path[-1], result.v)
        first = encodings_gradient(EmpiricalRisk(PROBLEM, X, y), P, v)
        step = train_encodings(
            PROBLEM, X, y, initial=(P, v), learning_rate_P=0.05, learning_rate_v=0.1, steps=1
        )
        within(step.P, P - 0.05 * first.dP, 1e-15)
        within(step.v, v - 0.1 * first.dv, 1e-15)

    def test_initial_encodings_have_the_variance_of_the_paper(self):
        problem = PROBLEM.replace(D=400, C=2, beta=1.5)
        P = initial_encodings(problem, np.random.default_rng(0))
        A = P.T @ P
        close(np.diag(A).mean(), 1.5, rel=0.01)
        close(A[np.triu_indices(400, 1)].std(), 1.5 / 20.0, rel=0.02)

    def test_divergence_and_invalid_arguments_raise(self, case):
        X, y, P, v = case
        rates = {"learning_rate_P": 0.1, "learning_rate_v": 0.1}
        with pytest.raises(FloatingPointError, match="diverged at step"):
            train_encodings(
                PROBLEM, X, y, initial=(P, 1e200 * v), steps=5, **rates
            )  # v^3 overflows
        with pytest.raises(ParameterError, match="learning_rate_P = -1"):
            train_encodings(
                PROBLEM, X, y, initial=(P, v), steps=5, **rates | {"learning_rate_P": -1.0}
            )
        with pytest.raises(ParameterError, match="beta = -1"):
            initial_encodings(PROBLEM.replace(beta=-1.0), np.random.default_rng(0))
        with pytest.raises(ParameterError, match=r"P\.shape"):
            train_encodings(PROBLEM, X, y, initial=(P[:, :3], v), steps=1, **rates)
