"""The derived loss of a theory in overlaps as equations, for all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import sympy as sp

from symbolic.overlaps.expansion import Component
from symbolic.overlaps.gram import Pair
from symbolic.theory.errors import require

if TYPE_CHECKING:
    from symbolic.overlaps.theory import OverlapTheory

Entries = tuple[tuple[Pair, sp.Expr], ...]
#: Variable of the integral over a softmax.
_T = sp.Symbol("t", positive=True)
_MOTION = {
    "text": "flow: dG/dt = -(S G + G S^T); step: G -> A G A^T with A = 1 - learning_rate S, where "
    "S_ab = (1 + [a = b]) d loss/d G_ab for trained a (divided by the number of pairs of an order "
    "parameter)",
    "latex": r"\dot G &= -(S G + G S^\top), \quad G \mapsto A G A^\top, \quad A = 1 - \eta S, "
    r"\quad S_{ab} = (1 + \delta_{ab})\, \partial \ell / \partial G_{ab}",
}


def equations(theory: OverlapTheory, form: str) -> str:
    """Return the loss as a sum of products of expectations, as text or LaTeX.

    Raises
    ------
    TheoryError
        For another form.
    """
    require(
        form in _MOTION,
        f"export = {form} is not allowed: it must be one of text, latex, python, jax",
        theory.location,
    )
    lines = _rows(theory, form)
    if form == "text":
        return "\n".join([*(f"{left} = {right}" for left, right in lines), _MOTION[form], ""])
    body = [rf"{left} &= {right} \\" for left, right in lines]
    return "\n".join([r"\begin{align*}", *body, _MOTION[form], r"\end{align*}", ""])


def latex_equations(theory: OverlapTheory) -> list[str]:
    """Return loss, expectations and motion, each as a LaTeX formula."""
    motion = _MOTION["latex"].replace("&", "").split(r", \quad ")
    return [*(f"{left} = {right}" for left, right in _rows(theory, "latex")), *motion]


def _rows(theory: OverlapTheory, form: str) -> list[tuple[str, str]]:
    """Return both sides of the equations of the loss and of each expectation."""
    printed: Callable[[sp.Expr], str] = sp.sstr if form == "text" else sp.latex
    reduced = theory.reduced
    means = [sp.Symbol(f"E{k + 1}" if form == "text" else f"E_{{{k + 1}}}")
             for k in range(len(reduced.components))]  # fmt: skip
    powers = [mean**x.power for mean, x in zip(means, reduced.components)]
    is_softmax = [any(family == "softmax" for family, _ in x.functions) for x in reduced.components]
    loss = sp.Integer(0)
    for coefficient, own in reduced.terms:
        value = coefficient * sp.Mul(*(powers[k] for k in own))
        is_integral = any(is_softmax[k] for k in own)
        loss += sp.Integral(value / _T, (_T, 0, sp.oo)) if is_integral else value
    lines = [("loss" if form == "text" else r"\ell", printed(loss))]
    for symbol, component in zip(means, reduced.components):
        lines.append((str(symbol), _expectation(theory, component, printed, form)))
    return lines


def _expectation(
    theory: OverlapTheory, component: Component, printed: Callable[[sp.Expr], str], form: str
) -> str:
    """Return an expectation with mean and covariance of its normal variables."""

    def value(entries: Entries) -> sp.Expr:
        return sp.Add(*(c * _entry(theory, pair) for pair, c in entries))

    factors = []
    variables = sp.symbols(f"y1:{len(component.functions) + 1}")
    for y, (family, (i, a, b)) in zip(variables, component.functions):
        function = sp.Function(family)(y) if family else sp.Integer(1)
        slope = sp.Function("gauss")(y)
        if family == "softmax":
            function, slope = _T * sp.exp(y), sp.exp(-_T * sp.exp(y))
        factors.append(y**i * function**a * slope**b)
    mean = sp.Matrix([[constant + value(entries) for constant, entries in component.mean]])
    rows = [[value(entries) for entries in row] for row in component.covariance]
    product = printed(sp.Mul(*factors))
    names = ", ".join(map(printed, variables))
    if form == "text":
        return f"E[{product}], ({names}) ~ Normal({mean.tolist()[0]}, {rows})"
    return (
        rf"\mathbb{{E}}\left[{product}\right], \quad ({names}) \sim "
        rf"\mathcal{{N}}\left({printed(mean)}, {printed(sp.Matrix(rows))}\right)"
    )


def _entry(theory: OverlapTheory, pair: Pair) -> sp.Expr:
    """Return a Gram entry: its fixed value, or the symbol of the order parameter."""
    fixed = theory.fixed(pair)
    return sp.Symbol(theory.names[pair]) if fixed is None else fixed
