"""The SGD step on the full matrices is a step on A and H, for every M, L, m and all widths.

Without token noise each token is one of M orthonormal patterns, the columns of U, and tokens of
the same pattern have equal attention and activations. With key fractions f, query fractions s,
A = U^T W_K^T W_Q U and H = W_O W_V U the output is F = sum_j s_j sum_r a_r [z_rj]_+, z = H P. The
ReLU is piecewise linear: [z_rj]_+ = gate_rj z_rj, with gates that are constant between kinks. A
step of SGD on the hinge loss changes each matrix along the gradient of y F where yF < 1, through
the direction D in H and G in A. Only the components of W_V, W_K and W_Q in the span of U change,
and they form a closed system.
"""

import sympy as sp

from symbolic.core.proof import Proof, ProofBuilder
from symbolic.core.sums import vanishes
from symbolic.shallow import words

M, m, d, p, b = sp.symbols("M m d p b", integer=True, positive=True)
#: Indices of differentiation: pattern, query pattern, neuron, coordinate, rows of W_V and W_K.
u, v, t, c, q, e = sp.symbols("u v t c q e", integer=True)
_i, _j, _k, _r, _c, _e, _q, _b = sp.symbols("i j k r c_1 c_2 q_1 b_1", integer=True)
f, s, a = (sp.IndexedBase(name) for name in ("f", "s", "a"))
gate, A, H, D, G = (sp.IndexedBase(name) for name in ("gate", "A", "H", "D", "G"))
P, h, hbar = (sp.IndexedBase(name) for name in ("P", "h", "hbar"))
U, W_O, W_V, W_K, W_Q = (sp.IndexedBase(name) for name in ("U", "W_O", "W_V", "W_K", "W_Q"))


def attention(i: sp.Expr, j: sp.Expr) -> sp.Expr:
    """Return P_{i|j}, the attention of a query of pattern j to all keys of pattern i."""
    return f[i] * sp.exp(A[i, j]) / sp.Sum(f[_k] * sp.exp(A[_k, j]), (_k, 1, M))


def output_derivative(i: sp.Expr, j: sp.Expr) -> sp.Expr:
    """Return h_ij, the derivative of a query's output in P_{i|j}."""
    return sp.Sum(a[_r] * gate[_r, j] * H[_r, i], (_r, 1, m))


_MIXED = sp.Sum(H[_r, _i] * attention(_i, _j), (_i, 1, M))
F = sp.Sum(s[_j] * sp.Sum(a[_r] * gate[_r, _j] * _MIXED, (_r, 1, m)), (_j, 1, M))

#: dF / dA_uv and dF / dH_tu; G and D of one sample are y times these where yF < 1.
LOGIT_GRADIENT_SHORT = s[v] * P[u, v] * (h[u, v] - hbar[v])
LOGIT_GRADIENT = LOGIT_GRADIENT_SHORT.xreplace(
    {
        P[u, v]: attention(u, v),
        h[u, v]: output_derivative(u, v),
        hbar[v]: sp.Sum(attention(_i, v) * output_derivative(_i, v), (_i, 1, M)),
    }
)
VALUE_GRADIENT = a[t] * sp.Sum(s[_j] * gate[t, _j] * attention(u, _j), (_j, 1, M))

_VU = sp.Sum(W_V[_q, _c] * U[_c, _i], (_c, 1, d))
_KU = sp.Sum(W_K[_b, _c] * U[_c, _i], (_c, 1, d))
_QU = sp.Sum(W_Q[_b, _e] * U[_e, _j], (_e, 1, d))
PRODUCT_H = sp.Sum(W_O[_r, _q] * _VU, (_q, 1, p))
PRODUCT_A = sp.Sum(_KU * _QU, (_b, 1, b))


def _over(index: sp.Symbol, body: sp.Expr) -> sp.Expr:
    """Return the sum over all patterns."""
    return sp.Sum(body, (index, 1, M))


