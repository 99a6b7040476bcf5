"""Coq files of derivations: statements read back by a parser, and accepted or rejected by Coq."""

import operator
import re
import shutil
import subprocess
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import pytest
import sympy as sp

from simulations.cli import main
from symbolic import catalogue
from symbolic.core import coq
from symbolic.core.identity import Identity
from symbolic.core.proof import ProofBuilder
from symbolic.core.symbols import p, tau
from symbolic.positional.derivations import ALL_SETS

x, y, q = sp.symbols("x y q")
SAME = Identity((x + y) ** 2 - x**2, 2 * x * y + y**2)
RATIO = Identity(x / (x + y), 1 - y / (x + y))
ODD = Identity((x * y) ** p, x**p * y**p)
NESTED = Identity(1 / (1 + 1 / x), x / (1 + x))
NESTED_ODD = Identity(1 / (1 + (x / y) ** p), y**p / (x**p + y**p))
GROWN = sp.exp(x / tau)
SLOPES = {
    "quotient": Identity(x / (x + y), y / (x + y) ** 2, x),
    "odd power": Identity((x * y + 1) ** p, p * y * (x * y + 1) ** (p - 1), x),
    "odd power in a denominator": Identity(1 / (x + y) ** p, -p / (x + y) ** (p + 1), x),
    "even power": Identity(p * x ** (p - 1), p * (p - 1) * x ** (p - 2), x),
    "softmax": Identity(GROWN / (GROWN + y), GROWN * y / (GROWN + y) ** 2 / tau, x),
    "power of a softmax": Identity(
        (q * GROWN / (GROWN + y)) ** p,
        p * (q * GROWN / (GROWN + y)) ** (p - 1) * q * GROWN * y / (GROWN + y) ** 2 / tau,
        x,
    ),
}
IDENTITIES = [SAME, RATIO, ODD, NESTED, NESTED_ODD, *SLOPES.values()]


def source_of(**identities):
    builder = ProofBuilder("A claim")
    for name, identity in identities.items():
        builder.decide(name, identity)
    return coq.of_proofs("Title", [builder.build()])


@dataclass(frozen=True)
class Dual:
    """A number with its derivative, both exact."""

    value: Fraction
    slope: Fraction = Fraction(0)

    def __add__(self, other):
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        slope = self.value * other.slope + self.slope * other.value
        return Dual(self.value * other.value, slope)

    def __neg__(self):
        return Dual(-self.value, -self.slope)

    def inverse(self):
        return Dual(1 / self.value, -self.slope / self.value**2)

    def __pow__(self, number):
        return reduce(operator.mul, [self] * number, Dual(Fraction(1)))

    def exp(self):
        assert self.value == 0, "e^x is rational at x = 0 only"
        return Dual(Fraction(1), self.slope)


class Parser:
    """Evaluate a term of the subset that is written, in exact arithmetic; k is ``degree``."""

    def __init__(self, text, values, degree):
        self.tokens = re.findall(r"[A-Za-z_]\w*|\d+|[-+*/^()]", text)
        self.values, self.degree = values, degree

    def take(self):
        return self.tokens.pop(0)

    def sum(self):
        total = self.product()
        while self.tokens and self.tokens[0] == "+":
            self.take()
            total += self.product()
        return total

    def product(self):
        total = self.power()
        while self.tokens and self.tokens[0] in "*/":
            sign = self.take()
            factor = self.power()
            total = total * (factor if sign == "*" else factor.inverse())
        return total

    def power(self):
        token = self.take()
        if token in "-/":
            return -self.power() if token == "-" else self.power().inverse()
        if token == "exp":
            return self.power().exp()
        if token == "(":
            base = self.sum()
            assert self.take() == ")"
        elif token == "INR":
            base = Dual(Fraction(self.number()))
        else:
            base = Dual(Fraction(int(token))) if token.isdigit() else self.values[token]
        if self.tokens and self.tokens[0] == "^":
            self.take()
            return base ** self.number()
        return base

    def number(self):
        """Return a natural number: digits, k, S n or (n)."""
        token = self.take()
        if token == "(":
            number = self.number()
            assert self.take() == ")"
            return number
        if token == "S":
            return 1 + self.number()
        return self.degree if token == "k" else int(token)


def value(term, point, degree=2):
    parser = Parser(term, point, degree)
    result = parser.sum()
    assert not parser.tokens
    return result


