"""Displayed equations are the proved ones, and each altered equation fails."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import sympy as sp

from symbolic.catalogue import CATALOGUE
from symbolic.core.displays import Displays, at_points
from symbolic.core.kernel import Kernel
from symbolic.core.zero import decide
from symbolic.masked import displays, lemma_5_1, lemma_5_2, reduction
from symbolic.positional import (
    attention,
    diagonal,
    excess,
    floor,
    kernels,
    large_D,
    lemma_4_1,
    lemma_4_2,
    margins,
    model_equations,
    symmetric_line,
)
from symbolic.positional import symbols as sym

#: Tracing slows SymPy 2.4 times; the unaltered proofs are traced in other tests.
pytestmark = pytest.mark.no_cover

ALTERED: dict[str, Callable[[sp.Expr], sp.Expr]] = {
    "factor": lambda e: 2 * e,
    "sign": lambda e: -e,
    "exponent": lambda e: e**2,
    "term": lambda e: e + 1,
}

DISPLAYS: dict[str, Displays] = {
    "full-model": model_equations.DISPLAYS,
    "lemma-4.1": lemma_4_1.DISPLAYS,
    "lemma-4.2": lemma_4_2.DISPLAYS,
    "excess": excess.DISPLAYS,
    "symmetric-line": symmetric_line.DISPLAYS,
    "floor": floor.DISPLAYS,
    "diagonal": diagonal.DISPLAYS,
    "large-D": large_D.DISPLAYS,
    "masked-area-form": displays.AREA_FORM,
    "masked-lemma-5.1": displays.LEMMA_5_1,
    "masked-lemma-5.2": displays.LEMMA_5_2,
    "masked-reduction": displays.REDUCTION,
}


@pytest.mark.parametrize("derivation", DISPLAYS)
def test_displayed_equations_are_the_proved_ones(derivation: str) -> None:
    shown = {equation.name: equation.right for equation in CATALOGUE[derivation].equations}
    proved = DISPLAYS[derivation].equations
    assert list(shown) == list(proved)
    assert all(shown[name] is right for name, right in proved.items())


@pytest.mark.parametrize("how", ALTERED)
@pytest.mark.parametrize("derivation", DISPLAYS)
def test_altered_equation_fails(derivation: str, how: str) -> None:
    """A sign does not alter 0, nor an exponent 1; an additional term alters every equation."""
    shown = DISPLAYS[derivation]
    for name, right in shown.equations.items():
        wrong = ALTERED[how](right)
        if wrong != right:
            assert not shown.holds(name, wrong), name
        else:
            assert how != "term"
            assert right in (0, 1)


@pytest.mark.parametrize("derivation", DISPLAYS)
def test_derivation_tests_every_displayed_equation(
    derivation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all equations altered, each is among the failures; slow enumerations are skipped."""
    for module in (symmetric_line, floor, diagonal, lemma_5_1, lemma_5_2, reduction):
        monkeypatch.setattr(module, "CASES", module.CASES[:1])
    for module in (lemma_4_1, lemma_4_2):
        monkeypatch.setattr(module, "CROSS_CHECKS", ())
    equations = DISPLAYS[derivation].equations
    for name, right in list(equations.items()):
        monkeypatch.setitem(equations, name, right + 1)  # type: ignore[arg-type]
    failures = [f for proof in CATALOGUE[derivation].prove() for f in proof.failures]
    assert all(any(f.startswith(f"{name}, as displayed") for f in failures) for name in equations)


def _written_out(compact: sp.Expr) -> sp.Expr:
    """Substitute the definitions of the names in a compact equation."""
    margin = {f"O_{patch}": margins.at_patch(margins.MARGIN, patch) for patch in margins.PATCHES}
    rows = dict(zip(("k_alpha", "k_gamma", "k_rho"), margins.row_gradient()))
    for label, row in rows.items():
        of = {k: row.subs({sym.s: k, sym.n: sym.a - sym.b}, simultaneous=True) for k in (1, -1, 0)}
        compact = compact.replace(sp.Function(label), of.__getitem__)
    return compact.replace(sp.Function("act"), margins.activation).subs(
        {sp.Symbol(label): value for label, value in margin.items()}
    )


@pytest.mark.parametrize("derivation", ["margins", "lemma-4.3"])
def test_compact_forms_equal_right_hand_sides(derivation: str) -> None:
    equations = [x for x in CATALOGUE[derivation].equations if x.compact is not None]
    assert equations
    for equation in equations:
        right = equation.right.subs(sym.T, sym.C + sym.R)
        compact = _written_out(equation.shown).subs(sym.T, sym.C + sym.R)
        assert decide(attention.write_out(compact - right), points=2).zero, equation.name


def test_names_of_derivatives() -> None:
    """dL_dA_same is the derivative of L in A_same, and so on."""
    derivatives = [
        (equation.name, equation.left)
        for derivation in CATALOGUE.values()
        for equation in derivation.equations
        if isinstance(equation.left, sp.Derivative) and re.fullmatch("d.+_d.+", equation.name)
    ]
    assert len(derivatives) >= 18
    for name, left in derivatives:
        numerator = getattr(left.expr, "name", left.expr.func.__name__)
        assert name == f"d{numerator}_d{left.variables[0]}"


# The named steps of the emitted kernels.

STEPS = [(kernel, index) for kernel in kernels.kernels() for index in range(len(kernel.steps))]


def _with_step(kernel: Kernel, index: int, how: str) -> Kernel:
    steps = list(kernel.steps)
    steps[index] = steps[index][0], ALTERED[how](steps[index][1])
    return replace(kernel, steps=tuple(steps))


def _claims(kernel: Kernel, result: int) -> dict[str, sp.Expr]:
    """Return the identities of a result; for a row only the fast ones."""
    if kernel.name in ("row_gradient", "row_hessian"):
        return {"one row": kernels._row_identity(kernel, result)}
    return kernels.result_identities(kernel, result)


@cache
def _right(name: str, result: int) -> tuple[sp.Expr, dict[str, sp.Expr]]:
    kernel = next(kernel for kernel in kernels.kernels() if kernel.name == name)
    return kernel.expanded(result), _claims(kernel, result)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["factor", "sign", "exponent"])
@pytest.mark.parametrize(
    "step", STEPS, ids=[f"{kernel.name}-{kernel.steps[index][0]}" for kernel, index in STEPS]
)
def test_altered_step_of_a_kernel_fails(step: tuple[Kernel, int], how: str) -> None:
    kernel = _with_step(*step, how)
    for result in range(len(kernel.results)):
        plain, right = _right(kernel.name, result)
        if kernel.expanded(result) != plain:
            for name, expression in _claims(kernel, result).items():
                if expression != right[name] and not at_points(expression):
                    return
    pytest.fail("no identity detects the alteration")
