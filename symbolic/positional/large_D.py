"""The limit of many patches: D -> infinity at a fixed number qD of features, kappa = D, tau = 1.

Derived here; the paper's regime (Assumption 2, Parametrization 3.1: q = poly(C)/D, nu = 1/poly(d),
sigma_A = polyloglog(d)) leaves it implicit. With h = e^beta - 1 and eps = 1/D, on gamma = rho = 0,

    O_s = alpha (T + h s) / (1 + h eps),      F = sum_s n_s act(O_s),

where n_1 and n_-1 are the numbers of patches with a feature, including the signal set, and
n_1 - n_-1 = T. While these stay bounded, F -> D (alpha^p T^p + nu alpha T) = A T^p + B T with
A = D alpha^p and B = D nu alpha.

Quasi-steady alpha: alpha converges to a zero of E[s(-F) (p A T^p + B T)]. In alpha = a D^(-1/p) and
nu = n D^(-(p-1)/p) this is one equation for a and n, free of D. For n -> 0, alpha* = a_0 D^(-1/p);
for n -> infinity, alpha* = b_0/(nu D). The branches meet at n ~ 1: nu ~ D^(-(p-1)/p),
D ~ nu^(-p/(p-1)).

Uniqueness: along a ray (A, B) = u (A', B') the expectation decreases strictly in u, as F and its
weight have the same sign. So there is one solution for each ratio B/A, and no branching.

Attention: on gamma = rho, d(gamma - rho)/dt -> (p C alpha^p/D) E[s(-F) ((T + h)^(p-1) - T^(p-1))];
at p = 3 the bracket is h^2 + 2 h T. With max |rho| = r/D, T1 ~ D for n -> 0 and T1 ~ D^p at fixed
nu, for every odd p.

Jumps: once the sets attend to themselves, Lambda << Gamma and 1 << G << D, with features in
different sets, O(1) patches have margins of the order y = alpha G. They add
y^p (C + R (C-1)^(1-p)) to F. This can have the opposite sign of T: then the argument for uniqueness
fails, and alpha can have several quasi-steady values between which it jumps.
"""

import sympy as sp

from symbolic.core.displays import Displays, at_points
from symbolic.core.identity import Identity
from symbolic.core.proof import Proof, decide_all
from symbolic.positional import margins, symmetric_line
from symbolic.positional.attention import WRITTEN_OUT
from symbolic.positional.full_model import LOSS_SLOPE
from symbolic.positional.symbols import (
    C,
    D,
    Gamma,
    Lambda,
    R,
    T,
    Xi,
    alpha,
    beta,
    gamma,
    kappa,
    n,
    nu,
    p,
    rho,
    s,
    tau,
    weight,
)
from symbolic.positional.symbols import y as label

eps, h, a, b, y, A, B = sp.symbols("eps h a b y A B", positive=True)
#: Numbers of patches outside the signal set with coefficient +1 and -1; their difference is R.
plus, minus = sp.symbols("n_plus n_minus", integer=True, nonnegative=True)
#: n = nu D^((p-1)/p), and D^(1/p).
nu_hat, root_of_D = sp.symbols("nu_hat D_root", positive=True)
#: D max |rho|, and the expectation in the drift.
r, mean = sp.symbols("r mean", positive=True)
#: D Lambda and D Xi where they stay bounded while G grows.
D_Lambda, D_Xi = sp.symbols("D_Lambda D_Xi", positive=True)

#: F in the limit; in the two amplitudes A and B; and alpha dF/d alpha.
LIMIT = D * (alpha**p * T**p + nu * alpha * T)
SCALED = A * T**p + B * T
SCALED_SLOPE = p * A * T**p + B * T
AMPLITUDES = {A: D * alpha**p, B: D * nu * alpha}
#: The drift d(gamma - rho)/dt on gamma = rho = 0 in the limit, per data point and s(-F).
DRIFT = p * C * alpha**p / D * ((T + h) ** (p - 1) - T ** (p - 1))
#: Contribution to F of patches whose margins attention has increased to the order y = alpha G.
ATTENDED = y**p * (C + R * (C - 1) ** (1 - p))

#: Powers of D of alpha* and T1 on the branch of the p-th power and on the linear branch, and of the
#: nu at which the branches meet.
EXPONENTS: dict[str, sp.Expr] = {
    "alpha_power": -1 / p,
    "alpha_linear": sp.Integer(-1),
    "nu_crossover": -(p - 1) / p,
    "T1_power": sp.Integer(1),
    "T1_linear": p,
}


def margin(sign: int) -> sp.Expr:
    """Return the exact margin of a patch with coefficient ``sign`` on gamma = rho = 0."""
    return alpha * (T + h * sign) / (1 + h * eps)


def output(zeros: sp.Expr) -> sp.Expr:
    """Return F on gamma = rho = 0 with ``zeros`` patches without a feature."""
    counts = {1: plus + C, -1: minus, 0: zeros}
    terms = (count * margins.activation(margin(sign)) for sign, count in counts.items())
    return sp.Add(*terms)


