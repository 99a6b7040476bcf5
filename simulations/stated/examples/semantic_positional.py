"""Softmax attention of two tokens, by meaning or by position (after Cui et al., NeurIPS 2024).

The tokens are normal; token l has a position vector +p or -p. The scores of the student are
w (x_l +- p). The teacher mixes attention by w* x_l with fixed attention (1 +- tau)/2 to positions.
Both read u x_l. The attention of the first token is all that differs.
"""

from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Vectors
from symbolic.theory import Size, constants

d = Size("d", "dimension")
omega, tau, c = constants(omega="in [0, 1]", tau="in [0, 1]", c="> 0")

space = Euclidean("coordinate", d)
ws, p, u = Directions("ws", space, gram=c**2), Directions("p", space), Directions("u", space)
first, second = Normal("first", space), Normal("second", space)
w = Vectors("w", space)


def loss(w, ws, p, u, first, second):
    """Half the squared error of a sentence."""
    student = (w @ first - w @ second + 2 * (w @ p)).sigmoid()
    teacher = (1 - omega) * (ws @ first - ws @ second).sigmoid() + omega * (1 + tau) / 2
    return ((student - teacher) * (u @ first - u @ second)) ** 2 / 2


THEORY = OverlapTheory(
    "semantic positional",
    "after Cui, Behrens, Krzakala, Zdeborova (NeurIPS 2024)",
    sizes=(d,),
    parameters=(w,),
    directions=(ws, p, u),
    data=(first, second),
    loss=loss,
    names={"w.w": "q", "w.ws": "semantic", "w.p": "positional", "w.u": "r"},
    start={"q": 0.01},
    defaults={"d": 100, "omega": 0.3, "tau": 0.8, "c": 2.0, "horizon": 100},
)
