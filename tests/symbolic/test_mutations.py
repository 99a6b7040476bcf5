"""Whatever is printed or emitted is proved: alter it, and a proof fails.

Each equation and each result of a kernel is altered by a factor, a sign and an exponent: all three
where a run is long, one in turn where it is short.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
import sympy as sp

from symbolic import attention, increments, kernels, lemma_4_3
from symbolic import symbols as sym
from symbolic.catalogue import CATALOGUE
from symbolic.masked import kernels as masked
from symbolic.zero import NotRationalError, decide


def _another_exponent(expression: sp.Expr) -> sp.Expr:
    """Raise one power by one (the first in the order of SymPy), or one symbol to its square."""
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
    "exponent": _another_exponent,
}


def _cases(names: list[str]) -> list[object]:
    """Return every name with every change; two of three changes are for long runs."""
    return [
        pytest.param(name, how, marks=() if position % 3 == number else pytest.mark.slow)
        for position, name in enumerate(names)
        for number, how in enumerate(ALTERED)
    ]


def fails(right: dict[str, sp.Expr], wrong: dict[str, sp.Expr]) -> bool:
    """Whether an identity that the change enters is refused."""
    for what, expression in wrong.items():
        if expression != right[what]:
            try:
                if not decide(expression, points=2).zero:
                    return True
            except NotRationalError:
                return True
    return False


def _lemma_4_3(name: str, equations: dict[str, sp.Expr]) -> dict[str, sp.Expr]:
    """Return the identities in which an equation stands."""
    kind, _, parameter = name.partition("_")
    if name not in increments.EQUATIONS:
        return lemma_4_3.factor_identities(equations)
    if parameter in ("alpha", "gamma", "rho"):
        return increments.parameter_identities(getattr(sym, parameter), equations)
    assert kind in ("delta", "exact")
    return increments.weight_identities(equations)


@pytest.mark.parametrize(("name", "how"), _cases(list(lemma_4_3.EQUATIONS)))
def test_an_altered_equation_of_lemma_4_3_fails(name: str, how: str) -> None:
    equations = lemma_4_3.EQUATIONS
    inner = equations[name].replace(increments._E, lambda x: x)
    wrong = equations | {name: ALTERED[how](inner)}
    assert fails(_lemma_4_3(name, dict(equations)), _lemma_4_3(name, wrong))


def test_what_is_printed_of_lemma_4_3_is_what_is_proved() -> None:
    printed = {equation.name: equation.right for equation in CATALOGUE["lemma-4.3"].equations}
    assert printed.keys() == lemma_4_3.EQUATIONS.keys()
    assert all(printed[name] is right for name, right in lemma_4_3.EQUATIONS.items())


@pytest.mark.parametrize("how", ALTERED)
@pytest.mark.parametrize("key", attention.DERIVATIVES, ids=str)
def test_an_altered_derivative_of_a_weight_fails(
    key: tuple[sp.Symbol, sp.Symbol], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = attention.identities()
    wrong = attention.DERIVATIVES | {key: ALTERED[how](attention.DERIVATIVES[key])}
    monkeypatch.setattr(attention, "DERIVATIVES", wrong)
    assert fails(right, attention.identities())


KERNELS = {f"{kernel.name} {index}": (kernel, index)
           for kernel in kernels.kernels() for index in range(len(kernel.results))}  # fmt: skip


def _altered(kernel: kernels.Kernel, index: int, how: str) -> kernels.Kernel:
    results = list(kernel.results)
    name, right = results[index]
    results[index] = name, ALTERED[how](right)
    return replace(kernel, results=tuple(results))


@pytest.mark.parametrize(("name", "how"), _cases(list(KERNELS)))
def test_an_altered_kernel_fails(name: str, how: str) -> None:
    kernel, index = KERNELS[name]
    right = kernels.result_identities(kernel, index)
    assert fails(right, kernels.result_identities(_altered(kernel, index, how), index))


@pytest.mark.parametrize("how", ALTERED)
@pytest.mark.parametrize(("number", "index"), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0),
                                               (2, 1)])  # fmt: skip
def test_an_altered_masked_kernel_fails(number: int, index: int, how: str) -> None:
    built = list(masked.kernels())
    built[number] = _altered(built[number], index, how)
    assert fails(masked.identities(), masked.identities(tuple(built)))
