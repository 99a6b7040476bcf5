"""Decisions whether expressions vanish, and records of proofs."""

import random
from collections import Counter
from fractions import Fraction

import pytest
import sympy as sp

from symbolic.core import odd_degree
from symbolic.core.proof import ProofBuilder, decide_all
from symbolic.core.zero import (
    NotRationalError,
    compile_exact,
    decide,
    evaluate,
    random_point,
    rationalize,
)
from symbolic.positional import symbols as sym

BETA, GAMMA, RHO = (sp.exp(x / sym.tau) for x in (sym.beta, sym.gamma, sym.rho))


class TestDecide:
    def test_accepts_an_identity_and_simplify_agrees(self) -> None:
        decision = decide(
            (BETA + GAMMA) ** 2 - BETA**2 - 2 * BETA * GAMMA - GAMMA**2, simplify=True
        )
        assert decision.zero
        assert decision.simplified
        assert decision.points == 6

    @pytest.mark.parametrize(
        "wrong",
        [
            (BETA + GAMMA) ** 2 - BETA**2 - GAMMA**2,
            sp.exp((sym.beta - sym.gamma) / sym.tau) - GAMMA / BETA,
            sp.Rational(1, 10**30) * BETA,
            sym.alpha**sym.p - sym.alpha**3,
            sym.D * (sym.C - 1) - sym.D * sym.C + sym.C,
            1 / (sym.C + sym.D) - 1 / sym.C - 1 / sym.D,
        ],
    )
    def test_rejects_a_wrong_identity_with_a_counterexample(self, wrong: sp.Expr) -> None:
        decision = decide(wrong)
        assert not decision.zero
        assert decision.value
        assert decision.counterexample
        assert evaluate(rationalize(wrong), decision.counterexample) == decision.value

    @pytest.mark.parametrize("zeros", [(3,), (3, 5), (3, 5, 7), tuple(range(3, 41, 2))])
    def test_counterexample_has_smallest_degree(self, zeros: tuple[int, ...]) -> None:
        """An expression that vanishes at some degrees only is not an identity."""
        wrong = sp.Mul(*(sym.p - degree for degree in zeros)) * sym.alpha
        decision = decide(wrong)
        assert not decision.zero
        assert decision.counterexample
        assert decision.counterexample[sym.p] == zeros[-1] + 2
        assert evaluate(wrong, decision.counterexample) == decision.value

    @pytest.mark.parametrize(
        "right",
        [
            (sym.rho - sym.alpha) ** sym.p + (sym.alpha - sym.rho) ** sym.p,
            (sym.alpha**2 + sym.alpha * sym.rho) ** (sym.p - 1)
            - sym.alpha ** (sym.p - 1) * (sym.alpha + sym.rho) ** (sym.p - 1),
            (2 * sym.alpha) ** (sym.p + 1) - 4 * 2 ** (sym.p - 1) * sym.alpha ** (sym.p + 1),
            (sym.alpha - sym.rho) ** (sym.p - 1) - (sym.rho - sym.alpha) ** (sym.p - 1),
            (sym.alpha - sym.rho) ** (2 * sym.p) / (sym.rho - sym.alpha) ** sym.p
            + (sym.alpha - sym.rho) ** sym.p,
            (sym.alpha + sym.rho) ** (1 - sym.p) / sym.p
            - (sym.alpha**2 + sym.alpha * sym.rho)
            / (sym.alpha * sym.p * (sym.alpha + sym.rho) ** sym.p),
            1 / (sym.alpha**sym.p + sym.rho)
            - sym.alpha / (sym.alpha ** (sym.p + 1) + sym.alpha * sym.rho),
        ],
    )
    def test_accepts_identities_of_powers_of_odd_degree(self, right: sp.Expr) -> None:
        assert right != 0  # not recognized by SymPy
        assert decide(right).zero
        assert not decide(right + sym.nu**sym.p / 10**9).zero

    @pytest.mark.parametrize(
        "wrong",
        [
            (sym.alpha + sym.rho) ** sym.p - sym.alpha**sym.p - sym.rho**sym.p,
            (-sym.alpha) ** (sym.p - 1) + sym.alpha ** (sym.p - 1),
            sym.alpha ** (sym.p + 2) - sym.alpha**sym.p,
            2**sym.p - 8,
        ],
    )
    def test_rejects_wrong_identities_of_powers(self, wrong: sp.Expr) -> None:
        decision = decide(wrong)
        assert not decision.zero
        assert decision.value == evaluate(wrong, decision.counterexample or {})

    @pytest.mark.parametrize("exponent", [sym.p / 2, sym.p**2, 2**sym.p, 1 / sym.p], ids=str)
    def test_exponent_must_be_linear_with_integers(self, exponent: sp.Expr) -> None:
        with pytest.raises(NotRationalError, match="every odd p"):
            decide(sym.alpha**exponent - 1)

    def test_zero_at_the_first_point_is_not_a_proof(self) -> None:
        first = random_point([sym.alpha], random.Random(0))[sym.alpha]
        decision = decide(sym.alpha - first, seed=0)
        assert not decision.zero
        assert decision.points == 2

    def test_given_values_are_used(self) -> None:
        assert decide(sym.alpha**sym.p - sym.alpha**3, given={sym.p: Fraction(3)}).zero

    def test_points_with_vanishing_denominator_are_replaced(self) -> None:
        assert decide(1 / (sym.p - 3) + 1 / (3 - sym.p)).zero

    def test_identically_vanishing_denominator_is_rejected(self) -> None:
        with pytest.raises(NotRationalError, match="denominator vanishes"):
            decide(1 / ((sym.C + 1) ** 2 - sym.C**2 - 2 * sym.C - 1))


