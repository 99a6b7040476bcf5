"""What `derive` prints of the excess form, the full model and masked images, altered in turn.

Each printed equation is compared with what it says, from the model by differentiation or from the
sums over patches; an altered one must differ.
"""

from collections.abc import Callable
from functools import cache
from itertools import combinations
from math import comb

import pytest
import sympy as sp

from symbolic.catalogue import CATALOGUE
from symbolic.core.kernel import Kernel
from symbolic.core.sums import vanishes
from symbolic.core.zero import NotRationalError, decide
from symbolic.masked.area_form import symbolic_form
from symbolic.positional import all_sizes, attention, kernels, margins
from symbolic.positional import symbols as sym
from symbolic.positional.full_model import LOSS_SLOPE

ALTERED: dict[str, Callable[[sp.Expr], sp.Expr]] = {
    "factor": lambda e: 2 * e,
    "sign": lambda e: -e,
    "exponent": lambda e: e**2,
}


def printed(name: str) -> dict[str, sp.Expr]:
    return {equation.name: equation.right for equation in CATALOGUE[name].equations}


# The excess form.

_A_1, _B_1, _A_2, _B_2 = sp.symbols("a_1 b_1 a_2 b_2", integer=True, nonnegative=True)
_TOTAL = sym.C + _A_1 - _B_1 + _A_2 - _B_2


def three_sets(row: sp.Expr) -> sp.Expr:
    """Sum a row over the signal set and two random sets of any type, D = 3 C."""
    random_set = margins.of_random_set(row)
    total = margins.of_signal_set(row)
    for plus, minus in ((_A_1, _B_1), (_A_2, _B_2)):
        total += random_set.subs({sym.a: plus, sym.b: minus}, simultaneous=True)
    return attention.write_out(total.subs(sym.T, _TOTAL)).subs(sym.D, 3 * sym.C)


def excess_lacks(name: str, right: sp.Expr) -> sp.Expr:
    empty = margins.MARGIN.subs({sym.s: 0, sym.n: 0})
    if name == "sum_of_margins":
        return three_sets(margins.MARGIN) - right.subs(sym.T, _TOTAL)
    if name == "O_empty":
        return right - empty
    slope = sp.diff(margins.activation(sym.O), sym.O)
    if name == "excess":
        shown = right.subs({sp.Symbol("O_empty"): empty, sym.O: margins.MARGIN})
        return shown - slope.subs(sym.O, margins.MARGIN) + slope.subs(sym.O, empty)
    parameter = {"d_gamma": sym.gamma, "d_rho": sym.rho}[name]
    c = margins.WEIGHTED_SUM
    values = {
        sym.excess: (slope.subs(sym.O, margins.MARGIN) - slope.subs(sym.O, empty)),
        sym.c_gamma: margins.d_gamma(c),
        sym.c_rho: margins.d_rho(c),
    }
    F = three_sets(margins.activation(margins.MARGIN))
    return three_sets(right.subs(values, simultaneous=True)) - sp.diff(F, parameter)


def wrong(expression: sp.Expr) -> bool:
    try:
        return not decide(expression, points=2).zero
    except NotRationalError:
        return True


def test_the_printed_excess_form_holds() -> None:
    assert all(decide(excess_lacks(*item), points=2).zero for item in printed("excess").items())


@pytest.mark.parametrize("how", ALTERED)
def test_an_altered_equation_of_the_excess_form_fails(how: str) -> None:
    for name, right in printed("excess").items():
        assert wrong(excess_lacks(name, ALTERED[how](right))), name


# The full model, for every D and any activation.

_i, _j = sp.symbols("i j", integer=True)


def _entries(expression: sp.Expr, base: str, value: Callable[..., sp.Expr]) -> sp.Expr:
    def found(e: sp.Expr) -> bool:
        return isinstance(e, sp.Indexed) and str(e.base) == base

    return expression.replace(found, lambda e: value(*e.indices))


def _softmax(i: sp.Expr, j: sp.Expr) -> sp.Expr:
    other = sp.Dummy("other", integer=True)
    A = all_sizes.A
    total = sp.Sum(sp.exp(A[i, other] / sym.tau), (other, 1, sym.D))
    return sp.exp(A[i, j] / sym.tau) / total


