"""Gradient of (E): independent derivatives, symmetries, limit of many samples, curvature."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynamics import ParameterError, Problem
from dynamics.positional.oracle.descent import population_gradient
from dynamics.positional.samples import (
    EmpiricalRisk,
    empirical_gradient,
    random_feature,
    random_partition,
    sample,
    stability,
)
from dynamics.positional.samples.curvature import hessian_product
from dynamics.positional.samples.gradient import FixedScores, FixedValue
from tests.closeness import close, within


def risk(problem, X, y, A, v):
    """Return the risk (E) from its definition; A and v may be complex."""
    weights = np.exp(A / problem.tau)
    S = weights / weights.sum(axis=1, keepdims=True)
    O = problem.kappa * np.einsum("ij,njk,k->ni", S, X, v)  # noqa: E741
    F = np.sum(O**problem.p + problem.nu * O, axis=1)
    return np.mean(np.log(1 + np.exp(-y * F)))


def case(seed=0, N=37, D=6, C=2, d=5, dtype=np.float64, **constants):
    rng = np.random.default_rng(seed)
    problem = Problem(**(dict(D=D, C=C, q=0.4, p=5, nu=0.2, temperature=1.3, d=d) | constants))
    X, y = sample(
        problem, N, rng, random_partition(problem, rng), random_feature(problem, rng), dtype=dtype
    )
    return problem, X, y, rng.normal(size=(D, D)), rng.normal(size=d) / problem.kappa


def complex_step(function, x, step=1e-30):
    slopes = np.zeros(x.size)
    for k in range(x.size):
        shift = np.zeros(x.size, complex)
        shift[k] = 1j * step
        slopes[k] = function(x + shift.reshape(x.shape)).imag / step
    return slopes.reshape(x.shape)


def off_diagonal(matrix):
    return matrix - np.diag(np.diag(matrix))


@pytest.mark.parametrize("p", [3, 5, 9])
@pytest.mark.parametrize(("N", "D", "d"), [(37, 6, 5), (65, 8, 1), (3, 4, 70), (1, 10, 12)])
def test_gradient_equals_complex_step_derivative(p, N, D, d):
    problem, X, y, A, v = case(N=N, D=D, d=d, p=p)
    loss, dA, dv = empirical_gradient(problem, X, y, A, v)
    close(loss, risk(problem, X, y, A, v), rel=1e-13)
    in_A = off_diagonal(complex_step(lambda A: risk(problem, X, y, A, v), A))
    in_v = complex_step(lambda v: risk(problem, X, y, A, v), v)
    within(dA, in_A, 1e-13 * np.abs(in_A).max())
    within(dv, in_v, 1e-13 * np.abs(in_v).max())
    assert np.all(np.diag(dA) == 0.0)


def test_gradient_equals_torch_autograd():
    torch = pytest.importorskip("torch")
    problem, X, y, A, v = case(N=200, D=10, d=30)
    loss, dA, dv = empirical_gradient(problem, X, y, A, v)
    scores, value = torch.tensor(A, requires_grad=True), torch.tensor(v, requires_grad=True)
    O = problem.kappa * (torch.tensor(X) @ value) @ torch.softmax(scores / problem.tau, 1).T  # noqa: E741
    F = (O**problem.p + problem.nu * O).sum(1)
    expected = torch.nn.functional.softplus(-torch.tensor(y) * F).mean()
    expected.backward()
    close(loss, expected.item(), rel=1e-13)
    np.testing.assert_allclose(dA, off_diagonal(scores.grad.numpy()), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(dv, value.grad.numpy(), rtol=1e-10, atol=1e-15)


def test_gradient_equals_finite_differences_along_random_directions():
    problem, X, y, A, v = case(N=100, D=8, d=7)
    _, dA, dv = empirical_gradient(problem, X, y, A, v)
    rng = np.random.default_rng(3)
    for step in (1e-4, 1e-5):
        along_A, along_v = off_diagonal(rng.normal(size=A.shape)), rng.normal(size=v.size) / 8
        ahead, behind = (
            empirical_gradient(problem, X, y, A + sign * along_A, v + sign * along_v).loss
            for sign in (step, -step)
        )
        slope = np.sum(dA * along_A) + dv @ along_v
        close((ahead - behind) / (2 * step), slope, rel=1e-6)


@pytest.mark.parametrize(("N", "D", "d"), [(300, 6, 5), (1100, 16, 64)])
def test_threads_do_not_change_results_and_single_precision_is_accurate(N, D, d):
    # The larger case uses several threads. In single precision, eps = 6e-8 grows by the
    # cancellation in kappa u_j - O_i and by sums over a block.
    problem, X, y, A, v = case(N=N, D=D, d=d, dtype=np.float32)
    results = [EmpiricalRisk(problem, X, y, threads=n).gradient(A, v) for n in (1, 2, 3)]
    for other in results[1:]:
        assert other.loss == results[0].loss
        np.testing.assert_array_equal(other.dA, results[0].dA)
        np.testing.assert_array_equal(other.dv, results[0].dv)
    double = EmpiricalRisk(problem, X.astype(float), y).gradient(A, v)
    close(results[0].loss, double.loss, rel=1e-6)
    for single, exact in zip(results[0][1:], double[1:]):
        assert 0 < np.abs(single - exact).max() < 2e-5 * np.abs(exact).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_evaluators_with_fixed_A_or_fixed_v_agree_with_the_full_gradient(dtype):
    problem, X, y, A, v = case(N=333, D=8, d=20, dtype=dtype)
    whole = EmpiricalRisk(problem, X, y)
    loss, dA, dv = whole.gradient(A, v)
    tolerance = 1e-13 if dtype is np.float64 else 1e-5
    in_v, in_A = FixedScores(whole, A).gradient(A, v), FixedValue(whole, v).gradient(A, v)
    close(in_v.loss, loss, rel=tolerance)
    close(in_A.loss, loss, rel=tolerance)
    within(in_v.dv, dv, tolerance * np.abs(dv).max())
    within(in_A.dA, dA, tolerance * np.abs(dA).max())
    assert not in_v.dA.any()
    assert not in_A.dv.any()


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), data=st.data())
@example(seed=0, data=None)
def test_gradient_is_equivariant(seed, data):
    # Permuting patches permutes dA, rotating R^d rotates dv, and flipping X and y has no effect.
    problem, X, y, A, v = case(seed)
    order = np.arange(6)[::-1] if data is None else data.draw(st.permutations(range(6)))
    order = np.array(order)
    rotation = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(5, 5)))[0]
    loss, dA, dv = empirical_gradient(problem, X, y, A, v)
    moved = empirical_gradient(
        problem, -(X[:, order] @ rotation.T), -y, A[np.ix_(order, order)], rotation @ v
    )
    close(moved.loss, loss, rel=1e-12)
    scale = np.abs(dA).max(), np.abs(dv).max()
    within(moved.dA, dA[np.ix_(order, order)], 1e-12 * scale[0])
    within(moved.dv, rotation @ dv, 1e-12 * scale[1])


@pytest.mark.slow
def test_many_samples_approach_the_population_gradient():
    # The two implementations share no code. The error of the mean of N samples is O(N^(-1/2)).
    problem = Problem(D=6, C=2, q=0.4, p=3, nu=0.1, d=4, output_scale=1.0, sigma=0.3)
    rng = np.random.default_rng(5)
    w, sets = random_feature(problem, rng), random_partition(problem, rng)
    A, v = rng.normal(size=(6, 6)), 0.8 * w
    exact = population_gradient(problem, A, v, w, sets)
    sizes, errors = np.array([500, 2000, 8000, 32000, 128000]), []
    for N in sizes:
        square = 0.0
        for _ in range(6):
            X, y = sample(problem, int(N), rng, sets, w)
            ours = empirical_gradient(problem, X, y, A, v)
            square += sum(np.sum((a - b) ** 2) for a, b in zip(ours[1:], exact[1:]))
        errors.append(np.sqrt(square / 6))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.08)
    assert errors[-1] < 0.01 * np.linalg.norm(exact[1]) + 0.01 * np.linalg.norm(exact[2])


class TestCurvature:
    def test_hessian_product_equals_differences_of_gradients(self):
        problem, X, y, A, v = case(N=25, D=4, d=3)
        rng = np.random.default_rng(0)
        along_A, along_v = off_diagonal(rng.normal(size=A.shape)), rng.normal(size=v.size)
        step = 1e-5
        ahead, behind = (
            empirical_gradient(problem, X, y, A + s * along_A, v + s * along_v)
            for s in (step, -step)
        )
        to_A, to_v = hessian_product(problem, X, y, A, v, along_A, along_v)
        for ours, a, b in zip((to_A, to_v), ahead[1:], behind[1:]):
            expected = (a - b) / (2 * step)
            within(ours, expected, 1e-7 * np.abs(expected).max())

    def test_hessian_is_symmetric(self):
        problem, X, y, A, v = case(N=25, D=4, d=3)
        rng = np.random.default_rng(1)
        x, z = ((off_diagonal(rng.normal(size=A.shape)), rng.normal(size=v.size)) for _ in range(2))
        Hx, Hz = (hessian_product(problem, X, y, A, v, *direction) for direction in (x, z))
        left = sum(np.sum(a * b) for a, b in zip(x, Hz))
        right = sum(np.sum(a * b) for a, b in zip(z, Hx))
        close(left, right, rel=1e-11)

    @pytest.mark.parametrize("block", ["A", "v", "both"])
    @pytest.mark.parametrize("relative", [(1.0, 1.0), (50.0, 0.5)])
    def test_stability_equals_largest_eigenvalue_of_dense_hessian(self, block, relative):
        problem, X, y, A, v = case(N=25, D=4, d=3)
        off = ~np.eye(4, dtype=bool)
        columns = []
        for k in range(15):
            unit = np.eye(15)[k]
            along = np.zeros((4, 4))
            along[off] = unit[:12]
            to_A, to_v = hessian_product(problem, X, y, A, v, along, unit[12:])
            columns.append(np.concatenate([to_A[off], to_v]))
        roots = np.sqrt(np.repeat(relative, (12, 3)))
        hessian = roots[:, None] * np.array(columns) * roots
        chosen = {"A": slice(0, 12), "v": slice(12, 15), "both": slice(0, 15)}[block]
        largest = np.linalg.eigvalsh(hessian[chosen, chosen])[-1]
        result = stability(problem, X, y, A, v, block=block, relative=relative, momentum=0.5)
        close(result.curvature, largest, rel=1e-6)
        close(result.learning_rate, 3.0 / largest, rel=1e-6)

    def test_stability_in_one_dimension_and_without_curvature(self):
        problem, X, y, A, v = case(N=25, D=4, d=1)
        result = stability(problem, X, y, A, v, block="v")
        close(
            result.curvature,
            hessian_product(problem, X, y, A, v, np.zeros((4, 4)), np.ones(1))[1][0],
            rel=1e-12,
        )
        flat = stability(problem, X, y, A, np.zeros(1), block="A")
        assert flat.learning_rate == np.inf


GOOD = dict(N=5, D=4, C=2, d=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((5, 4, 2))}, "the shape of X"),
        ({"X": np.zeros((0, 4, 3))}, "the shape of X"),
        ({"X": np.zeros((5, 4, 3), int)}, "X of type int64"),
        ({"X": [[1.0]]}, "X of type list"),
        ({"y": np.zeros(5)}, "labels must be -1 or \\+1"),
        ({"y": np.ones(4)}, "the shape of y"),
        ({"A": np.zeros((3, 3))}, "A.shape"),
        ({"v": np.full(3, np.nan)}, "v"),
    ],
)
def test_invalid_arguments_raise(change, message):
    problem, X, y, A, v = case(**GOOD)
    arguments = dict(X=X, y=y, A=A, v=v) | change
    with pytest.raises(ParameterError, match=message) as error:
        empirical_gradient(problem, *arguments.values())
    assert "\n" not in str(error.value)


def test_invalid_arguments_of_stability_raise():
    problem, X, y, A, v = case(**GOOD)
    for name, value in {"block": "C", "momentum": 1.0, "relative": (0.0, 1.0)}.items():
        with pytest.raises(ParameterError, match=name):
            stability(problem, X, y, A, v, **{name: value})
    with pytest.raises(ParameterError, match="overflows"):
        stability(problem, X, y, A, 1e200 * v)
    with pytest.raises(ParameterError, match="threads"):
        EmpiricalRisk(problem, X, y, threads=0)


def test_reused_scratch_memory_does_not_change_results():
    problem, X, y, A, v = case(N=4, dtype=np.float32, D=8, C=2, d=20)
    whole = EmpiricalRisk(problem, X, y, threads=1)
    used, unused = FixedScores(whole, A), FixedScores(whole, A)
    used.gradient(A, 1e30 * v)
    first, second = used.gradient(A, v), used.gradient(A, v)
    for value in (second, unused.gradient(A, v)):
        assert value.loss == first.loss
        assert value.dv.tolist() == first.dv.tolist()
    close(first.dv, whole.gradient(A, v).dv, rel=1e-4)
    assert first.finite
    assert not first.dA.any()
    assert not used.gradient(A, np.full_like(v, np.nan)).finite
