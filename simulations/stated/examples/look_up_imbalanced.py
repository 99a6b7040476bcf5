"""Softmax attention learns to look up, one feature more likely than the others.

Huang, Cheng, Liang (ICML 2024, arXiv 2310.05249), imbalanced features: K orthonormal features, the
first of which has probability p and the others share the rest; a prompt of N tokens and a query.
Otherwise as in look_up.py.
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
    """Half the squared error of one prompt, averaged over the weights of the features."""
    pull = (query["q", "m"] * Q["m", "k"]).sum("q").sum("m")
    seen = ((pull * x["i", "k"]).sum("k").softmax(over="i") * x["i", "f"]).sum("i")
    return 0.5 * ((seen - query["q", "f"].sum("q")) ** 2).sum("f")


THEORY = Theory(
    "look_up_imbalanced",
    "Huang, Cheng, Liang (ICML 2024)",
    sizes=(K, N),
    parameters=(Q,),
    data=Data(x, query),
    loss=loss,
)