def _named(right: sp.Expr, of: sp.IndexedBase | sp.Expr = all_sizes.x) -> sp.Expr:
    """Write the printed S, O, z, act, E and s(-yF) as what they stand for."""
    functions = {"act": all_sizes.act, "act'": all_sizes.act_slope, "E": lambda x: x,
                 "s": lambda _: sym.weight}  # fmt: skip
    named = _entries(right, "O", lambda i: all_sizes.margin(i, of))
    named = _entries(named, "S", _softmax)
    named = _entries(named, "z", lambda j: all_sizes.x[j])
    for name, function in functions.items():
        named = named.replace(sp.Function(name), function)
    return named


def full_model_lacks(name: str, right: sp.Expr) -> sp.Expr:
    if name == "S_ij":
        return right - _softmax(_i, _j)
    if name == "O_i":
        return _named(right) - all_sizes.margin(_i)
    if name == "F":
        return _named(right) - all_sizes.output()
    if name == "dL_dA_ij":
        at = {_i: all_sizes.k, _j: all_sizes.l}
        exact = sp.diff(all_sizes.output(), all_sizes.A[all_sizes.k, all_sizes.l])
        return _named(right.subs(at, simultaneous=True)) - LOSS_SLOPE * exact
    shown = _entries(right, "X", lambda j: all_sizes.X[j, all_sizes.t])
    exact = sp.diff(all_sizes.output(all_sizes.PROJECTION), all_sizes.v[all_sizes.t])
    return _named(shown, all_sizes.PROJECTION) - LOSS_SLOPE * exact


def test_the_printed_full_model_holds() -> None:
    for name, right in printed("full-model").items():
        assert vanishes(full_model_lacks(name, right)), name


@pytest.mark.parametrize("how", ALTERED)
def test_an_altered_equation_of_the_full_model_fails(how: str) -> None:
    for name, right in printed("full-model").items():
        assert not vanishes(full_model_lacks(name, ALTERED[how](right))), name


# Masked images: four areas, p in the second, the first is the global one.

_FORM, _R = symbolic_form(4)
_N, _M = _FORM.own, 2
_Z, _A = _FORM.z, [*_FORM.a]
_A[_N] = 1 - _R - sum(a for m, a in enumerate(_A) if m != _N)
_S = sp.Symbol("s_q", positive=True)
_OTHERS = sum(z**2 * a**2 for m, (z, a) in enumerate(zip(_Z, _A)) if m != _N)


def _values() -> dict[sp.Expr, sp.Expr]:
    form = type(_FORM)(_Z, _A, _N)
    words = {
        "z_n": _Z[_N],
        "a_n": _A[_N],
        "z_m": _Z[_M],
        "a_m": _A[_M],
        "H": form.twice_loss,
        "g_n": form.g[_N],
        "g_m": form.g[_M],
        "others": _OTHERS,
        "g_mean": form.g_mean,
        "a_1": _A[0],
        "z_1": _Z[0],
        "g_1": form.g[0],
        "r": _R,
        "p_masked": 1,
        "K": 1,
        "lead": sum(_A[m] * (form.g[0] - form.g[m]) for m in range(4) if m not in (0, _N)),
    }
    return words  # fmt: skip


def masked_lacks(name: str, right: sp.Expr) -> sp.Expr:
    form, words = type(_FORM)(_Z, _A, _N), _values()
    if name == "attention":
        q = sp.Symbol("q", integer=True)
        P = sp.Symbol("P", integer=True)
        return sp.Sum(right, (q, 1, P)) - 1
    if name in ("F_p", "H"):
        return _area_sums(name, right)
    shown = right.replace(sp.Function("E"), lambda x: x)
    shown = shown.subs({x: words[x.name] for x in shown.free_symbols if x.name in words})
    holds = {
        "g_m": form.g[_M], "g_n": form.g[_N], "g_mean": form.g_mean,
        "dL_dPhi": form.feature(_M), "alpha_m": form.feature(_M), "alpha_n": form.feature(_N),
        "global_falls": form.g[0] - form.g_mean, "alpha_1": form.feature(0),
        "beta_masked": form.position(_S, None), "beta_other": form.position(_S, _M),
        "beta_own": form.position(_S, _N),
    }  # fmt: skip
    return shown - holds[name]


