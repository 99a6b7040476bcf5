"""Softmax attention learns to look up: which tokens of a prompt are like the query.

Huang, Cheng, Liang (ICML 2024, arXiv 2310.05249), balanced features: K orthonormal features, a
prompt of N tokens and a query, each a feature at random. The label is linear in the features and
its weights are averaged over, so that what counts is the attention that a feature gets.
"""

from symbolic.theory import (
    Choice,
    Data,
    Exchangeable,
    Sequence,
    Size,
    Tensor,
    Theory,
)

K = Size("K", "features", least=2)
N = Size("N", "tokens of the prompt", least=2)

feature = Exchangeable("feature", K)
token = Exchangeable("token", N)
x = Sequence("x", token, feature)
query = Choice("query", feature)

Q = Tensor("Q", (feature, feature), start=0)


def loss(Q, x, query):
    """Half the squared error of one prompt, averaged over the weights of the features."""
    score = ((query["m"] * Q["m", "k"]).sum("m") * x["i", "k"]).sum("k")
    seen = (score.softmax(over="i") * x["i", "f"]).sum("i")
    return 0.5 * ((seen - query["f"]) ** 2).sum("f")


THEORY = Theory(
    "look_up",
    "Huang, Cheng, Liang (ICML 2024)",
    sizes=(K, N),
    parameters=(Q,),
    data=Data(x, query),
    loss=loss,
    names={"Q[diagonal]": "A", "Q[other feature]": "B"},
)
