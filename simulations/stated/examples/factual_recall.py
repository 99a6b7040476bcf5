"""Linear attention stores facts: the answer to a subject and a relation.

Nichani, Lee, Bietti (ICLR 2025, arXiv 2412.06538), with the model of public notes: S
subjects in D groups, R relations, and one answer for each pair of a group and a relation. A prompt
contains a subject, a relation and L noise tokens. The logits of the answers are a sum over its
tokens of value vectors (V, U, W) times scalar attention (v, u, w), trained with the cross-entropy.
"""

from symbolic.theory import (
    Choice,
    Data,
    Exchangeable,
    Inside,
    Sequence,
    Size,
    Tensor,
    Theory,
    constants,
)

S = Size("S", "subjects", least=2)
D = Size("D", "answers of a relation", least=2, divides="S")
R = Size("R", "relations", least=2)
N = Size("N", "noise tokens", least=1)
L = Size("L", "noise tokens of a prompt", least=1)
(alpha,) = constants(alpha="> 0")

group = Exchangeable("group", D)
subject = Exchangeable("subject", S / D, inside=group)
relation = Exchangeable("relation", R)
noise = Exchangeable("noise", N)
s = Choice("s", subject)
r = Choice("r", relation)
x = Sequence("x", Exchangeable("token", L), noise)

V = Tensor("V", (group, relation, subject), start=alpha)
U = Tensor("U", (group, relation, relation), start=alpha)
W = Tensor("W", (group, relation, noise), start=alpha)
v = Tensor("v", subject, start=alpha)
u = Tensor("u", relation, start=alpha)
w = Tensor("w", noise, start=alpha)


def loss(V, U, W, v, u, w, s, r, x):
    """Return the cross-entropy of the answer, the pair of the subject's group and the relation."""
    logit = (V["g", "k", "i"] * v["i"] * s["i"]).sum("i")
    logit = logit + (U["g", "k", "j"] * u["j"] * r["j"]).sum("j")
    logit = logit + (W["g", "k", "n"] * w["n"] * x["t", "n"].sum("t")).sum("n")
    answer = (Inside(subject, group)["i", "g"] * s["i"]).sum("i") * r["k"]
    return logit.exp().sum("g").sum("k").log() - (logit * answer).sum("g").sum("k")


THEORY = Theory(
    "factual_recall",
    "Nichani, Lee, Bietti (ICLR 2025)",
    sizes=(S, D, R, N, L),
    parameters=(V, U, W, v, u, w),
    data=Data(s, r, x),
    loss=loss,
    names={
        "V[1-3 own group]": "V_own",
        "V[no two agree]": "V_other",
        "U[2=3]": "U_same",
        "U[no two agree]": "U_other",
        "W[no two agree]": "W",
    },
    defaults={"S": 16, "D": 8, "R": 4, "N": 1, "L": 1, "alpha": 1e-3, "horizon": 1e3},
)
