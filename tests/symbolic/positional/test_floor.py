"""The lower bound of the loss: its proof, and the number that the prover uses."""

import math
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from dynamics import Problem, State
from dynamics.positional.validated.outcomes import floor as proved_floor
from simulations.validated import Proof
from symbolic.positional import floor
from symbolic.positional import symbols as sym
from symbolic.positional.reduction import first_and_last
from tests.closeness import close

SIZES = [(4, 2), (6, 3)]
Q = Fraction(3, 8)


def images(D, C):
    """Yield all coefficients outside the signal set with their exact probabilities."""
    probability = {1: Q / 2, 0: 1 - Q, -1: Q / 2}
    for outside in product((1, 0, -1), repeat=D - C):
        yield outside, math.prod(probability[s] for s in outside)


class TestProof:
    @pytest.mark.parametrize(("D", "C", "p"), floor.CASES)
    def test_sign_of_F_in_the_full_model(self, D, C, p):
        proof = floor.prove(D, C, p)
        assert proof.all_zero, proof.failures
        assert proof.facts["patterns"] == D // C * 3 ** (D - C)
        assert proof.points == 2 * len(first_and_last(D, C))  # both signs of alpha

    def test_opposite_sign_fails(self):
        proof = floor.prove(4, 2, sign=-1)
        assert 0 < proof.failed < proof.count  # at T = 0 the sign is 0


class TestNumber:
    """The prover's bound is the bound of the lemma, and it is nearly attained."""

    @pytest.mark.parametrize(("D", "C"), SIZES)
    def test_bound_by_enumeration(self, D, C):
        probability = sum(probability for s, probability in images(D, C) if C + sum(s) <= 0)
        bound = proved_floor(Problem(D=D, C=C, q=float(Q)))
        close(bound, float(probability) * math.log(2.0), rel=1e-14)
        assert bound <= float(probability) * math.log(2.0) * (1.0 + 1e-15)

    def test_time_until_which_association_is_proved(self):
        problem, rho, loss = Problem(D=12, C=4, q=0.1, beta=0.75), -0.125, 0.03125
        proof = SimpleNamespace(
            problem=problem,
            enclosure=State(1.0, (1.0, 2.0), (-1.0, rho)),
            association=True,
            forever=True,
            loss=(0.0, loss),
            time=7.0,
        )
        at = {sym.D: 12, sym.C: 4, sym.beta: 0.75, sym.rho: rho, floor.ELL: loss}
        expected = 7.0 + float(floor.EQUATIONS["until"].subs(at))
        close(Proof.association_until.fget(proof), expected, rel=1e-14)

    @pytest.mark.parametrize(
        ("D", "C", "plane"),
        [*((*sizes, "rho = gamma") for sizes in SIZES), (4, 2, "rho = beta"), (6, 2, "rho = beta")],
    )
    def test_no_loss_on_the_plane_is_below_the_bound(self, D, C, plane):
        """Compute the loss from its definition; on rho = beta only for sets of two."""
        problem, rng = Problem(D=D, C=C, q=float(Q)), np.random.default_rng(7)
        all_images = list(images(D, C))
        same = np.kron(np.eye(D // C), np.ones((C, C))) > 0
        least = math.inf
        for _ in range(200):
            alpha, gamma = rng.normal(size=2)
            rho = gamma if plane == "rho = gamma" else problem.beta
            A = np.where(same, gamma, rho)
            np.fill_diagonal(A, problem.beta)
            S = np.exp(A) / np.exp(A).sum(axis=1, keepdims=True)
            loss = 0.0
            for outside, probability in all_images:
                x = problem.kappa * alpha * S @ np.array([1] * C + list(outside))
                F = float(np.sum(x**problem.p + problem.nu * x))
                loss += float(probability) * float(np.logaddexp(0.0, -F))
            least = min(least, loss)
        assert least >= proved_floor(problem) * (1.0 - 1e-12)  # rounding of the sums
        if D == 2 * C:  # T >= 0, and alpha is unbounded
            assert least < 1.01 * proved_floor(problem)
