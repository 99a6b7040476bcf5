"""Lemmas 4.1 and 4.2 for every D = L C, every C and d, and any activation, without random points.

The D x D model with A_jk and v_m as entries of arrays of symbolic length and an undefined
activation is differentiated, which gives for any A and v

    dF/dA_kl = (S_kl / tau) act'(O_k) (kappa <v, X_l> - O_k).

On the manifold a patch is a pair (set, place), and the exponentials of its scores in the row of
(g, m) are x_rho + (x_gamma - x_rho) [same set] + (x_beta - x_gamma) [same patch]. Summation gives Z
and c = sum_j S_ij s_j. The sums of S_ij (s_j - c) over the own set and over the other sets are
tau dc/dgamma and tau dc/drho: d ell/d gamma is the sum of dL/dA_ij over the D (C-1) pairs in one
set, and d ell/d rho the sum over the D (D-C) pairs in different sets.

F, the manifold and the law of the data are invariant under the exchange of two places of one set
and of two sets. These generate S_C wr S_L, which is transitive on the pairs of different patches of
one set and on the pairs in different sets, and E is linear. Hence E[l'(yF) y dF/dA_ij] is constant
on each of these two orbits, for any loss l and any law with this symmetry, and the entries are the
two derivatives over the two numbers of pairs. (Prose: transitivity, which `orbits` confirms at
small sizes, and the linearity of E.)

Lemma 4.2, for any A: at v_perp = 0 neither F nor act'(O_i) contains the noise, and dF/dv_perp is
odd in it. Prose: given the coefficients s_j the noise has a symmetric law, so the mean is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import sympy as sp

from symbolic.core.proof import Proof, ProofBuilder
from symbolic.core.sums import collapse, transposed, vanishes
from symbolic.positional.attention import Z as Z_OF_SCORES
from symbolic.positional.lemma_4_3 import DIFFERENT, SAME
from symbolic.positional.margins import WEIGHTED_SUM, d_gamma, d_rho
from symbolic.positional.symbols import (
    C,
    D,
    Gamma,
    Lambda,
    T,
    Xi,
    alpha,
    beta,
    gamma,
    kappa,
    n,
    rho,
    s,
    tau,
    x_beta,
    x_gamma,
    x_rho,
)

CLAIM_4_1 = "Lemma 4.1 for every D and C, any activation"
CLAIM_4_2 = "Lemma 4.2 for every D, C and d, any A, any activation"

L, d = sp.symbols("L d", integer=True, positive=True)
#: Row and column of the entry of A, and component of v, in which F is differentiated.
k, l, t = sp.symbols("k l t", integer=True)  # noqa: E741 (the pair is called k, l)
_i, _j, _m = sp.symbols("i j m", integer=True)
#: Set and place of the row; summed set and place; two sets and two places that are exchanged.
g_0, m_0, _g, g_1, g_2, m_1, m_2 = sp.symbols("g_0 m_0 g g_1 g_2 m_1 m_2", integer=True)
A, x, v, xi, X, s_of, O_of = (sp.IndexedBase(name) for name in ("A", "x", "v", "xi", "X", "s", "O"))
delta = sp.KroneckerDelta


class act(sp.Function):
    """Any differentiable activation."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return act'(x)."""
        return act_slope(self.args[0])


class act_slope(sp.Function):
    """Derivative of the activation, an undefined function."""

    nargs = 1

    def _latex(self, printer: Any) -> str:
        return rf"\mathrm{{act}}'\left({printer._print(self.args[0])}\right)"


def margin(row: sp.Expr, of: sp.IndexedBase | sp.Expr = x) -> sp.Expr:
    """Return O of a row, kappa times the softmax average of x_j = <v, X_j> or of an expression."""
    score = sp.exp(A[row, _j] / tau)
    value = of if isinstance(of, sp.Expr) and not isinstance(of, sp.IndexedBase) else of[_j]
    return kappa * sp.Sum(score * value, (_j, 1, D)) / sp.Sum(score, (_j, 1, D))


def output(of: sp.IndexedBase | sp.Expr = x) -> sp.Expr:
    """Return F = sum_i act(O_i) of D patches, with all entries of A free."""
    return sp.Sum(act(margin(_i, of)), (_i, 1, D))


#: S_kl and the gradient of F in A_kl at any A, v and X.
SOFTMAX = sp.exp(A[k, l] / tau) / sp.Sum(sp.exp(A[k, _j] / tau), (_j, 1, D))
LOGIT_GRADIENT = SOFTMAX / tau * act_slope(margin(k)) * (kappa * x[l] - margin(k))

