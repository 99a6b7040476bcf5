"""One layer of attention on a binary Markov chain, with rank-one weights: four order parameters.

Makkuva et al. (arXiv 2402.04161 and 2406.03072), as public notes describe them. The tokens are a
stationary chain of 0 and 1 with transition probabilities p (0 to 1) and q (1 to 0). The logit of
a 1 after x_1 ... x_n is e^2 (1 + 2 w |w|) (x_n + a mean(x_1 ... x_n)) + c. The number w never
passes 0 during training, so that w |w| = sign w^2, with the constant ``sign`` 1 or -1.

How the attention of the paper enters next to e and w is an assumption; a = 0 is the setting of its
theorem.
"""

from fractions import Fraction

from symbolic.theory import Chain, Data, Ordered, Tensor, Theory, constants, relation

T = 8

p, q = constants(p="in (0, 1)", q="in (0, 1)")
(sign,) = constants(sign="in [-1, 1]")
position = Ordered("position", T)
x = Chain("x", position, p, q)

e = Tensor("e", start=0.1)
w = Tensor("w", start=0.1)
a = Tensor("a", start=0)
c = Tensor("c", start=0)


def loss(e, w, a, c, x):
    """Mean logistic loss of the next token."""
    weight = relation(lambda s, t: Fraction(int(s <= t), t + 1), s=position, t=position)
    mean = (weight * x["s"]).sum("s")
    logit = e**2 * (1 + 2 * sign * w**2) * (x["t"] + a * mean) + c
    following = relation(lambda t, n: n == t + 1, t=position, n=position)
    target = (following * x["n"]).sum("n")
    predicted = relation(lambda t: t < T - 1, t=position)
    return (predicted * (logit.softplus() - target * logit)).sum("t") / (T - 1)


THEORY = Theory(
    "markov chain",
    "Makkuva et al. (arXiv 2402.04161)",
    sizes=(),
    parameters=(e, w, a, c),
    data=Data(x),
    loss=loss,
    defaults={"p": 0.2, "q": 0.3, "sign": 1, "horizon": 1e3},
)
