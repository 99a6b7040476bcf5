"""Bounds of a tube where coordinates drive each other: each term counts.

Trusts: iterates in Arb, exponentials of matrices of floats.
"""

import itertools

import numpy as np
import pytest
from flint import arb, ctx

import dynamics.core.tube.piece as piece_module
from dynamics.core.tube.clocks import Descent, Flow
from dynamics.core.tube.comparison import compare
from dynamics.core.tube.piece import Frame, Piece, Proved, prove_piece
from dynamics.core.tube.tube import enclose
from tests.dynamics.core.balls.reference import number, precise
from tests.dynamics.core.tube.coupled import Coupled

ALTERNATING = np.array([[-30.0, 4.0], [0.0, -1.0]])  # 1 + eta J < 0 at eta = 0.05
SPIRAL = np.array([[-0.5, 3.0], [-1.0, 0.25]])
FUNCTIONAL = np.array([1.0, -2.0])


def worst(M, v, d, steps, eta):
    """The largest |z_i| after some steps, in floats, signs of z and of the defect chosen for it."""
    most = np.zeros(len(v))
    for signs in itertools.product((-1.0, 1.0), repeat=len(v)):
        for i in range(len(v)):
            z = np.array(signs) * v
            powers = [np.linalg.matrix_power(np.eye(len(v)) + eta * M, k) for k in range(steps)]
            z = np.linalg.matrix_power(np.eye(len(v)) + eta * M, steps) @ z
            most[i] = max(most[i], abs(z[i]) + eta * sum(np.abs(P[i]) @ d for P in powers))
    return most


@pytest.fixture(autouse=True)
def _precision():
    with ctx.workprec(piece_module.BITS):
        yield


class TestComparison:
    """Against solutions with the defect that is worst for each coordinate."""

    @pytest.mark.parametrize("seed", range(20))
    def test_descent(self, seed):
        rng = np.random.default_rng(seed)
        n, steps, eta = int(rng.integers(1, 4)), int(rng.integers(1, 6)), 0.1
        M = rng.normal(size=(n, n)) * 2.0 - np.diag(rng.uniform(0.0, 19.0, n))
        v, d = rng.uniform(0.0, 1e-3, n), rng.uniform(0.0, 1e-3, n)
        result = compare(Descent(eta), balls(M), v.tolist(), [arb(x) for x in d], arb(steps))
        if result is None:  # growth that no bar holds
            assert np.max(np.abs(np.linalg.eigvals(np.eye(n) + eta * np.abs(M)))) > 1.0
            return
        most = worst(M, v, d, steps, eta)
        assert np.all(most <= np.array(result.after) * (1.0 + 1e-12))
        for count in range(steps + 1):
            here = worst(M, v, d, count, eta)
            assert np.all(here <= np.array(result.during) * (1.0 + 1e-12))

    @pytest.mark.parametrize("factor", [-0.9, -0.2, 0.0, 0.7, 1.0, 1.3])
    def test_a_factor_of_either_sign(self, factor):
        """One coordinate: |factor|^n v + eta d (|factor|^n - 1)/(|factor| - 1), nothing less."""
        v, d, eta, steps = 1.0, 0.5, 0.25, 5
        result = compare(Descent(eta), [[arb((factor - 1) / eta)]], [v], [arb(d)], arb(steps))
        most = abs(factor) ** steps * v + eta * d * sum(abs(factor) ** k for k in range(steps))
        assert most * (1 - 1e-12) <= result.after[0] <= most * (1 + 1e-9)

    @pytest.mark.parametrize("coupling", [0.1, 1.0, 2.0])
    def test_flow(self, coupling):
        """z_1' = m z_2, z_2' = m z_1 from equal v grows by e^{mh}: the other's bar counts."""
        h, v = 0.3, 1e-3
        result = compare(
            Flow(), balls(np.array([[0.0, coupling], [coupling, 0.0]])), [v, v],
            [arb(0), arb(0)], arb(h),
        )  # fmt: skip
        assert min(result.after) >= v * np.exp(coupling * h)
        assert max(result.after) <= v * np.exp(3.0 * coupling * h)

    def test_the_bar_holds_twice_what_is_reached_with_it(self):
        """So that a checker with a matrix half as wide again does not reject it."""
        M = np.array([[-21.0, 1.6e-4], [1e-6, 1e-3]])
        result = compare(Flow(), balls(M), [5e-10, 2.9e-5], [arb(2e-10), arb(2e-12)], arb(0.07))
        b, decay = 2e-10 + 1.5 * 1.6e-4 * result.bar[1], np.exp(-21.0 * 0.07)
        assert 5e-10 * decay + b * (1.0 - decay) / 21.0 < result.bar[0]


def balls(M):
    return [[arb(x) for x in row] for row in M.tolist()]


def ends(result, count):
    """(low, high) in Arb at the end of the piece that ends there."""
    k = [piece.end for piece in result.pieces].index(count)
    piece, reach = result.pieces[k], result.parts[k][-1].reach
    at = [sum((number(c) for c in column), number(0)) for column in piece.coefficients.T]
    return [(x - number(r), x + number(r)) for x, r in zip(at, reach)]


