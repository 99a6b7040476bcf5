"""Linear attention learns in-context regression: one head of rank one for each coordinate.

Zhang, Singh, Latham, Saxe (ICML 2025, arXiv 2501.16265), separate keys and queries. Head h predicts
v_h (sum_n y_n k_h x_n / N) (q_h x_q), for four coordinates of different variances. At the start,
head h is aligned with coordinate h. Then v, k and q are diagonal, and remain so because the loss
does not depend on the signs of coordinates. The full model has every entry of k and q.
"""

from symbolic.theory import (
    Data,
    Exchangeable,
    Gaussian,
    Signed,
    Size,
    Tensor,
    Theory,
    Union,
    constants,
)

N = Size("N", "pairs in the context")
a, b, c, d, start = constants(a="> 0", b="> 0", c="> 0", d="> 0", start="> 0")

pair = Exchangeable("pair", N)
names = ("first", "second", "third", "fourth")
coordinate = Union("coordinate", *(Signed(name, 1) for name in names))
spectrum = dict(zip(names, (a, b, c, d)))
x = Gaussian("x", (pair, coordinate), variance=spectrum)
query = Gaussian("query", coordinate, variance=spectrum)
w = Gaussian("w", coordinate)

v = Tensor("v", (coordinate, coordinate), start={"diagonal": start})
k = Tensor("k", (coordinate, coordinate), start={"diagonal": start})
q = Tensor("q", (coordinate, coordinate), start={"diagonal": start})


def loss(v, k, q, x, query, w):
    """Return half the squared error of one prompt."""
    y = (w["i"] * x["s", "i"]).sum("i")
    key = (y * (k["h", "i"] * x["s", "i"]).sum("i")).sum("s") / N
    prediction = (v["h", "h"] * key * (q["h", "i"] * query["i"]).sum("i")).sum("h")
    return 0.5 * ((w["i"] * query["i"]).sum("i") - prediction) ** 2


THEORY = Theory(
    "in_context_heads",
    "Zhang, Singh, Latham, Saxe (ICML 2025)",
    sizes=(N,),
    parameters=(v, k, q),
    data=Data(x, query, w),
    loss=loss,
    names={
        f"{letter}[{name} to {name}, diagonal]": f"{letter}_{name}"
        for letter in "vkq"
        for name in names
    },
)
