"""Ordered positions and sequences in the language of theories: orbits, relations, invalid files."""

import pytest
import sympy as sp

from symbolic.theory import (
    Exchangeable,
    Ordered,
    Size,
    Tensor,
    Theory,
    TheoryError,
    load_theory,
    relation,
)
from symbolic.theory.orbits import canonical, orbits

GOOD = """
S = Size("S", "tokens", least=2)
position = Ordered("position", 4)
token = Exchangeable("token", S)
x = Words("x", position, token, polya(1))
A = Tensor("A", (position, position), start=0)
W = Tensor("W", (token, token), start={"diagonal": 1})
before = relation(lambda s, t: s <= t, s=position, t=position)

def loss(A, W, x):
    weights = A["t", "s"].softmax(over="s", where=before)
    taken = (weights * x["s", "k"]).sum("s")
    return (taken * W["k", "l"] * x["t", "l"]).sum("k").sum("l").sum("t")

THEORY = Theory("good", "test", sizes=(S,), parameters=(A, W), data=Data(x), loss=loss)
"""
MASK = "a mask must be made of relations of ordered positions, because what a position sees must "
#: A replacement in the file, and the end of the message.
BAD = {
    "a mask of data": ("where=before", 'where=x["s", "k"]', f"where = x is not allowed: {MASK}"),
    "a mask of parameters": (
        "where=before",
        'where=A["s", "t"]',
        f"where = A is not allowed: {MASK}",
    ),
    "a mask of functions": (
        "where=before",
        "where=before.exp()",
        f"an expression with exp is not allowed: {MASK}",
    ),
    "a mask of fractions": (
        "where=before",
        "where=before / 2",
        "where = 1/2 at 0, 0 is not allowed: a mask must be 0 or 1",
    ),
    "a mask of another index": (
        "where=before",
        "where=relation(lambda t: 1, t=position)",
        "without the index 's' is not allowed",
    ),
    "an empty row": (
        "s <= t",
        "s < t",
        "at t = 0 is not allowed: a softmax needs at least one element; give empty='zero'",
    ),
    "another empty": (
        "where=before",
        "where=before, empty=0",
        "empty = 0 is not allowed: it must be 'zero' or 'error'",
    ),
    "a mask of several": (
        'over="s", where',
        'over=("s", "t"), where',
        "where= is not allowed over several indices",
    ),
    "a start by entry": (
        'start={"diagonal": 1}',
        "start=[[1, 0], [0, 2]]",
        "start of W = [[1, 0], [0, 2]] is not allowed",
    ),
    "a start by token": (
        'start={"diagonal": 1}',
        'start={"0,0": 1}',
        "W starts on '0,0', which is no orbit: there are diagonal, other token",
    ),
    "a start outside": (
        'A", (position, position), start=0',
        'A", (position, position), start={"4,0": 1}',
        "A starts on '4,0', which is no orbit",
    ),
    "a law by token": (
        "polya(1)",
        "lambda row: 0.5 if row[0] == 0 else 0.1",
        "tree(parent, alpha), which do not depend on the names of tokens",
    ),
    "unequal priors": (
        "polya(1)",
        "polya([1, 2])",
        "alpha = [1, 2] is not allowed: unequal priors depend on the names of tokens",
    ),
    "a negative prior": (
        "polya(1)",
        "polya(-1)",
        "alpha of x = -1 is not allowed: it must be positive",
    ),
    "a stationary start": (
        "polya(1)",
        'polya(1, first="stationary")',
        "first = 'stationary' is not allowed: the first token of a random chain is uniform",
    ),
    "a later parent": (
        "polya(1)",
        "tree((None, 2, 1, 0))",
        "for each position, an earlier position or None",
    ),
    "too few parents": (
        "polya(1)",
        "tree((None, 0))",
        "2 parents are not allowed: there must be one for each of the 4 elements",
    ),
    "no probability": (
        "polya(1)",
        "chain(1.5)",
        "stay of x = 3/2 is not allowed: it must be in [0, 1]",
    ),
    "symbolic length": (
        '"position", 4',
        '"position", S',
        "size = S is not allowed: the number of elements of position must be",
    ),
    "no position": (
        '"position", 4',
        '"position", 0',
        "size = 0 is not allowed: the number of elements of position",
    ),
    "words without order": (
        'Words("x", position',
        'Words("x", token',
        "position of x = token is not allowed: it must be an ordered set",
    ),
    "other data": (
        "Data(x)",
        'Data(x, Choice("c", token))',
        "c is not allowed in a theory on ordered positions: its data must be one Words or Chain",
    ),
    "two sequences": (
        "Data(x)",
        'Data(x, Words("y", position, token, iid()))',
        "data = x, y is not allowed in a theory on ordered positions: there must",
    ),
    "a relation of tokens": (
        "s=position, t=position",
        "s=position, t=token",
        "relation over t = token is not allowed: it must be an ordered set",
    ),
    "a relation of text": (
        "s <= t, s",
        "'a', s",
        "relation at 0, 0 = 'a' is not allowed: it must be a rational number",
    ),
    "a relation of data": (
        "s <= t, s",
        'x["u", "k"], s',
        "is not allowed: it must be a rational number",
    ),
    "no such element": (
        'x["t", "l"])',
        'x.at(4, "l"))',
        "x.at(4) is not allowed: position must be a whole number from 0 to 3",
    ),
    "an element of tokens": (
        'W["k", "l"]',
        'W.at(0, "l")',
        "W.at(0) is not allowed: the first axis of W must be an ordered set",
    ),
}


