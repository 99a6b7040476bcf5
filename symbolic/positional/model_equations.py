"""Displayed equations of the full model, proved for every D and any activation.

With rows S_ij of a softmax and margins O_i, F = sum_i act(O_i), and for one data point

    dL/dA_ij = -(S_ij/tau) y s(-yF) act'(O_i) (kappa <v, X_j> - O_i),
    dL/dv = -kappa y s(-yF) sum_i act'(O_i) sum_j S_ij X_j.
"""

from collections.abc import Callable

import sympy as sp

from symbolic.core.displays import Displays
from symbolic.core.proof import Proof, decide_all
from symbolic.positional import all_sizes, full_model
from symbolic.positional.full_model import LOSS_SLOPE
from symbolic.positional.symbols import D, kappa, tau, weight, y

i, j, _k = sp.symbols("i j k", integer=True)
#: z_j = <v, X_j>.
S, O, X, z = (sp.IndexedBase(name) for name in "SOXz")  # noqa: E741
F = sp.Symbol("F")
_A, _E, _sigmoid = all_sizes.A, sp.Function("E"), sp.Function("s")
_act, _act_slope = sp.Function("act"), sp.Function("act'")
_WEIGHT = y * _sigmoid(-y * F)
_ENTRY = all_sizes.k, all_sizes.l
_WEIGHTED_SUM = sp.Sum(_act_slope(O[i]) * sp.Sum(S[i, j] * X[j], (j, 1, D)), (i, 1, D))

#: Mapping from displayed equations to right-hand sides.
EQUATIONS: dict[str, sp.Expr] = {
    "S_ij": sp.exp(_A[i, j] / tau) / sp.Sum(sp.exp(_A[i, _k] / tau), (_k, 1, D)),
    "O_i": kappa * sp.Sum(S[i, j] * z[j], (j, 1, D)),
    "F": sp.Sum(_act(O[i]), (i, 1, D)),
    "dL_dA_ij": -S[i, j] / tau * _E(_WEIGHT * _act_slope(O[i]) * (kappa * z[j] - O[i])),
    "dL_dv": -kappa * _E(_WEIGHT * _WEIGHTED_SUM),
}


def residual(name: str, right: sp.Expr) -> sp.Expr:
    """Return an expression that vanishes if the equation holds, by differentiating the model."""
    if name == "S_ij":
        return right - _softmax(i, j)
    if name == "O_i":
        return _written_out(right) - all_sizes.margin(i)
    if name == "F":
        return _written_out(right) - all_sizes.output()
    if name == "dL_dA_ij":
        exact = sp.diff(all_sizes.output(), _A[_ENTRY])
        return _written_out(right.subs(dict(zip((i, j), _ENTRY)))) - LOSS_SLOPE * exact
    of_v = all_sizes.PROJECTION
    exact = sp.diff(all_sizes.output(of_v), all_sizes.v[all_sizes.t])
    shown = _entries(right, X, lambda patch: all_sizes.X[patch, all_sizes.t])
    return _written_out(shown, of_v) - LOSS_SLOPE * exact


def _written_out(right: sp.Expr, of: sp.IndexedBase | sp.Expr = all_sizes.x) -> sp.Expr:
    """Substitute the definitions of S, O, z, act, E and s(-yF)."""
    shown = _entries(right, O, lambda row: all_sizes.margin(row, of))
    shown = _entries(shown, S, _softmax)
    shown = _entries(shown, z, lambda patch: all_sizes.x[patch])
    functions = {
        _act: all_sizes.act,
        _act_slope: all_sizes.act_slope,
        _E: lambda x: x,
        _sigmoid: lambda _: weight,
    }
    for function, definition in functions.items():
        shown = shown.replace(function, definition)
    return shown


def _softmax(row: sp.Expr, column: sp.Expr) -> sp.Expr:
    """Return an entry of the softmax."""
    return all_sizes.SOFTMAX.subs(dict(zip(_ENTRY, (row, column))))


def _entries(right: sp.Expr, base: sp.IndexedBase, value: Callable[..., sp.Expr]) -> sp.Expr:
    """Replace the entries of an array by values at their indices."""
    return right.replace(
        lambda e: isinstance(e, sp.Indexed) and e.base == base, lambda e: value(*e.indices)
    )


DISPLAYS = Displays(EQUATIONS, residual)


def prove_all() -> list[Proof]:
    """Prove the displayed equations for every D, and the closed forms with numbered entries."""
    return [DISPLAYS.prove("Full model"), decide_all("Full model", full_model.identities())]
