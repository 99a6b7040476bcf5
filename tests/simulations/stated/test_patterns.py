"""Sums over all patterns of indices: what is in use, what there is none of, what is looked up.

Trusts: the dense reading.
"""

import numpy as np
import pytest
import sympy as sp

from symbolic.theory import TheoryError, load_theory
from tests.simulations.stated.agreement import assert_lifted_is_dense

ROOMS = """\
n, m = Size("n"), Size("m")
room = Exchangeable("room", n); person = Exchangeable("person", m, inside=room)
c = Colouring("c", room, {1: 0.25, -2: 0.75}); s = Colouring("s", person, {1: 0.25, -1: 0.75})
g = Gaussian("g", (person,)); pair = Gaussian("pair", (room, person))
U = Tensor("U", start=0.1); w = Tensor("w", (room,)); A = Tensor("A", (room, room))
B = Tensor("B", (person, person)); T = Tensor("T", (person, person, person))
THEORY = Theory("rooms", "none", sizes=(n, m), parameters=(PARAMETERS,), data=Data(SOURCES),
                loss=lambda PARAMETERS, SOURCES: LOSS)
"""
#: People carry data, so that rooms come in families that loops run over.
LOSSES = {
    "three rooms that meet": ("U, w", "c, s", '(U + c["i"] * w["j"] * c["j"] * c["k"]).tanh()'
                              '.sum("i").sum("j").sum("k")'),
    "three people without data": ("U, T", "c", '(U + T["i", "j", "k"]).tanh()'
                                  '.sum("i").sum("j").sum("k")'),
    "pairs of rooms, many operations": (
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
def stated(tmp_path):
    def load(parameters, sources, loss, text=ROOMS):
        text = text.replace("PARAMETERS", parameters).replace("SOURCES", sources)
        path = tmp_path / "mine.py"
        path.write_text(text.replace("LOSS", loss))
        return load_theory(path)

    return load


@pytest.mark.parametrize("what", LOSSES)
def test_lifted_equals_dense(stated, what):
    theory = stated(*LOSSES[what])
    state = 0.7 * np.random.default_rng(1).normal(size=len(theory.orders))
    for n, m in ((2, 2), (3, 1), (1, 2)):
        assert_lifted_is_dense(theory, {"n": n, "m": m}, state)


TWO_HOMES = """\
n, m = Size("n"), Size("m")
room = Exchangeable("room", n); person = Exchangeable("person", m, inside=room)
area = Exchangeable("area", n); spot = Exchangeable("spot", m, inside=area)
c = Colouring("c", room, {1: 0.25, -2: 0.75}); s = Colouring("s", person, {1: 0.25, -1: 0.75})
d = Colouring("d", area, {1: 0.5, 3: 0.5}); t = Colouring("t", spot, {1: 0.75, -1: 0.25})
U = Tensor("U", start=0.1)
THEORY = Theory("two", "none", sizes=(n, m), parameters=(U,), data=Data(c, s, d, t),
                loss=lambda U, c, s, d, t: LOSS)
"""


def test_a_term_of_two_larger_sets_is_not_looked_up(stated):
    """Its value depends on the data of both, and a row holds those of one."""
    loss = (
        '((U + c["i"] * d["j"]).tanh() * (0.1 * U * c["i"] + d["j"]).exp()'
        ' / (1 + (U**2 + c["i"]**2) * d["j"]**2)).sum("i").sum("j")'
        ' * (1 + s["k"].sum("k")**2 + t["l"].sum("l")**2)'
    )
    theory = stated("", "", loss, TWO_HOMES)
    assert_lifted_is_dense(theory, {"n": 2, "m": 1}, np.array([0.4]))


UNION = (
    TWO_HOMES.replace(
        "U = Tensor",
        """\
both = Union("both", person, spot); g = Gaussian("g", (both,)); w = Tensor("w", (both,))
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
def test_elements_of_two_nested_sets_together(stated, what):
    """Their number is that in all larger elements, not that in one."""
    parameters, sources, loss = OVER_BOTH[what]
    theory = stated(parameters, "", loss, UNION.replace("c, s, d, t", sources))
    state = np.array([0.4, 0.7, -0.3][: len(theory.orders)])
    for n, m in ((2, 2), (3, 1)):
        assert_lifted_is_dense(theory, {"n": n, "m": m}, state)


SCORES = {
    "without data": 'A["r", "t"]',
    "of a family": 'A["r", "t"] * (2 + c["t"])**2',
    "of two families": 'A["r", "t"] * (2 + c["t"])**2 + w["t"] * c["r"]',
}


@pytest.mark.parametrize("what", SCORES)
def test_a_score_that_no_element_has_is_not_the_largest(stated, what):
    """In one room there is no other: its score, 10^4, would leave e^-10000 of the others."""
    loss = f'(({SCORES[what]}).softmax("t") * w["t"] * c["t"]).sum("t").sum("r")**2'
    theory = stated("A, w", "c, s", loss)
    state = [1e4 if order.name == "A[other room]" else 0.3 for order in theory.orders]
    loss, _ = assert_lifted_is_dense(theory, {"n": 1, "m": 1}, np.array(state))
    assert loss > 0.0


def test_the_mean_of_an_odd_power_is_0_whatever_the_power(stated):
    """It has no pairings, and so not too many: 15!! would be."""
    theory = stated("U", "g", 'U**2 + ((g["i"]**15).sum("i") * U)')
    assert theory.reduced.expanded(theory.reduced.loss) == sp.Symbol("U") ** 2


def test_a_subset_has_at_most_all_elements(stated):
    text = ROOMS.replace("SOURCES)", "chosen)").replace("SOURCES", "chosen").replace(
        "U = Tensor", 'chosen = Subset("chosen", room, m); U = Tensor')  # fmt: skip
    theory = stated("U", "", '(U * chosen["i"]).sum("i")', text)
    theory.checked({"n": 2, "m": 2})
    with pytest.raises(TheoryError, match="chosen has m = 3 of 2 elements: it must be a whole"):
        theory.checked({"n": 2, "m": 3})


LAW = """\
n = Size("n"); a, p = constants(a="real", p="real")
room = Exchangeable("room", n); person = Exchangeable("person", 1, inside=room)
U = Tensor("U", start=0.1); SOURCE
THEORY = Theory("law", "none", sizes=(n,), parameters=(U,), data=Data(DATA),
                loss=lambda U, s: ((U + a * s["i"])**2).sum("i"))
"""
WRONG_AT_ONCE = {
    's = Colouring("s", room, {+1: -0.1, 0: 1.1})': "probability of s = 1 = -1/10",
    's = Colouring("s", room, {0: 1 - p, 1: p - 1, 2: 1.5, 3: -0.5})': "probability of s = 2 = 3/2",
    's = Colouring("s", room, {1: float("nan"), 2: 1})': "probability of s = nan",
    's = Gaussian("s", (room,), variance=-1)': "variance of s = -1",
}  # fmt: skip
WRONG_LATER = {
    's = Colouring("s", room, {1: p, 0: 1 - p})': "probability of s = 1 = 3/2",
    's = Colouring("s", room, {1: 1 - p, 0: 0, 2: p})': "probability of s = 1 = -1/2",
    's = Colouring("s", room, {1: p**0.5, 0: 1 - p**0.5})': "probability of s = 1 = ",
    's = Gaussian("s", (room,), variance=1 - p)': "variance of s = -1/2",
    's = Gaussian("s", (room,), variance=1.5 - p)': "variance of s = 0",
}


def law_of(stated, source, data="s"):
    return stated("", "", "", LAW.replace("SOURCE", source).replace("DATA", data))


@pytest.mark.parametrize("source", WRONG_AT_ONCE)
def test_a_law_that_is_none_is_rejected_at_once(stated, source):
    with pytest.raises(TheoryError) as refusal:
        law_of(stated, source)
    assert WRONG_AT_ONCE[source] in str(refusal.value)
    assert str(refusal.value).startswith("mine.py, line 3: ")


@pytest.mark.parametrize("source", WRONG_LATER)
def test_a_law_that_is_none_at_some_constants_is_rejected_there(stated, source):
    theory = law_of(stated, source)
    theory.checked({"n": 2, "a": 1, "p": 0.5})
    with pytest.raises(TheoryError) as refusal:
        theory.checked({"n": 2, "a": 1, "p": 1.5})
    assert WRONG_LATER[source] in str(refusal.value)
    assert str(refusal.value).startswith("mine.py, line 3: ")


def test_chances_of_a_sequence_are_probabilities(stated):
    text = """\
n = Size("n"); p, = constants(p="real"); k = Exchangeable("token", n); U = Tensor("U", start=1)
a = Exchangeable("a", n); b = Exchangeable("b", n); both = Union("both", a, b)
t = Sequence("t", k, both, probabilities={"a": P, "b": 1 - P})
THEORY = Theory("t", "none", sizes=(n,), parameters=(U,), data=Data(t),
                loss=lambda U, t: (U * t["i", "j"]).sum("i").sum("j")**2)
"""
    with pytest.raises(TheoryError, match=r"line 3: probability of a in t = -1/10 is not allowed"):
        stated("", "", "", text.replace("P", "-0.1"))
    theory = stated("", "", "", text.replace("P", "p"))
    with pytest.raises(TheoryError, match=r"line 3: probability of a in t = 2 is not allowed"):
        theory.checked({"n": 2, "p": 2})


def test_probabilities_are_the_decimals_that_they_are_written_as(stated):
    """In floats 1 - 0.9 - 0.1 is -2.8e-17."""
    theory = law_of(stated, 's = Colouring("s", room, {0: 1 - p - a, 1: a, 2: p})')
    assert 1 - 0.9 - 0.1 < 0.0
    assert_lifted_is_dense(theory, {"n": 2, "a": 0.1, "p": 0.9}, np.array([0.4]))


@pytest.mark.parametrize(
    ("source", "data"),
    [
        ('s = Colouring("s", room, {a: p, 1: 1 - p})', "s"),  # at a = 1 one value
        ('c, d = Choice("c", room), Choice("d", room); s = Colouring("s", person, {1: p, 2: 1 - p},'
         " given={c: 1, d: 2})", "c, d, s"),  # of what both choose, the first
    ],
)  # fmt: skip
def test_values_that_coincide(stated, source, data):
    theory = law_of(stated, source, data)
    assert_lifted_is_dense(theory, {"n": 3, "a": 1, "p": 0.25}, np.array([0.4]))
