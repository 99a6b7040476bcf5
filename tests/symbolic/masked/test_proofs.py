"""Lemmas 5.1 and 5.2 of Huang et al. and the reduction: proofs, and failing variants."""

from fractions import Fraction

import pytest
import sympy as sp

from dynamics.masked import _emitted
from symbolic.core.proof import ProofBuilder, decide_all
from symbolic.masked import area_form, kernels, lemma_5_1, lemma_5_2, reduction
from symbolic.masked.area_form import AreaForm
from symbolic.masked.raw_loss import raw_model
from tests.closeness import close

SMALL = lemma_5_1.CASES[0]  # P = 4, two clusters


class TestProofs:
    @pytest.mark.slow
    @pytest.mark.no_cover  # tracing slows SymPy 2.4 times; the claims run these proofs
    @pytest.mark.parametrize("module", [lemma_5_1, lemma_5_2, reduction])
    def test_all_cases_are_proved(self, module: object) -> None:
        proofs = module.prove_all()  # type: ignore[attr-defined]
        assert all(proof.all_zero for proof in proofs), [proof.failures for proof in proofs]
        minimum = {lemma_5_1: 700, lemma_5_2: 800, reduction: 20}[module]
        assert sum(proof.count for proof in proofs) >= minimum

    @pytest.mark.parametrize(
        "claims",
        [
            area_form.identities,
            area_form.group_identities,
            pytest.param(kernels.identities, marks=pytest.mark.slow),
        ],
    )
    def test_identities_are_proved(self, claims: object) -> None:
        assert decide_all("x", claims()).all_zero  # type: ignore[operator]

    def test_every_mask_and_masked_patch_is_compared(self) -> None:
        proof = lemma_5_1.prove(*SMALL)
        assert proof.points == 2 * 6 * 2  # clusters, masks, masked patches
        assert proof.identities["-d loss / d Phi_m = a_m z_m (gbar - g_m)"] == 2 * 24
        assert proof.identities["zero for features of other clusters"] == 2 * 24


class TestWrongFormulasFail:
    def test_wrong_sign_in_own_area(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wrong = property(lambda form: [z**2 * a for z, a in zip(form.z, form.a)])
        monkeypatch.setattr(AreaForm, "g", wrong)
        first, second = lemma_5_1.prove(*SMALL), lemma_5_2.prove(*SMALL)
        assert first.failed > 0
        assert second.failed > 0
        assert not decide_all("x", area_form.identities()).all_zero

    def test_masked_keys_treated_as_unmasked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = AreaForm.position
        monkeypatch.setattr(AreaForm, "position", lambda form, s, area: right(form, s, area or 0))
        assert lemma_5_2.prove(*SMALL).failed > 0
        assert reduction.prove(*reduction.CASES[1]).failed > 0

    def test_positions_that_vary_within_a_cell_do_not_reduce(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If Upsilon varies within a cell, so does its gradient."""

        def one_cell(model: object, p: int) -> dict[tuple[int, ...], list[int]]:
            cells = right(model, p)  # type: ignore[arg-type]
            first = next(cell for cell in cells if cell and len(cells[cell]) > 1)
            other = next(cell for cell in cells if cell and cell != first)
            cells[other] = [*cells[other], cells[first].pop()]
            return cells

        right = reduction.cells
        monkeypatch.setattr(reduction, "cells", one_cell)
        assert reduction.prove(*reduction.CASES[1]).failed > 0


class TestRawModel:
    model = raw_model(SMALL[0])

    def test_loss_by_hand(self) -> None:
        """At Q = 0 attention is uniform, 1/4 to every key; half of the own area is masked."""
        unknowns = self.model.unknowns(0)
        point = dict.fromkeys(unknowns, Fraction(1))
        loss, *_ = self.model.evaluate(0, (0, 2), 0, point)
        # area 0 = {0, 1}, area 1 = {2, 3}; unmasked 1 and 3: a = (1/4, 1/4), z = 1
        assert loss == Fraction(1, 2) * (Fraction(3, 4) ** 2 + Fraction(1, 4) ** 2)

    def test_exponential_of_twice_a_monomial_is_a_square(self) -> None:
        """SymPy writes (e^x)^2 as e^(2 x), which must be replaced correctly."""
        point = {x: Fraction(3) for x in self.model.unknowns(0)}
        loss, *_ = self.model.evaluate(0, (0, 2), 0, point)
        attention = self.model.attention(0, (0, 2), 0, point)
        assert sum(attention) == 1
        residual = (1 - attention[1]) ** 2 + attention[3] ** 2
        assert loss == Fraction(9, 2) * residual

    def test_loss_depends_on_the_query_row_only(self) -> None:
        assert {i for i, _ in self.model.dependencies(1, 2)} == {2}


def test_signs_are_proved() -> None:
    proof = lemma_5_1.signs()
    assert proof.all_zero
    assert proof.identities["global correlation falls if no g_m exceeds g_1"] == 1
    z, a = sp.symbols("z a", positive=True)
    builder = ProofBuilder("a difference is not a nonnegative sum")
    lemma_5_1._nonnegative(builder, "x", z - a)
    assert not builder.build().all_zero


@pytest.mark.parametrize("rest", [1e-300, 1e-20, 1e-3, 0.5, 1.0])
def test_emitted_kernels_are_accurate_for_small_rest(rest: float) -> None:
    a = 1.0 - rest
    H, share, g = _emitted.own_area(1.5, a, rest)
    close(H, 2.25 * rest * rest, rel=1e-15)
    close(share, -2.25 * a * rest, rel=1e-15)
    close(g, -2.25 * rest, rel=1e-15)
    assert _emitted.other_area(1.5, 0.5, 4.0) == (2.25 * 0.0625, 2.25 * 0.125)
    assert _emitted.correlation_gradient(2.0, 0.5, -0.25) == (0.25, 0.125)
