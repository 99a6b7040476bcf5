"""Predicted cost of derivations: expensive theories are rejected before they are derived."""

from pathlib import Path

import pytest

import symbolic
from symbolic.theory import TheoryError, cost, load_theory
from symbolic.theory.cost import Patterns
from symbolic.theory.patterns import Pattern, extensions
from symbolic.theory.source import source
from tests.example_files import enumerated
from tests.symbolic.theory.statements import COLOURS, FLIPS, POSITIONAL

LETTERS = "abcdefghijkl"
EIGHT = f"""\
n = Size("n"); k = Exchangeable("k", n)
A = [Tensor(f"A{{i}}", (k, k)) for i in range(8)]
def loss({", ".join(f"A{i}" for i in range(8))}):
    found = {" * ".join(f'A{i}["{LETTERS[i]}", "{LETTERS[i + 1]}"]' for i in range(8))}
    for index in "abcdefghi":
        found = found.sum(index)
    return found
THEORY = Theory("eight", "none", sizes=(n,), parameters=A, loss=loss)
"""
#: The same product with each sum as far inside as possible.
CHAIN = EIGHT.replace(
    EIGHT[EIGHT.index("    found") : EIGHT.index("THEORY")],
    """\
    found = A0["a", "b"].sum("a")
    for x, index, after in zip((A1, A2, A3, A4, A5, A6, A7), "bcdefgh", "cdefghi"):
        found = (found * x[index, after]).sum(index)
    return found.sum("i")
""",
)
TWELVE = """\
n = Size("n"); k = Exchangeable("k", n); A = Tensor("A", (k,) * 12)
def loss(A):
    found = A[tuple("abcdefghijkl")] ** 2
    for index in "abcdefghijkl":
        found = found.sum(index)
    return found
THEORY = Theory("twelve", "none", sizes=(n,), parameters=(A,), loss=loss)
"""
EIGHT_COLOURINGS = """\
n = Size("n"); k = Exchangeable("k", n); A = Tensor("A", (k, k))
c = [Colouring(f"c{i}", k, {0: 0.5, 1: 0.5}) for i in range(8)]
def loss(A, c0, c1, c2, c3, c4, c5, c6, c7):
    s = c0["j"] * c1["j"] + c2["j"] * c3["j"] + c4["j"] * c5["j"] + c6["j"] * c7["j"]
    return ((A["i", "j"].softmax(over="j") * s).sum("j") * s.sum("j")).tanh().sum("i")
THEORY = Theory("colourings", "none", sizes=(n,), parameters=(A,), data=Data(*c), loss=loss)
"""
NINE_SIZES = """\
sizes = [Size(f"n{i}") for i in range(9)]
u = Union("u", *(Exchangeable(f"k{i}", size) for i, size in enumerate(sizes)))
A = Tensor("A", (u, u, u))
THEORY = Theory("nine", "none", sizes=sizes, parameters=(A,),
                loss=lambda A: (A["a", "b", "c"] ** 2).sum("a").sum("b").sum("c"))
"""
TOO_EXPENSIVE = {
    "eight": (EIGHT, "line 4: the derivation needs at least 5.3e+05 values (most: 200000)"),
    "twelve": (TWELVE, "has more than 500 orbits of entries, too many to derive"),
    "colourings": (EIGHT_COLOURINGS, "line 5: the derivation needs at least 3.4e+07 values"),
    "ten values": (
        EIGHT_COLOURINGS.replace("{0: 0.5, 1: 0.5}", "{i: 0.1 for i in range(10)}"),
        "the derivation needs at least",
    ),
    "nine": (NINE_SIZES, "a tensor over u, u, u has more than 500 orbits of entries"),
}


def loaded(text, folder):
    path = folder / "mine.py"
    path.write_text(text)
    return load_theory(path)


@pytest.mark.parametrize("case", TOO_EXPENSIVE)
def test_expensive_theory_is_rejected_before_derivation(case, tmp_path, monkeypatch):
    text, sentence = TOO_EXPENSIVE[case]
    monkeypatch.setattr("symbolic.theory.theory.Lift", lambda *_: pytest.fail("derived"))
    with pytest.raises(TheoryError) as error:
        source(loaded(text, tmp_path))
    assert sentence in str(error.value)


def test_product_with_inner_sums_is_derived(tmp_path):
    assert len(source(loaded(CHAIN, tmp_path))) > 1000


def test_examples_need_less_than_a_tenth_of_the_limit(monkeypatch):
    monkeypatch.setattr(cost, "MOST_VALUES", cost.MOST_VALUES // 10)
    files = [*enumerated(), *Path(symbolic.__file__).parent.glob("*/stated.py")]
    assert len(files) >= 8
    for path in files:
        cost.require_affordable(load_theory(path))


@pytest.mark.parametrize("text", [POSITIONAL, FLIPS, COLOURS])
@pytest.mark.parametrize("indices", [1, 2, 3])
def test_pattern_count_equals_enumeration(text, indices, tmp_path):
    theory = loaded(text, tmp_path)
    counted = Patterns(theory.outer_sets)
    for first in theory.sets:
        for last in theory.sets:
            sets = [first, *[last] * (indices - 1)]
            patterns = [Pattern()]
            for number, index_set in enumerate(sets):
                extended = [
                    extension
                    for pattern in patterns
                    for extension in extensions(theory.outer_sets, pattern, f"i{number}", index_set)
                ]
                patterns = [p for x in extended for p in (*x.used, *(p for _, p in x.fresh))]
            assert counted.number(tuple(sets)) == len(patterns)
            assert len(set(patterns)) == len(patterns)


def test_pattern_count_stops_above_the_limit(tmp_path):
    theory = loaded(COLOURS, tmp_path)
    person = next(x for x in theory.sets if x.name == "person")
    number = Patterns(theory.outer_sets).number((person,) * 40)
    assert cost.MOST_VALUES < number < 100 * cost.MOST_VALUES
