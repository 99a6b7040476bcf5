"""Positional attention learns which patches belong together, stated whole.

Jelassi, Sander, Li (NeurIPS 2022), equation (T) with the symbols of Section 4: patches lie in sets,
one set carries the label, the others random signs. On the manifold of Lemmas 4.1 and 4.2 the
patches enter through their coefficients of w* alone, and v through its own; F is odd, so that the
label may be taken as +1.
"""

from symbolic.theory import (
    Choice,
    Colouring,
    Data,
    Exchangeable,
    Size,
    Tensor,
    Theory,
    constants,
)

D = Size("D", "patches", least=4)
C = Size("C", "patches of a set", least=2, divides="D")
q, nu, beta, p, kappa, tau = constants(
    q="in (0, 1]", nu="> 0", beta="real", p=">= 3", kappa="> 0", tau="> 0"
)

sets = Exchangeable("set", D / C)
patch = Exchangeable("patch", C, inside=sets)
signal = Choice("signal", sets)
s = Colouring("s", patch, {+1: q / 2, 0: 1 - q, -1: q / 2}, given={signal: +1})

A = Tensor("A", (patch, patch), start=0)
A.fix("diagonal", beta)
v = Tensor("v", start=nu ** (1 / (p - 1)))


def margin(A, v, s):
    """F of one image: attention between patches, then x^p + nu x, summed over patches."""
    O = kappa * ((A["i", "j"] / tau).softmax(over="j") * v * s["j"]).sum("j")  # noqa: E741
    return (O**p + nu * O).sum("i")


THEORY = Theory(
    "positional",
    "Jelassi, Sander, Li (NeurIPS 2022)",
    sizes=(D, C),
    parameters=(v, A),
    data=Data(signal, s),
    loss=lambda A, v, s: margin(A, v, s).softplus_of_minus(),
    names={"v": "alpha", "A[same set]": "gamma", "A[other set]": "rho"},
    claims=["gamma >= rho"],
)
