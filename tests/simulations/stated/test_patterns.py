"""Sums over all patterns of indices, and the probabilities and variances of data sources.

Trusts: the full model.
"""

import numpy as np
import pytest
import sympy as sp

from symbolic.theory import TheoryError
from tests.simulations.stated.agreement import assert_lifted_is_dense

GROUPS = """\
n, m = Size("n"), Size("m")
group = Exchangeable("group", n); member = Exchangeable("member", m, inside=group)
c = Colouring("c", group, {1: 0.25, -2: 0.75}); s = Colouring("s", member, {1: 0.25, -1: 0.75})
g = Gaussian("g", (member,)); pair = Gaussian("pair", (group, member))
U = Tensor("U", start=0.1); w = Tensor("w", (group,)); A = Tensor("A", (group, group))
B = Tensor("B", (member, member)); T = Tensor("T", (member, member, member))
THEORY = Theory("groups", "none", sizes=(n, m), parameters=(PARAMETERS,), data=Data(SOURCES),
                loss=lambda PARAMETERS, SOURCES: LOSS)
"""
#: Members have data, so that groups form families.
LOSSES = {
    "three groups": ("U, w", "c, s", '(U + c["i"] * w["j"] * c["j"] * c["k"]).tanh()'
                              '.sum("i").sum("j").sum("k")'),
    "three members without data": ("U, T", "c", '(U + T["i", "j", "k"]).tanh()'
                                  '.sum("i").sum("j").sum("k")'),
    "pairs of groups, many operations": (
        "U, A", "c, s", '((U + c["i"] * c["j"] * A["i", "j"]).tanh() * (0.1 * U * c["i"] + c["j"])'
        '.exp() / (1 + (U**2 + A["i", "j"]**2) * c["j"]**2)).sum("i").sum("j")'),
    "a target that has the index of the mean": (
        "U, A", "c, s", '(c["j"] - (A["i", "j"].softmax("j") * c["j"] * U).sum("j")).tanh()'
        '.sum("i").sum("j")'),
    "Gaussian data of higher degree first": ("U", "g", '(U * g["i"]**4 + g["i"]**2).sum("i")'),
    "nested Gaussian data": (
        "U, B", "g, pair", '((B["i", "j"] * g["j"]).sum("j") * g["i"]).sum("i") * U'
        ' * (pair["r", "i"]**2).sum("r").sum("i")'),
}  # fmt: skip


@pytest.fixture
def theory_with(theory_of):
    """Return a function that loads a theory with parameters, data sources and a loss."""

    def load(parameters, sources, loss, text=GROUPS):
        return theory_of(text, PARAMETERS=parameters, SOURCES=sources, LOSS=loss)

    return load


@pytest.mark.parametrize("what", LOSSES)
def test_reduction_agrees_with_the_full_model(theory_with, what):
    theory = theory_with(*LOSSES[what])
    state = 0.7 * np.random.default_rng(1).normal(size=len(theory.orders))
    for n, m in ((2, 2), (3, 1), (1, 2)):
        assert_lifted_is_dense(theory, {"n": n, "m": m}, state)


TWO_OUTER_SETS = """\
n, m = Size("n"), Size("m")
group = Exchangeable("group", n); member = Exchangeable("member", m, inside=group)
area = Exchangeable("area", n); spot = Exchangeable("spot", m, inside=area)
c = Colouring("c", group, {1: 0.25, -2: 0.75}); s = Colouring("s", member, {1: 0.25, -1: 0.75})
d = Colouring("d", area, {1: 0.5, 3: 0.5}); t = Colouring("t", spot, {1: 0.75, -1: 0.25})
U = Tensor("U", start=0.1)
THEORY = Theory("two", "none", sizes=(n, m), parameters=(U,), data=Data(c, s, d, t),
                loss=lambda U, c, s, d, t: LOSS)
"""