def over_D() -> sp.Expr:
    """Return F/D on gamma = rho = 0 as a function of eps = 1/D that is defined at eps = 0."""
    zeros = (1 - eps * (C + plus + minus)) * margins.activation(margin(0))
    return eps * output(sp.Integer(0)) + zeros


def _written_out(expression: sp.Expr) -> sp.Expr:
    """Return an expression at gamma = rho = 0, tau = 1, kappa = D, e^beta = 1 + h."""
    at = {gamma: 0, rho: 0, tau: 1, kappa: D}
    weights = {weight: right.subs(at) for weight, right in WRITTEN_OUT.items()}
    return expression.subs(weights).subs(at).subs(sp.exp(beta), 1 + h)


def _row_weight(sign: sp.Expr, set_sum: sp.Expr) -> sp.Expr:
    """Return (c_gamma/(C-1) - c_rho/(D-C)) / Gamma of a row on gamma = rho, tau = 1."""
    c = margins.WEIGHTED_SUM
    difference = margins.d_gamma(c) / (C - 1) - margins.d_rho(c) / (D - C)
    return (
        (difference / Gamma)
        .subs({Xi: Gamma, tau: 1})
        .subs({s: sign, n: set_sum}, simultaneous=True)
    )


def _balance(sign: sp.Expr) -> sp.Expr:
    """Return the weight of a patch with a given coefficient outside the signal set, see `drift`."""
    return 1 - (R - sign) / (D - C - 1)


def drift() -> sp.Expr:
    """Return d(gamma - rho)/dt on gamma = rho = 0 given the numbers of features, per s(-F).

    It is exact for every D and averaged over the positions of the features (`identities`).
    """
    counts = {1: plus, -1: minus, 0: D - C - plus - minus}
    slope = {k: margins.activation_slope(margin(k)) for k in counts}
    share = sp.Add(
        *(c * _balance(sp.Integer(k)) * (slope[1] - slope[k]) for k, c in counts.items())
    )
    scale = D * alpha / (D + h) * C / (D * (D - C))  # kappa alpha Gamma C/(D (D - C))
    return (scale * share).subs({R: plus - minus, T: C + plus - minus}).subs(eps, 1 / D)


def scaled_drift() -> sp.Expr:
    """Return D times the drift as a function of eps = 1/D that is defined at eps = 0."""
    counts = {-1: eps * minus, 0: 1 - eps * (C + plus + minus)}
    slope = {k: margins.activation_slope(margin(k)) for k in (1, -1, 0)}
    share = sp.Add(
        *(
            c * (1 - (R - k) * eps / (1 - (C + 1) * eps)) * (slope[1] - slope[k])
            for k, c in counts.items()
        )
    )
    scale = alpha * C / ((1 + h * eps) * (1 - C * eps))
    return (scale * share).subs(R, T - C)


def _attended_sets() -> sp.Expr:
    """Return the exact p-th powers of a signal set and of R random sets with one feature each.

    These sets consist of the patch with the feature and the others of its set; kappa = D,
    eps = 1/G.
    """
    c = margins.WEIGHTED_SUM
    at = {Lambda: D_Lambda / D, Xi: D_Xi / D, Gamma: (1 / eps - D_Lambda) / ((C - 1) * D)}

    def power(sign: int, set_sum: sp.Expr) -> sp.Expr:
        row = c.subs({s: sign, n: set_sum}, simultaneous=True).subs(at)
        return (sp.expand(D * eps * row) * y) ** p  # kappa alpha c with alpha = y eps

    isolated = (power(1, sp.S.One) + (C - 1) * power(0, sp.S.One)).subs(T, 1)
    return C * power(1, C) + R * isolated