#: <v, X_j> with every component of v free, and the gradient of F in v_t.
PROJECTION = sp.Sum(v[_m] * X[_j, _m], (_m, 1, d))
VALUE_GRADIENT = sp.Sum(act_slope(margin(_i, PROJECTION)) * margin(_i, X[_j, t]), (_i, 1, D))

#: F at v = alpha w*, where <v, X_j> = alpha s_j.
OUTPUT_ON_SPAN = output(alpha * s_of[_j])


def gradient_identities() -> dict[str, sp.Expr]:
    """Return the closed form of the gradient of the model, as expressions that must vanish."""
    return {
        "dF/dA_kl at any A, v and X": sp.diff(output(), A[k, l]) - LOGIT_GRADIENT,
        "dF/dv_t at any A, v and X": sp.diff(output(PROJECTION), v[t]) - VALUE_GRADIENT,
    }


SAME_SET, SAME_PATCH = delta(_g, g_0), delta(_g, g_0) * delta(_m, m_0)
#: e^{A/tau} on the manifold: row (g_0, m_0), column (g, m).
SCORE = x_rho + (x_gamma - x_rho) * SAME_SET + (x_beta - x_gamma) * SAME_PATCH
_SCORES = {
    sp.exp(name / tau): unknown
    for name, unknown in ((beta, x_beta), (gamma, x_gamma), (rho, x_rho))
}
#: Definitions of s, n and T.
_NAMED = {
    s: s_of[g_0, m_0],
    n: sp.Sum(s_of[g_0, _m], (_m, 1, C)),
    T: sp.Sum(s_of[_g, _m], (_m, 1, C), (_g, 1, L)),
}


def over_patches(term: sp.Expr) -> sp.Expr:
    """Return the sum of a term in (g, m) over all patches."""
    return sp.Sum(sp.Sum(term, (_m, 1, C)), (_g, 1, L))


def _named(expression: sp.Expr) -> sp.Expr:
    """Substitute the definitions of s, n and T, and D = L C."""
    return expression.subs(_NAMED).subs(D, L * C)


Z = Z_OF_SCORES.subs(_SCORES)
_WEIGHTS = {Lambda: x_beta / Z, Gamma: x_gamma / Z, Xi: x_rho / Z}
_C_OF_SCORES = WEIGHTED_SUM.subs(_WEIGHTS)

#: Sums of s_j - c over the own set and over the other sets.
OWN_SET = d_gamma(WEIGHTED_SUM) * tau / Gamma
OTHER_SETS = d_rho(WEIGHTED_SUM) * tau / Xi


def _pairs(term: sp.Expr) -> sp.Expr:
    """Return the number of pairs of patches for which a term is 1."""
    return sp.Sum(sp.Sum(over_patches(term), (m_0, 1, C)), (g_0, 1, L))


_IN_OWN, _IN_OTHERS = SAME_SET - SAME_PATCH, 1 - SAME_SET
#: Numbers of pairs of patches with the value beta (a patch with itself), gamma and rho.
PAIRS = {
    beta: collapse(_pairs(SAME_PATCH)),
    gamma: collapse(_pairs(_IN_OWN)),
    rho: collapse(_pairs(_IN_OTHERS)),
}


def manifold_identities(
    own: sp.Expr = OWN_SET,
    others: sp.Expr = OTHER_SETS,
    same: sp.Expr = SAME,
    different: sp.Expr = DIFFERENT,
) -> dict[str, sp.Expr]:
    """Return the identities of sums over a row on the manifold.

    Parameters
    ----------
    own, others, same, different
        Sums of s_j - c, and numbers of pairs; other values make the proof fail (for tests).
    """
    c = sp.Symbol("c", real=True)
    chain = {gamma: x_gamma / tau, rho: x_rho / tau}  # d x / d gamma, d x / d rho
    c_gamma = sp.diff(_C_OF_SCORES, x_gamma) * chain[gamma]
    c_rho = sp.diff(_C_OF_SCORES, x_rho) * chain[rho]
    term = s_of[_g, _m] - c
    in_c = [e.subs(WEIGHTED_SUM, c) for e in (own, others)]
    return {
        "Z": over_patches(SCORE) - _named(Z),
        "c = Lambda s + Gamma (n - s) + Xi (T - n)": over_patches(SCORE * s_of[_g, _m])
        - _named(Z * _C_OF_SCORES),
        "scores of the own set are x_gamma": (SCORE - x_gamma) * _IN_OWN,
        "scores of the others are x_rho": (SCORE - x_rho) * _IN_OTHERS,
        "sum over the own set": over_patches(_IN_OWN * term) - _named(in_c[0]),
        "sum over the other sets": over_patches(_IN_OTHERS * term) - _named(in_c[1]),
        "own set = tau dc/dgamma / Gamma": (Gamma / tau * own).subs(_WEIGHTS) - c_gamma,
        "other sets = tau dc/drho / Xi": (Xi / tau * others).subs(_WEIGHTS) - c_rho,
        "pairs of one set": PAIRS[gamma] - same.subs(D, L * C),
        "pairs of different sets": PAIRS[rho] - different.subs(D, L * C),
    }


