"""Mutation tests: each altered equation or kernel makes a proof fail.

Each is altered by a factor, a sign and an exponent: all three in slow runs, one of them in turn in
fast runs.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import sympy as sp

from symbolic.catalogue import CATALOGUE
from symbolic.core.identity import Identity
from symbolic.core.zero import NotRationalError, decide
from symbolic.masked import kernels as masked
from symbolic.masked import keys
from symbolic.positional import attention, increments, kernels, lemma_4_3, margins
from symbolic.positional import symbols as sym

#: Tracing slows SymPy 2.4 times; the unaltered proofs are traced in other tests.
pytestmark = pytest.mark.no_cover


def _raise_exponent(expression: sp.Expr) -> sp.Expr:
    """Increase one exponent by 1, or square one symbol."""
    powers = sorted(
        (e for e in expression.atoms(sp.Pow, kernels.power) if e.args[1] != -1),
        key=sp.default_sort_key,
    )
    if powers:
        return expression.xreplace({powers[0]: powers[0] * powers[0].args[0]})
    symbol = min(expression.free_symbols, key=str)
    return expression.xreplace({symbol: symbol**2})


ALTERED: dict[str, Callable[[sp.Expr], sp.Expr]] = {
    "factor": lambda e: 2 * e,
    "sign": lambda e: -e,
    "exponent": _raise_exponent,
}


def _cases(names: list[Any]) -> list[object]:
    """Return all pairs of name and alteration; two of three are marked slow."""
    return [
        pytest.param(name, how, marks=() if position % 3 == number else pytest.mark.slow)
        for position, name in enumerate(names)
        for number, how in enumerate(ALTERED)
    ]


def fails(right: dict[str, Identity], wrong: dict[str, Identity]) -> bool:
    """Return whether an identity that depends on the alteration fails."""
    changed = [identity for name, identity in wrong.items() if identity != right.get(name)]
    for identity in sorted(changed, key=_nodes):  # shortest first
        try:
            if not decide(identity, points=2).zero:
                return True
        except NotRationalError:
            return True
    return False


def _nodes(identity: Identity) -> int:
    return sum(1 for _ in sp.preorder_traversal((identity.left, identity.right)))


def _lemma_4_3(name: str, equations: dict[str, sp.Expr]) -> dict[str, Identity]:
    """Return the identities that contain an equation."""
    prefix, _, parameter = name.partition("_")
    if name not in increments.EQUATIONS:
        table = {
            "isolated": lemma_4_3._isolated_identities,
            "measured": lemma_4_3._measured_identities,
            "ratio": lemma_4_3._measured_identities,
        }.get(prefix, lemma_4_3._leading_identities)
        return {key: x.map(attention.write_out) for key, x in table(equations).items()}
    if parameter in ("alpha", "gamma", "rho"):
        return increments.parameter_identities(getattr(sym, parameter), equations)
    assert prefix in ("delta", "exact")
    return increments.weight_identities(equations)


@cache
def _right() -> dict[str, Identity]:
    return lemma_4_3.identities()


@pytest.mark.parametrize(("name", "how"), _cases(list(lemma_4_3.EQUATIONS)))
def test_altered_equation_of_lemma_4_3_fails(name: str, how: str) -> None:
    inner = lemma_4_3.EQUATIONS[name].replace(increments._E, lambda x: x)
    wrong = lemma_4_3.EQUATIONS | {name: ALTERED[how](inner)}
    assert fails(_right(), _lemma_4_3(name, wrong))


def test_displayed_equations_of_lemma_4_3_are_proved() -> None:
    printed = {equation.name: equation.right for equation in CATALOGUE["lemma-4.3"].equations}
    assert printed.keys() == lemma_4_3.EQUATIONS.keys()
    assert all(printed[name] is right for name, right in lemma_4_3.EQUATIONS.items())


@pytest.mark.parametrize(("position", "how"), _cases(list(range(len(attention.DERIVATIVES)))))
def test_altered_derivative_of_a_weight_fails(
    position: int, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = list(attention.DERIVATIVES)[position]
    right = attention.identities()
    wrong = attention.DERIVATIVES | {key: ALTERED[how](attention.DERIVATIVES[key])}
    monkeypatch.setattr(attention, "DERIVATIVES", wrong)
    assert fails(right, attention.identities())


KERNELS = {
    f"{kernel.name} {index}": (kernel, index)
    for kernel in kernels.kernels()
    for index in range(len(kernel.results))
}


def _altered(kernel: kernels.Kernel, index: int, how: str) -> kernels.Kernel:
    results = list(kernel.results)
    name, right = results[index]
    results[index] = name, ALTERED[how](right)
    return replace(kernel, results=tuple(results))


@pytest.mark.parametrize(("name", "how"), _cases(list(KERNELS)))
def test_altered_kernel_fails(name: str, how: str) -> None:
    kernel, index = KERNELS[name]
    wrong = _altered(kernel, index, how)
    if kernel.name in ("row_gradient", "row_hessian"):  # fast, and detects the alteration
        assert fails({}, {"one row": kernels._row_identity(wrong, index)})
    else:
        assert fails(_right_kernel(name), kernels.result_identities(wrong, index))


@cache
def _right_kernel(name: str) -> dict[str, Identity]:
    return kernels.result_identities(*KERNELS[name])


def test_altered_hessian_fails_against_the_model() -> None:
    wrong = _altered(kernels.row_hessian(), 0, "sign")
    assert fails({}, kernels._model_identities(wrong, 0))


MASKED = [
    (number, index)
    for number, kernel in enumerate(masked.kernels())
    for index in range(len(kernel.results))
]


@cache
def _right_masked() -> dict[str, Identity]:
    return masked.identities()


@pytest.mark.parametrize(("which", "how"), _cases(MASKED))
def test_altered_masked_kernel_fails(which: tuple[int, int], how: str) -> None:
    number, index = which
    built = list(masked.kernels())
    built[number] = _altered(built[number], index, how)
    if number < 3:
        identities = masked.area_identities(*built[:3])
    elif built[number].name in ("key_logits", "key_weights"):
        identities = keys.weight_identities({kernel.name: kernel for kernel in built})
    else:
        identities = keys.identities(tuple(built[3:]))
    assert fails(_right_masked(), identities)


@cache
def _margins() -> dict[str, sp.Expr]:
    """Return the displayed equations; cached, and not built during collection."""
    return {equation.name: equation.right for equation in CATALOGUE["margins"].equations}


_PARAMETERS = {"alpha": sym.alpha, "gamma": sym.gamma, "rho": sym.rho}


def _residual(name: str, printed: dict[str, sp.Expr]) -> sp.Expr:
    """Return the difference between a displayed equation of the margins and its derivation."""
    c, right = attention.write_out(_margins()["c"]), attention.write_out(printed[name])
    prefix, *words = name.split("_")
    parameters = [
        _PARAMETERS[word.removeprefix("d")]
        for word in words
        if word.removeprefix("d") in _PARAMETERS
    ]
    if name == "c":
        weights = (sym.Lambda, sym.Gamma, sym.Xi)
        parts = (sym.s, sym.n - sym.s, sym.T - sym.n)  # as in all_sizes
        return right - attention.write_out(sum(w * x for w, x in zip(weights, parts)))
    if prefix == "O":
        s, n = margins.PATCHES[words[0]]
        at = {sym.s: s, sym.n: n, sym.T: sym.C + sym.R}
        return right - sym.kappa * sym.alpha * c.subs(at, simultaneous=True)
    if prefix == "h":
        numbers = {"plus": sym.a, "minus": sym.b, "zero": sym.C - sym.a - sym.b}
        rows = {
            x: attention.write_out(_margins()[f"O_{x}"]).subs(sym.R, sym.T - sym.C) for x in numbers
        }
        return right - sum(m * (rows[x] ** sym.p + sym.nu * rows[x]) for x, m in numbers.items())
    if prefix == "dh":
        return right - sp.diff(attention.write_out(_margins()["h"]), *parameters)
    if prefix == "k":
        margin = sym.kappa * sym.alpha * c
        return right - sp.diff(margin**sym.p + sym.nu * margin, *parameters)
    first = {sym.c_gamma: sp.diff(c, sym.gamma), sym.c_rho: sp.diff(c, sym.rho), sym.c: c}
    return right.subs(first) - sp.diff(c, *parameters)


def test_displayed_equations_of_the_margins_are_proved() -> None:
    assert all(decide(_residual(name, _margins())).zero for name in _margins())


@pytest.mark.parametrize(("_", "how"), _cases(["all"]))
def test_altered_equation_of_the_margins_fails(_: str, how: str) -> None:
    for name, right in _margins().items():
        wrong = _residual(name, _margins() | {name: ALTERED[how](right)})
        assert not decide(wrong, points=1).zero, name
