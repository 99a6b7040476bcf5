"""Theory files: order parameters, multiplicities, and error messages."""

from pathlib import Path

import pytest
import sympy as sp

import symbolic
from symbolic.theory import TheoryError, constants, load_theory
from symbolic.theory.source import source
from tests.symbolic.theory.statements import COLOURS, FLIPS, POSITIONAL

PACKAGE = Path(symbolic.__file__).parent


@pytest.fixture
def loaded_theory(tmp_path):
    """Return a function that loads a theory from text after replacements."""

    def load(text, **changes):
        for old, new in changes.get("changes", {}).items():
            assert text.count(old) >= 1, f"{old!r} is not in the text"
            text = text.replace(old, new)
        path = tmp_path / "mine.py"
        path.write_text(text)
        return load_theory(path)

    return load


def counts(theory):
    return {name: sp.expand(count) for name, count in theory.order_parameters.items()}


def test_order_parameters_of_lemma_4_1(loaded_theory):
    """The file imports nothing, and D and C remain symbols."""
    D, C, nu = sp.symbols("D C nu")
    theory = loaded_theory(POSITIONAL)
    assert counts(theory) == {
        "gamma": sp.expand(D * (C - 1)),
        "rho": sp.expand(D * (D - C)),
        "alpha": 1,
    }
    assert theory.start == {"gamma": 0, "rho": 0, "alpha": sp.sqrt(nu)}


@pytest.mark.parametrize("name", ["positional", "masked"])
def test_orbit_sizes_sum_to_the_number_of_entries(name):
    """Fixed orbits are included."""
    from symbolic.theory.orbits import orbits

    theory = load_theory(PACKAGE / name / "stated.py")
    assert len(theory.order_parameters) == {"positional": 3, "masked": 12}[name]
    for tensor in theory.parameters:
        sizes = [sum(part.count for part in axis.parts) for axis in tensor.axes]
        total = sum(orbit.count for orbit in orbits(tensor.axes))
        assert sp.expand(total - sp.Mul(*sizes)) == 0


def test_odd_entries_of_signed_sets_vanish(loaded_theory):
    d = sp.Symbol("d")
    multiplicities = counts(loaded_theory(FLIPS))
    assert multiplicities["W[diagonal]"] == d
    assert "W[other coordinate]" not in multiplicities
    quadruples = {name: n for name, n in multiplicities.items() if name.startswith("T")}
    assert quadruples == {
        "T[diagonal]": d,
        "T[1=2, 3=4]": d**2 - d,
        "T[1=3, 2=4]": d**2 - d,
        "T[2=3, 1=4]": d**2 - d,
    }


def test_triples_of_nested_sets(loaded_theory):
    """There are 12 pairs of a partition of three indices and a refinement of it."""
    n, m = sp.symbols("n m")
    triples = {
        name: k for name, k in counts(loaded_theory(COLOURS)).items() if name.startswith("B")
    }
    assert len(triples) == 12
    assert sp.expand(sum(triples.values()) - (n * m) ** 3) == 0


def test_fixed_orbit_is_no_order_parameter(loaded_theory):
    theory = loaded_theory(
        POSITIONAL,
        changes={'A.fix("diagonal", beta)': 'A.fix("other set", 0)', ', "A[other set]": "rho"': ""},
    )
    assert set(theory.order_parameters) == {"A[diagonal]", "gamma", "alpha"}


def test_softmax_derivative_has_no_cancellation(loaded_theory):
    """The derivative of e^gamma / Z is a product of weights, without subtractions."""
    text = """\
n = Size("n"); k = Exchangeable("k", n); A = Tensor("A", (k, k))
x = Choice("x", k)
THEORY = Theory("t", "none", sizes=(n,), parameters=(A,), data=Data(x),
    loss=lambda A, x: (A["i", "j"].softmax(over="j") * x["j"] * x["i"]).sum("j").sum("i"))
"""
    reduced = loaded_theory(text).reduced
    slope = reduced.expanded(reduced.gradient["A[diagonal]"])
    own, other, size = sp.Symbol("A[diagonal]"), sp.Symbol("A[other k]"), sp.Symbol("n")
    Z = sp.exp(own) + (size - 1) * sp.exp(other)
    assert slope == (size - 1) * sp.exp(own) * sp.exp(other) / (Z**2 * size)