def load(tmp_path, text):
    path = tmp_path / "mine.py"
    path.write_text(text)
    return load_theory(path)


def test_orbits_of_positions_and_tokens(tmp_path):
    theory = load(tmp_path, GOOD)
    S = sp.Symbol("S")
    orders = theory.order_parameters
    assert len(orders) == 18
    assert list(orders)[4:6] == ["A[1,0]", "A[1,1]"]
    assert orders["A[2,3]"] == 1
    assert [orders["W[diagonal]"], orders["W[other token]"]] == [S, S * (S - 1)]
    assert [x.identifier for x in theory.orders][-3] == "A_3_3"


def test_orbits_of_mixed_axes_are_canonical():
    position, token = Ordered("position", 2), Exchangeable("token", Size("n"))
    rows = orbits((token, position, token))
    assert [row.name for row in rows] == [
        "0, diagonal",
        "0, other token",
        "1, diagonal",
        "1, other token",
    ]
    assert all(canonical(row.key) == row.key for row in rows)


def test_a_start_can_name_positions():
    position = Ordered("position", 3)
    v = Tensor("v", position, start={"1": 0.5})
    theory = Theory("t", "t", sizes=(), parameters=(v,), loss=lambda v: (v["i"] ** 2).sum("i"))
    assert list(theory.start.values()) == [0, sp.Rational(1, 2), 0]


def test_relations_are_exact():
    position = Ordered("position", 2)
    array = relation(lambda s, t: 0.1 if s < t else s == t, s=position, t=position).detail
    assert array.values == (1, sp.Rational(1, 10), 0, 1)


@pytest.mark.parametrize("name", BAD)
def test_an_invalid_file_gives_one_sentence(tmp_path, name):
    old, new, expected = BAD[name]
    assert GOOD.count(old) == 1
    with pytest.raises(TheoryError) as error:
        load(tmp_path, GOOD.replace(old, new))
    sentence = str(error.value)
    assert sentence.startswith("mine.py, line ")
    assert sentence.isprintable()
    assert expected in sentence


def test_sets_with_structure_are_rejected_next_to_positions(tmp_path):
    text = GOOD.replace("before = ", 'u = Tensor("u", Signed("coordinate", S))\nbefore = ').replace(
        "parameters=(A, W)", "parameters=(A, W, u)"
    )
    with pytest.raises(TheoryError, match="coordinate is not allowed in a theory on ordered posit"):
        load(tmp_path, text)