class TestDescent:
    """Iterates from the corners of the start, with perturbations of every sign, stay inside."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("A", "eta"), [(ALTERNATING, 0.05), (SPIRAL, 0.02)])
    def test_adversarial_iterates(self, A, eta):
        system = Coupled(
            A, bend=(0.1, -0.2), lost=(1e-6, 2e-6), start_radius=np.array([1e-6, 2e-6])
        )
        steps = 40
        result = enclose(system, Descent(eta), steps, tolerance=1e-5, functional=FUNCTIONAL)
        assert result.reason == ""
        counts = [int(piece.end) for piece in result.pieces]
        used = 0.0
        every = list(itertools.product((-1, 1), repeat=2))
        for corner, first, second in itertools.product(every, repeat=3):
            signs = [first if step % 2 else second for step in range(steps)]
            start = system.start + np.array(corner) * system.start_radius
            with precise():
                iterates = system.descent(start, signs, eta, steps)
                for count in counts:
                    for x, (low, high) in zip(iterates[count], ends(result, count)):
                        assert low <= x <= high
                        used = max(used, float(abs(2 * x - low - high) / (high - low)))
        assert used > 0.3  # of the radius: the bounds are not idle


class TestEachTerm:
    def piece(self, end=1.0, slope=1.0):
        return Piece(0.0, end, np.array([[0.0, 0.0], [slope, 0.0]]))

    def test_the_remainder_of_the_jacobian(self, monkeypatch):
        """J_00 = 7 u^6 along x_0 = u: a Taylor polynomial of order 4 has nothing of it."""
        system, seen, right = Coupled(np.zeros((2, 2)), bend=(1.0, 0.5), power=7), [], compare

        def watched(clock, matrix, *rest):
            seen.append(matrix)
            return right(clock, matrix, *rest)

        monkeypatch.setattr(piece_module, "compare", watched)
        bases, chosen = [], piece_module.coordinates

        def alone(*arguments):
            bases.append(chosen(*arguments)[0])
            return bases[-1], ()

        monkeypatch.setattr(piece_module, "coordinates", alone)
        piece, frame = self.piece(1e-3), Frame(np.eye(2), [1e-9, 1e-9])
        prove_piece(system, Flow(), piece, system.metric, frame, piece.at(-1.0)[None], FUNCTIONAL)
        assert len(seen) >= 8
        for k, (matrix, basis) in enumerate(zip(seen[:8], bases)):
            for u in (k / 4 - 1, k / 4 - 0.875, k / 4 - 0.75):
                J = np.linalg.solve(basis, system.jacobian_at(piece.at(u)) @ basis)
                for i, j in np.ndindex(2, 2):
                    assert abs(matrix[i][j] - J[i, j]).lower() <= 1e-10

    def test_what_is_left_out_is_in_the_rate(self):
        """Both signs of the perturbation are possible velocities of the functional."""
        result = prove_piece(
            system := Coupled(SPIRAL, lost=(1e-3, 2e-3), start=np.zeros(2)), Flow(),
            self.piece(0.125, 1e-3), system.metric, Frame(np.eye(2), [1e-3, 0.0]),
            np.zeros((1, 2)), FUNCTIONAL,
        )  # fmt: skip
        assert isinstance(result, Proved)
        for k, part in enumerate(result.parts):
            theta = self.piece(0.125, 1e-3).at((2 * k + 1) / 8 - 1)
            rate = float(FUNCTIONAL @ system.velocity_at(theta))
            assert part.rate[0] <= rate - 5e-3
            assert part.rate[1] >= rate + 5e-3

    def test_it_is_bounded_all_over_the_tube(self):
        """A perturbation that begins 1e-6 away from the curve, within the radius."""
        start, length = np.array([0.5, 0.25]), 0.125
        curve = Piece(0.0, length, np.array([start, [0.0, 0.0]]))
        system = Coupled(np.zeros((2, 2)), lost=(0.0, 1e-3), beyond=0.5 + 1e-6)
        result = prove_piece(
            system, Flow(), curve, system.metric, Frame(np.eye(2), [2e-6, 0.0]), start[None],
            FUNCTIONAL,
        )  # fmt: skip
        assert isinstance(result, Proved)
        assert result.frame.reach()[1] >= 1e-3 * length

    def test_value_and_rate_hold_off_the_curve(self):
        """At the corners of the start, in coordinates that the eigenbasis turns."""
        system, radius = (
            Coupled(SPIRAL, bend=(0.5, -0.5), start=np.zeros(2)),
            np.array([1e-3, 2e-3]),
        )
        curve = self.piece(0.01, 1e-3)
        result = prove_piece(
            system, Flow(), curve, system.metric, Frame(np.eye(2), radius.tolist()),
            curve.at(-1.0)[None], FUNCTIONAL,
        )  # fmt: skip
        value, rate = result.parts[0].value, result.parts[0].rate
        for signs in itertools.product((-1.0, 1.0), repeat=2):
            theta = curve.at(-1.0) + radius * signs
            assert value[0] <= FUNCTIONAL @ theta <= value[1]
            assert rate[0] <= FUNCTIONAL @ system.velocity_at(theta) <= rate[1]
