"""Sums over any number of sets, and the increments of Lemma 4.3 against the D x D model."""

import random
from fractions import Fraction

import pytest
import sympy as sp

from symbolic.core.identity import Identity
from symbolic.core.zero import decide, evaluate, rationalize
from symbolic.positional import all_sets, increments, margins
from symbolic.positional import symbols as sym
from symbolic.positional.attention import write_out
from symbolic.positional.full_model import full_model

#: Number of sets L = D/C is 2, 3, 4; D is 3 C at one size only.
SIZES = [(4, 2), (6, 2), *(pytest.param(*x, marks=pytest.mark.slow) for x in [(6, 3), (8, 2)])]


def holds(identities: dict[str, Identity]) -> dict[str, bool]:
    return {name: decide(identity, points=2).zero for name, identity in identities.items()}


def random_images(rng: random.Random, D: int, C: int) -> list[int]:
    """Return coefficients of one image with the first set as signal set."""
    return [1] * C + [rng.choice((-1, 0, 1)) for _ in range(D - C)]


def displayed(parameter: sp.Symbol, signs: list[int], C: int, point: dict) -> Fraction:
    """Return the displayed increment at one image, with one term per random set."""
    equations, name, D = increments.EQUATIONS, parameter.name, len(signs)
    sets = [signs[start : start + C] for start in range(C, D, C)]
    outside = sum(signs[C:])
    inside = equations[f"signal_{name}"].subs(sym.R, outside)
    for of_set in sets:
        set_type = {sym.a: of_set.count(1), sym.b: of_set.count(-1), sym.T: C + outside}
        inside += equations[f"h_{name}"].subs(set_type, simultaneous=True)
    expression = sym.eta * sym.weight * write_out(inside)
    return evaluate(rationalize(expression).subs({sym.D: D, sym.C: C}), point)


@pytest.mark.parametrize(("D", "C"), SIZES)
def test_increments_are_those_of_the_full_matrix(D: int, C: int) -> None:
    """Exact gradients of the D x D model, in which neither sets nor order parameters occur."""
    rng = random.Random(D * C)
    names = ("x_beta", "x_gamma", "x_rho", "alpha", "eta", "w", "kappa", "nu", "tau")
    values = {name: Fraction(rng.randint(1, 30), rng.randint(2, 20)) for name in names}
    point = {x: values[x.name] for x in _UNKNOWNS} | {sym.p: Fraction(3)}
    scores = [
        [
            values["x_beta" if i == j else "x_gamma" if i // C == j // C else "x_rho"]
            for j in range(D)
        ]
        for i in range(D)
    ]
    signs = random_images(rng, D, C)
    noise = [[Fraction(rng.randint(-9, 9), 7)] for _ in range(D)]
    gradient = full_model(D, 3).evaluate(
        scores, [values["alpha"], Fraction(0)], signs, noise, values
    )
    same = [x for (i, j), x in gradient.dA.items() if i // C == j // C]
    other = [x for (i, j), x in gradient.dA.items() if i // C != j // C]
    step = values["eta"] * values["w"]
    assert displayed(sym.gamma, signs, C, point) == step * sum(same) / len(same)
    assert displayed(sym.rho, signs, C, point) == step * sum(other) / len(other)
    assert displayed(sym.alpha, signs, C, point) == step * gradient.dv[0]


_UNKNOWNS = (
    sym.x_beta, sym.x_gamma, sym.x_rho, sym.alpha, sym.eta, sym.weight, sym.kappa, sym.nu, sym.tau,
)  # fmt: skip


_SLOW = [pytest.param(sets, marks=pytest.mark.slow) for sets in (3, 4)]


@pytest.mark.parametrize("sets", [1, 2, *_SLOW])
def test_sums_of_affine_rows_at_chosen_numbers_of_sets(sets: int) -> None:
    """The shares of nu and of the excess form, with free C and free types of all random sets."""
    for index in (1, 2):
        plain, other = (margins.row_gradient(slope)[index] for slope in _SLOPES)
        for row in (sp.diff(plain, sym.nu), plain - other):
            types = [
                sp.symbols(f"a_{i} b_{i}", integer=True, nonnegative=True) for i in range(1, sets)
            ]
            total = margins.of_signal_set(row)
            for set_type in types:
                values = dict(zip((sym.a, sym.b), set_type))
                total += margins.of_random_set(row).subs(values, simultaneous=True)
            T = sym.C + sum(plus - minus for plus, minus in types)
            assert decide(write_out(total.subs(sym.T, T)).subs(sym.D, sets * sym.C), points=2).zero
            assert not decide(write_out(total.subs(sym.T, T)).subs(sym.D, (sets + 1) * sym.C)).zero


_SLOPES = (margins.activation_slope, margins.excess_slope)


class TestAffineIdentities:
    ROW = 2 * sym.s - 3 * sym.n + sym.alpha
    TOTAL = sym.D * sym.alpha + sym.T * (2 - 3 * sym.C)

    def test_sum_of_an_affine_row(self) -> None:
        claims = all_sets.affine_identities("row", self.ROW, self.TOTAL)
        assert list(claims) == ["row, one random set", "row, signal set", "row, all sets"]
        assert all(holds(claims).values())

    @pytest.mark.parametrize("wrong", [2 * TOTAL, -TOTAL, sym.D * sym.alpha, TOTAL - sym.alpha])
    def test_other_totals_fail(self, wrong: sp.Expr) -> None:
        *sets, all_of_them = holds(all_sets.affine_identities("row", self.ROW, wrong)).values()
        assert sets == [True, True]
        assert not all_of_them

    @pytest.mark.parametrize("term", [sym.s**2, sym.n**2, sym.s * sym.n])
    def test_rows_that_are_not_affine_fail(self, term: sp.Expr) -> None:
        assert not holds(all_sets.affine_identities("row", self.ROW + term))["row, one random set"]


class TestPerSet:
    def test_outside_and_summand(self) -> None:
        total = sym.alpha + 2 * all_sets.over_random_sets(sym.a - sym.b)
        total -= sym.beta * all_sets.over_random_sets(sym.a)
        outside, summand = all_sets.per_set(total)
        assert outside == sym.alpha
        assert sp.expand(summand - 2 * (sym.a - sym.b) + sym.beta * sym.a) == 0

    def test_other_range_raises(self) -> None:
        with pytest.raises(ValueError, match="a sum runs over"):
            all_sets.per_set(sp.Sum(all_sets.INDEX, (all_sets.INDEX, 1, sym.D)))

    def test_product_of_sums_raises(self) -> None:
        total = all_sets.over_random_sets(sym.a)
        with pytest.raises(ValueError, match="not affine in the sums"):
            all_sets.per_set(total**2)


class TestIncrements:
    @pytest.mark.parametrize("parameter", [sym.alpha, sym.gamma, sym.rho])
    def test_share_that_is_not_in_every_set_fails(self, parameter: sp.Symbol) -> None:
        """A term that vanishes for three sets only, which the identities of each set exclude."""
        name = f"delta_{parameter}"
        three_only = sym.eta * (sym.D - 3 * sym.C)
        wrong = increments.EQUATIONS | {name: increments.EQUATIONS[name] + three_only}
        outside, summand, signal = holds(increments.parameter_identities(parameter, wrong)).values()
        assert (outside, summand, signal) == (False, True, True)
