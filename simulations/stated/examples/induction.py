"""An induction head emerges in two layers of softmax attention: its three order parameters.

Musat et al. (arXiv 2511.01033), with the model of public notes: N pairs of an item and its label,
which are 2 N orthonormal tokens, and the item of the last pair again as the query. The output
should be its label. Attention is causal. With W1 = a M, a label attends to its item. With W2 = b,
the query attends to tokens that attended to its item. W3 = g scales the output.

This is the reduced model, with the number of competing tokens in each layer, for any N. The full
model has 19 order parameters (induction_head.py). Restricted to a, b and g, it has the same risk.
"""

from symbolic.theory import Choice, Data, Exchangeable, Size, Tensor, Theory

N = Size("N", "pairs of the prompt", least=2)

before = Exchangeable("before", 2 * N - 1)  # tokens before the last label: one is its item
context = Exchangeable("context", 2 * N)  # tokens before the query: one is its label
item = Choice("item", before)
label = Choice("label", context)

a = Tensor("a", start=0)
b = Tensor("b", start=0)
g = Tensor("g", start=0)


def loss(a, b, g, item, label):
    """Return half the squared error of one prompt."""
    weight = ((a * item["s"]).softmax(over="s") * item["s"]).sum("s")
    output = g * (b * weight * label["t"]).softmax(over="t")
    return 0.5 * ((label["t"] - output) ** 2).sum("t")


THEORY = Theory(
    "induction",
    "Musat et al. (arXiv 2511.01033)",
    sizes=(N,),
    parameters=(a, b, g),
    data=Data(item, label),
    loss=loss,
    defaults={"N": 16, "horizon": 1e4},
)
