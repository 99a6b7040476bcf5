"""What `patchdyn derive shallow-...` shows: equations and proofs of the third theory."""

from collections.abc import Callable
from functools import partial

import sympy as sp

from symbolic.core.derivation import Derivation, Equation, from_contents
from symbolic.shallow import concentration, gram, reduction, scalars
from symbolic.shallow.contents import TITLES

_derivation = partial(from_contents, TITLES)


def _shown(name: str, left: sp.Expr | str, right: sp.Expr, note: str = "") -> Equation:
    """Return an equation that is displayed, not turned into a function of numbers."""
    symbol = sp.Symbol(left) if isinstance(left, str) else left
    return Equation(name, symbol, right, note, evaluates=False)


def _reduction(name: str) -> Derivation:
    one = reduction
    u, v, t, P, h = one.u, one.v, one.t, one.P, one.h
    parts = one.FULL | one.PARTS
    equations = [
        _shown("attention", P[u, v], one.attention(u, v), "to all keys of pattern u"),
        _shown("h", h[u, v], one.pull(u, v), "hbar_v = sum over u of P_uv h_uv"),
        Equation(
            "G",
            one.G[u, v],
            one.LOGIT_GRADIENT,
            "times y, where yF < 1",
            evaluates=False,
            compact=one.LOGIT_GRADIENT_SHORT,
        ),
        _shown("D", one.D[t, u], one.VALUE_GRADIENT, "times y, where yF < 1"),
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
        _shown("X_dot", sp.Symbol("X'"), gram.LAX, "so that every tr X^k stays"),
        _shown("X_next", "X_next", gram.AFTER),
        _shown("under_trace", "X_trace", gram.UNDER_TRACE, "has the traces of X_next"),
        _shown("drift", drift, gram.DRIFT, "its trace is what a step adds to tr S_K - tr S_Q"),
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
    one = concentration
    equations = [
        Equation("h_dot", sp.Symbol("h_dot"), one.H_DOT, "gap"),
        Equation("l_dot", sp.Symbol("l_dot"), one.L_DOT, "logit"),
        Equation("p_dot", sp.Symbol("p_dot"), one.P_DOT, "attention"),
        Equation("g", sp.Symbol("g"), one.G, "g(p) - rho h^2/2 = g(alpha)"),
        Equation("rho_of_p", one.rho, one.RHO, "what stops at p: p h = 1"),
        Equation(
            "x_plus_log_x",
            sp.Symbol("x_plus_log_x"),
            one.OMEGA_OF,
            "x = p/(1-p) is Wright's omega of this",
        ),
        Equation("dt_dh", sp.Symbol("dt_dh"), one.CLOCK, "odds = p/(1-p)"),
        Equation("T_small", sp.Symbol("T_small"), one.T_SMALL, "with attention, as alpha falls"),
        Equation("T_without", sp.Symbol("T_without"), one.T_WITHOUT, "without attention"),
    ]
    return _derivation(name, concentration.__doc__, equations, concentration.prove)


BUILDERS: dict[str, Callable[[str], Derivation]] = {
    "shallow-reduction": _reduction,
    "shallow-gram": _gram,
    "shallow-conserved": _conserved,
    "shallow-scalars": _scalars,
    "shallow-concentration": _concentration,
}
