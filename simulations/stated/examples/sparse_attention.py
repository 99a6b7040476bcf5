"""Softmax attention learns to select one of T tokens, after a long plateau of the loss.

Zucchet, d'Angelo, Lampinen, Chan (2025, arXiv 2505.17863), with the model of public notes: T tokens
of d independent normal numbers; the target is an orthogonal matrix times the last token. The model
is a softmax over positions, with scores a and, for the last one, b, and a matrix W. Inputs are
rotated so that the target matrix is the identity. The loss is the mean squared error.
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
    """Return half the squared error, averaged over the coordinates of the last token."""
    total = a["t"].exp().sum("t") + b[()].exp()
    mean = ((a["t"].exp() * x["t", "k"]).sum("t") + b[()].exp() * last["k"]) / total
    return 0.5 * (((W["i", "k"] * mean).sum("k") - last["i"]) ** 2).sum("i") / d


THEORY = Theory(
    "sparse_attention",
    "Zucchet, d'Angelo, Lampinen, Chan (arXiv 2505.17863)",
    sizes=(T, d),
    parameters=(a, b, W),
    data=Data(x, last),
    loss=loss,
    defaults={"T": 16, "d": 4, "horizon": 1e3},
)