def exchange_identities() -> dict[str, sp.Expr]:
    """Return the invariances under exchanges of two patches, places or sets, which must vanish.

    F at exchanged A and X has the summands of F at the exchanged indices. Under the law of the
    paper, given the signal set g_0, ln P of the data is the sum over the patches of u_gm in the
    signal set and w_gm elsewhere, with arbitrary functions u and w of s_gm. Exchanged data have the
    same probability with the signal set exchanged, and the signal set is uniform.
    """
    score = sp.exp(A[_i, _j] / tau)
    numerator, denominator = (
        sp.Sum(transposed(term, _j, k, l), (_j, 1, D)) for term in (score * x[_j], score)
    )
    exchanged = act(kappa * numerator / denominator)
    u, w = (sp.IndexedBase(name) for name in ("u", "w"))
    own = delta(_g, g_0)
    log_mass = own * u[_g, _m] + (1 - own) * w[_g, _m]
    within_sets, sets = (
        {b[_g, _m]: exchange(b[_g, _m]) for b in (u, w)}
        for exchange in (_places_of_one_set, _whole_sets)
    )
    return {
        "F, two patches exchanged": sp.Sum(transposed(exchanged, _i, k, l), (_i, 1, D)) - output(),
        "law, two places of one set exchanged": over_patches(
            log_mass.xreplace(within_sets) - log_mass
        ),
        "law, the signal set exchanged with another": over_patches(
            log_mass.xreplace(sets).subs(g_0, g_1) - log_mass.subs(g_0, g_2)
        ),
        "law, two other sets exchanged": over_patches(log_mass.xreplace(sets) - log_mass),
    }


#: Exchanged indices are different; in the last identity neither set is the signal set.
DIFFERENT_INDICES = ((k, l), (g_1, g_2), (m_1, m_2))
OTHER_THAN_SIGNAL = ((g_0, g_1), (g_0, g_2))


def _places_of_one_set(entry: sp.Expr) -> sp.Expr:
    """Return an entry with two places of one set exchanged."""
    return entry + delta(_g, g_1) * (transposed(entry, _m, m_1, m_2) - entry)


def _whole_sets(entry: sp.Expr) -> sp.Expr:
    """Return an entry with two sets exchanged."""
    return transposed(entry, _g, g_1, g_2)


Patch = tuple[int, int]


def exchanges(sets: int, set_size: int) -> list[dict[Patch, Patch]]:
    """Return the exchanges of two places of a set, and of two sets, as mappings of patches."""
    patches = list(product(range(sets), range(set_size)))
    permutations = []
    for i, j in combinations(range(set_size), 2):
        swap = {i: j, j: i}
        permutations += [
            {(g, m): (g, swap.get(m, m) if g == exchanged else m) for g, m in patches}
            for exchanged in range(sets)
        ]
    for i, j in combinations(range(sets), 2):
        swap = {i: j, j: i}
        permutations.append({(g, m): (swap.get(g, g), m) for g, m in patches})
    return permutations


def orbits(sets: int, set_size: int) -> list[set[tuple[Patch, Patch]]]:
    """Return the orbits of the pairs of different patches under the exchanges."""
    moves = exchanges(sets, set_size)
    remaining = {(i, j) for i, j in product(moves[0], repeat=2) if i != j}
    result: list[set[tuple[Patch, Patch]]] = []
    while remaining:
        orbit: set[tuple[Patch, Patch]] = set()
        fresh = {min(remaining)}
        while fresh:
            orbit |= fresh
            fresh = {(move[i], move[j]) for i, j in fresh for move in moves} - orbit
        remaining -= orbit
        result.append(orbit)
    return result


