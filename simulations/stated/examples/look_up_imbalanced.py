"""Softmax attention learns look-up, with one feature of another probability.

Huang, Cheng, Liang (ICML 2024, arXiv 2310.05249), imbalanced features: of K orthonormal features
the first has probability p, and the others have equal probabilities. Everything else is as in
look_up.py.
"""

from symbolic.theory import (
    Data,
    Exchangeable,
    Sequence,
    Size,
    Tensor,
    Theory,
    Union,
    constants,
)

K = Size("K", "features", least=3)
N = Size("N", "tokens of the prompt", least=2)
(p,) = constants(p="in (0, 1)")

dominant = Exchangeable("dominant", 1)
rare = Exchangeable("rare", K - 1)
feature = Union("feature", dominant, rare)
probabilities = {"dominant": p, "rare": 1 - p}
x = Sequence("x", Exchangeable("token", N), feature, probabilities=probabilities)
query = Sequence("query", Exchangeable("last", 1), feature, probabilities=probabilities)

Q = Tensor("Q", (feature, feature), start=0)


def loss(Q, x, query):
    """Return half the squared error of one prompt, averaged over the weights of the label."""
    score = (query["q", "m"] * Q["m", "k"]).sum("q").sum("m")
    attention = ((score * x["i", "k"]).sum("k").softmax(over="i") * x["i", "f"]).sum("i")
    return 0.5 * ((attention - query["q", "f"].sum("q")) ** 2).sum("f")


THEORY = Theory(
    "look_up_imbalanced",
    "Huang, Cheng, Liang (ICML 2024)",
    sizes=(K, N),
    parameters=(Q,),
    data=Data(x, query),
    loss=loss,
)
