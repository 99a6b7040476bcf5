"""Linear attention learns in-context regression, with merged key-query weights.

Zhang, Frei, Bartlett (JMLR 2024) and Zhang, Singh, Latham, Saxe (ICML 2025, arXiv 2501.16265): N
pairs (x_n, y_n = w x_n) and a query x_q; w is normal, x normal with two variances. The prediction
is w_PV^T (E E^T / N) W_KQ x_q with e_n = (x_n, y_n). The query is not a column of E.
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

N = Size("N", "pairs in the context", least=2)
m = Size("m", "coordinates of the first variance")
n = Size("n", "coordinates of the second variance")
lam, mu, v_start, u_start = constants(lam="> 0", mu="> 0", v_start="> 0", u_start="> 0")

pair = Exchangeable("pair", N)
coordinate = Union("coordinate", Signed("first", m), Signed("second", n))
spectrum = {"first": lam, "second": mu}
x = Gaussian("x", (pair, coordinate), variance=spectrum)
query = Gaussian("query", coordinate, variance=spectrum)
w = Gaussian("w", coordinate)

# w_PV = (p, v) and W_KQ = (U, r): rows of the coordinates and of the label
p = Tensor("p", coordinate)
v = Tensor("v", start=v_start)
U = Tensor("U", (coordinate, coordinate), start={"diagonal": u_start})
r = Tensor("r", coordinate)


def loss(p, v, U, r, x, query, w):
    """Return half the squared error of one prompt."""
    y = (w["i"] * x["a", "i"]).sum("i")
    value = (p["i"] * x["a", "i"]).sum("i") + v * y
    key = (x["a", "j"] * U["j", "k"]).sum("j") + y * r["k"]
    prediction = (value * (key * query["k"]).sum("k")).sum("a") / N
    return 0.5 * ((w["i"] * query["i"]).sum("i") - prediction) ** 2


THEORY = Theory(
    "in_context_regression",
    "Zhang, Singh, Latham, Saxe (ICML 2025)",
    sizes=(N, m, n),
    parameters=(p, v, U, r),
    data=Data(x, query, w),
    loss=loss,
)
