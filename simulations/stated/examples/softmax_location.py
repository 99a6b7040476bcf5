"""Softmax attention learns which of L tokens matters (after Marion et al., ICLR 2025).

The informative token has mean sqrt(d/2) k* and variance gamma^2, the others are standard normal.
The label is v* x_1. The predictor is the attention output sum_l a_l v x_l with the softmax a of
lam k x_l over all tokens, in place of the error function of each token; k and v have norm 1.
"""

from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Vectors, softmax, sqrt
from symbolic.theory import Exchangeable, Size, constants

d, L = Size("d", "dimension"), Size("L", "tokens", least=2)
gamma, lam = constants(gamma="> 0", lam="> 0")

space = Euclidean("coordinate", d)
token = Exchangeable("token", L - 1)
ks, vs = Directions("ks", space), Directions("vs", space)
first = Normal("first", space, variance=gamma**2, mean=(sqrt(d / 2), ks))
x = Normal("x", (token, space))
k = Vectors("k", space, sphere=True)
v = Vectors("v", space, sphere=True)


def loss(k, v, ks, vs, first, x):
    """The squared error of one prompt."""
    attention, others = softmax(lam * (k @ first), lam * (k @ x["l"]))
    predicted = attention * (v @ first) + (others * (v @ x["l"])).sum("l")
    return (predicted - vs @ first) ** 2


THEORY = OverlapTheory(
    "softmax location",
    "after Marion, Berthier, Biau, Boyer (ICLR 2025)",
    sizes=(d, L),
    parameters=(k, v),
    directions=(ks, vs),
    data=(first, x),
    loss=loss,
    names={"k.ks": "kappa", "v.vs": "nu", "v.ks": "theta", "k.vs": "eta", "k.v": "rho"},
    start={"kappa": 0.1, "nu": 0.1},
    defaults={"d": 400, "L": 10, "gamma": 0.7, "lam": 1.0, "horizon": 20},
)
