"""An induction head emerges in two layers of softmax attention: the three numbers that matter.

Musat et al. (arXiv 2511.01033), as their model is told in public notes: N pairs of an item and its
label, 2 N different orthonormal tokens, then the last pair's item once more as the query, whose
label is asked for. Every token sees what stands before it. W1 = a M: a label looks back at its own
item; W2 = b: the query looks for tokens that took over its item; W3 = g returns what it finds.

This is the reduced model, not the full one: M (M^2 = -1 on positions) and the order of the tokens
are outside the language, which sees how many tokens compete in either layer. What every entry of
the matrices does is found in simulations/stated/two_layers.py, and from it this risk again.
"""

from symbolic.theory import Choice, Data, Exchangeable, Size, Tensor, Theory

N = Size("N", "pairs of the prompt", least=2)

before = Exchangeable("before", 2 * N - 1)  # what the last label sees: one token is its item
context = Exchangeable("context", 2 * N)  # what the query sees: one token is the label
item = Choice("item", before)
label = Choice("label", context)

a = Tensor("a", start=0)
b = Tensor("b", start=0)
g = Tensor("g", start=0)


def loss(a, b, g, item, label):
    """Half the squared error of one prompt."""
    taken = ((a * item["s"]).softmax(over="s") * item["s"]).sum("s")
    found = g * (b * taken * label["t"]).softmax(over="t")
    return 0.5 * ((label["t"] - found) ** 2).sum("t")


THEORY = Theory(
    "induction",
    "Musat et al. (arXiv 2511.01033)",
    sizes=(N,),
    parameters=(a, b, g),
    data=Data(item, label),
    loss=loss,
    defaults={"N": 16, "horizon": 1e4},
)
