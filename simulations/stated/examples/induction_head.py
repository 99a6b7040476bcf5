"""An induction head in full: all entries of two attention layers, 19 order parameters.

Musat et al. (arXiv 2511.01033). The prompt has N pairs of an item and its label, and the last item
again; the loss compares the output at it with its label. A token is an item vector and a site
vector. Items are d orthonormal vectors, rotated at random. Sites are as many, and the site of a
label is M times that of its item, with M^2 = -1. Attention is causal: a token sees those before it.
The first layer appends its result to each token; the second has the query of the last token.
"""

from symbolic.theory import Data, Frame, Ordered, Signed, Tensor, Theory, Turned, Union, relation

N = 2  # pairs
query = 2 * N
d = 2 * N + 2

position = Ordered("position", 2 * N + 1)
slot = Ordered("slot", 2)  # own part of a token, and result of the first layer
source = Ordered("source", 2)  # the query, and what it attends to
item, site = Signed("item", d), Turned("site", d // 2)
coordinate = Union("coordinate", item, site)

spell = [*range(2 * N), 2 * N - 2]
x = Frame("x", position, coordinate, {"item": spell, "site": list(range(2 * N + 1))})
y = Frame("y", position, item, {"item": spell})

W1 = Tensor("W1", (coordinate, coordinate))
W2 = Tensor("W2", (slot, coordinate, slot, coordinate))
W3 = Tensor("W3", (source, item, slot, coordinate))


def loss(W1, W2, W3, x, y):
    """Squared error of the output at the query."""
    score = ((x["t", "i"] * W1["i", "j"]).sum("i") * x["s", "j"]).sum("j")
    before = relation(lambda t, s: s < t, t=position, s=position)
    first = score.softmax("s", where=before, empty="zero")
    at_query = (relation(lambda t: t == query, t=position) * first).sum("t")

    own = relation(lambda p: p == 0, p=slot)
    h = own * x["t", "i"] + (1 - own) * (first * x["s", "i"]).sum("s")
    own = relation(lambda r: r == 0, r=slot)
    last = own * x.at(query, "j") + (1 - own) * (at_query * x["s", "j"]).sum("s")

    pulled = (last * W2["r", "j", "p", "i"]).sum("j").sum("r")
    seen = relation(lambda t: t < query, t=position)
    attention = (pulled * h).sum("i").sum("p").softmax("t", where=seen)
    result = (attention * h).sum("t")

    output = (W3.at(0, "k", "r", "j") * last).sum("j").sum("r")
    output = output + (W3.at(1, "k", "p", "i") * result).sum("i").sum("p")
    return 0.5 * ((output - y.at(query - 1, "k")) ** 2).sum("k")


slots = [(p, r) for p in range(2) for r in range(2)]
names = {
    "W1[item to item, diagonal]": "a1",
    "W1[site to site, diagonal]": "a2",
    "W1[site to site, turned]": "a3",
    **{f"W2[{p},{r}, item to item, diagonal]": f"b{1 + 2 * p + r:02}" for p, r in slots},
    **{f"W2[{p},{r}, site to site, diagonal]": f"b{5 + 2 * p + r:02}" for p, r in slots},
    **{f"W2[{p},{r}, site to site, turned]": f"b{9 + 2 * p + r:02}" for p, r in slots},
    **{f"W3[{e},{p}, item, diagonal]": f"g{1 + 2 * e + p}" for e, p in slots},
}

THEORY = Theory(
    "induction head",
    "Musat et al. (arXiv 2511.01033)",
    sizes=(),
    parameters=(W1, W2, W3),
    data=Data(x, y),
    loss=loss,
    names=names,
    events={"learned": "loss < 0.05"},
    defaults={"horizon": 1e3},
)
