"""One layer of attention learns a bigram: the next token repeats the present one.

Each token repeats the one before it with probability ``stay``; otherwise it is any other of the S
symbols. Attention looks back by the lag, with the scores v; W reads the token that it finds.
"""

from symbolic.theory import (
    Data,
    Exchangeable,
    Ordered,
    Size,
    Tensor,
    Theory,
    Words,
    chain,
    constants,
    relation,
)

T = 4  # tokens seen; the next one is predicted

S = Size("S", "symbols", least=2)
(stay,) = constants(stay="in (0, 1)")
token = Exchangeable("token", S)
position = Ordered("position", T + 1)
lag = Ordered("lag", T)
x = Words("x", position, token, chain(stay))

v = Tensor("v", lag, start=0)
W = Tensor("W", (token, token), start={"diagonal": 0.1})

back = relation(lambda t, s, k: t - s == k, t=position, s=position, k=lag)
past = relation(lambda t, s: s <= t < T, t=position, s=position)
after = relation(lambda t, n: n == t + 1, t=position, n=position)
seen = relation(lambda t: t < T, t=position)


def loss(v, W, x):
    """Mean cross-entropy of the next token."""
    score = (back * v["k"]).sum("k")
    weight = score.softmax(over="s", where=past, empty="zero")
    read = (weight * x["s", "m"]).sum("s")
    logits = (read * W["m", "c"]).sum("m")
    target = (after * x["n", "c"]).sum("n")
    return (seen * logits.cross_entropy(target, over="c")).sum("t") / T


THEORY = Theory(
    "bigram",
    "State a transformer on sequences",
    sizes=(S,),
    parameters=(v, W),
    data=Data(x),
    loss=loss,
    observables={"attention": "exp(v_0) / (exp(v_0) + exp(v_1) + exp(v_2) + exp(v_3))"},
    events={"attends": "attention > 0.5"},
    defaults={"S": 3, "stay": 0.8, "horizon": 1e3},
)