def identities() -> dict[str, Identity]:
    """Return the identities of this module."""
    exact = {sign: _written_out(margins.MARGIN.subs({s: sign, n: sign})) for sign in (1, -1, 0)}
    N = D - C
    zeros = 1 / eps - C - plus - minus
    difference = {minus: C + plus - T}  # T = C + plus - minus
    mean_n = s + (C - 1) * (R - s) / (N - 1)  # E[n] given the numbers of features, by exchange
    scaling = {alpha: a / root_of_D, nu: nu_hat / root_of_D ** (p - 1), D: root_of_D**p}
    balanced = sp.Add(
        *(c * _balance(sp.Integer(k)) for k, c in {1: plus, -1: minus, 0: N - plus - minus}.items())
    )
    rate = (DRIFT / ((T + h) ** (p - 1) - T ** (p - 1)) * mean).subs(T, 2)
    claims = {
        **{
            f"margin of a patch {sign:+d}": Identity(margin(sign).subs(eps, 1 / D), exact[sign])
            for sign in exact
        },
        "F over D": Identity(over_D(), eps * output(zeros)),
        "limit of F over D": Identity(over_D().subs(eps, 0), LIMIT / D),
        "nu enters F by D nu alpha T, exactly": Identity(
            output(zeros).subs(difference), alpha * T / eps, nu
        ),
        "A T^p + B T": Identity(SCALED.subs(AMPLITUDES), LIMIT),
        "alpha dF/d alpha": Identity(LIMIT, SCALED_SLOPE.subs(AMPLITUDES) / alpha, alpha),
        "scaling of A": Identity(AMPLITUDES[A].subs(scaling), a**p),
        "scaling of B": Identity(AMPLITUDES[B].subs(scaling), nu_hat * a),
        "F and its weight have one sign": Identity(
            SCALED * SCALED_SLOPE, T**2 * (A * T ** (p - 1) + B) * (p * A * T ** (p - 1) + B)
        ),
        "weight of a signal row": Identity(_row_weight(sp.Integer(1), C), 1 - (T - C) / N),
        "weight of another row": Identity(
            _row_weight(s, mean_n).subs(T, C + R), -C / N * _balance(s)
        ),
        "the weights cancel": Identity(balanced, N - R).map(lambda x: x.subs(R, plus - minus)),
        "drift in 1/D": Identity(
            scaled_drift().subs({T: C + plus - minus}).subs(eps, 1 / D), D * drift()
        ),
        "limit of the drift": Identity(scaled_drift().subs(eps, 0), D * DRIFT),
        "drift at p = 3": Identity(DRIFT.subs(p, 3), 3 * C * alpha**3 / D * (h**2 + 2 * h * T)),
        "T1 on the branch of the power": Identity(
            r / D / rate.subs(alpha, a / root_of_D), r * root_of_D**p / (p * C * a**p * mean)
        ),
        "T1 on the linear branch": Identity(
            r / D / rate.subs(alpha, b / (nu * D)),
            r * (nu / b) ** p * D ** EXPONENTS["T1_linear"] / (p * C * mean),
        ),
        "sets that attend to themselves": Identity(_attended_sets().subs(eps, 0), ATTENDED),
    }
    return claims


_E, _SIGMOID = sp.Function("E"), sp.Function("s")
#: The expectation that vanishes at alpha*.
CONDITION = _E(_SIGMOID(-sp.Symbol("F")) * SCALED_SLOPE)
#: Mapping from displayed equations to right-hand sides.
EQUATIONS: dict[str, sp.Expr] = {
    "quasi_steady": sp.Integer(0),
    "F_limit": LIMIT,
    "A": AMPLITUDES[A],
    "B": AMPLITUDES[B],
    "alpha_dF_dalpha": SCALED_SLOPE,
    "drift_limit": DRIFT,
    "drift_at_D": drift(),
    "attended": ATTENDED,
    **{f"power_{label}": right for label, right in EXPONENTS.items()},
}


def residual(name: str, right: sp.Expr) -> Identity:
    """Return an identity that holds if the equation holds; limits are values at eps = 0."""
    if name.startswith("power_"):
        return Identity(_power_residual(name.removeprefix("power_"), right))
    if name == "quasi_steady":
        condition = CONDITION.replace(_E, lambda x: x).replace(_SIGMOID, lambda _: weight)
        descent = -LOSS_SLOPE.subs(label, 1) * LIMIT
        return Identity(descent, (condition.subs(AMPLITUDES) - right) / alpha, alpha)
    if name in ("A", "B"):
        return Identity(SCALED.subs(AMPLITUDES | {{"A": A, "B": B}[name]: right}), LIMIT)
    if name == "alpha_dF_dalpha":
        return Identity(LIMIT, right.subs(AMPLITUDES) / alpha, alpha)
    if name == "attended":
        return Identity(_attended_sets().subs(eps, 0), right)
    if name == "drift_at_D":
        numbers = {symmetric_line.N_PLUS: plus, symmetric_line.N_MINUS: minus}
        exact_drift = symmetric_line.DRIFT.subs(numbers | {Gamma: 1 / (D + h), kappa: D, tau: 1})
        return Identity(right, exact_drift)
    exact = {"F_limit": over_D() * D, "drift_limit": scaled_drift() / D}
    return Identity(exact[name].subs(eps, 0), right)


def _power_residual(name: str, right: sp.Expr) -> sp.Expr:
    """Return the power of D in an expression that is free of D if the exponent is right."""
    scale = D**right
    power, linear = a * D ** (-1 / p), b / (nu * D)
    rate = (DRIFT / ((T + h) ** (p - 1) - T ** (p - 1))).subs(T, 2) * D / r
    free = {
        "alpha_power": AMPLITUDES[A].subs(alpha, scale),
        "alpha_linear": AMPLITUDES[B].subs(alpha, scale),
        "nu_crossover": AMPLITUDES[B].subs({alpha: power, nu: scale}, simultaneous=True),
        "T1_power": rate.subs(alpha, power) * scale,
        "T1_linear": rate.subs(alpha, linear) * scale,
    }[name]
    return sp.expand(sp.expand_log(sp.log(free), force=True)).coeff(sp.log(D))


DISPLAYS = Displays(EQUATIONS, residual, at_points)


def prove() -> Proof:
    """Prove the identities of this module and the displayed equations."""
    shown = {f"{name}, as displayed": residual(name, right) for name, right in EQUATIONS.items()}
    return decide_all("The limit of many patches", identities() | shown)
