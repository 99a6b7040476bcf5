"""The comparison theorem on coupled, non-normal linear systems, against the worst perturbations."""

import itertools

import numpy as np
import pytest
from flint import arb
from scipy.linalg import expm

from dynamics.core.tube.clocks import Descent, Flow
from dynamics.core.tube.comparison import compare

#: Off the diagonal nothing is negative, so that the worst start and defect have one sign.
NON_NORMAL = np.array([[-1.0, 3.0, 0.0], [0.0, -0.5, 4.0], [0.1, 0.0, -2.0]])
START, DEFECT = np.array([1e-6, 2e-6, 0.0]), np.array([0.0, 1e-4, 3e-3])


def bounds(clock, matrix, length, start=START, defect=DEFECT):
    entries = [[arb(x) for x in row] for row in matrix.tolist()]
    return compare(clock, entries, start.tolist(), [arb(x) for x in defect], arb(length))


def worst_of_flow(matrix, time, start, defect):
    """Return e^(M t) v + int_0^t e^(M s) ds d, by the exponential of a larger matrix."""
    n = len(start)
    block = np.zeros((n + 1, n + 1))
    block[:n, :n], block[:n, n] = matrix, defect
    return (expm(block * time) @ np.append(start, 1.0))[:n]


class TestFlow:
    @pytest.mark.parametrize("time", [0.01, 0.1, 0.3])
    @pytest.mark.parametrize("signs", [(1.0, 1.0, 1.0), (1.0, -1.0, 1.0)], ids=str)
    def test_the_worst_perturbation_stays_within(self, time, signs):
        """With two coordinates reflected entries are negative, and the distances the same."""
        result = bounds(Flow(), np.outer(signs, signs) * NON_NORMAL, time)
        exact = worst_of_flow(NON_NORMAL, time, START, DEFECT)
        assert np.all(exact <= np.array(result.after) * (1.0 + 1e-12))
        for share in (0.25, 0.5, 0.75):
            here = worst_of_flow(NON_NORMAL, share * time, START, DEFECT)
            assert np.all(here <= np.array(result.during) * (1.0 + 1e-12))

    def test_what_is_driven_by_others_is_of_first_order_in_their_reach(self):
        """The first coordinate has no defect: all of it comes through the others."""
        result = bounds(Flow(), NON_NORMAL, 0.01, start=np.zeros(3))
        assert result.after[0] > 0.9 * worst_of_flow(NON_NORMAL, 0.01, np.zeros(3), DEFECT)[0] > 0.0

    def test_a_matrix_that_is_known_to_a_ball(self):
        """The signs of the entries are open: the worst have their moduli."""
        entries = [[arb(x, 0.5) for x in row] for row in NON_NORMAL.tolist()]
        result = compare(Flow(), entries, START.tolist(), [arb(x) for x in DEFECT], arb(0.1))
        largest = NON_NORMAL + 0.5
        exact = worst_of_flow(largest, 0.1, START, DEFECT)
        assert np.all(exact <= np.array(result.after) * (1.0 + 1e-12))


class TestDescent:
    @pytest.mark.parametrize("rate", [-30.0, -12.0, -25.0, 2.0])
    def test_a_step_that_overshoots(self, rate):
        """1 + eta M may be below -1: distances grow, and their signs alternate."""
        eta, steps, v, d = 0.1, 8, 1e-6, 1e-5
        result = bounds(Descent(eta), np.array([[rate]]), steps, np.array([v]), np.array([d]))
        z = v
        for _ in range(steps):
            z = abs(1.0 + eta * rate) * z + eta * d
        assert z <= result.after[0] * (1.0 + 1e-12)
        assert result.after[0] <= 1.01 * z

    def test_coupled_and_overshooting(self):
        """Greedy perturbations of every sign pattern stay within."""
        eta, steps = 0.1, 8
        matrix = np.array([[-22.0, 3.0, 0.0], [0.0, -0.5, 4.0], [0.1, 0.0, -14.0]])
        result = bounds(Descent(eta), matrix, steps)
        largest = np.zeros(3)
        for signs in itertools.product((-1.0, 1.0), repeat=3):
            z = START * signs
            for _ in range(steps):
                z = z + eta * matrix @ z
                z = z + eta * DEFECT * np.where(z == 0.0, signs, np.sign(z))
            largest = np.maximum(largest, np.abs(z))
        assert np.all(largest <= np.array(result.after) * (1.0 + 1e-12))
        assert np.all(largest[2] > 0.3 * result.after[2])