WRONG = {
    "an element": (
        'A["i", "j"].soft',
        'A["i", 0].soft',
        "line 8: the model names index 0 of patch: only whole axes",
    ),
    "free index": ('* O).sum("i")', "* O)", "the loss has the free index i: sum over it"),
    "no such index": (
        '* O).sum("i")',
        '* O).sum("k")',
        "line 9: sum over 'k' is not allowed: it must be a free index, here i",
    ),
    "two sets": (
        'v * s["j"]',
        'v * s["j"] * signal["j"]',
        "line 8: index 'j' runs over patch and over set: it must be one set",
    ),
    "indices": ('v * s["j"]', 'v * s["j", "i"]', "line 8: s has 1 indices (patch), not 2"),
    "no orbit": (
        '"diagonal"',
        '"the diagonal"',
        "line 6: A is fixed on 'the diagonal', which is "
        "no orbit: there are diagonal, other set, same set",
    ),
    "no start": ("start=0", 'start={"near": 1}', "line 6: A starts on 'near', which is no orbit"),
    "names": (
        '"A[same set]"',
        '"A[same row]"',
        "names: 'A[same row]' is no order parameter; there are A[same set], A[other set], v",
    ),
    "chances": (
        "0: 1 - q",
        "0: 1 - q/2",
        "line 5: law of s is not allowed: its probabilities sum to q/2 + 1, not 1",
    ),
    "given": (
        "{signal: +1}",
        "{signal: 2}",
        "line 5: given of s = 2 is not allowed: it must be a value of its law",
    ),
    "given what": (
        'Choice("signal", sets)',
        'Choice("signal", patch)',
        "given of s is not allowed: it must name a Choice of set",
    ),
    "nested": (
        "C, inside=sets)",
        'C, inside=Exchangeable("row", 2, inside=sets))',
        "line 3: patch lies inside row, which lies inside set: at most one",
    ),
    "a condition": ("O**3 +", "(O or 0)**3 +", "line 9: a condition on an expression is not"),
    "a comparison": ("O**3 +", "(O > 0) +", "line 9: TypeError: '>' not supported"),
    "a loop": ("O**3 +", "sum(O) +", "line 9: TypeError: 'Node' object is not iterable"),
    "numpy": ("O**3 +", "__import__('numpy').exp(O) +", "line 9: TypeError"),
    "start": (
        "start=nu**0.5",
        "start='small'",
        "line 6: start of v = 'small' is not allowed: it "
        "must be a number, or an expression in sizes and constants",
    ),
    "a stranger": (
        "loss=lambda A, v, s:",
        "loss=lambda A, v, s, w:",
        "loss(A, v, s, w) is not allowed: w is neither a parameter nor data (A, v, signal, s)",
    ),
    "twice": ('Tensor("v"', 'Tensor("s"', "s names two things: each name must be used once"),
    "a keyword": ('"v": "alpha"', '"v": "lambda"', "name = 'lambda' is not allowed: a name must"),
    "two sets alike": ('"patch", C', '"set", C', "set names two index sets: each must have its"),
    "a taken name": ('"gamma"', '"count_set"', "count_set names two things"),
    "no size": ('"set", D / C', '"set", "many"', "line 3: size = 'many' is not allowed"),
    "no domain": ('"> 0"', '"positive"', "line 2: nu = 'positive' is not allowed: the domain"),
    "no theory": ("THEORY = ", "MINE = ", "THEORY = None is not allowed: it must be a Theory"),
    "no Python": ("def model(A", "def model(A A", "line 7: this is no Python: "),
    "data": ("Data(signal, s)", "Data(s)", "s is given signal, which is no data"),
    "exponent": ("O**3", "O**O", "line 9: exponent = "),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_theory_raises_its_message(loaded_theory, case):
    old, new, sentence = WRONG[case]
    with pytest.raises(TheoryError) as error:
        loaded_theory(POSITIONAL, changes={old: new})
    assert str(error.value).startswith("mine.py, line ")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


ODD = {
    "exp": (".tanh())", ".tanh() + error.exp())", "in index 'i' is not allowed within exp"),
    "sum": ("1 + (T", '(1 + error).sum("k") + (T', "in index 'i' is not allowed added to what is"),
    "sum over": (
        "error**2).tanh())",
        'error**2).tanh() + error.sum("k"))',
        "in index 'k' is not allowed summed",
    ),
    "softmax": (
        "error = (W",
        'error = (W["i", "j"].softmax("j") * W',
        "in index 'i' is not allowed within softmax",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_operation_that_breaks_oddness_is_rejected(loaded_theory, case):
    old, new, sentence = ODD[case]
    with pytest.raises(TheoryError, match="that is odd") as error:
        loaded_theory(FLIPS, changes={old: new})
    assert sentence in str(error.value)
    assert "flipping one coordinate would change more than its sign" in str(error.value)


VALUES = {
    "C must divide D = 8": {"D": 8, "C": 3},
    "D = 8.5 is not allowed: D must be a whole number, at least 4 and at most 10^9": {"D": 8.5},
    "q = 2 is not allowed: q must be in (0, 1]": {"q": 2},
    "q = 0 is not allowed": {"q": 0},
    "nu = nan is not allowed: nu must be > 0": {"nu": float("nan")},
    "beta = x is not allowed: beta must be real": {"beta": "x"},
    "gamma = 1 is not allowed: there are D, C, beta, nu, q": {"gamma": 1},
}


@pytest.mark.parametrize("sentence", VALUES)
def test_values_outside_their_domain_are_rejected(loaded_theory, sentence):
    good = {"D": 8, "C": 2, "q": 1, "nu": 0.1, "beta": -1}
    theory = loaded_theory(POSITIONAL)
    assert theory.checked(good) == good
    with pytest.raises(TheoryError) as error:
        theory.checked(good | VALUES[sentence])
    assert sentence in str(error.value)


def test_set_size_must_be_an_integer(loaded_theory):
    theory = loaded_theory(POSITIONAL, changes={', divides="D"': ""})
    with pytest.raises(TheoryError, match="line 3: set has D/C = 8/3 elements: it must be a whole"):
        theory.checked({"D": 8, "C": 3, "q": 1, "nu": 0.1, "beta": 0})


def test_too_many_nested_loops_are_rejected(loaded_theory):
    """A summand depends on four rooms, and no factor can be moved out."""
    text = """\
n = Size("n"); room = Exchangeable("room", n); person = Exchangeable("person", 2, inside=room)
s = Colouring("s", person, {1: 0.5, 2: 0.5}); U = Tensor("U")
inside = Inside(person, room)
def loss(U, s):
    a = (inside["i", "r"] * s["i"]).sum("i"); b = (inside["j", "t"] * s["j"]).sum("j")
    c = (inside["k", "u"] * s["k"]).sum("k")
    d = (inside["l", "v"] * s["l"]).sum("l")
    return (a + b * c + d * U).tanh().sum("r").sum("t").sum("u").sum("v")
THEORY = Theory("t", "none", sizes=(n,), parameters=(U,), data=Data(s), loss=loss)
"""
    theory = loaded_theory(text)
    with pytest.raises(TheoryError, match=r"4 nested loops over families \(most: 3\)"):
        source(theory)


@pytest.mark.parametrize(
    "domain", ["real", "> 0", ">= 3", "< 2", "<= -1", "in (0, 1]", "in [2, 2.5)", "in [0, 1]"]
)
def test_example_values_are_distinct_and_in_the_domain(domain):
    (constant,) = constants(x=domain)
    assert constant.another(0, 1) == constant.example
    values = [constant.another(i, 4) for i in range(4)]
    assert len(set(values)) == 4
    assert [constant.checked(x) for x in values] == values


def test_former_keywords_are_accepted(loaded_theory):
    theory = loaded_theory(POSITIONAL, changes={"names={": 'usual={"D": 8}, names={'})
    assert theory.defaults == {"D": 8}
