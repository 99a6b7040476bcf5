"""Derivations of the shallow transformer for `patchdyn derive`: equations and proofs."""

from collections.abc import Callable
from functools import partial

import sympy as sp

from symbolic.core.derivation import Derivation, Equation, from_contents
from symbolic.shallow import concentration, gram, reduction, scalars
from symbolic.shallow.contents import TITLES

_derivation = partial(from_contents, TITLES)


def _shown(name: str, left: sp.Expr | str, right: sp.Expr, note: str = "") -> Equation:
    """Return an equation that is displayed but not exported as a function."""
    symbol = sp.Symbol(left) if isinstance(left, str) else left
    return Equation(name, symbol, right, note, evaluates=False)


def _reduction(name: str) -> Derivation:
    u, v, t, P, h = reduction.u, reduction.v, reduction.t, reduction.P, reduction.h
    parts = reduction.FULL | reduction.PARTS
    equations = [
        _shown("attention", P[u, v], reduction.attention(u, v), "to all keys of pattern u"),
        _shown("h", h[u, v], reduction.output_derivative(u, v), "hbar_v = sum over u of P_uv h_uv"),
        Equation(
            "G",
            reduction.G[u, v],
            reduction.LOGIT_GRADIENT,
            "times y, where yF < 1",
            evaluates=False,
            compact=reduction.LOGIT_GRADIENT_SHORT,
        ),
        _shown("D", reduction.D[t, u], reduction.VALUE_GRADIENT, "times y, where yF < 1"),
        *(
            _shown(f"{matrix}_next", f"{matrix}_next", parts[matrix], "old values on the right")
            for matrix in ("W_O", "V", "K", "Q")
        ),
    ]
    return _derivation(name, reduction.__doc__, equations, lambda: [reduction.prove()])


def _gram(name: str) -> Derivation:
    K, Q = gram.stepped()
    equations = [
        _shown("K_next", "K_next", K),
        _shown("Q_next", "Q_next", Q),
        *(
            _shown(f"{block}_dot", f"{block}'", right, "in the flow; S_K = K^T K, A = K^T Q")
            for block, right in gram.FLOW.items()
        ),
    ]
    return _derivation(name, gram.FORM, equations, lambda: [gram.prove_form()])


def _conserved(name: str) -> Derivation:
    drift = sp.Symbol("drift")
    equations = [
        _shown("X_dot", sp.Symbol("X'"), gram.LAX, "every tr X^k is conserved"),
        _shown("X_next", "X_next", gram.AFTER),
        _shown("under_trace", "X_trace", gram.UNDER_TRACE, "has the traces of X_next"),
        _shown("drift", drift, gram.DRIFT, "its trace is the change of tr S_K - tr S_Q in a step"),
    ]
    return _derivation(name, gram.CONSERVED, equations, lambda: [gram.prove_conserved()])


def _scalars(name: str) -> Derivation:
    equations = [
        Equation(
            f"number_{matrix}",
            sp.Symbol(f"number_{matrix}"),
            sp.Integer(number),
            f"numbers in {matrix}",
        )
        for matrix, number in scalars.NUMBERS.items()
    ]
    return _derivation(name, scalars.__doc__, equations, lambda: [scalars.prove()])


def _concentration(name: str) -> Derivation:
    equations = [
        Equation("h_dot", sp.Symbol("h_dot"), concentration.H_DOT, "gap"),
        Equation("l_dot", sp.Symbol("l_dot"), concentration.L_DOT, "logit"),
        Equation("p_dot", sp.Symbol("p_dot"), concentration.P_DOT, "attention"),
        Equation("g", sp.Symbol("g"), concentration.G, "g(p) - rho h^2/2 = g(alpha)"),
        Equation(
            "rho_of_p", concentration.rho, concentration.RHO, "rho of a run that stops at p h = 1"
        ),
        Equation(
            "x_plus_log_x",
            sp.Symbol("x_plus_log_x"),
            concentration.OMEGA_OF,
            "x = p/(1-p) is Wright's omega function of this",
        ),
        Equation("dt_dh", sp.Symbol("dt_dh"), concentration.CLOCK, "odds = p/(1-p)"),
        Equation(
            "T_small", sp.Symbol("T_small"), concentration.T_SMALL, "with attention, small alpha"
        ),
        Equation("T_without", sp.Symbol("T_without"), concentration.T_WITHOUT, "without attention"),
    ]
    return _derivation(name, concentration.__doc__, equations, concentration.prove)


BUILDERS: dict[str, Callable[[str], Derivation]] = {
    "shallow-reduction": _reduction,
    "shallow-gram": _gram,
    "shallow-conserved": _conserved,
    "shallow-scalars": _scalars,
    "shallow-concentration": _concentration,
}
