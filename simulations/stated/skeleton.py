"""Template of a theory file: softmax attention that learns to attend to a marked token."""

SKELETON = '''\
"""NAME: what is learned, from which paper, and what is assumed.

patchdyn theory NAME.py derives the order parameters and the exact reduced gradient for all sizes.
"""

from symbolic.theory import Choice, Data, Exchangeable, Size, Tensor, Theory, constants

# Sizes stay symbols; constants are numbers of the problem.
n = Size("n", "tokens", least=3)
(b,) = constants(b="real")

# Elements of an index set are alike: exchanging two of them changes nothing.
token = Exchangeable("token", n)

# Data: one token is marked, each equally likely.
mark = Choice("mark", token)

# Parameters: one axis for each index set. Their orbits are the order parameters.
A = Tensor("A", (token, token), start=0)
A.fix("diagonal", b)
w = Tensor("w", start=0.1)


def loss(A, w, mark):
    """Squared error of every token, which should find the mark."""
    seen = (A["i", "j"].softmax(over="j") * mark["j"]).sum("j")
    return 0.5 * ((mark["i"] - w * seen) ** 2).sum("i")


THEORY = Theory(
    "NAME",
    "the paper",
    sizes=(n,),
    parameters=(A, w),
    data=Data(mark),
    loss=loss,
    names={"A[other token]": "a"},
)
'''
