"""Identities of attention, margins, the full model, Lemma 4.3 and the kernels."""

from collections.abc import Callable
from functools import cache

import pytest
import sympy as sp

from symbolic.core.identity import Identity
from symbolic.core.zero import decide
from symbolic.positional import attention, excess, full_model, kernels, large_D, lemma_4_3, margins
from symbolic.positional import symbols as sym

TABLES: dict[str, Callable[[], dict[str, Identity]]] = {
    "attention": attention.identities,
    "margins": margins.identities,
    "excess": excess.identities,
    "full model": full_model.identities,
    "Lemma 4.3": lemma_4_3.identities,
    "large D": large_D.identities,
    "kernels": kernels.identities,
}


#: Tables whose proofs are not run by test_catalogue.py.
NOT_IN_CATALOGUE = ("large D", "kernels")


@cache
def table(name: str) -> dict[str, Identity]:
    return TABLES[name]()


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_identities_are_not_trivial(name: str) -> None:
    """SymPy must not cancel more than half of the expressions on construction."""
    claims = table(name).values()
    assert sum(claim.difference != 0 for claim in claims) > len(claims) / 2


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("name", NOT_IN_CATALOGUE)
def test_identities_are_proved(name: str) -> None:
    for label, identity in table(name).items():
        decision = decide(identity)
        assert decision.zero, f"{label}: {decision}"


def test_simplify_agrees_for_attention_weights() -> None:
    for identity in table("attention").values():
        assert decide(identity, simplify=True).simplified


class TestWrongFormulasFail:
    """The same comparisons with an altered formula."""

    def test_attention_derivative_without_its_multiplicity(self) -> None:
        exact = sp.diff(attention.write_out(sym.Lambda), sym.gamma)
        wrong = -sym.C * sym.Gamma * sym.Lambda / sym.tau
        assert not decide(exact - attention.write_out(wrong)).zero

    def test_rho_derivative_with_the_wrong_number_of_entries(self) -> None:
        wrong = sym.Xi / sym.tau * (sym.T - sym.n - sym.D * margins.WEIGHTED_SUM)
        exact = sp.diff(attention.write_out(margins.WEIGHTED_SUM), sym.rho)
        assert not decide(exact - attention.write_out(wrong)).zero

    def test_excess_form_of_a_single_row_is_not_the_plain_one(self) -> None:
        plain, excess = (margins.row_gradient(s)[1] for s in _SLOPES)
        assert not decide(attention.write_out(plain - excess)).zero

    def test_excess_needs_the_signal_set(self) -> None:
        plain, excess = (margins.of_random_set(margins.row_gradient(s)[1]) for s in _SLOPES)
        assert not decide(attention.write_out(plain - excess)).zero

    def test_leading_term_is_not_the_signal_set_at_other_R(self) -> None:
        at_one = lemma_4_3.SIGNAL_GAMMA.subs(sym.R, 1) - lemma_4_3.gamma_leading()
        assert not decide(attention.write_out(at_one)).zero

    def test_limit_of_the_drift_with_another_power_or_sign(self) -> None:
        right = large_D.DRIFT * sym.D
        limit = large_D.scaled_drift().subs(large_D.eps, 0)
        assert decide(limit - right).zero
        assert not decide(limit - right.subs(large_D.h, -large_D.h)).zero
        assert not decide(limit - right * sym.alpha).zero

    def test_linear_branch_has_another_power_of_D(self) -> None:
        claim = table("large D")["T1 on the linear branch"]
        assert decide(claim).zero
        assert not decide(claim.difference + large_D.r * sym.D).zero

    @pytest.mark.parametrize("index", range(4))
    def test_kernel_with_a_changed_step(self, index: int) -> None:
        kernel = kernels.row_gradient()
        changed = tuple(
            (name, 2 * step if name in (sym.O, sym.c_gamma, sym.c_rho, sym.slope) else step)
            for name, step in kernel.steps
        )
        broken = kernels.Kernel(kernel.name, kernel.arguments, changed, kernel.results, "")
        assert not decide(attention.write_out(broken.expanded(index) - kernel.expanded(index))).zero


_SLOPES = (margins.activation_slope, margins.excess_slope)


@pytest.mark.slow
def test_linear_part_of_the_activation_has_no_effect_on_attention() -> None:
    """This follows from the excess form but is not visible in the leading terms (Lemma 4.3)."""
    claims = table("Lemma 4.3")
    labels = [label for label in claims if label.startswith("nu moves")]
    assert len(labels) == 6  # two order parameters, three identities each
    assert all(decide(claims[label]).zero for label in labels)
    assert sym.nu in lemma_4_3.gamma_leading().free_symbols
    assert sym.nu not in lemma_4_3.GAMMA_LEADING_EXCESS.free_symbols