def test_terms_of_two_larger_sets(theory_with):
    """They depend on the data of both sets, but shared rows contain those of a single set."""
    loss = (
        '((U + c["i"] * d["j"]).tanh() * (0.1 * U * c["i"] + d["j"]).exp()'
        ' / (1 + (U**2 + c["i"]**2) * d["j"]**2)).sum("i").sum("j")'
        ' * (1 + s["k"].sum("k")**2 + t["l"].sum("l")**2)'
    )
    theory = theory_with("", "", loss, TWO_OUTER_SETS)
    assert_lifted_is_dense(theory, {"n": 2, "m": 1}, np.array([0.4]))


UNION = (
    TWO_OUTER_SETS.replace(
        "U = Tensor",
        """\
both = Union("both", member, spot); g = Gaussian("g", (both,)); w = Tensor("w", (both,))
U = Tensor""",
    )
    .replace("(U,)", "(PARAMETERS,)")
    .replace("lambda U", "lambda PARAMETERS")
)
OVER_BOTH = {
    "a mean without the index": ("U", "g", '(U + g["i"]**2).sum("i") * U'),
    "a slope without the index": ("U, w", "s", '(U + w["i"]).sum("i")**2 * (1 + s["j"]).sum("j")'),
}


@pytest.mark.parametrize("what", OVER_BOTH)
def test_union_of_two_nested_sets(theory_with, what):
    """Its number of elements is that in all larger elements."""
    parameters, sources, loss = OVER_BOTH[what]
    theory = theory_with(parameters, "", loss, UNION.replace("c, s, d, t", sources))
    state = np.array([0.4, 0.7, -0.3][: len(theory.orders)])
    for n, m in ((2, 2), (3, 1)):
        assert_lifted_is_dense(theory, {"n": n, "m": m}, state)


SCORES = {
    "without data": 'A["r", "t"]',
    "of a family": 'A["r", "t"] * (2 + c["t"])**2',
    "of two families": 'A["r", "t"] * (2 + c["t"])**2 + w["t"] * c["r"]',
}


@pytest.mark.parametrize("what", SCORES)
def test_scores_without_elements_are_not_the_largest(theory_with, what):
    """A single group has no other group, whose score of 10^4 would make all weights underflow."""
    loss = f'(({SCORES[what]}).softmax("t") * w["t"] * c["t"]).sum("t").sum("r")**2'
    theory = theory_with("A, w", "c, s", loss)
    state = [1e4 if order.name == "A[other group]" else 0.3 for order in theory.orders]
    loss, _ = assert_lifted_is_dense(theory, {"n": 1, "m": 1}, np.array(state))
    assert loss > 0.0


def test_mean_of_an_odd_power_is_0(theory_with):
    """An odd power has no pairings, so that their number does not exceed the limit."""
    theory = theory_with("U", "g", 'U**2 + ((g["i"]**15).sum("i") * U)')
    assert theory.reduced.expanded(theory.reduced.loss) == sp.Symbol("U") ** 2


def test_subset_has_at_most_all_elements(theory_with):
    text = GROUPS.replace("SOURCES)", "chosen)").replace("SOURCES", "chosen").replace(
        "U = Tensor", 'chosen = Subset("chosen", group, m); U = Tensor')  # fmt: skip
    theory = theory_with("U", "", '(U * chosen["i"]).sum("i")', text)
    theory.checked({"n": 2, "m": 2})
    with pytest.raises(TheoryError, match="chosen has m = 3 of 2 elements: it must be a whole"):
        theory.checked({"n": 2, "m": 3})


