"""Errors for theory files with invalid numbers, names and defaults."""

import pytest

from symbolic.theory import TheoryError, load_theory
from symbolic.theory.source import source
from tests.symbolic.theory.statements import COLOURS, FLIPS, POSITIONAL

GOOD = POSITIONAL.replace("names={", 'defaults={"D": 8, "C": 2, "q": 0.5, "horizon": 10}, names={')
NUMBERS = [
    "float('nan')",
    "float('inf')",
    "-float('inf')",
    "1j",
    "10**5000",
    "-10**5000",
    "None",
    "'x'",
    "True",
    "[1]",
    "object()",
    "n ** 10**400",
    "(-1)**0.5",
]
#: A theory, and text with a number in it that is replaced.
FIELDS = {
    "loss": (POSITIONAL, "nu * O)", "{} * O)"),
    "term": (POSITIONAL, "nu * O)", "nu * O + {})"),
    "exponent": (POSITIONAL, "O**3", "O**({})"),
    "start": (POSITIONAL, "start=0", "start={}"),
    "start of an orbit": (POSITIONAL, "start=0", "start={{'same set': {}}}"),
    "fixed": (POSITIONAL, '"diagonal", beta', '"diagonal", {}'),
    "size of a set": (POSITIONAL, "D / C", "{}"),
    "size of an inner set": (POSITIONAL, '"patch", C', '"patch", {}'),
    "size of coordinates": (FLIPS, '"coordinate", d', '"coordinate", {}'),
    "least": (POSITIONAL, "least=4", "least={}"),
    "most": (POSITIONAL, "least=4", "most={}"),
    "probability": (POSITIONAL, "-1: q/2", "-1: {}"),
    "value": (POSITIONAL, "0: 1 - q", "{}: 1 - q"),
    "default": (GOOD, '"q": 0.5', '"q": {}'),
    "default size": (GOOD, '"C": 2', '"C": {}'),
    "default horizon": (GOOD, '"horizon": 10', '"horizon": {}'),
}


@pytest.fixture
def error_of(tmp_path):
    """Return a function that loads an invalid theory and returns the error message."""

    def load(text, name="mine.py"):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(TheoryError) as error:
            load_theory(path)
        sentence = str(error.value)
        assert sentence.isprintable()
        assert "line " in sentence
        return sentence

    return load


def replaced(text, old, new):
    assert text.count(old) >= 1, f"{old!r} is not in the text"
    return text.replace(old, new, 1)


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize("field", FIELDS)
def test_invalid_number_is_rejected(field, value, error_of):
    text, old, new = FIELDS[field]
    error_of("n = Size('n')\n" + replaced(text, old, new.format(value)))


@pytest.mark.parametrize("value", ["3.5", "0", "-1", "10**10", "Size('m')"])
def test_invalid_limit_of_a_size_is_rejected(value, error_of):
    assert "least" in error_of(replaced(POSITIONAL, "least=4", f"least={value}"))


