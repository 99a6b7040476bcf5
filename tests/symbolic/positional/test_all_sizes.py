"""Proofs of the lemmas for all sizes, sums of symbolic length, and failing wrong formulas."""

import pytest
import sympy as sp

from symbolic.core.proof import Proof
from symbolic.core.sums import collapse, transposed, vanishes
from symbolic.masked import all_sizes as masked
from symbolic.positional import all_sizes, margins
from symbolic.positional.lemma_4_3 import DIFFERENT, SAME
from symbolic.positional.symbols import C, D, Gamma, Xi, tau

i, j, k, l, m = sp.symbols("i j k l m", integer=True)  # noqa: E741
P, N = sp.symbols("P N", integer=True, positive=True)
f, h, u = (sp.IndexedBase(name) for name in "fhu")
delta = sp.KroneckerDelta


class TestSums:
    def test_sum_over_delta_is_evaluated(self) -> None:
        assert collapse(sp.Sum(delta(i, k) * f[i] * h[i, j], (i, 1, P))) == f[k] * h[k, j]
        assert collapse(sp.Sum(2 + delta(i, k), (i, 1, P))) == 2 * P + 1

    def test_names_of_indices_do_not_matter(self) -> None:
        first = sp.Sum(f[i] * sp.Sum(h[i, j], (j, 1, N)), (i, 1, P))
        second = sp.Sum(f[j] * sp.Sum(h[j, i], (i, 1, N)), (j, 1, P))
        assert vanishes(first - second)
        assert not vanishes(first - second.subs(f, h))

    def test_order_of_sums_does_not_matter(self) -> None:
        first = sp.Sum(sp.Sum(u[i, m] * f[m], (m, 1, N)) * h[i], (i, 1, P))
        second = sp.Sum(sp.Sum(u[i, m] * h[i], (i, 1, P)) * f[m], (m, 1, N))
        assert vanishes(first - second)

    def test_inner_index_with_the_same_name_is_not_captured(self) -> None:
        inner = sp.Sum(f[i] ** 2, (i, 1, P))
        assert vanishes(sp.Sum(f[i] * inner, (i, 1, P)) - sp.Sum(f[j], (j, 1, P)) * inner)
        assert not vanishes(sp.Sum(f[i] * inner, (i, 1, P)) - sp.Sum(f[i] ** 3, (i, 1, P)))

    def test_deltas_of_free_indices(self) -> None:
        assert vanishes(delta(k, l) * (f[k] - f[l]))
        assert not vanishes(delta(k, l) * f[k])
        assert vanishes(delta(k, l) * f[k], [(k, l)])
        assert not vanishes((1 - delta(k, l)) * f[k])

    @pytest.mark.parametrize(
        "wrong",
        [
            sp.Sum(f[i], (i, 1, P)) ** 2 - sp.Sum(f[i] ** 2, (i, 1, P)),
            sp.Sum(f[i], (i, 1, P)) - sp.Sum(f[i], (i, 1, N)),
            sp.Sum(f[i] * h[i], (i, 1, P)) - sp.Sum(f[i], (i, 1, P)) * sp.Sum(h[i], (i, 1, P)),
            sp.Sum(f[i], (i, 1, P)) - P * f[k],
        ],
    )
    def test_nonzero_sums_do_not_vanish(self, wrong: sp.Expr) -> None:
        assert not vanishes(wrong)

    def test_transposition(self) -> None:
        once = transposed(f[i], i, k, l)
        assert vanishes(sp.Sum(once - f[i], (i, 1, P)))
        assert [
            vanishes(once.subs(i, x) - f[y], [(k, l), (j, k), (j, l)])
            for x, y in ((k, l), (l, k), (j, j))
        ] == [True] * 3
        assert not vanishes(sp.Sum(h[i] * (once - f[i]), (i, 1, P)))


class TestLemmas:
    @pytest.mark.parametrize(
        "prove",
        [all_sizes.prove_4_1, all_sizes.prove_4_2, masked.prove_5_1, masked.prove_5_2],
    )
    def test_proved_without_random_points(self, prove: object) -> None:
        proof = prove()  # type: ignore[operator]
        assert isinstance(proof, Proof)
        assert proof.all_zero, proof.failures
        assert proof.all_sizes
        assert "without random points" in proof.summary()

    def test_orbits_of_pairs(self) -> None:
        same, different = sorted(all_sizes.orbits(2, 4), key=len)
        assert (len(same), len(different)) == (8 * 3, 8 * 4)
        assert all(i[0] == j[0] for i, j in same)

    def test_more_orbits_without_exchange_of_sets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        moves = all_sizes.exchanges(3, 3)
        within = [x for x in moves if all(a[0] == b[0] for a, b in x.items())]
        assert len(within) < len(moves)
        monkeypatch.setattr(all_sizes, "exchanges", lambda sets, set_size: within)
        assert len(all_sizes.orbits(3, 3)) == 3 + 6


class TestWrongFormulasFail:
    c = margins.WEIGHTED_SUM

    @pytest.mark.parametrize(
        ("argument", "wrong"),
        [
            ("own", margins.d_gamma(c) * 2 * tau / Gamma),
            ("own", -margins.d_gamma(c) * tau / Gamma),
            ("own", margins.d_gamma(c) * tau / Gamma - c),
            ("others", margins.d_rho(c) * tau / Xi - C * c),
            ("same", D * C),
            ("same", SAME / 2),
            ("different", D * D),
            ("different", DIFFERENT + SAME),
        ],
    )
    def test_wrong_sum_on_the_manifold(self, argument: str, wrong: sp.Expr) -> None:
        table = all_sizes.manifold_identities(**{argument: wrong})
        assert [name for name, x in table.items() if not vanishes(x)]

    @pytest.mark.parametrize("factor", [2, -1, tau])
    def test_wrong_gradient_of_a_logit(
        self, factor: sp.Expr, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wrong = factor * all_sizes.LOGIT_GRADIENT
        monkeypatch.setattr(all_sizes, "LOGIT_GRADIENT", wrong)
        failing = [x for x in all_sizes.gradient_identities().values() if not vanishes(x)]
        assert len(failing) == 1

    def test_law_that_depends_on_the_set(self) -> None:
        """Such a law is not invariant under the exchange of sets."""
        table = all_sizes.exchange_identities()
        law = table["law, two other sets exchanged"]
        assert not vanishes(
            law, all_sizes.DIFFERENT_INDICES
        )  # the signal set may be one of the two
        assert vanishes(law, all_sizes.DIFFERENT_INDICES + all_sizes.OTHER_THAN_SIGNAL)

    def test_noise_off_the_span(self) -> None:
        F = all_sizes.output(all_sizes.NOISE)
        assert not vanishes(F)
        assert vanishes(all_sizes.on_span(F) - all_sizes.output(sp.Integer(0)))

    @pytest.mark.parametrize(
        ("table", "formula"),
        [
            (masked.logit_identities, masked.LOGIT_GRADIENT),
            (masked.feature_identities, masked.FEATURE_GRADIENT),
            (masked.position_identities, masked.POSITION_GRADIENT),
        ],
    )
    @pytest.mark.parametrize("factor", [2, -1, sp.Rational(1, 2)])
    def test_wrong_masked_gradient(self, table: object, formula: sp.Expr, factor: sp.Expr) -> None:
        right, wrong = table(formula), table(factor * formula)  # type: ignore[operator]
        changed = [x for name, x in wrong.items() if x != right[name]]
        assert any(not vanishes(x) for x in changed)