def noise_identities() -> dict[str, sp.Expr]:
    """Return the identities behind Lemma 4.2, as expressions that must vanish.

    X_j = s_j w* + xi_j and v = alpha w* + v_perp: <v, X_j> = alpha s_j + sum_m v_m xi_jm.
    """
    F = output(alpha * s_of[_j] + NOISE)
    of_alpha = sp.diff(F, alpha)
    of_logit = LOGIT_GRADIENT.xreplace({x[i]: _noisy(i) for i in (_j, l)})
    orthogonal = on_span(sp.diff(F, v[t]))
    without = act_slope(margin(_i, alpha * s_of[_j]))
    along = sp.Sum(without * margin(_i, s_of[_j]), (_i, 1, D))
    closed = sp.Sum(without * margin(_i, xi[_j, t]), (_i, 1, D))
    return {
        "F contains no noise at v_perp = 0": on_span(F) - OUTPUT_ON_SPAN,
        "dF/dalpha contains no noise": on_span(of_alpha) - along,
        "dF/dA_kl contains no noise": on_span(of_logit)
        - LOGIT_GRADIENT.xreplace({x[i]: alpha * s_of[i] for i in (_j, l)}),
        "dF/dv_perp in closed form": orthogonal - closed,
        "dF/dv_perp is odd in the noise": orthogonal + _opposite(orthogonal),
    }


def value_gradient_on_span(component: Callable[[sp.Symbol], sp.Expr]) -> sp.Expr:
    """Return the derivative of F in a direction of v at v = alpha w*.

    Parameters
    ----------
    component
        Component of X_j in this direction, as a function of j.
    """
    return VALUE_GRADIENT.xreplace({PROJECTION: alpha * s_of[_j], X[_j, t]: component(_j)})


NOISE = sp.Sum(v[_m] * xi[_j, _m], (_m, 1, d - 1))


def _noisy(patch: sp.Symbol) -> sp.Expr:
    return alpha * s_of[patch] + NOISE.subs(_j, patch)


def on_span(expression: sp.Expr) -> sp.Expr:
    """Return an expression at v_perp = 0."""
    return expression.replace(lambda e: isinstance(e, sp.Indexed) and e.base == v, lambda e: 0)


def _opposite(expression: sp.Expr) -> sp.Expr:
    """Return an expression with xi replaced by -xi."""
    return expression.replace(lambda e: isinstance(e, sp.Indexed) and e.base == xi, lambda e: -e)


def prove_4_1() -> Proof:
    """Prove the identities behind Lemma 4.1 for all sizes."""
    builder = ProofBuilder(CLAIM_4_1)
    tables = gradient_identities() | manifold_identities() | exchange_identities()
    for name, expression in tables.items():
        different = DIFFERENT_INDICES + (OTHER_THAN_SIGNAL if "two other sets" in name else ())
        builder.equal(name, vanishes(expression, different), True)
    _check_exchanges(builder)
    return builder.build()


def _check_exchanges(builder: ProofBuilder) -> None:
    """Compare the scores of exchanged pairs of patches, and count the orbits at small sizes.

    A score depends only on equalities of the sets and places of its two patches. With four sets and
    four places, every pattern of equalities between two patches and the exchanged ones occurs, so
    this comparison proves the invariance for every L and C. The orbits confirm transitivity.
    """
    for move in exchanges(4, 4):
        pairs = product(move, repeat=2)
        invariant = all(_relation(move[i], move[j]) == _relation(i, j) for i, j in pairs)
        builder.equal("scores of exchanged patches", invariant, True)
    for sets, set_size in product((2, 3, 4), repeat=2):
        summary = sorted(
            (len({_relation(i, j) for i, j in orbit}), len(orbit))
            for orbit in orbits(sets, set_size)
        )
        size = sets * set_size
        expected = sorted([(1, size * (set_size - 1)), (1, size * (size - set_size))])
        builder.equal("two orbits of the exchanges", summary, expected, (sets, set_size))


def _relation(first: Patch, second: Patch) -> tuple[bool, bool]:
    """Return whether two patches share their set, and whether they are the same."""
    return first[0] == second[0], first == second


def prove_4_2() -> Proof:
    """Prove the identities behind Lemma 4.2 for all sizes."""
    builder = ProofBuilder(CLAIM_4_2)
    for name, expression in noise_identities().items():
        builder.equal(name, vanishes(expression), True)
    off_span = output(alpha * s_of[_j] + NOISE) - OUTPUT_ON_SPAN
    builder.equal("F contains the noise at v_perp != 0", vanishes(off_span), False)
    return builder.build()
