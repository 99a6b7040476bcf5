"""Coq files of derivations: statements read back by a parser, and accepted or rejected by Coq."""

import re
import shutil
import subprocess
from fractions import Fraction

import pytest
import sympy as sp

from simulations.cli import main
from symbolic import catalogue
from symbolic.core import coq, zero
from symbolic.core.proof import ProofBuilder
from symbolic.core.symbols import p

x, y = sp.symbols("x y")
SAME = (x + y) ** 2 - x**2 - 2 * x * y - y**2
RATIO = x / (x + y) + y / (x + y) - 1
ODD = (x * y) ** p - x**p * y**p
NESTED = 1 / (1 + 1 / x) - x / (1 + x)
NESTED_ODD = 1 / (1 + (x / y) ** p) - y**p / (x**p + y**p)


def source_of(**identities):
    builder = ProofBuilder("A claim")
    for name, identity in identities.items():
        builder.decide(name, identity)
    return coq.of_proofs("Title", [builder.build()])


class Parser:
    """Evaluate a term of the subset that is written, in exact arithmetic."""

    def __init__(self, text, values):
        self.tokens = re.findall(r"[A-Za-z_]\w*|\d+|[-+*/^()]", text)
        self.values = values

    def sum(self):
        total = self.product()
        while self.tokens and self.tokens[0] == "+":
            self.tokens.pop(0)
            total += self.product()
        return total

    def product(self):
        total = self.power()
        while self.tokens and self.tokens[0] in "*/":
            sign = self.tokens.pop(0)
            total = total * self.power() if sign == "*" else total / self.power()
        return total

    def power(self):
        token = self.tokens.pop(0)
        if token in "-/":
            return -self.power() if token == "-" else 1 / self.power()
        if token == "(":
            base = self.sum()
            assert self.tokens.pop(0) == ")"
        else:
            base = Fraction(int(token)) if token.isdigit() else self.values[token]
        if self.tokens and self.tokens[0] == "^":
            self.tokens.pop(0)
            return base ** int(self.tokens.pop(0))
        return base


def statement(lemma):
    """Return the variables, the premises and the left-hand side of a lemma."""
    text = " ".join(re.search(r"Lemma \w+ : (.*?)\.\nProof", lemma, re.DOTALL)[1].split())
    variables = re.match(r"forall (.*?) : R, ", text)
    *premises, left = text[variables.end() if variables else 0 :].split(" -> ")
    assert left.endswith(" = 0")
    assert all(premise.endswith(" <> 0") for premise in premises)
    names = variables[1].split() if variables else []
    return names, [premise.removesuffix(" <> 0") for premise in premises], left.removesuffix(" = 0")


def value(term, point):
    parser = Parser(term, point)
    result = parser.sum()
    assert not parser.tokens
    return result


class TestStatements:
    @pytest.mark.parametrize("expression", [SAME, RATIO, ODD, NESTED, NESTED_ODD])
    def test_vanishes_at_rational_points(self, expression):
        names, premises, left = statement(source_of(a=expression).lemmas["identity_1"])
        point = {name: Fraction(2 * i + 3, 7) for i, name in enumerate(names)}
        assert all(value(premise, point) != 0 for premise in premises)
        assert value(left, point) == 0

    def test_written_term_is_the_expression(self):
        """The identity is broken behind the proof, so that the term has a value other than 0."""
        writer = coq._Writer()
        term = writer.term(RATIO + 3 * x / y)
        point = {"v_x": Fraction(5, 2), "v_y": Fraction(-3)}
        assert value(term, point) == Fraction(-5, 2)
        assert len(writer.denominators) == 2

    def test_power_of_odd_degree(self):
        """b^p = u b^3 with u = b^(2 m): the value at u = b^4 is the one at p = 7."""
        writer = coq._Writer()
        term = writer.term((2 * x * y) ** (p - 1))
        unknown = {str(factor): writer.variables[y] for factor, y in writer.unknowns.items()}
        values = {"v_x": Fraction(3), "v_y": Fraction(1, 2)}
        of_base = {"2": Fraction(2), "x": Fraction(3), "y": Fraction(1, 2)}
        point = values | {name: of_base[base] ** 4 for base, name in unknown.items()}
        assert value(term, point) == 3**6

    def test_numerator_of_a_nested_denominator_is_a_premise(self):
        names, premises, _ = statement(source_of(a=NESTED).lemmas["identity_1"])
        assert names == ["v_x"]
        assert {value(premise, {"v_x": Fraction(-1)}) for premise in premises} == {0, -1}

    def test_witness_is_printed(self):
        assert "the premises hold at v_x = " in source_of(a=RATIO).lemmas["identity_1"]

    def test_what_is_not_exported_has_a_reason(self):
        source = source_of(same=x - x, other=SAME)
        assert source.left_out == ("same: both sides are one expression to SymPy",)
        assert list(source.lemmas) == ["identity_1"]
        assert "(* Not exported: same: " in str(source)

    def test_function_is_not_exportable(self):
        with pytest.raises(coq.NotExportableError, match="sin is no rational function"):
            coq._Writer().term(sp.sin(x))

    def test_comments_are_closed(self):
        assert coq._comment('a *) b "c"') == "a * ) b ''c''"

    @pytest.mark.parametrize("name", ["attention", "margins"])
    def test_identities_of_a_derivation_vanish(self, name):
        source = catalogue.CATALOGUE.coq_source(name)
        assert len(source.lemmas) >= 9
        for lemma in source.lemmas.values():
            names, premises, left = statement(lemma)
            point = {variable: Fraction(3 * i + 4, 11) for i, variable in enumerate(names)}
            assert all(value(premise, point) != 0 for premise in premises)
            assert value(left, point) == 0


