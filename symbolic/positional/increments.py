"""Increments of alpha, gamma, rho and of the attention weights in one step of gradient descent.

On the invariant manifold F is a sum over the sets, of activations of margins that are functions of
(alpha, gamma, rho) through Lambda, Gamma and Xi. With one learning rate eta for all trained numbers
and N_x of them with the value x (1, D (C-1), D (D-C); `symbolic.positional.all_sizes`),

    Delta x = (eta / N_x) E[ s(-F) (signal set + sum over random sets) ],

where a set contributes sum_i act'(O_i) dO_i/dx over its patches. The attention weights follow by
the chain rule, to first order in Delta gamma and Delta rho, and exactly

    Delta Lambda = Lambda (1 / N - 1),   Delta Gamma = Gamma (e^{Delta gamma/tau} / N - 1), ...,
    N = Lambda + (C-1) Gamma e^{Delta gamma/tau} + (D-C) Xi e^{Delta rho/tau}.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.positional import all_sets, margins
from symbolic.positional.attention import DERIVATIVES, G_OF_WEIGHTS, WRITTEN_OUT, write_out
from symbolic.positional.full_model import LOSS_SLOPE
from symbolic.positional.symbols import (
    C,
    D,
    G,
    Gamma,
    Lambda,
    R,
    T,
    Xi,
    a,
    alpha,
    b,
    delta_alpha,
    delta_gamma,
    delta_rho,
    eta,
    gamma,
    rho,
    tau,
    weight,
    y,
)

#: Numbers of entries of A with the value gamma, and with the value rho.
SAME, DIFFERENT = D * (C - 1), D * (D - C)


@dataclass(frozen=True)
class ReducedModel:
    """The model on the invariant manifold.

    Attributes
    ----------
    margin
        Margin of a patch in (s, n, T).
    shared
        Number of trained entries with the value of each order parameter.
    """

    margin: sp.Expr = margins.MARGIN
    shared: Mapping[sp.Symbol, sp.Expr] = field(
        default_factory=lambda: {alpha: sp.Integer(1), gamma: SAME, rho: DIFFERENT}
    )

    def signal_set(self, parameter: sp.Symbol) -> sp.Expr:
        """Return the share of the signal set in an increment, per eta and s(-F), with T = C + R."""
        row = _ROWS[parameter]
        return margins.of_signal_set(row).subs(T, C + R) / self.shared[parameter]

    def random_set(self, parameter: sp.Symbol) -> sp.Expr:
        """Return the share of a random set of type (a, b), per eta and s(-F)."""
        return margins.of_random_set(_ROWS[parameter]) / self.shared[parameter]

    def increment(self, parameter: sp.Symbol) -> sp.Expr:
        """Return an increment as an expectation, for display; h stands for `random_set`."""
        others = all_sets.over_random_sets(_h(parameter)(a, b, C + R))
        return eta * _E(weight * (self.signal_set(parameter) + others))


_ROWS = dict(zip((alpha, gamma, rho), margins.row_gradient()))
_E = sp.Function("E")


def _h(parameter: sp.Symbol) -> sp.Function:
    return sp.Function(f"h_{parameter}")


MODEL = ReducedModel()
INCREMENTS = {alpha: delta_alpha, gamma: delta_gamma, rho: delta_rho}


def _chain(of: sp.Symbol) -> sp.Expr:
    """Return the first-order increment of a weight by the chain rule."""
    moves = {gamma: delta_gamma, rho: delta_rho}
    return sum(DERIVATIVES[of, parameter] * moved for parameter, moved in moves.items())


#: First order in Delta gamma and Delta rho.
WEIGHT_INCREMENTS = {x: _chain(x) for x in (Lambda, Gamma, Xi, G)}

_GROW = {gamma: sp.exp(delta_gamma / tau), rho: sp.exp(delta_rho / tau)}
_NORM = Lambda + (C - 1) * Gamma * _GROW[gamma] + (D - C) * Xi * _GROW[rho]
#: Exact increments in one step of descent.
EXACT_WEIGHT_INCREMENTS = {
    Lambda: Lambda * (1 / _NORM - 1),
    Gamma: Gamma * (_GROW[gamma] / _NORM - 1),
    Xi: Xi * (_GROW[rho] / _NORM - 1),
    G: D * (Lambda + (C - 1) * Gamma * _GROW[gamma]) / _NORM - G,
}


def _equations() -> dict[str, sp.Expr]:
    equations = {}
    for parameter in INCREMENTS:
        equations[f"delta_{parameter}"] = MODEL.increment(parameter)
        equations[f"signal_{parameter}"] = MODEL.signal_set(parameter)
        equations[f"h_{parameter}"] = MODEL.random_set(parameter)
    equations |= {f"delta_{x}": right for x, right in WEIGHT_INCREMENTS.items()}
    return equations | {f"exact_{x}": right for x, right in EXACT_WEIGHT_INCREMENTS.items()}


#: Mapping from displayed equations to right-hand sides.
EQUATIONS = _equations()


def identities(equations: Mapping[str, sp.Expr] = EQUATIONS) -> dict[str, Identity]:
    """Return the identities between equations and model."""
    claims: dict[str, Identity] = {}
    for parameter in MODEL.shared:
        claims |= parameter_identities(parameter, equations)
    return claims | weight_identities(equations)


def parameter_identities(
    parameter: sp.Symbol, equations: Mapping[str, sp.Expr] = EQUATIONS
) -> dict[str, Identity]:
    """Return the identities of the increment of alpha, gamma or rho, for every number of sets.

    The increment is compared with the derivative of F, a sum over the sets: outside the sum over
    the random sets, and at a random set of any type (`symbolic.positional.all_sets`).
    """
    h = equations[f"h_{parameter}"]
    shown = equations[f"delta_{parameter}"].replace(_E, lambda x: x)
    shown = shown.replace(
        _h(parameter),
        lambda *set_type: h.subs(dict(zip((a, b, T), set_type)), simultaneous=True),
    )
    outside, summand = all_sets.per_set(write_out(shown))
    potential, of_random_set = all_sets.per_set(_potential(parameter))
    signal = eta * weight * write_out(equations[f"signal_{parameter}"])
    return {
        f"Delta {parameter} = -(eta/N) d ell, outside the sum over the random sets": Identity(
            potential, outside, parameter
        ),
        f"Delta {parameter} = -(eta/N) d ell, each random set": Identity(
            of_random_set, summand, parameter
        ),
        f"signal set, {parameter}": Identity(potential, signal, parameter),
    }


@cache
def _potential(parameter: sp.Symbol) -> sp.Expr:
    """Return the function of a parameter whose derivative is its increment at one image.

    The image has any number of random sets; s(-F) is a constant factor.
    """
    F = write_out(all_sets.output(margins.activation(MODEL.margin)))
    return -eta * LOSS_SLOPE.subs(y, 1) * F / MODEL.shared[parameter]


def weight_identities(
    equations: Mapping[str, sp.Expr] = EQUATIONS,
) -> dict[str, Identity]:
    """Return the identities of Lambda, Gamma, Xi and G."""
    written = dict(WRITTEN_OUT) | {G: write_out(G_OF_WEIGHTS)}
    step = sp.Symbol("step", real=True)
    moved = {gamma: gamma + step * delta_gamma, rho: rho + step * delta_rho}
    claims = {}
    for x, function in written.items():
        slope = sp.diff(function.subs(moved, simultaneous=True), step).subs(step, 0)
        claims[f"Delta {x}, chain rule"] = Identity(slope, write_out(equations[f"delta_{x}"]))
        after = function.subs({k: v.subs(step, 1) for k, v in moved.items()}, simultaneous=True)
        exact = write_out(equations[f"exact_{x}"])
        claims[f"Delta {x}, one step of descent"] = Identity(after - function, exact).map(
            _with_unknown_growth
        )
    totals = [equations[f"delta_{x}"] for x in (Lambda, Gamma, Xi)]
    claims["Delta of the sum of a row is 0"] = Identity(
        totals[0] + (C - 1) * totals[1], -(D - C) * totals[2]
    ).map(write_out)
    return claims


def _with_unknown_growth(expression: sp.Expr) -> sp.Expr:
    """Replace e^{Delta gamma/tau} and e^{Delta rho/tau} by independent unknowns."""
    apart = sp.expand_power_exp(expression.replace(sp.exp, lambda x: sp.exp(sp.expand(x))))
    return apart.subs({grown: sp.Symbol(f"grow_{x}", positive=True) for x, grown in _GROW.items()})
