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
LOSSES = {
    "three rooms that meet": ("U, w", "c", '(U + c["i"] * w["j"] * c["j"] * c["k"]).tanh()'
                              '.sum("i").sum("j").sum("k")'),
    "three people that meet": ("U, T", "s", '(U * s["k"] + T["i", "j", "k"] * s["i"]).tanh()'
                               '.sum("i").sum("j").sum("k")'),
    "three people without data": ("U, T", "c", '(U + T["i", "j", "k"]).tanh()'
                                  '.sum("i").sum("j").sum("k")'),
    "pairs of rooms, many operations": (
        "U, A", "c", '((U + c["i"] * c["j"] * A["i", "j"]).tanh() * (U * c["i"] + c["j"]).exp()'
        ' / (1 + (U**2 + A["i", "j"]**2) * c["j"]**2)).sum("i").sum("j")'),
    "a target that has the index of the mean": (
        "U, A", "c", '(c["j"] - (A["i", "j"].softmax("j") * c["j"] * U).sum("j")).tanh().sum("i")'
        '.sum("j")'),
    "Gaussian data of higher degree first": ("U", "g", '(U * g["i"]**4 + g["i"]**2).sum("i")'),
    "nested Gaussian data": (
        "U, B", "g, pair", '((B["i", "j"] * g["j"]).sum("j") * g["i"]).sum("i")'
        ' * (pair["r", "i"]**2).sum("r").sum("i") * U'),
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


SCORES = {
    "without data": 'A["r", "t"]',
    "of a family": 'A["r", "t"] * (2 + c["t"])**2',
    "of two families": 'A["r", "t"] * (2 + c["t"])**2 + w["t"] * c["r"]',
}


@pytest.mark.parametrize("what", SCORES)
def test_a_score_that_no_element_has_is_not_the_largest(stated, what):
    """In one room there is no other: its score, 10^4, would leave e^-10000 of the others."""
    loss = f'(({SCORES[what]}).softmax("t") * w["t"] * c["t"]).sum("t").sum("r")**2'
    theory = stated("A, w", "c", loss)
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