LAW = """\
n = Size("n"); a, p = constants(a="real", p="real")
group = Exchangeable("group", n); member = Exchangeable("member", 1, inside=group)
U = Tensor("U", start=0.1); SOURCE
THEORY = Theory("law", "none", sizes=(n,), parameters=(U,), data=Data(DATA),
                loss=lambda U, s: ((U + a * s["i"])**2).sum("i"))
"""
ALWAYS_WRONG = {
    's = Colouring("s", group, {+1: -0.1, 0: 1.1})': "probability of s = 1 = -1/10",
    's = Colouring("s", group, {0: 1 - p, 1: p - 1, 2: 1.5, 3: -0.5})': (
        "probability of s = 2 = 3/2"
    ),
    's = Colouring("s", group, {1: float("nan"), 2: 1})': "probability of s = nan",
    's = Gaussian("s", (group,), variance=-1)': "variance of s = -1",
}  # fmt: skip
SOMETIMES_WRONG = {
    's = Colouring("s", group, {1: p, 0: 1 - p})': "probability of s = 1 = 3/2",
    's = Colouring("s", group, {1: 1 - p, 0: 0, 2: p})': "probability of s = 1 = -1/2",
    's = Colouring("s", group, {1: p**0.5, 0: 1 - p**0.5})': "probability of s = 1 = ",
    's = Gaussian("s", (group,), variance=1 - p)': "variance of s = -1/2",
    's = Gaussian("s", (group,), variance=1.5 - p)': "variance of s = 0",
}


def law_of(theory_with, source, data="s"):
    return theory_with("", "", "", LAW.replace("SOURCE", source).replace("DATA", data))


@pytest.mark.parametrize("source", ALWAYS_WRONG)
def test_wrong_law_is_rejected(theory_with, source):
    with pytest.raises(TheoryError) as error:
        law_of(theory_with, source)
    assert ALWAYS_WRONG[source] in str(error.value)
    assert str(error.value).startswith("mine.py, line 3: ")


@pytest.mark.parametrize("source", SOMETIMES_WRONG)
def test_law_that_is_wrong_at_some_constants_is_rejected_there(theory_with, source):
    theory = law_of(theory_with, source)
    theory.checked({"n": 2, "a": 1, "p": 0.5})
    with pytest.raises(TheoryError) as error:
        theory.checked({"n": 2, "a": 1, "p": 1.5})
    assert SOMETIMES_WRONG[source] in str(error.value)
    assert str(error.value).startswith("mine.py, line 3: ")


@pytest.mark.parametrize("keyword", ["probabilities", "chance"])  # `chance` is the former name
def test_probabilities_of_a_sequence(theory_with, keyword):
    text = """\
n = Size("n"); p, = constants(p="real"); k = Exchangeable("token", n); U = Tensor("U", start=1)
a = Exchangeable("a", n); b = Exchangeable("b", n); both = Union("both", a, b)
t = Sequence("t", k, both, KEYWORD={"a": P, "b": 1 - P})
THEORY = Theory("t", "none", sizes=(n,), parameters=(U,), data=Data(t),
                loss=lambda U, t: (U * t["i", "j"]).sum("i").sum("j")**2)
""".replace("KEYWORD", keyword)
    with pytest.raises(TheoryError, match=r"line 3: probability of a in t = -1/10 is not allowed"):
        theory_with("", "", "", text.replace("P", "-0.1"))
    theory = theory_with("", "", "", text.replace("P", "p"))
    with pytest.raises(TheoryError, match=r"line 3: probability of a in t = 2 is not allowed"):
        theory.checked({"n": 2, "p": 2})


def test_probabilities_are_exact_decimals(theory_with):
    """In floats, 1 - 0.9 - 0.1 is -2.8e-17."""
    theory = law_of(theory_with, 's = Colouring("s", group, {0: 1 - p - a, 1: a, 2: p})')
    assert 1 - 0.9 - 0.1 < 0.0
    assert_lifted_is_dense(theory, {"n": 2, "a": 0.1, "p": 0.9}, np.array([0.4]))


@pytest.mark.parametrize(
    ("source", "data"),
    [
        # the values are equal at a = 1
        ('s = Colouring("s", group, {a: p, 1: 1 - p})', "s"),
        # the first source determines elements that both choose
        ('c, d = Choice("c", group), Choice("d", group); s = Colouring("s", member, {1: p, 2: 1-p},'
         " given={c: 1, d: 2})", "c, d, s"),
    ],
)  # fmt: skip
def test_values_that_coincide(theory_with, source, data):
    theory = law_of(theory_with, source, data)
    assert_lifted_is_dense(theory, {"n": 3, "a": 1, "p": 0.25}, np.array([0.4]))
