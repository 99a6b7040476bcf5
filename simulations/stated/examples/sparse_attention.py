"""Softmax attention learns to pick one token of T: nothing seems to happen for a long time.

Zucchet, d'Angelo, Lampinen, Chan (2025, arXiv 2505.17863), as public notes describe their model: T
tokens of d independent normal numbers, the target is the last one. One softmax over positions (a
for the others, b for the last one) and a matrix W; the target matrix is orthogonal, and inputs are
turned so that it is the identity. The loss is the mean squared error.
"""

from symbolic.theory import Data, Exchangeable, Gaussian, Signed, Size, Tensor, Theory

T = Size("T", "tokens", least=2)
d = Size("d", "coordinates", least=1)

other = Exchangeable("other", T - 1)
coordinate = Signed("coordinate", d)
x = Gaussian("x", (other, coordinate))
last = Gaussian("last", coordinate)

a = Tensor("a", other, start=0)
b = Tensor("b", start=0)
W = Tensor("W", (coordinate, coordinate), start=0)


def loss(a, b, W, x, last):
    """Half the squared error of a coordinate of the last token."""
    total = a["t"].exp().sum("t") + b[()].exp()
    seen = ((a["t"].exp() * x["t", "k"]).sum("t") + b[()].exp() * last["k"]) / total
    return 0.5 * (((W["i", "k"] * seen).sum("k") - last["i"]) ** 2).sum("i") / d


THEORY = Theory(
    "sparse_attention",
    "Zucchet, d'Angelo, Lampinen, Chan (arXiv 2505.17863)",
    sizes=(T, d),
    parameters=(a, b, W),
    data=Data(x, last),
    loss=loss,
    defaults={"T": 16, "d": 4, "horizon": 1e3},
)