class TestFile:
    def test_theorems_of_all_sizes(self):
        text = catalogue.render("lemma-4.1", "coq")
        assert text == catalogue.render("lemma-4.2", "coq")
        assert "Theorem lemma_4_1" in text
        assert "Theorem reduction" in text
        assert re.findall(r"^Print Assumptions (\w+)\.", text, re.M) == ["lemma_4_1", "reduction"]

    def test_nothing_is_admitted(self):
        assert not re.search(
            r"\b(Admitted|admit|Axiom|Parameter)\b", catalogue.render("lemma-4.1", "coq")
        )


class TestCommand:
    def test_check_needs_the_format(self, capsys):
        assert main(["derive", "attention", "--check"]) == 2
        assert "--check is not allowed here: it needs --format coq" in capsys.readouterr().err

    def test_missing_coq_is_one_sentence(self, capsys, monkeypatch):
        monkeypatch.setattr(shutil, "which", lambda name: None)
        assert main(["derive", "lemma-4.1", "--format", "coq", "--check"]) == 2
        error = capsys.readouterr().err
        assert "--check needs Coq 8.16 with Coquelicot and MathComp 1, but no coqc is" in error
        assert error.count("\n") == 1

    def test_other_version_is_one_sentence(self, capsys, monkeypatch):
        done = subprocess.CompletedProcess([], 0, "The Coq Proof Assistant, version 8.18.0\n", "")
        monkeypatch.setattr(shutil, "which", lambda name: name)
        monkeypatch.setattr(subprocess, "run", lambda *args, **options: done)
        assert main(["derive", "lemma-4.1", "--format", "coq", "--check"]) == 2
        assert "but coqc is version 8.18.0;" in capsys.readouterr().err


@pytest.fixture(scope="module")
def installed():
    """Skip a test unless Coq 8.16 and the libraries of the files are installed."""
    libraries = "From Coquelicot Require Import Coquelicot.\nFrom mathcomp Require Import perm.\n"
    try:
        coq.require_coq()
    except coq.CoqMissingError as error:
        pytest.skip(str(error))
    if coq._compile(libraries)[0] is not None:
        pytest.skip("Coquelicot or MathComp is not installed")


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
class TestCheck:
    @pytest.mark.parametrize("expression", [SAME, RATIO, ODD, NESTED, NESTED_ODD])
    def test_identities_are_accepted(self, expression):
        outcome = coq.check(source_of(a=expression))
        assert (outcome.accepted, outcome.rejected) == (("identity_1",), {})

    def test_wrong_identities_are_rejected_and_the_rest_is_accepted(self):
        source = source_of(first=SAME, ratio=RATIO, odd=ODD, last=NESTED)
        changed = dict(source.lemmas)
        changed["identity_2"] = changed["identity_2"].replace(" = 0.", " = 1.")
        changed["identity_3"] = changed["identity_3"].replace(" ^ 3)", " ^ 4)", 1)
        assert changed["identity_3"] != source.lemmas["identity_3"]
        outcome = coq.check(coq.Source(source.header, changed))
        assert outcome.accepted == ("identity_1", "identity_4")
        assert set(outcome.rejected) == {"identity_2", "identity_3"}

    def test_attention_on_the_command_line(self, capsys):
        assert main(["derive", "attention", "--format", "coq", "--check"]) == 0
        printed = capsys.readouterr().out
        assert "accepted by Coq: 9 of 9" in printed

    def test_reduction_for_all_sizes(self):
        outcome = coq.check(catalogue.CATALOGUE.coq_source("lemma-4.1"))
        assert outcome.rejected == {}
        assert set(outcome.assumptions) == {
            "classic",
            "functional_extensionality_dep",
            "sig_forall_dec",
            "sig_not_dec",
        }

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("if j.1 == l then sign y else", "if j.1 == l then sign y * INR j.2 else"),
            ("(D * (INR C - 1))),", "(D * INR C)),"),
            ("(D * (D - INR C)))", "(D * D))"),
            ("a' - eta s * d_alpha a' g' r',", "a' + eta s * d_alpha a' g' r',"),
            ("noise (flip x) k = - noise x k", "noise (flip x) k = noise x k"),
            ("if i == j then A i j else A i j - eta", "A i j - eta"),
            ("number (flip x) = number x", "number (flip x) = - number x"),
            ("(noise x k * w k) = 0", "(noise x k * w k) = 1"),
            ("(w k * w k) = 1", "(w k * w k) = 2"),
            ("exp (A i j / tau) / \\total", "exp (A j i / tau) / \\total"),
        ],
    )
    def test_changed_models_are_rejected(self, right, wrong):
        ((name, text),) = catalogue.CATALOGUE.coq_source("lemma-4.1").lemmas.items()
        assert right in text
        outcome = coq.check(coq.Source("", {name: text.replace(right, wrong, 1)}))
        assert list(outcome.rejected) == [name]
