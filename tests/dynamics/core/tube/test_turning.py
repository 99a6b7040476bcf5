"""Tubes of systems that turn: pairs of coordinates are bounded by their norm."""

import numpy as np
import pytest
from flint import arb, arb_mat
from scipy.integrate import solve_ivp

from dynamics.core.tube.clocks import Descent, Flow
from dynamics.core.tube.coordinates import Frame, coordinates, coupled, norm
from dynamics.core.tube.tube import enclose
from tests.dynamics.core.tube.quadratic import Quadratic, laub_loomis, robertson

RNG = np.random.default_rng(5)


def balls(values):
    return [[arb(float(x)) for x in row] for row in values]


def linear(A, start, radius):
    n = len(A)
    terms = [(i, float(A[i, j]), (j,)) for i in range(n) for j in range(n)]
    return Quadratic(terms, np.array(start, float), np.full(n, radius))


def similar(rates):
    """Return a matrix with given blocks in random coordinates."""
    basis = RNG.normal(size=(len(rates), len(rates)))
    return basis @ rates @ np.linalg.inv(basis)


class TestCoordinates:
    def test_a_symmetric_jacobian_has_no_pairs(self):
        A = RNG.normal(size=(3, 3))
        basis, blocks = coordinates(arb_mat(balls(A + A.T)), np.ones(3), turns=True)
        assert blocks == ()
        assert np.max(np.abs(basis.T @ basis - np.eye(3))) < 1e-5

    def test_a_pair_turns_as_a_block(self):
        rates = np.array([[-0.5, 0, 0], [0, -0.1, 3.0], [0, -3.0, -0.1]])
        A = similar(rates)
        basis, blocks = coordinates(arb_mat(balls(A)), np.ones(3), turns=True)
        assert sorted(map(len, blocks)) == [1, 2]
        inside = np.linalg.solve(basis, A @ basis)
        pair = next(each for each in blocks if len(each) == 2)
        single = next(each for each in blocks if len(each) == 1)
        block = inside[np.ix_(pair, pair)]
        assert np.max(np.abs(0.5 * (block + block.T) + 0.1 * np.eye(2))) < 1e-4
        assert abs(inside[single[0], single[0]] + 0.5) < 1e-4
        assert np.max(np.abs(inside[np.ix_(single, pair)])) < 1e-4

    def test_no_pairs_for_descent_or_for_parallel_eigenvectors(self):
        turning = arb_mat([[0, 1], [-1, 0]])
        parallel = arb_mat([[1, 1], [0, 1]])
        assert coordinates(turning, np.ones(2), turns=False)[1] == ()
        assert coordinates(parallel, np.ones(2), turns=True)[1] == ()
        assert Descent(0.1).turns is False

    @pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (2, 2)])
    def test_norm_is_the_spectral_norm(self, shape):
        for _ in range(20):
            M = RNG.normal(size=shape)
            assert abs(float(norm(balls(M))) - np.linalg.norm(M, 2)) < 1e-12

    def test_norm_of_wide_balls(self):
        wide = [[arb(0.3, 0.5), arb(-1, 0.25)], [arb(0, 2), arb(1, 1)]]
        bound = float(norm(wide).upper())
        for signs in np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T:
            M = np.array([[0.3, -1], [0, 1]]) + signs.reshape(2, 2) * [[0.5, 0.25], [2, 1]]
            assert np.linalg.norm(M, 2) <= bound

    def test_growth_rate_of_a_block(self):
        M = RNG.normal(size=(3, 3))
        matrix = coupled(balls(M), ((0, 2), (1,)))
        block = M[np.ix_([0, 2], [0, 2])]
        assert abs(float(matrix[0][0]) - np.linalg.eigvalsh(0.5 * (block + block.T))[1]) < 1e-12
        assert abs(float(matrix[0][1]) - np.linalg.norm(M[[0, 2], 1])) < 1e-12
        assert float(matrix[1][1]) == M[1, 1]

    def test_reach_of_a_pair(self):
        frame = Frame(np.array([[3.0, 4.0], [0.0, 1.0]]), [2.0], ((0, 1),))
        assert np.allclose(frame.reach(), [10.0, 2.0], rtol=1e-12, atol=0)
        assert frame.by_coordinate([7.0]) == [7.0, 7.0]


class TestTubes:
    @pytest.mark.slow
    def test_a_spiral_costs_no_more_than_it_grows(self):
        """The radius shrinks by e^(-.1 t) as the solution does; alone, each bound grows by e^(3 t).

        The square of half-width 1e-3 is covered by the disc whose radius is the sum of its sides.
        """
        A = np.array([[-0.1, 3.0], [-3.0, -0.1]])
        system = linear(A, [1.0, 0.0], 1e-3)
        tube = enclose(system, Flow(), 10.0, tolerance=1e-6, functional=np.array([1.0, 0.0]))
        assert tube.end == 10.0
        assert np.all(tube.radius >= 1e-3 * np.sqrt(2.0) * np.exp(-1.0))
        assert np.all(tube.radius < 1.01 * 2e-3 * np.exp(-1.0))

    @pytest.mark.parametrize(
        "corner",
        [(1, 1, 1), (-1, 1, 1), (1, -1, 1), pytest.param((1, 1, -1), marks=pytest.mark.slow)],
    )
    def test_the_corners_of_a_start_stay_inside(self, corner):
        rates = np.array([[-0.5, 0, 0], [0, 0.05, 2.0], [0, -2.0, 0.05]])
        basis = np.array([[1.0, 0.3, -0.2], [0.1, 1.0, 0.4], [-0.5, 0.2, 1.0]])
        A = basis @ rates @ np.linalg.inv(basis)
        system = linear(A, [1.0, -0.5, 0.25], 1e-2)
        tube = enclose(system, Flow(), 5.0, tolerance=1e-6, functional=np.eye(3)[0])
        assert tube.reason == ""
        start = system.start + 1e-2 * np.array(corner)
        values, vectors = np.linalg.eig(A)
        shares = np.linalg.solve(vectors, start)
        for piece in tube.pieces:
            exact = (vectors @ (np.exp(values * piece.end) * shares)).real
            for x, (low, high) in zip(exact, tube.at(piece.end)):
                assert low <= x <= high
        assert np.all(tube.radius < 0.2)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("system", "horizon", "radius"),
        [(robertson(1e3, 1e7), 40.0, 1e-6), (laub_loomis(1e-7), 20.0, 1e-3)],
    )
    def test_public_benchmarks(self, system, horizon, radius):
        functional = np.ones(system.n)
        tube = enclose(system, Flow(), horizon, tolerance=1e-6, functional=functional)
        assert tube.end == horizon
        run = solve_ivp(
            lambda _, x: system.velocity_at(x), (0.0, horizon), system.start, "Radau",
            jac=lambda _, x: system.jacobian_at(x), rtol=1e-10, atol=1e-14,
            t_eval=[0.3 * horizon, horizon],
        )  # fmt: skip
        for time, state in zip(run.t, run.y.T):
            for x, (low, high) in zip(state, tube.at(time)):
                assert low - 1e-9 <= x <= high + 1e-9
        assert np.all(tube.radius < radius)