@dataclass(frozen=True)
class Statement:
    """A lemma, read back from its text."""

    names: list[str]
    premises: list[str]
    left: str
    right: str
    variable: str | None

    @classmethod
    def of(cls, lemma):
        text = " ".join(re.search(r"Lemma \w+ : (.*?)\.\nProof", lemma, re.DOTALL)[1].split())
        names = re.match(r"forall (?:\(k : nat\) )?\((.*?) : R\), ", text)
        *premises, conclusion = text[names.end() if names else 0 :].split(" -> ")
        assert all(premise.endswith(" <> 0") for premise in premises)
        premises = [premise.removesuffix(" <> 0") for premise in premises]
        derivative = re.fullmatch(r"is_derive \(fun (\w+) => (.*)\) (\w+) (\(.*\)|\S+)", conclusion)
        names = names[1].split() if names else []
        if derivative:
            variable, left, at, right = derivative.groups()
            assert variable == at
            return cls(names, premises, left, right, variable)
        return cls(names, premises, *conclusion.split(" = "), None)

    def sides(self, number=0, degree=2):
        """Return the values of both sides, and of the premises, at one of many points."""
        point = {name: Dual(Fraction(3 * i + 4 + number, 11)) for i, name in enumerate(self.names)}
        if self.variable:
            at = Fraction(0) if "exp" in self.left else point[self.variable].value
            point[self.variable] = Dual(at, Fraction(1))
        left, right = (value(term, point, degree) for term in (self.left, self.right))
        premises = [value(premise, point, degree).value for premise in self.premises]
        return left.slope if self.variable else left.value, right.value, premises


def check_at_points(lemma):
    """Test both sides of a lemma at two points, a derivative also at two degrees p = k + 3."""
    for number in (0, 5):
        left, right, premises = Statement.of(lemma).sides(number, degree=2 * number)
        assert 0 not in premises
        assert left == right


class TestStatements:
    @pytest.mark.parametrize("identity", IDENTITIES)
    def test_holds_at_rational_points(self, identity):
        check_at_points(source_of(a=identity).lemmas["identity_1"])

    @pytest.mark.parametrize("identity", IDENTITIES)
    def test_wrong_right_side_differs_at_a_point(self, identity):
        wrong = Identity(identity.left, 2 * identity.right, identity.variable)
        left, right, _ = Statement.of(coq._lemma("wrong", "wrong", wrong)).sides()
        assert left != right

    def test_written_term_is_the_expression(self):
        writer = coq._Writer()
        term = writer.term(RATIO.left - RATIO.right + 3 * x / y)
        point = {"v_x": Dual(Fraction(5, 2)), "v_y": Dual(Fraction(-3))}
        assert value(term, point).value == Fraction(-5, 2)
        assert len(writer.denominators) == 2

    def test_power_of_odd_degree(self):
        """b^p = u b^3 with u = b^(2 m): the value at u = b^4 is the one at p = 7."""
        writer = coq._Writer()
        term = writer.term((2 * x * y) ** (p - 1))
        unknown = {str(factor): writer.variables[y] for factor, y in writer.unknowns.items()}
        of_base = {"2": Fraction(2), "x": Fraction(3), "y": Fraction(1, 2)}
        point = {f"v_{name}": Dual(of_base[name]) for name in "xy"}
        point |= {name: Dual(of_base[base] ** 4) for base, name in unknown.items()}
        assert value(term, point).value == 3**6

    def test_derivative_is_stated_about_the_function(self):
        lemma = source_of(a=SLOPES["odd power"]).lemmas["identity_1"]
        function = "(((1 + (v_x * v_y)) ^ (S (S (S (k))))))"
        assert f"is_derive (fun v_x => {function}) v_x\n" in lemma
        assert "forall (k : nat) (v_x v_y : R)" in lemma

    def test_exponential_is_written_out_where_it_is_differentiated(self):
        statement = Statement.of(source_of(a=SLOPES["softmax"]).lemmas["identity_1"])
        assert "(exp (v_x * (/ v_tau)))" in statement.left
        assert statement.premises[0] == "v_tau"

    def test_numerator_of_a_nested_denominator_is_a_premise(self):
        statement = Statement.of(source_of(a=NESTED).lemmas["identity_1"])
        assert statement.names == ["v_x"]
        at = {"v_x": Dual(Fraction(-1))}
        assert {value(premise, at).value for premise in statement.premises} == {0, -1}

    def test_witness_is_printed(self):
        assert "the premises hold at v_x = " in source_of(a=RATIO).lemmas["identity_1"]
        assert "v_x = 0 *)" in source_of(a=SLOPES["softmax"]).lemmas["identity_1"]

    def test_what_is_not_exported_has_a_reason(self):
        source = source_of(same=Identity(x, x), cancelled=Identity(x + y - y, x), other=SAME)
        reason = "both sides are the same expression as written"
        assert source.left_out == (f"same: {reason}", f"cancelled: {reason}")
        assert list(source.lemmas) == ["identity_1"]
        assert "(* Not exported: same: " in str(source)

    def test_function_is_not_exportable(self):
        with pytest.raises(coq.NotExportableError, match="sin is no rational function"):
            coq._Writer().term(sp.sin(x))

    def test_comments_are_closed(self):
        assert coq._comment('a *) b "c"') == "a * ) b ''c''"

    @pytest.mark.parametrize("name", ["attention", "margins", "masked-area-form"])
    def test_lemmas_of_a_derivation_hold(self, name):
        source = catalogue.CATALOGUE.coq_source(name)
        assert len(source.lemmas) >= 7
        for lemma in source.lemmas.values():
            check_at_points(lemma)


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


