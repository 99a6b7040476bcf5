"""Tubes contain the exact solution, and wrong curves are not proved."""

import numpy as np
import pytest

import dynamics.core.tube.tube as enclosing
from dynamics.core.tube.clocks import Descent, Flow
from dynamics.core.tube.piece import Frame, Piece, Proved, Unproved, prove_piece
from dynamics.core.tube.tube import enclose
from tests.dynamics.core.balls.reference import number, precise
from tests.dynamics.core.tube.toy import Toy, descent_at, flow_at

FUNCTIONAL = np.array([1.0, 0.0])


def tube(system=None, horizon=8.0, tolerance=1e-8, **options):
    return enclose(
        Toy() if system is None else system,
        Flow(),
        horizon,
        tolerance=tolerance,
        functional=FUNCTIONAL,
        **options,
    )


def misses(result, exact):
    """Count the parts at whose middle the exact solution is outside the tube."""
    count = 0
    for piece, parts in zip(result.pieces, result.parts):
        for k, part in enumerate(parts):
            u = (2 * k + 1) / 8 - 1
            with precise():
                time = number(piece.start) + piece.length * number((u + 1) / 2)
                curve = [
                    sum((number(c) * number(u) ** m for m, c in enumerate(column)), number(0))
                    for column in piece.coefficients.T
                ]
                there = exact(time)
                count += any(
                    not abs(x - y) <= number(r) for x, y, r in zip(there, curve, part.reach)
                )
    return count


class TestFlow:
    @pytest.fixture(scope="class")
    @staticmethod
    def result():
        return tube()

    @pytest.mark.slow
    def test_reaches_the_horizon(self, result):
        assert result.reason == ""
        assert result.end == 8.0
        assert np.all(result.radius < 1e-6)

    @pytest.mark.slow
    def test_holds_the_solution(self, result):
        assert misses(result, flow_at_number) == 0

    def test_a_perturbed_solution_uses_the_radius_up(self):
        """y' = y (1 - y) + 1e-4 is one of the perturbed systems: half the radius does not hold."""
        rate, horizon, steps = 1e-4, 0.02, 2000
        result = tube(Toy(lost=rate), horizon=horizon)
        y, h = 0.1, horizon / steps
        for _ in range(steps):
            middle = y + 0.5 * h * (y * (1 - y) + rate)
            y += h * (middle * (1 - middle) + rate)
        distance = abs(y - result.pieces[-1].at(1.0)[0])
        assert 0.9 * result.radius[0] < distance <= result.radius[0]

    @pytest.mark.slow
    def test_value_and_rate_of_the_functional(self, result):
        for piece, parts in zip(result.pieces, result.parts):
            for k, part in enumerate(parts):
                time = piece.start + (piece.end - piece.start) * (2 * k + 1) / 16
                y = float(flow_at(time)[0])
                assert part.value[0] <= y <= part.value[1]
                assert part.rate[0] <= y * (1 - y) <= part.rate[1]
                assert part.rate[1] - part.rate[0] < 0.1

    def test_an_uncertain_start_shrinks_where_the_flow_contracts(self):
        result = tube(Toy(start_radius=np.array([0.0, 1e-3])), tolerance=1e-6)
        assert result.radius[1] < 1e-9


def flow_at_number(time):
    y, z = number(0.1), number(0.5)
    return [1 / (1 + (1 / y - 1) * (-time).exp()), z * (-50 * time).exp()]


def proved(piece, system=None, radius=1e-9, joint=None):
    system = Toy() if system is None else system
    frame = Frame(np.eye(2), [radius, radius])
    joint = system.start[None, :] if joint is None else joint
    return prove_piece(system, Flow(), piece, system.metric, frame, joint, FUNCTIONAL)


