"""Positional attention learns which patches belong together, as a user-defined theory.

Jelassi, Sander, Li (NeurIPS 2022), equation (T) with the symbols of Section 4: the patches of one
set carry the label, those of the other sets random signs. On the manifold of Lemmas 4.1 and 4.2,
patches and v enter only through their components along w*. F is odd, so the label is +1 without
loss of generality.
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
    """Return F of one image: attention between patches, then x^p + nu x, summed over patches."""
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
