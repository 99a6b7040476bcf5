"""Derivations of the shallow transformer: proofs, and failing variants."""

import pytest
import sympy as sp

from symbolic.catalogue import CATALOGUE
from symbolic.core.sums import vanishes
from symbolic.core.zero import decide
from symbolic.shallow import concentration, gram, reduction, scalars, words

NAMES = [name for name in CATALOGUE if name.startswith("shallow-")]


@pytest.mark.parametrize("name", NAMES)
def test_every_derivation_is_proved(name: str) -> None:
    for proof in CATALOGUE[name].prove():
        assert proof.all_zero, proof.failures
        if name in ("shallow-reduction", "shallow-gram", "shallow-conserved"):
            assert proof.all_sizes


FACTORS = [2, -1, sp.Rational(1, 2)]


def _sum_fails(right: dict[str, sp.Expr], wrong: dict[str, sp.Expr]) -> bool:
    """Return whether an altered identity does not vanish."""
    return any(not vanishes(x) for name, x in wrong.items() if x != right[name])


@pytest.mark.parametrize("factor", FACTORS)
class TestAlteredReduction:
    def test_gradients(self, factor: sp.Expr) -> None:
        right = reduction.gradient_identities()
        for name, formula in (
            ("logit", reduction.LOGIT_GRADIENT),
            ("value", reduction.VALUE_GRADIENT),
        ):
            wrong = reduction.gradient_identities(**{name: factor * formula})
            assert _sum_fails(right, wrong), name

    @pytest.mark.parametrize("name", reduction.STEPS)
    def test_chain_rule(self, name: str, factor: sp.Expr) -> None:
        right = reduction.chain_identities()
        wrong = reduction.chain_identities({name: factor * reduction.STEPS[name]})
        assert _sum_fails(right, wrong)

    @pytest.mark.parametrize("name", reduction.PARTS)
    def test_parts(self, name: str, factor: sp.Expr) -> None:
        table = reduction.part_identities({name: factor * reduction.PARTS[name]})
        assert any(not words.vanishes(x, reduction.ORTHONORMAL) for x in table.values())

    def test_gram(self, factor: sp.Expr) -> None:
        K, Q = gram.stepped()
        tables = [gram.form_identities(pair=(factor * K, Q))]
        tables += [gram.form_identities(flow={name: factor * x}) for name, x in gram.FLOW.items()]
        for table in tables:
            assert any(not words.vanishes(x) for x in table.values())

    def test_conserved(self, factor: sp.Expr) -> None:
        for name, formula in (
            ("drift", gram.DRIFT),
            ("after", gram.AFTER),
            ("under", gram.UNDER_TRACE),
            ("lax", gram.LAX),
        ):
            table = gram.conserved_identities(**{name: factor * formula})
            assert any(x != 0 for x in table.values()), name
        assert not words.vanishes(gram.step_of_X(factor * gram.AFTER), gram.ANTICOMMUTE)

    @pytest.mark.parametrize(
        "name", "H_DOT L_DOT P_DOT G RHO OMEGA_OF CLOCK T_WITHOUT P_OF_DECAY".split()
    )
    def test_two_equations(
        self, name: str, factor: sp.Expr, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        right = concentration.identities()
        monkeypatch.setattr(concentration, name, factor * getattr(concentration, name))
        wrong = concentration.identities()
        assert any(
            wrong[key] != x and not decide(wrong[key], points=2).zero for key, x in right.items()
        )


class TestAssumptions:
    def test_orthonormal_patterns_are_needed(self) -> None:
        table = reduction.part_identities()
        assert not any(words.vanishes(x) for key, x in table.items() if "after" in key)

    def test_equal_rates_are_needed_for_the_gram_form(self) -> None:
        wrong = gram.form_identities(pair=gram.stepped(2 * gram.eta))
        assert any(not words.vanishes(x) for x in wrong.values())

    def test_gates_of_another_query_fail(self) -> None:
        t, u, v, gate = reduction.t, reduction.u, reduction.v, reduction.gate
        wrong = reduction.VALUE_GRADIENT.xreplace({gate[t, reduction._j]: gate[t, v]})
        assert wrong != reduction.VALUE_GRADIENT
        assert not vanishes(sp.diff(reduction.F, reduction.H[t, u]) - wrong)

    def test_logit_gradient_without_the_mean_fails(self) -> None:
        u, v = reduction.u, reduction.v
        wrong = reduction.s[v] * reduction.attention(u, v) * reduction.output_derivative(u, v)
        assert not vanishes(sp.diff(reduction.F, reduction.A[u, v]) - wrong)

    def test_limits_with_another_factor_fail(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(concentration, "RHO", 2 * concentration.RHO)
        assert concentration.prove()[1].failed == 1
        monkeypatch.setattr(concentration, "OMEGA_OF", concentration.OMEGA_OF + 1)
        assert concentration.prove()[1].failed == 2
        monkeypatch.setattr(concentration, "T_SMALL", 2 * concentration.T_SMALL)
        assert concentration.prove()[1].failed == 3


class TestScalars:
    def test_orbits_by_enumeration(self) -> None:
        assert scalars.orbits(4) == scalars.NUMBERS
        assert scalars.orbits(3)["V"] == 5  # no two irrelevant patterns

    def test_more_orbits_without_the_exchange(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = scalars.symmetries
        monkeypatch.setattr(scalars, "symmetries", lambda M: list(original(M))[::2])
        assert scalars.orbits(4)["V"] == 10
        assert scalars.prove().failed > 0

    @pytest.mark.parametrize("name", scalars.FIXED)
    def test_wrong_number_of_fixed_entries_fails(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        without, with_exchange = scalars.FIXED[name]
        monkeypatch.setitem(scalars.FIXED, name, (without + scalars.X, with_exchange))
        assert scalars.prove().failed > 0


class TestWords:
    X, Y, S = words.letter("X"), words.letter("Y"), words.letter("S", symmetric=True)

    def test_traces(self) -> None:
        X, Y, S = self.X, self.Y, self.S
        assert words.trace(X * Y * S - Y * S * X) == 0
        assert words.trace(X * Y - words.transpose(Y) * words.transpose(X)) == 0
        assert words.trace(X * Y * S - Y * X * S) != 0
        assert words.trace(X - words.transpose(X)) == 0

    def test_products_do_not_commute(self) -> None:
        X, Y = self.X, self.Y
        assert not words.vanishes(X * Y - Y * X)
        assert words.vanishes((X + Y) ** 2 - X**2 - X * Y - Y * X - Y**2)

    def test_rules_are_applied_exhaustively(self) -> None:
        X, Y = self.X, self.Y
        assert words.vanishes(X * X * Y * Y - 1, {(X, Y): sp.S.One})
