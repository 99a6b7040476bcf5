"""Statistical induction heads: the minimal model of in-context learning of a Markov chain.

Edelman et al. (arXiv 2402.11004), after their public code ``min_model.py``. A sequence is drawn
from a random chain on S symbols: the rows of its transition matrix are uniform, and so is its first
token (in the paper, the first token is stationary). The first layer averages with the weights v of
the lag; the second compares its result with the present token through W. T + 2 order parameters.
"""

from symbolic.theory import (
    Data,
    Exchangeable,
    Ordered,
    Size,
    Tensor,
    Theory,
    Words,
    polya,
    relation,
)

T = 6  # tokens seen; one more is predicted

S = Size("S", "symbols", least=2)
token = Exchangeable("token", S)
position = Ordered("position", T + 1)
lag = Ordered("lag", T)
x = Words("x", position, token, polya(1))

v = Tensor("v", lag, start=0.01)
W = Tensor("W", (token, token), start={"diagonal": 1})


def loss(v, W, x):
    """Mean cross-entropy of the next token."""
    shift = relation(lambda s, u, k: s - u == k, s=position, u=position, k=lag)
    back = (shift * v["k"]).sum("k")
    first = (back * x["u", "m"]).sum("u")
    own = (x["t", "l"] * W["l", "m"]).sum("l")
    score = (own * first).sum("m")
    seen = relation(lambda s, t: s <= t < T, s=position, t=position)
    logits = (score * seen * x["s", "c"]).sum("s")
    following = relation(lambda t, n: n == t + 1, t=position, n=position)
    target = (following * x["n", "c"]).sum("n")
    predicted = relation(lambda t: t < T, t=position)
    return (predicted * logits.cross_entropy(target, over="c")).sum("t") / T


THEORY = Theory(
    "statistical induction",
    "Edelman et al. (arXiv 2402.11004)",
    sizes=(S,),
    parameters=(v, W),
    data=Data(x),
    loss=loss,
    defaults={"S": 3, "horizon": 1e3},
)
