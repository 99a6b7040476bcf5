"""The gradient of (E): three independent derivatives, its symmetries, its limit of many samples."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynamics import ParameterError, Problem
from dynamics.positional.oracle.descent import population_gradient
from dynamics.positional.samples import (
    EmpiricalRisk,
    at_random,
    empirical_gradient,
    random_feature,
    sample,
    stability,
)
from dynamics.positional.samples.curvature import hessian_product
from dynamics.positional.samples.gradient import FixedScores, FixedValue
from tests.closeness import close, within


def risk(problem, X, y, A, v):
    """Write (E) as on the page; A and v may be complex."""
    weights = np.exp(A / problem.tau)
    S = weights / weights.sum(axis=1, keepdims=True)
    O = problem.kappa * np.einsum("ij,njk,k->ni", S, X, v)  # noqa: E741
    F = np.sum(O**problem.p + problem.nu * O, axis=1)
    return np.mean(np.log(1 + np.exp(-y * F)))


def case(seed=0, N=37, D=6, C=2, d=5, dtype=np.float64, **constants):
    rng = np.random.default_rng(seed)
    problem = Problem(**(dict(D=D, C=C, q=0.4, p=5, nu=0.2, temperature=1.3, d=d) | constants))
    X, y = sample(
        problem, N, rng, at_random(problem, rng), random_feature(problem, rng), dtype=dtype
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
def test_complex_step(p, N, D, d):
    problem, X, y, A, v = case(N=N, D=D, d=d, p=p)
    loss, dA, dv = empirical_gradient(problem, X, y, A, v)
    close(loss, risk(problem, X, y, A, v), rel=1e-13)
    in_A = off_diagonal(complex_step(lambda A: risk(problem, X, y, A, v), A))
    in_v = complex_step(lambda v: risk(problem, X, y, A, v), v)
    within(dA, in_A, 1e-13 * np.abs(in_A).max())
    within(dv, in_v, 1e-13 * np.abs(in_v).max())
    assert np.all(np.diag(dA) == 0.0)


def test_autograd():
    torch = pytest.importorskip("torch")
    problem, X, y, A, v = case(N=200, D=10, d=30)
    loss, dA, dv = empirical_gradient(problem, X, y, A, v)
    scores, value = torch.tensor(A, requires_grad=True), torch.tensor(v, requires_grad=True)
    O = problem.kappa * (torch.tensor(X) @ value) @ torch.softmax(scores / problem.tau, 1).T  # noqa: E741
    F = (O**problem.p + problem.nu * O).sum(1)
    theirs = torch.nn.functional.softplus(-torch.tensor(y) * F).mean()
    theirs.backward()
    close(loss, theirs.item(), rel=1e-13)
    np.testing.assert_allclose(dA, off_diagonal(scores.grad.numpy()), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(dv, value.grad.numpy(), rtol=1e-10, atol=1e-15)


def test_finite_differences_along_random_directions():
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
def test_single_precision_and_threads(N, D, d):
    # The larger case is shared out among threads; sums must not notice. In single precision,
    # eps = 6e-8 grows by the cancellation in kappa u_j - O_i and sums over a block.
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
def test_shortcuts_with_one_block_fixed(dtype):
    problem, X, y, A, v = case(N=333, D=8, d=20, dtype=dtype)
    whole = EmpiricalRisk(problem, X, y)
    loss, dA, dv = whole.gradient(A, v)
    tolerance = 1e-13 if dtype is np.float64 else 1e-5
    of_v, of_A = FixedScores(whole, A).gradient(A, v), FixedValue(whole, v).gradient(A, v)
    close(of_v.loss, loss, rel=tolerance)
    close(of_A.loss, loss, rel=tolerance)
    within(of_v.dv, dv, tolerance * np.abs(dv).max())
    within(of_A.dA, dA, tolerance * np.abs(dA).max())
    assert not of_v.dA.any()
    assert not of_A.dv.any()


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), data=st.data())
@example(seed=0, data=None)
def test_equivariance(seed, data):
    # Relabelling patches permutes dA; rotating R^d rotates dv; flipping X and y changes nothing.
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


def test_many_samples_approach_the_population_gradient():
    # Both roads share no code. The error of the mean of N samples falls like N^(-1/2).
    problem = Problem(D=6, C=2, q=0.4, p=3, nu=0.1, d=4, output_scale=1.0, sigma=0.3)
    rng = np.random.default_rng(5)
    w, sets = random_feature(problem, rng), at_random(problem, rng)
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
    def test_product_with_the_hessian_against_differences_of_gradients(self):
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
            theirs = (a - b) / (2 * step)
            within(ours, theirs, 1e-7 * np.abs(theirs).max())

    def test_symmetry_of_the_hessian(self):
        problem, X, y, A, v = case(N=25, D=4, d=3)
        rng = np.random.default_rng(1)
        one, two = (
            (off_diagonal(rng.normal(size=A.shape)), rng.normal(size=v.size)) for _ in range(2)
        )
        to_one, to_two = (hessian_product(problem, X, y, A, v, *along) for along in (one, two))
        left = sum(np.sum(a * b) for a, b in zip(one, to_two))
        right = sum(np.sum(a * b) for a, b in zip(two, to_one))
        close(left, right, rel=1e-11)

    @pytest.mark.parametrize("block", ["A", "v", "both"])
    @pytest.mark.parametrize("relative", [(1.0, 1.0), (50.0, 0.5)])
    def test_largest_eigenvalue(self, block, relative):
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
        found = stability(problem, X, y, A, v, block=block, relative=relative, momentum=0.5)
        close(found.curvature, largest, rel=1e-6)
        close(found.learning_rate, 3.0 / largest, rel=1e-6)

    def test_one_dimension_and_concave(self):
        problem, X, y, A, v = case(N=25, D=4, d=1)
        found = stability(problem, X, y, A, v, block="v")
        close(
            found.curvature,
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
        ({"y": np.zeros(5)}, "labels -1 and \\+1"),
        ({"y": np.ones(4)}, "the shape of y"),
        ({"A": np.zeros((3, 3))}, "A.shape"),
        ({"v": np.full(3, np.nan)}, "v"),
    ],
)
def test_bad_input(change, message):
    problem, X, y, A, v = case(**GOOD)
    arguments = dict(X=X, y=y, A=A, v=v) | change
    with pytest.raises(ParameterError, match=message) as refusal:
        empirical_gradient(problem, *arguments.values())
    assert "\n" not in str(refusal.value)


def test_bad_input_to_stability():
    problem, X, y, A, v = case(**GOOD)
    for name, value in {"block": "C", "momentum": 1.0, "relative": (0.0, 1.0)}.items():
        with pytest.raises(ParameterError, match=name):
            stability(problem, X, y, A, v, **{name: value})
    with pytest.raises(ParameterError, match="overflows"):
        stability(problem, X, y, A, 1e200 * v)
    with pytest.raises(ParameterError, match="threads"):
        EmpiricalRisk(problem, X, y, threads=0)


def test_few_samples_at_fixed_scores_keep_nothing_of_a_step_but_memory():
    """Working memory stays between steps: what was evaluated before must not show."""
    problem, X, y, A, v = case(N=4, dtype=np.float32, D=8, C=2, d=20)
    whole = EmpiricalRisk(problem, X, y, threads=1)
    seen, unseen = FixedScores(whole, A), FixedScores(whole, A)
    seen.gradient(A, 1e30 * v)
    first, again = seen.gradient(A, v), seen.gradient(A, v)
    for value in (again, unseen.gradient(A, v)):
        assert value.loss == first.loss
        assert value.dv.tolist() == first.dv.tolist()
    close(first.dv, whole.gradient(A, v).dv, rel=1e-4)
    assert first.finite
    assert not first.dA.any()
    assert not seen.gradient(A, np.full_like(v, np.nan)).finite