class TestExactness:
    def test_exponentials_become_monomials(self) -> None:
        x = sp.exp((2 * sym.beta - sym.gamma) / sym.tau) * sym.tau
        assert rationalize(x) == sym.x_beta**2 / sym.x_gamma * sym.tau

    @pytest.mark.parametrize(
        "expression", [sp.exp(sym.alpha), sp.exp(sym.beta), sp.exp(sym.beta / (2 * sym.tau))]
    )
    def test_other_exponentials_are_rejected(self, expression: sp.Expr) -> None:
        with pytest.raises(NotRationalError):
            rationalize(expression)

    @pytest.mark.parametrize("expression", [sp.sqrt(sym.alpha), sp.log(sym.nu), sp.pi * sym.nu])
    def test_irrational_values_are_rejected(self, expression: sp.Expr) -> None:
        with pytest.raises(NotRationalError):
            decide(expression)

    def test_random_points_satisfy_assumptions(self) -> None:
        rng = random.Random(1)
        for _ in range(200):
            point = random_point([sym.nu, sym.C, sym.p, sym.alpha, sym.a, sym.R], rng)
            assert point[sym.nu] > 0
            assert point[sym.C] > 0
            assert point[sym.C].denominator == point[sym.R].denominator == 1
            assert point[sym.p] in (3, 5, 7)
            assert point[sym.a] >= 0

    @pytest.mark.parametrize("symbol", [sym.nu, sym.alpha, sym.C, sym.a], ids=str)
    def test_largest_probability_of_a_value(self, symbol: sp.Symbol) -> None:
        """It must be at most 1/499 for the error bound of the Schwartz-Zippel lemma."""
        rng, draws = random.Random(3), 60_000
        values = Counter(random_point([symbol], rng)[symbol] for _ in range(draws))
        assert max(values.values()) / draws < 1.4 / 499

    def test_compiled_functions_are_exact(self) -> None:
        function = compile_exact(
            [sym.alpha, sym.nu], [sym.alpha**3 / 3 + sym.nu / 7, sp.Integer(2)]
        )
        assert function(Fraction(1, 3), Fraction(2)) == [Fraction(1, 81) + Fraction(2, 7), 2]

    def test_floats_and_fractional_powers_are_rejected(self) -> None:
        function = compile_exact([sym.alpha], [sym.alpha * 2])
        with pytest.raises(NotRationalError, match="inexact"):
            function(0.1)
        with pytest.raises(NotRationalError):
            compile_exact([sym.nu], [sp.sqrt(sym.nu)])


class TestProofBuilder:
    def test_empty_proof_is_not_all_zero(self) -> None:
        assert not ProofBuilder("empty").build().all_zero

    def test_failures_are_counted_and_described(self) -> None:
        builder = ProofBuilder("counting", D=4)
        for index in range(10):
            builder.equal("one", index, 0, index)
        proof = builder.build()
        assert (proof.count, proof.failed, len(proof.failures)) == (10, 9, 3)
        assert not proof.all_zero
        assert proof.summary().startswith("D = 4: 9 of 10 identities")
        assert "FAIL" in proof.summary()

    def test_decide_all_reports_a_wrong_identity(self) -> None:
        proof = decide_all("table", {"right": sym.C - sym.C, "wrong": sym.C - 1})
        assert (proof.count, proof.failed) == (2, 1)
        assert proof.failures[0].startswith("wrong")


@pytest.mark.parametrize("degree", [3, 5, 9])
def test_value_as_function_of_degree(degree):
    """Compare with the value at each degree, at a negative point, where signs of powers matter."""
    x, y, p = sp.symbols("x y p")
    expression = (p + 1) * x ** (p - 2) - 2 * x**p / (x + 1) + (x * y) ** 2 + x ** (2 * p)
    point = {x: Fraction(-3, 2), y: Fraction(2, 3)}
    value = odd_degree.evaluate(expression, point, p)

    def at(terms):
        return sum(
            sum(a * degree**i for i, a in enumerate(q)) * c**degree for c, q in terms.items()
        )

    expected = evaluate(expression, point | {p: Fraction(degree)})
    assert at(value.over) / at(value.under) == expected
