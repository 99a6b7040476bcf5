"""Symbols of the positional theory, with the assumptions of all derivations.

Names follow Jelassi et al. 2022, Section 4.1, with Greek letters spelled out. Not named in the
paper: ``kappa`` is the output scale in front of the attention (D in equation (T)), ``tau`` the
temperature of the softmax (sqrt(d) in equation (T), 1 in Section 4), ``s`` the coefficient of w* in
a patch (+1, -1 or 0), ``n`` the sum of ``s`` over the set of that patch, ``T`` its sum over all
patches and ``R = T - C`` its sum outside the signal set. A set of type ``(a, b)`` contains ``a``
coefficients +1 and ``b`` coefficients -1. The label is +1 unless ``y`` is written.
"""

import sympy as sp

from symbolic.core.symbols import exponential_symbol
from symbolic.core.symbols import p as p
from symbolic.core.symbols import tau as tau

# Constants of the problem.
D, C = sp.symbols("D C", integer=True, positive=True)
q, nu, kappa, eta = sp.symbols("q nu kappa eta", positive=True)
beta = sp.Symbol("beta", real=True)

# Order parameters of Lemmas 4.1 and 4.2.
alpha, gamma, rho = sp.symbols("alpha gamma rho", real=True)

# Attention weights as independent symbols.
Lambda, Gamma, Xi, G = sp.symbols("Lambda Gamma Xi G", positive=True)
Lambda_minus_Gamma, Gamma_minus_Xi = sp.symbols("Lambda_minus_Gamma Gamma_minus_Xi", real=True)

# Data.
s, n, T, R = sp.symbols("s n T R", integer=True)
a, b = sp.symbols("a b", integer=True, nonnegative=True)
y = sp.Symbol("y", integer=True, nonzero=True)

# One row: the weighted sum c = sum_j S_ij s_j, its derivatives, and the margin O = kappa alpha c.
c, c_gamma, c_rho = sp.symbols("c c_gamma c_rho", real=True)
O = sp.Symbol("O", real=True)  # noqa: E741 (the margin is called O)
slope, excess, bend = sp.symbols("slope excess bend", real=True)

# The logistic weight s(-F) = 1 / (1 + e^F) and its expectation.
weight = sp.Symbol("w", positive=True)
mean_weight = sp.Symbol("mean_weight", positive=True)
delta_alpha, delta_gamma, delta_rho = sp.symbols("delta_alpha delta_gamma delta_rho", real=True)

# e^{beta/tau}, e^{gamma/tau}, e^{rho/tau} as independent unknowns (see `symbolic.core.zero`).
x_beta, x_gamma, x_rho = map(exponential_symbol, (beta, gamma, rho))

LATEX_NAMES = {
    Lambda_minus_Gamma: r"(\Lambda - \Gamma)",
    Gamma_minus_Xi: r"(\Gamma - \Xi)",
    c_gamma: r"c_\gamma",
    c_rho: r"c_\rho",
    slope: r"\mathrm{act}'(O)",
    bend: r"\mathrm{act}''(O)",
    excess: r"\left[\mathrm{act}'(O) - \mathrm{act}'(O_\emptyset)\right]",
    weight: r"\mathfrak{s}(-F)",
    mean_weight: r"\mathbb{E}[\mathfrak{s}(-F)]",
    delta_alpha: r"\Delta\alpha",
    delta_gamma: r"\Delta\gamma",
    delta_rho: r"\Delta\rho",
}
TEXT_NAMES = {weight: "s(-F)", mean_weight: "E[s(-F)]"}