def _decided(name):
    """Return the identities that a derivation decides."""
    return {k: v for proof in catalogue.CATALOGUE[name].prove() for k, v in proof.decided.items()}


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
    def test_identities_are_accepted(self):
        source = source_of(**{f"{i}": identity for i, identity in enumerate(IDENTITIES)})
        outcome = coq.check(source)
        assert (outcome.accepted, outcome.rejected) == (tuple(source.lemmas), {})

    @pytest.mark.parametrize("factor", [2, -1])
    def test_wrong_factors_and_signs_are_rejected(self, factor):
        names = "attention", "margins"
        held = {k: v for name in names for k, v in _decided(name).items()}
        slopes = [x for x in held.values() if x.variable is not None][::4]
        others = [x for x in held.values() if x.variable is None and x.left != x.right][:3]
        assert len(slopes + others) >= 7
        lemmas = {}
        for i, right in enumerate(slopes + others):
            wrong = Identity(right.left, factor * right.right, right.variable)
            lemmas[f"wrong_{i}"] = coq._lemma(f"wrong_{i}", "wrong", wrong)
        outcome = coq.check(coq.Source(source_of(a=SAME).header, lemmas))
        assert list(outcome.rejected) == list(lemmas)

    def test_wrong_identities_are_rejected_and_the_rest_is_accepted(self):
        source = source_of(first=SAME, ratio=RATIO, odd=ODD, last=NESTED)
        changed = dict(source.lemmas)
        changed["identity_2"] = changed["identity_2"].replace(" =\n", " = 1 +\n")
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


class TestSumsOverSets:
    """Lemmas about any number of sets, which follow the identities of one set."""

    @pytest.mark.slow
    def test_follow_the_identities(self):
        source = catalogue.CATALOGUE.coq_source("excess")
        *_, (name, text) = source.lemmas.items()
        printed = re.findall(r"^Print Assumptions (\w+)\.", text, re.M)
        assert (printed, name) == (["increment_of_sum", "affine_sum"], "affine_sum")
        assert source.titles[name] == "all lemmas of all_sets.v"
        assert not re.search(r"\b(Admitted|admit|Axiom|Parameter)\b", text)

    @pytest.mark.slow
    @pytest.mark.usefixtures("installed")
    def test_accepted_after_the_identities(self, capsys):
        assert main(["derive", "excess", "--format", "coq", "--check"]) == 0
        printed = capsys.readouterr().out
        assert "affine_sum: all lemmas of all_sets.v" in printed
        assert "not accepted" not in printed

    @pytest.mark.slow
    @pytest.mark.usefixtures("installed")
    def test_accepted(self):
        outcome = coq.check(coq.of_file(ALL_SETS))
        assert (outcome.accepted, outcome.rejected) == (("all_sets",), {})

    @pytest.mark.slow
    @pytest.mark.usefixtures("installed")
    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("t (g + total f sets)", "t (g - total f sets)"),
            ("t (g + total f sets)", "t (total f sets)"),
            ("C * k_0 + n x * k_1", "C * k_0 - n x * k_1"),
            ("total f sets = D * k_0 + T * k_1", "total f sets = D * k_0"),
            ("D = INR (length sets) * C", "D = 3 * C"),
        ],
    )
    def test_changed_statements_are_rejected(self, right, wrong):
        ((name, text),) = coq.of_file(ALL_SETS).lemmas.items()
        assert right in text
        outcome = coq.check(coq.Source("", {name: text.replace(right, wrong, 1)}))
        assert list(outcome.rejected) == [name]
