"""The floor of the loss: proved, compared with the prover's number, and broken on purpose."""

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
    """All coefficients outside the signal set, each with its exact probability."""
    chance = {1: Q / 2, 0: 1 - Q, -1: Q / 2}
    for outside in product((1, 0, -1), repeat=D - C):
        yield outside, math.prod(chance[s] for s in outside)


class TestProof:
    @pytest.mark.parametrize(("D", "C", "p"), floor.CASES)
    def test_the_sign_from_the_full_model(self, D, C, p):
        proof = floor.prove(D, C, p)
        assert proof.all_zero, proof.failures
        assert proof.facts["patterns"] == D // C * 3 ** (D - C)
        assert proof.points == 2 * len(first_and_last(D, C))  # both signs of alpha

    def test_the_other_sign_fails(self):
        proof = floor.prove(4, 2, sign=-1)
        assert 0 < proof.failed < proof.count  # T = 0 has no other sign


class TestNumber:
    """The prover's floor is that of the lemma: no loss on the plane is below it, some are next."""

    @pytest.mark.parametrize(("D", "C"), SIZES)
    def test_by_enumeration(self, D, C):
        chance = sum(chance for s, chance in images(D, C) if C + sum(s) <= 0)
        found = proved_floor(Problem(D=D, C=C, q=float(Q)))
        close(found, float(chance) * math.log(2.0), rel=1e-14)
        assert found <= float(chance) * math.log(2.0) * (1.0 + 1e-15)

    def test_how_long_association_is_sure(self):
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
    def test_no_loss_is_below(self, D, C, plane):
        """From the definition, attention matrix and all; on rho = beta for sets of two only."""
        problem, rng = Problem(D=D, C=C, q=float(Q)), np.random.default_rng(7)
        given = list(images(D, C))
        same = np.kron(np.eye(D // C), np.ones((C, C))) > 0
        least = math.inf
        for _ in range(200):
            alpha, gamma = rng.normal(size=2)
            rho = gamma if plane == "rho = gamma" else problem.beta
            A = np.where(same, gamma, rho)
            np.fill_diagonal(A, problem.beta)
            S = np.exp(A) / np.exp(A).sum(axis=1, keepdims=True)
            loss = 0.0
            for outside, chance in given:
                x = problem.kappa * alpha * S @ np.array([1] * C + list(outside))
                F = float(np.sum(x**problem.p + problem.nu * x))
                loss += float(chance) * float(np.logaddexp(0.0, -F))
            least = min(least, loss)
        assert least >= proved_floor(problem) * (1.0 - 1e-12)  # of the sums here
        if D == 2 * C:  # T >= 0, and alpha may be as large as one likes
            assert least < 1.01 * proved_floor(problem)