BAD = {
    "surrogate": ('"patches"', r'"\ud800"', r"meaning of D = '\ud800' is not allowed"),
    "control": ('Theory("positional"', r'Theory("\x1b[31mred"', r"name = '\x1b[31mred' is not"),
    "line end": ("Jelassi, ", r"Jelassi\n", r"paper = 'Jelassi\nSander, Li (NeurIPS 2022)' is not"),
    "path": ('Theory("positional"', 'Theory("../x"', "name = '../x' is not allowed"),
    "no text": ('Theory("positional"', "Theory(3", "name = 3 is not allowed"),
    "long": ('Tensor("v"', 'Tensor("v" * 99', "of at most 60 characters"),
    "long set": ('Exchangeable("set"', 'Exchangeable("set" * 30', "of at most 60 characters"),
    "ligature": ('Tensor("v"', 'Tensor("\ufb01"', "name = '\ufb01' is not allowed"),
    "no such size": ('divides="D"', 'divides="E"', "divides = E of C is not allowed"),
    "empty domain": ('"> 0"', '"in (1, 0)"', "nu = 'in (1, 0)' is not allowed: the domain"),
    "no number": ('"> 0"', '"> 1/0"', "nu = '> 1/0' is not allowed: the domain"),
    "too far": ('"> 0"', '"> 1e5000"', "nu = '> 1e5000' is not allowed: the domain"),
    "exit": ("def model", "import sys; sys.exit(0)\ndef model", "SystemExit: 0"),
    "quiet exit": ("def model", "raise SystemExit\ndef model", "line 7: SystemExit"),
    "no exception": ("def model", "raise BaseException('\\033')\ndef model", r"\x1b"),
    "a claim": ("names={", 'claims="gamma > rho", names={', "claims = 'gamma > rho' is not"),
    "claims": ("names={", "claims=[3], names={", "claim = 3 is not allowed"),
    "default name": (
        "names={",
        'defaults={"E": 3}, names={',
        "defaults: 'E' is not allowed: there are D,",
    ),
    "default size": (
        "names={",
        'defaults={"D": 2}, names={',
        "D = 2 is not allowed: D must be a whole",
    ),
    "default domain": (
        "names={",
        'defaults={"q": 2}, names={',
        "q = 2 is not allowed: q must be in (0",
    ),
    "default divisor": ("names={", 'defaults={"D": 8, "C": 3}, names={', "C must divide D = 8"),
    "horizon": (
        "names={",
        'defaults={"horizon": 0}, names={',
        "defaults: horizon = 0 is not allowed",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_file_raises_one_printable_sentence(case, error_of):
    old, new, sentence = BAD[case]
    assert sentence in error_of(replaced(POSITIONAL, old, new))


def test_control_characters_in_file_names_are_escaped(error_of):
    assert error_of("nothing", "a\x1b[31m.py").startswith(r"a\x1b[31m.py, line 1: NameError")


def test_theory_whose_repr_raises_is_rejected(error_of):
    assert "THEORY = <int> is not allowed" in error_of("THEORY = 10**5000")
    text = "class X:\n    def __repr__(self): raise ValueError\nTHEORY = X()"
    assert "THEORY = <X> is not allowed" in error_of(text)


@pytest.mark.parametrize(
    ("start", "values"),
    [
        ("1 / (d - 3)", {"d": 3, "t": 1}),
        ("(t - 1)**0.5", {"d": 3, "t": 0.5}),
        ("t**-600", {"d": 3, "t": 1e-3}),
    ],
)
def test_singular_initial_value_is_rejected(tmp_path, start, values):
    path = tmp_path / "mine.py"
    path.write_text(replaced(FLIPS, "start=0.1", f"start={start}"))
    theory = load_theory(path)
    assert theory.checked({"d": 4, "t": 2}) == {"d": 4, "t": 2}
    with pytest.raises(TheoryError, match="is not allowed at d = 3"):
        theory.checked(values)


def test_negative_variance_is_rejected(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        'n = Size("n"); k = Exchangeable("k", n); b, = constants(b="real"); A = Tensor("A", k)\n'
        'g = Gaussian("g", k, variance=b)\n'
        'THEORY = Theory("t", "", sizes=(n,), parameters=(A,), data=Data(g),\n'
        '                loss=lambda A, g: (A["i"] * g["i"]).sum("i")**2)\n'
    )
    theory = load_theory(path)
    theory.checked({"n": 2, "b": 0.5})
    with pytest.raises(TheoryError, match="variance of g = -1 is not allowed: it must be"):
        theory.checked({"n": 2, "b": -1})


@pytest.mark.slow
@pytest.mark.traced
def test_division_by_zero_is_rejected_by_the_derivation(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(replaced(COLOURS, '.sum("i").softplus()', '.sum("i") / 0'))
    with pytest.raises(TheoryError, match="divides by 0 for all sizes"):
        source(load_theory(path))
