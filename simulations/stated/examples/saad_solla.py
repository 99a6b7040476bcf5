"""A soft committee machine learns from another one (Saad and Solla, PRE 52, 4225, 1995).

K hidden units J_k, as many units B_m of the teacher, normal inputs in d dimensions. Student and
teacher share one index set, so that unit k may specialise to unit k of the teacher. The file states
gradient descent on the population loss, with all units of the student equivalent.
"""

from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Vectors, sqrt
from symbolic.theory import Exchangeable, Size

d, K = Size("d", "dimension"), Size("K", "hidden units")

space = Euclidean("coordinate", d)
unit = Exchangeable("unit", K)
x = Normal("x", space)
J = Vectors("J", (unit, space))
B = Directions("B", (unit, space), gram=1)


def loss(J, B, x):
    """Half the squared error of one example."""
    student = ((J["k"] @ x) / sqrt(2)).erf().sum("k")
    teacher = ((B["m"] @ x) / sqrt(2)).erf().sum("m")
    return (student - teacher) ** 2 / 2


THEORY = OverlapTheory(
    "saad solla",
    "Saad, Solla (PRE 1995)",
    sizes=(d, K),
    parameters=(J,),
    directions=(B,),
    data=(x,),
    loss=loss,
    names={"J.J[same]": "Q", "J.J[other]": "C", "J.B[same]": "R", "J.B[other]": "S"},
    start={"Q": 0.2, "C": 0.01, "R": 0.011, "S": 0.01},
    defaults={"d": 100, "K": 2, "horizon": 300},
)
