"""One layer of softmax attention learns from a teacher that averages over groups.

Zhang, Zhao, Gu, Cao (arXiv 2603.22801), with the model of public notes: D tokens x_j with standard
normal coordinates, in D / K groups. The teacher returns the mean of V* x_j over the K tokens of the
query's group. The student has a value matrix V and scores A / sqrt(D) from orthonormal positions.
V remains a multiple of V*, so that v = |V| and nu = |V*| are enough. Queries and keys have separate
symmetries, because all inputs have the same distribution. The mean over x is computed: only the
variances of the inputs matter.
"""

from symbolic.theory import Claim, Exchangeable, Inside, Size, Tensor, Theory, constants

D = Size("D", "tokens", least=4)
K = Size("K", "tokens of a group", least=2, divides="D")
(nu,) = constants(nu="> 0")

group = Exchangeable("group", D / K)
query = Exchangeable("query", K, inside=group)
key = Exchangeable("key", K, inside=group)

A = Tensor("A", (query, key), start=0)
v = Tensor("v", start=0)


def loss(A, v):
    """Return half the squared error of all queries, as a sum over the weights of the keys."""
    attention = (A["i", "j"] / D**0.5).softmax(over="j")
    teacher = (Inside(query, group)["i", "g"] * Inside(key, group)["j", "g"]).sum("g") / K
    return 0.5 * ((v * attention - nu * teacher) ** 2).sum("j").sum("i")


THEORY = Theory(
    "teacher",
    "Zhang, Zhao, Gu, Cao (arXiv 2603.22801)",
    sizes=(D, K),
    parameters=(v, A),
    loss=loss,
    names={"A[same group]": "c_in", "A[other group]": "c_out"},
    claims=[
        Claim("conjecture", "Attention to the own group leads.", "c_in >= c_out"),
        "loss <= at_start(loss)",
    ],
    observables={"gap": "c_in - c_out"},
    events={"learned": "loss < 0.1*at_start(loss)"},
    defaults={"D": 16, "K": 4, "nu": 1.0, "horizon": 1e6},
)