def _area_sums(name: str, right: sp.Expr) -> sp.Expr:
    """F_p gives twice the loss, the v_m orthonormal; the printed sum of H leaves out m = n."""
    n = _N + 1
    values = {"z": _Z, "a": _A}
    basis = sp.symbols("v_1:5")
    at = {x[m]: row[m - 1] for x, row in ((sp.IndexedBase(k), v) for k, v in values.items())
          for m in range(1, 5)}  # fmt: skip
    at |= {sp.IndexedBase("v")[m]: basis[m - 1] for m in range(1, 5)}
    symbols = {sp.Symbol("N_k", integer=True): 4, sp.Symbol("n", integer=True): n}
    twice = type(_FORM)(_Z, _A, _N).twice_loss
    shown = sp.expand(right.subs(symbols).doit().xreplace(at))
    if name == "H":
        return shown - _Z[_N] ** 2 * _A[_N] ** 2 - twice
    missing = sp.expand(basis[_N] * _Z[_N] - shown)
    return sum(sp.diff(missing, v) ** 2 for v in basis) - twice


MASKED = ("masked-area-form", "masked-lemma-5.1", "masked-lemma-5.2")


def _masked_wrong(name: str, right: sp.Expr) -> bool:
    lacks = masked_lacks(name, right)
    if name == "attention":
        return not vanishes(lacks)
    return sp.expand(lacks) != 0


@pytest.mark.parametrize("derivation", MASKED)
def test_the_printed_equations_of_masked_images_hold(derivation: str) -> None:
    for name, right in printed(derivation).items():
        assert not _masked_wrong(name, right), name


@pytest.mark.parametrize("how", ALTERED)
@pytest.mark.parametrize("derivation", MASKED)
def test_an_altered_equation_of_masked_images_fails(derivation: str, how: str) -> None:
    for name, right in printed(derivation).items():
        assert _masked_wrong(name, ALTERED[how](right)), name


def reduction_lacks(name: str, right: sp.Expr) -> sp.Expr:
    """Count the masks of P = 6 patches, M = 4 of them masked, p's area {0, 1, 2}, p = 0."""
    masks = [set(mask) for mask in combinations(range(6), 4)]
    hidden = sum({0, 1, 2} <= mask for mask in masks)
    assert len(masks) == comb(6, 4)
    values = {"P": 6, "M": 4, "C_n": 3, "K": 2, "z_n": sp.Integer(3)}
    shown = right.replace(sp.Function("E"), lambda x: x)
    shown = shown.subs({x: values[x.name] for x in shown.free_symbols if x.name in values}).doit()
    share = sp.Rational(sum(0 in mask for mask in masks), len(masks))
    return shown - {"p_masked": share, "floor": sp.Rational(9 * hidden, 2 * len(masks))}[name]


@pytest.mark.parametrize("how", [None, *ALTERED])
def test_the_printed_reduction_counts_masks(how: str | None) -> None:
    for name, right in printed("masked-reduction").items():
        lacks = reduction_lacks(name, ALTERED[how](right) if how else right)
        assert (lacks == 0) is (how is None), name


# The named steps of the emitted kernels.

STEPS = [(kernel, index) for kernel in kernels.kernels() for index in range(len(kernel.steps))]


def _with_step(kernel: Kernel, index: int, how: str) -> Kernel:
    from dataclasses import replace

    steps = list(kernel.steps)
    steps[index] = steps[index][0], ALTERED[how](steps[index][1])
    return replace(kernel, steps=tuple(steps))


@cache
def _right(name: str, result: int) -> dict[str, sp.Expr]:
    kernel = next(one for one in kernels.kernels() if one.name == name)
    return kernels.result_identities(kernel, result)


@pytest.mark.slow
@pytest.mark.parametrize("how", ALTERED)
@pytest.mark.parametrize(
    "step", STEPS, ids=[f"{kernel.name}-{kernel.steps[index][0]}" for kernel, index in STEPS]
)
def test_an_altered_step_of_a_kernel_fails(step: tuple[Kernel, int], how: str) -> None:
    kernel = _with_step(*step, how)
    for result in range(len(kernel.results)):
        right = _right(step[0].name, result)
        for what, expression in kernels.result_identities(kernel, result).items():
            if expression != right[what] and wrong(expression):
                return
    pytest.fail("no identity sees the change")
