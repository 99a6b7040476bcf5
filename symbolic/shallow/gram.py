"""The Gram form of the dynamics, closed for every width, and its conserved quantities.

A step of equal rates is (K, Q) <- (K, Q) (1 + eta Omega), Omega = [[0, G], [G^T, 0]], so that the
Gram matrix Gamma = [[S_K, A], [A^T, S_Q]] of (K, Q) obeys Gamma <- (1 + eta Omega) Gamma (1 + eta
Omega). The pair (W_O^T, V) behaves the same with D instead of G.

With J = diag(1, -1), J Omega = -Omega J, and
X = J Gamma becomes (1 - eta Omega) X (1 + eta Omega). In the flow X' = X Omega - Omega X: the
spectrum of X is conserved. Under every trace a finite step multiplies by 1 - eta^2 Omega^2, so the
drift over a fixed time is of order eta.
"""

import sympy as sp

from symbolic.core.proof import Proof, ProofBuilder
from symbolic.shallow.words import (
    Blocks,
    block_trace,
    letter,
    product,
    trace,
    transpose,
    vanishes,
)

_, FORM, CONSERVED = (__doc__ or 4 * "\n").split("\n\n")

eta = sp.Symbol("eta", positive=True)
K, Q, G = map(letter, ("K", "Q", "G"))
Omega, X = letter("Omega", symmetric=True), letter("X")
Gamma, J = letter("Gamma", symmetric=True), letter("J", symmetric=True)
#: J Omega = -Omega J.
ANTICOMMUTE = {(J, Omega): -Omega * J}
POWERS = (1, 2, 3, 4)


def gram(left: sp.Expr, right: sp.Expr) -> Blocks:
    """Return the Gram matrix of a pair as a block matrix."""
    pair = (left, right)
    return [[sp.expand(transpose(x) * y) for y in pair] for x in pair]


def stepped(rate: sp.Expr = eta) -> tuple[sp.Expr, sp.Expr]:
    """Return K and Q after a step; ``rate`` is the learning rate of Q."""
    return K + eta * Q * transpose(G), Q + rate * K * G


MOVE: Blocks = [[sp.S.One, eta * G], [eta * transpose(G), sp.S.One]]

#: Time derivatives of S_K, A and S_Q in the flow.
FLOW: dict[str, sp.Expr] = {
    "S_K": transpose(K) * Q * transpose(G) + G * transpose(Q) * K,
    "A": transpose(K) * K * G + G * transpose(Q) * Q,
    "S_Q": transpose(Q) * K * G + transpose(G) * transpose(K) * Q,
}
#: Matrix whose trace is the change of tr S_K - tr S_Q in one step.
DRIFT = eta**2 * (Q * transpose(G) * G * transpose(Q) - K * G * transpose(G) * transpose(K))
#: X in the flow (time derivative), X after a step, and a matrix with the same traces as the latter.
LAX = X * Omega - Omega * X
AFTER = (1 - eta * Omega) * X * (1 + eta * Omega)
UNDER_TRACE = X * (1 - eta**2 * Omega**2)


def form_identities(
    pair: tuple[sp.Expr, sp.Expr] | None = None, flow: dict[str, sp.Expr] | None = None
) -> dict[str, sp.Expr]:
    """Return the identities of the Gram step and of the flow, which must vanish."""
    pair, flow = pair or stepped(), FLOW | (flow or {})
    after, claimed = gram(*pair), product(product(MOVE, gram(K, Q)), MOVE)
    names = (("S_K", "A"), ("A^T", "S_Q"))
    table = {
        f"{names[i][j]} of the step": after[i][j] - claimed[i][j] for i in (0, 1) for j in (0, 1)
    }
    for name, i, j in (("S_K", 0, 0), ("A", 0, 1), ("S_Q", 1, 1)):
        slope = sp.expand(after[i][j]).coeff(eta, 1)
        table[f"{name} in the flow"] = slope - flow[name]
    return table


def conserved_identities(
    drift: sp.Expr = DRIFT, lax: sp.Expr = LAX, after: sp.Expr = AFTER, under: sp.Expr = UNDER_TRACE
) -> dict[str, sp.Expr]:
    """Return the identities of conserved traces and their drift, which must vanish."""
    old, new = gram(K, Q), gram(*stepped())
    change = [trace(new[k][k] - old[k][k]) for k in (0, 1)]
    signed = [[old[0][0], old[0][1]], [-old[1][0], -old[1][1]]]
    squares = trace(old[0][0] ** 2) + trace(old[1][1] ** 2) - 2 * trace(old[0][1] * old[1][0])
    table = {
        "tr S_K - tr S_Q drifts by eta^2 tr(..)": change[0] - change[1] - trace(drift),
        "tr X^2 = |S_K|^2 + |S_Q|^2 - 2 |A|^2": block_trace(product(signed, signed)) - squares,
        "the flow of X is the first order of its step": _zero_if_vanishing(
            sp.expand(after).coeff(eta, 1) - lax
        ),
    }
    for k in POWERS:
        table[f"tr X^{k} is conserved by the flow"] = trace(X ** (k - 1) * lax)
        table[f"tr X^{k} after a step"] = trace(after**k) - trace(under**k)
    return {name: sp.expand(x) for name, x in table.items()}


def _zero_if_vanishing(expression: sp.Expr) -> sp.Expr:
    """Return 0 if a polynomial in matrices vanishes, else the polynomial."""
    return sp.S.Zero if vanishes(expression) else expression


def step_of_X(after: sp.Expr = AFTER) -> sp.Expr:
    """Return J (1 + eta Omega) Gamma (1 + eta Omega) minus its claimed form."""
    step = J * (1 + eta * Omega) * Gamma * (1 + eta * Omega)
    return step - sp.expand(after).subs(X, J * Gamma)


def prove_form() -> Proof:
    """Prove for all sizes that the Gram form is closed."""
    builder = ProofBuilder("Gram form, for every M, m and all widths")
    for name, expression in form_identities().items():
        builder.equal(name, vanishes(expression), True)
    return builder.build()


def prove_conserved() -> Proof:
    """Prove the conserved quantities for all sizes."""
    builder = ProofBuilder("Conserved quantities, for every M, m and all widths")
    builder.equal("X = J Gamma after a step", vanishes(step_of_X(), ANTICOMMUTE), True)
    for name, number in conserved_identities().items():
        builder.equal(name, number, 0)
    return builder.build()
