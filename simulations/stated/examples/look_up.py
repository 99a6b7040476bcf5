"""Softmax attention learns look-up: to attend to the tokens of a prompt that equal the query.

Huang, Cheng, Liang (ICML 2024, arXiv 2310.05249), balanced features: K orthonormal features, a
prompt of N tokens and a query, each a random feature. The label is linear in the features. After
the mean over its weights, the loss depends only on the attention to each feature.
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
    """Return half the squared error of one prompt, averaged over the weights of the label."""
    score = ((query["m"] * Q["m", "k"]).sum("m") * x["i", "k"]).sum("k")
    attention = (score.softmax(over="i") * x["i", "f"]).sum("i")
    return 0.5 * ((attention - query["f"]) ** 2).sum("f")


THEORY = Theory(
    "look_up",
    "Huang, Cheng, Liang (ICML 2024)",
    sizes=(K, N),
    parameters=(Q,),
    data=Data(x, query),
    loss=loss,
    names={"Q[diagonal]": "A", "Q[other feature]": "B"},
)
