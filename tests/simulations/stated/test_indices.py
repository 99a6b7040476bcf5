"""Bound indices, contracted indices, and terms without the index of a sum.

Trusts: the full model, and softmax weights as quotients of exponentials and their sum.
"""

import math

import numpy as np
import pytest

from tests.closeness import close
from tests.simulations.stated.agreement import assert_lifted_is_dense

ATTENTION = """\
n, m = Size("n", least=2), Size("m"); b, = constants(b="real")
token = Exchangeable("token", n); word = Exchangeable("word", m, inside=token)
A = Tensor("A", (AXES, AXES)); A.fix("diagonal", b); w = Tensor("w", start=0.1)
g = Gaussian("g", (AXES,), variance=1)
P = lambda A, i, j, over: WEIGHTS
THEORY = Theory("attention", "none", sizes=(n, m), parameters=(A, w), data=Data(g),
                loss=lambda A, w, g: LOSS)
"""
SOFTMAX = "A[i, j].softmax(over=over)"
QUOTIENT = "A[i, j].exp() / A[i, j].exp().sum(over)"
#: Means of softmax weights at two indices that become equal by the mean over Gaussian data.
CONTRACTED = {
    "inner sum": 'w * ((P(A, "i", "j", "j") * g["j"]).sum("j") * g["i"]).sum("i")',
    "one outer sum": 'w * (P(A, "i", "j", "j") * g["j"] * g["i"]).sum("i").sum("j")',
    "over columns": 'w * ((P(A, "i", "j", "i") * g["j"]).sum("j") * g["i"]).sum("i")',
    "transposed": 'w * ((P(A, "j", "i", "j") * g["j"]).sum("j") * g["i"]).sum("i")',
    "squared error": '0.5 * ((g["i"] - w * (P(A, "i", "j", "j") * g["j"]).sum("j"))**2).sum("i")',
    "twice": (
        '((P(A, "i", "j", "j") * P(A, "j", "i", "i") * g["j"]).sum("j") * g["i"] * w).sum("i")'
    ),
    "of itself": 'w * (((P(A, "i", "j", "j") * A["i", "j"]).exp().softmax("i") * g["j"]).sum("j")'
    ' * g["i"]).sum("i")',
    "name of a bound index": 'w * ((P(A, "i", "j", "j") * (P(A, "j", "i", "i") * A["i", "i"])'
    '.sum("i") * g["j"]).sum("j") * g["i"]).sum("i")',
}


@pytest.mark.parametrize("axes", ["token", "word"])
@pytest.mark.parametrize("what", CONTRACTED)
def test_softmax_weights_at_contracted_indices(theory_of, what, axes):
    """In P_ii the bound index of the weights differs from i."""
    change = {"AXES": axes, "LOSS": CONTRACTED[what]}
    softmax = theory_of(ATTENTION, WEIGHTS=SOFTMAX, **change)
    quotient = theory_of(ATTENTION, WEIGHTS=QUOTIENT, **change)
    values = {"n": 2, "m": 2, "b": 0.7} if axes == "word" else {"n": 4, "m": 1, "b": 0.7}
    state = np.array([0.3, -0.4, 1.1][-len(softmax.orders) :])
    loss, gradient = assert_lifted_is_dense(softmax, values, state)
    expected, slopes = assert_lifted_is_dense(quotient, values, state)
    close(loss, expected, rel=1e-13)
    close(gradient, slopes, rel=1e-11)


def test_trace_of_attention(theory_of):
    """For four tokens with scores 0.7 on the diagonal it is 4 e^0.7 / (e^0.7 + 3)."""
    values, state = {"n": 4, "m": 1, "b": 0.7}, np.array([0.0, 0.1])
    own = math.exp(0.7) / (math.exp(0.7) + 3)
    other = (1 - own) / 3
    expected = {
        "inner sum": 0.1 * 4 * own,
        "squared error": 0.5 * (4 - 0.2 * 4 * own + 0.01 * 4 * (own**2 + 3 * other**2)),
    }
    for what, value in expected.items():
        theory = theory_of(ATTENTION, AXES="token", WEIGHTS=SOFTMAX, LOSS=CONTRACTED[what])
        loss, _ = assert_lifted_is_dense(theory, values, state)
        close(loss, value, rel=1e-14)


def test_renaming_captures_no_bound_index(theory_of):
    """The free index i of sum_j A_ij is renamed to j."""
    theory = theory_of(ATTENTION, AXES="token", WEIGHTS=SOFTMAX, LOSS=CONTRACTED["inner sum"])
    row = theory.parameters[0]["i", "j"].sum("j").renamed({"i": "j"})
    assert list(row.axes) == ["j"]
    assert row.detail != "j"
    assert row.arguments[0].indices == ("j", row.detail)


SUMS = """\
n, m = Size("n"), Size("m")
group = Exchangeable("group", n); member = Exchangeable("member", m, inside=group)
both = Union("both", group, member)
U = Tensor("U", start=0.1); A = Tensor("A", (SET,)); B = Tensor("B", (SET, SET))
g = Gaussian("g", (SET,), variance=2); s = Colouring("s", group, {1: 0.25, -1: 0.75})
THEORY = Theory("sums", "none", sizes=(n, m), parameters=(U, A, B), data=Data(g, s),
                loss=lambda U, A, B, g, s: LOSS)
"""
#: The derivative in U or A is that of a term without the index of the sum.
MISSING = {
    "sum": '(U + A["i"]).sum("i")**2',
    "two sums": '((U + A["i"] + B["i", "j"]).sum("i") * A["j"]).sum("j")',
    "softmax": '((U + A["i"] + B["i", "j"]).softmax("i") * A["i"]).sum("i").tanh().sum("j")',
    "weights alone": '((A["j"] + B["i", "j"]).softmax("i") * B["i", "i"]).sum("i").tanh().sum("j")',
    "data": '((U + A["i"]).sum("i") * g["j"]).sum("j")**2 + ((U + g["i"]).sum("i"))**2',
    "no factor": '(g["i"]**2).sum("i") * U + (A["i"] * U).sum("i")',
}


@pytest.mark.parametrize("where", ["group", "member", "both"])
@pytest.mark.parametrize("what", MISSING)
def test_terms_without_the_index_of_a_sum(theory_of, what, where):
    theory = theory_of(SUMS, SET=where, LOSS=MISSING[what])
    state = np.random.default_rng(0).normal(size=len(theory.orders))
    for n, m in ((2, 2), (3, 1), (1, 2)):
        assert_lifted_is_dense(theory, {"n": n, "m": m}, state)
