"""Masked image modelling with one partition of the patches, as a user-defined theory.

Huang, Wen, Chi, Liang (2024), equations (2.5) to (2.8): a global area of G patches and N local
areas of C each. Every patch of area m contains z v_m; M of the patches are masked, and these are
reconstructed.
Features and positions are orthonormal, and only rows of positions are trained (Lemma 5.1):
Phi[p, m] = e_p^T Q v_m, Upsilon[p, q] = e_p^T Q e_q.
"""

from symbolic.theory import (
    Data,
    Exchangeable,
    Inside,
    Size,
    Subset,
    Tensor,
    Theory,
    Union,
    constants,
)

G = Size("G", "patches of the global area", least=2)
C = Size("C", "patches of a local area", least=2)
N = Size("N", "local areas", least=2)
M = Size("M", "masked patches")
(z,) = constants(z="> 0")

whole = Exchangeable("global area", 1)
area = Exchangeable("local area", N)
patch = Union(
    "patch", Exchangeable("global", G, inside=whole), Exchangeable("local", C, inside=area)
)
feature = Union("feature", whole, area)
inside = Inside(patch, feature)
masked = Subset("masked", patch, M)

Phi = Tensor("Phi", (patch, feature))
Upsilon = Tensor("Upsilon", (patch, patch))


def reconstruction(Phi, Upsilon, masked):
    """Return half the squared error of the masked patches of one image."""
    unmasked = 1 - masked["q"]
    correlation = (inside["q", "n"] * Phi["p", "n"]).sum("n")
    attention = (Upsilon["p", "q"] + z * unmasked * correlation).softmax(over="q")
    a = (attention * unmasked * inside["q", "m"]).sum("q")
    error = (inside["p", "m"] - a) ** 2
    return z**2 / 2 * (masked["p"] * error.sum("m")).sum("p")


THEORY = Theory(
    "masked",
    "Huang, Wen, Chi, Liang (2024)",
    sizes=(G, C, N, M),
    parameters=(Phi, Upsilon),
    data=Data(masked),
    loss=reconstruction,
)