@pytest.mark.slow
def test_slow_tube_ends_early(monkeypatch):
    """Pieces may not grow; a tube with few remaining pieces is completed."""
    monkeypatch.setattr(enclosing, "_GROW", 1.0)
    monkeypatch.setattr(enclosing, "_WINDOW", 20)
    monkeypatch.setattr(enclosing, "_MOST_REMAINING", 1e3)
    result = tube(horizon=1e6)
    assert "too slow: after" in result.reason
    assert len(result.pieces) == 40
    assert tube(horizon=result.end).reason == ""


class TestWrongCurves:
    @pytest.fixture(scope="class")
    @staticmethod
    def piece():
        return tube(horizon=0.05).pieces[0]

    def test_the_right_one_is_close(self, piece):
        result = proved(piece)
        assert isinstance(result, Proved)
        assert max(result.frame.reach()) < 1e-7

    def test_a_shifted_one_is_charged(self, piece):
        moved = piece.coefficients.copy()
        moved[0] += 1e-3
        result = proved(Piece(piece.start, piece.end, moved))
        assert isinstance(result, Proved)
        assert result.parts[0].reach[0] >= 1e-3

    def test_a_jump_at_a_joint_is_charged(self, piece):
        joint = np.array([[0.1 + 1e-6, 0.5]])
        assert proved(piece, joint=joint).frame.reach()[0] >= 1e-6

    def test_a_wrong_sign_in_the_field_is_charged(self, piece):
        result = proved(piece, Toy(side=-1.0))
        way = abs(piece.at(1.0)[0] - piece.at(-1.0)[0])
        assert isinstance(result, Unproved) or result.frame.reach()[0] > way

    def test_what_is_left_out_is_charged(self, piece):
        length = piece.end - piece.start
        lost = proved(piece, Toy(lost=1e-2)).frame.reach()[0]
        assert lost >= 0.9e-2 * length

    @pytest.mark.slow
    @pytest.mark.traced
    def test_tube_that_widens_ends_with_a_reason(self):
        """The perturbation is as large as the velocity."""
        result = tube(Toy(lost=10.0, start_radius=np.array([1e-3, 0.0])), horizon=1e6)
        assert result.end < 1e6
        assert "at time" in result.reason

    def test_too_long_a_piece_is_not_proved(self):
        result = proved(Piece(0.0, 1e4, np.array([[0.5, 0.2], [0.4, -0.3]])))
        assert isinstance(result, Unproved)


class TestDescent:
    """The same proof for a finite learning rate, against the exact iterates."""

    eta = 1 / 64  # z is multiplied by 0.22 a step: nothing smooth at first

    @pytest.fixture(scope="class")
    @classmethod
    def result(cls):
        return enclose(Toy(), Descent(cls.eta), 603, tolerance=1e-7, functional=FUNCTIONAL)

    def test_single_steps_first_and_polynomials_later(self, result):
        lengths = [piece.end - piece.start for piece in result.pieces]
        assert result.reason == ""
        assert sum(lengths) == 603
        assert lengths[0] == 1
        assert max(lengths) >= 16
        assert all(length == 1 or length % 8 == 0 for length in lengths)

    def test_holds_the_iterates(self, result):
        for piece, parts in zip(result.pieces, result.parts):
            exact = descent_at(int(piece.start), self.eta)
            with precise():
                for x, column, r in zip(exact, piece.coefficients.T, parts[0].reach):
                    there = sum((number(c) * (-1) ** k for k, c in enumerate(column)), number(0))
                    assert abs(x - there) <= number(r)
        assert np.all(result.radius < 1e-5)

    def test_the_flow_is_not_in_it(self, result):
        flow = float(flow_at(603 * self.eta)[0])
        assert abs(flow - result.pieces[-1].at(1.0)[0]) > result.radius[0]

    @pytest.mark.slow
    def test_diverging_learning_rate_ends_with_a_reason(self):
        result = enclose(Toy(), Descent(0.05), 10_000, tolerance=1e-7, functional=FUNCTIONAL)
        assert result.end < 10_000
        assert result.reason != ""
