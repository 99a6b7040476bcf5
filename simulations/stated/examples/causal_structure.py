"""A disentangled transformer of two layers learns a causal structure: (T + 1)^2 + 2 parameters.

Nichani, Damian and Lee (arXiv 2402.14735). Each token is drawn given the token at its parent by a
random transition matrix with uniform rows; roots are uniform (in the paper, stationary). The last
token seen is a root, and its successor is predicted. A: attention of positions to those before; B:
comparison of the last token with what each position took over.
"""

from symbolic.theory import (
    Data,
    Exchangeable,
    Ordered,
    Size,
    Tensor,
    Theory,
    Words,
    constants,
    relation,
    tree,
)

PARENT = (None, 0, 1, None, 3)  # the last is the token to predict
T = len(PARENT) - 1

S = Size("S", "tokens", least=2)
(eps,) = constants(eps="> 0")
token = Exchangeable("token", S)
position = Ordered("position", T + 1)
x = Words("x", position, token, tree(PARENT))

A = Tensor("A", (position, position), start=0)
B = Tensor("B", (token, token), start={"diagonal": 0.1})


def loss(A, B, x):
    """Cross-entropy of the token after the last one seen, smoothed by eps."""
    before = relation(
        lambda t, s: s <= t < T or s == t == T,
        t=position,
        s=position,
    )
    first = (A["t", "s"].softmax(over="s", where=before) * x["s", "k"]).sum("s")
    query = (x.at(T - 1, "m") * B["m", "k"]).sum("m")
    score = (query * first).sum("k")
    seen = relation(lambda t: t < T, t=position)
    prediction = (score.softmax(over="t", where=seen) * x["t", "c"]).sum("t")
    return -((prediction + eps).log() * x.at(T, "c")).sum("c")


THEORY = Theory(
    "causal structure",
    "Nichani, Damian and Lee (arXiv 2402.14735)",
    sizes=(S,),
    parameters=(A, B),
    data=Data(x),
    loss=loss,
    defaults={"S": 3, "eps": 0.05, "horizon": 1e4},
)