#: Changes of an entry of each full matrix per learning rate, in terms of D and G.
STEPS: dict[str, sp.Expr] = {
    "W_O": _over(_i, D[t, _i] * _VU.subs(_q, q)),
    "W_V": _over(_i, sp.Sum(W_O[_r, q] * D[_r, _i], (_r, 1, m)) * U[c, _i]),
    "W_K": _over(_i, _over(_j, G[_i, _j] * _QU.subs(_b, e)) * U[c, _i]),
    "W_Q": _over(_i, _KU.subs(_b, e) * _over(_j, G[_i, _j] * U[c, _j])),
}


def gradient_identities(
    logit: sp.Expr = LOGIT_GRADIENT, value: sp.Expr = VALUE_GRADIENT
) -> dict[str, sp.Expr]:
    """Return the identities of the gradients in A and H, which must vanish."""
    return {
        "attention sums to 1": sp.Sum(attention(_i, v), (_i, 1, M)) - 1,
        "dF/dA_ij = s_j P_ij (h_ij - hbar_j)": sp.diff(F, A[u, v]) - logit,
        "dF/dH_ri = a_r sum_j s_j gate_rj P_ij": sp.diff(F, H[t, u]) - value,
    }


def chain_identities(steps: dict[str, sp.Expr] | None = None) -> dict[str, sp.Expr]:
    """Return the identities of the chain rule through H and A, which must vanish."""
    steps = STEPS | (steps or {})
    through_H = sp.Sum(D[_r, _i] * PRODUCT_H, (_i, 1, M), (_r, 1, m))
    through_A = sp.Sum(G[_i, _j] * PRODUCT_A, (_j, 1, M), (_i, 1, M))
    return {
        "W_O: D V^T": sp.diff(through_H, W_O[t, q]) - steps["W_O"],
        "W_V: W_O^T D U^T": sp.diff(through_H, W_V[q, c]) - steps["W_V"],
        "W_K: Q G^T U^T": sp.diff(through_A, W_K[e, c]) - steps["W_K"],
        "W_Q: K G U^T": sp.diff(through_A, W_Q[e, c]) - steps["W_Q"],
    }


# The same steps as polynomials in matrices of any size, with U^T U = 1.
eta, eta_KQ = sp.symbols("eta eta_KQ", positive=True)
_WO, _WV, _WK, _WQ, _U, _D, _G = map(words.letter, ("W_O", "W_V", "W_K", "W_Q", "U", "D", "G"))
_T = words.transpose
ORTHONORMAL = {(_T(_U), _U): sp.S.One}
V, K, Q = _WV * _U, _WK * _U, _WQ * _U

#: Full matrices after a step.
FULL: dict[str, sp.Expr] = {
    "W_O": _WO + eta * _D * _T(V),
    "W_V": _WV + eta * _T(_WO) * _D * _T(_U),
    "W_K": _WK + eta_KQ * Q * _T(_G) * _T(_U),
    "W_Q": _WQ + eta_KQ * K * _G * _T(_U),
}
#: Their components V, K and Q in the span of U after a step.
PARTS: dict[str, sp.Expr] = {
    "V": V + eta * _T(_WO) * _D,
    "K": K + eta_KQ * Q * _T(_G),
    "Q": Q + eta_KQ * K * _G,
}


def part_identities(parts: dict[str, sp.Expr] | None = None) -> dict[str, sp.Expr]:
    """Return the identities of V, K, Q after a step and of the components outside the span of U."""
    parts = PARTS | (parts or {})
    table = {}
    for name, before in (("V", _WV), ("K", _WK), ("Q", _WQ)):
        after, outside = FULL[f"W_{name}"], 1 - _U * _T(_U)
        table[f"{name} = W_{name} U after the step"] = after * _U - parts[name]
        table[f"W_{name} outside the span of U is constant"] = (after - before) * outside
    return table


def prove() -> Proof:
    """Prove the reduction for all sizes."""
    builder = ProofBuilder("SGD on A and H, for every M, L, m and all widths")
    for name, expression in (gradient_identities() | chain_identities()).items():
        builder.equal(name, vanishes(expression), True)
    for name, expression in part_identities().items():
        builder.equal(name, words.vanishes(expression, ORTHONORMAL), True)
    return builder.build()
