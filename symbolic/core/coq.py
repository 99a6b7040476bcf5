"""Write the identities of a derivation for the proof assistant Coq, and have it check them.

`symbolic.core.zero.decide` evaluates at random points; here the same rational identities become
lemmas that Coq's tactics ``ring`` and ``field`` prove over the real numbers. An identity with
powers b^(k p + j) holds for all odd degrees p = 2 m + 3: each factor f of b contributes f^(2 m) as
an unknown real number, so that the lemma states more than the identity. Every denominator is a
premise, and a point at which all premises hold is printed with the lemma.
"""

import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import sympy as sp

from symbolic.core import zero
from symbolic.core.identity import Identity
from symbolic.core.proof import Proof
from symbolic.core.symbols import exponential_symbol, p, tau

_PRELUDE = """\
Require Import Reals.
From Coquelicot Require Import Coquelicot.
Local Open Scope R_scope.
Set Default Timeout TIMEOUT.

(* Prove that a denominator is not 0: it equals a premise, or its negative, up to the ring laws. *)
Ltac from_premise :=
  match goal with
  | H : ?a <> 0 |- ?b <> 0 => first
      [ exact H
      | let E := fresh in intro E; apply H; replace a with b by ring; exact E
      | let E := fresh in intro E; apply H; replace a with (- b) by ring; rewrite E; ring ]
  end.
Ltac nonzero := first
  [ exact I
  | assumption
  | match goal with
    | |- _ /\\ _ => split
    | |- _ ^ _ <> 0 => apply pow_nonzero
    | |- _ * _ <> 0 => apply Rmult_integral_contrapositive_currified
    end; nonzero
  | from_premise
  | discrR ].

(* Write INR (k + 1) and powers with the exponent k + 1 in terms of INR k and of the power k. *)
Ltac degree :=
  cbn [pow Nat.pred];
  repeat match goal with
  | |- context [match ?k with O => 1 | S _ => INR ?k + 1 end] =>
      change (match k with O => 1 | S _ => INR k + 1 end) with (INR (S k))
  end;
  rewrite ?S_INR.
"""

#: Seconds for each command of a proof; on an idle machine the longest takes a few.
TIMEOUT = 600
#: Characters of a lemma. Longer ones are left out; Coq did not prove the one that was tried.
LARGEST = 20_000
_FLAGS = ("-q", "-w", "-notation-overridden,-ambiguous-paths")


class NotExportableError(ValueError):
    """An expression is no rational function of real numbers and powers b^(k p + j)."""


class CoqMissingError(RuntimeError):
    """Coq 8.16, for which the files are written, is not installed."""


@dataclass(frozen=True)
class Source:
    """A Coq file.

    Attributes
    ----------
    header
        Text before the lemmas.
    lemmas
        Mapping from names to statements with proofs.
    titles
        Mapping from names of lemmas to descriptions.
    left_out
        Descriptions of what is not exported, each with a reason.
    """

    header: str
    lemmas: dict[str, str]
    titles: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = "\n".join([self.header, *self.lemmas.values()])
        if not self.header:  # a file that prints its axioms itself
            return text
        pairs = " ".join(f"(pair {name}" for name in self.lemmas)
        every = f"Definition every_lemma := {pairs} I{')' * len(self.lemmas)}."
        return f"{text}\n{every}\nPrint Assumptions every_lemma.\n"


@dataclass(frozen=True)
class Outcome:
    """What Coq accepted.

    Attributes
    ----------
    accepted
        Names of the accepted lemmas.
    rejected
        Mapping from names of rejected lemmas to Coq's message.
    assumptions
        Axioms on which the theorems rest, sorted.
    """

    accepted: tuple[str, ...]
    rejected: dict[str, str]
    assumptions: tuple[str, ...]


def of_file(path: Path) -> Source:
    """Return the source of a Coq file, which is accepted or rejected as a whole."""
    text = path.read_text(encoding="utf-8")
    return Source("", {path.stem: text}, {path.stem: "all lemmas and theorems of the file"})


def of_proofs(title: str, proofs: Iterable[Proof]) -> Source:
    """Return one lemma for each identity that was found to hold.

    Parameters
    ----------
    title
        Title of the derivation, for the comment at the top.
    proofs
        Outcomes of its proofs.
    """
    lemmas: dict[str, str] = {}
    titles: dict[str, str] = {}
    left_out: list[str] = []
    for proof in proofs:
        reason = "over sums or matrices of any size" if proof.all_sizes else "at chosen sizes"
        left_out += [f"{x}: compared {reason}" for x in proof.identities if x not in proof.decided]
        for title_of, identity in proof.decided.items():
            name = f"identity_{len(lemmas) + 1}"
            try:
                lemmas[name], titles[name] = _lemma(name, title_of, identity), title_of
            except (NotExportableError, zero.NotRationalError) as error:
                left_out.append(f"{title_of}: {error}")
    comments = "".join(f"(* Not exported: {_comment(line)} *)\n" for line in left_out)
    header = f"(* {_comment(title)} *)\n\n{_PRELUDE.replace('TIMEOUT', str(TIMEOUT))}\n{comments}"
    return Source(header, lemmas, titles, tuple(left_out))


def _comment(text: str) -> str:
    return text.replace("(*", "( *").replace("*)", "* )").replace('"', "''")


class _Writer:
    """Write expressions as terms of Coq; collect variables, denominators, unknowns f^(2 m).

    Where an expression is differentiated in x, e^(x/tau) is written out, and so are the powers f^p
    of factors f that depend on x: then k = 2 m is a natural number, and p = k + 3.
    """

    def __init__(self, *expressions: sp.Expr, variable: sp.Symbol | None = None) -> None:
        self.variables: dict[sp.Symbol, str] = {}
        self.denominators: dict[str, sp.Expr] = {}
        self.unknowns: dict[sp.Expr, sp.Symbol] = {}
        self.moving = {variable: exponential_symbol(variable)} if variable else {}
        powers = set().union(*(expression.atoms(sp.Pow) for expression in expressions))
        self.degree = any(self.moves(power.base) and power.exp.has(p) for power in powers)
        divided = {x.base for x in powers if x.exp.is_Integer and x.exp < 0 and x.base.is_Add}
        self.forms = {sp.expand(x): x for x in sorted(divided, key=sp.default_sort_key)}

    def moves(self, x: sp.Expr) -> bool:
        """Return whether an expression depends on the variable of the derivative."""
        return bool(x.free_symbols & {*self.moving, *self.moving.values()})

    def variable(self, x: sp.Symbol) -> str:
        """Return the identifier of a symbol."""
        if x not in self.variables:
            letters = re.sub(r"\W", "_", x.name, flags=re.ASCII).strip("_") or "x"
            name, number = f"v_{letters}", 1
            while name in self.variables.values():
                number += 1
                name = f"v_{letters}_{number}"
            self.variables[x] = name
        return self.variables[x]

    def symbol(self, x: sp.Symbol) -> str:
        """Return the term of a symbol: a variable, e^(x/tau) written out, p, or a power f^k."""
        for of, exponential in self.moving.items():
            if x == exponential:
                self.denominators[self.variable(tau)] = tau
                return f"(exp ({self.variable(of)} * (/ {self.variable(tau)})))"
        if x == p and self.degree:
            return "(INR k + 3)"
        moving = [factor for factor, y in self.unknowns.items() if y == x and self.moves(factor)]
        return f"({self.term(moving[0])} ^ k)" if moving else self.variable(x)

    def term(self, x: sp.Expr) -> str:
        """Return a term of type R."""
        if x.is_Integer:
            return str(x) if x >= 0 else f"(- {-x})"
        if x.is_Rational:
            return f"({self.term(sp.Integer(x.p))} / {x.q})"
        if x.is_Symbol:
            return self.symbol(x)
        if x.is_Add or x.is_Mul:
            return f"({(' + ' if x.is_Add else ' * ').join(map(self.term, x.args))})"
        if x.is_Pow:
            return self.power(x.base, x.exp)
        raise NotExportableError(f"{x.func.__name__} is no rational function")

    def power(self, base: sp.Expr, exponent: sp.Expr) -> str:
        """Return a power whose exponent is an integer, or linear in p with integer coefficients."""
        if exponent.is_Integer:
            return self.whole_power(base, int(exponent))
        factors = [
            self.moving_power(*part) if self.moves(part[0]) else self.known_power(*part)
            for part in self.odd_power(base, exponent)
        ]
        return f"({' * '.join(factors)})" if factors else "1"

    def odd_power(self, base: sp.Expr, exponent: sp.Expr) -> list[tuple[sp.Expr, int, int]]:
        """Return base^(k p + j) as factors f^(k' p + j'), each a tuple (f, k', j')."""
        times_p, rest = exponent.coeff(p), exponent.subs(p, 0)
        linear = sp.expand(exponent - times_p * p - rest) == 0
        if not (times_p.is_Integer and rest.is_Integer and linear):
            raise NotExportableError(f"the exponent {exponent} is not an integer or linear in p")
        result = []
        for part, sign in zip(sp.fraction(sp.together(base)), (1, -1)):
            constant, powers = sp.factor_list(part)
            pieces = [(sp.Integer(-1), 1)] if constant < 0 else []
            pieces += [(x, s) for x, s in ((abs(constant).p, 1), (abs(constant).q, -1)) if x != 1]
            for x, count in [*pieces, *powers]:
                factor, total = sp.sympify(x, strict=True), sign * count
                factor = self.forms.get(factor, factor)
                result.append((factor, total * int(times_p), total * int(rest)))
        return result

    def unknown(self, factor: sp.Expr) -> sp.Symbol:
        """Return the symbol that stands for f^(2 m)."""
        name = f"power_{len(self.unknowns) + 1}"
        return self.unknowns.setdefault(factor, sp.Symbol(name))

    def split_power(self, factor: sp.Expr, times_p: int, rest: int) -> list[tuple[sp.Expr, int]]:
        """Return f^(k p + j) as powers with integer exponents of f^(2 m) and of f."""
        odd = [] if factor == -1 else [(self.unknown(factor), times_p)]
        return [*odd, (factor, 3 * times_p + rest)]

    def known_power(self, factor: sp.Expr, times_p: int, rest: int) -> str:
        """Return f^(k p + j), in which f^(2 m) is an unknown."""
        split = self.split_power(factor, times_p, rest)
        return " * ".join(self.whole_power(x, count) for x, count in split)

    def moving_power(self, factor: sp.Expr, times_p: int, rest: int) -> str:
        """Return f^(k p + j) for a factor that depends on the variable of the derivative."""
        sign = 1 if times_p > 0 else -1
        least = max(3 + sign * rest, 0) if abs(times_p) == 1 else 3
        term = self.term(factor)
        power = f"({term} ^ ({'S (' * least}k{')' * least}))"
        if abs(times_p) > 1:
            power = f"({power} ^ {abs(times_p)})"
        if sign < 0:
            self.divide(factor)
            power = f"(/ {power})"
        rest += 3 * times_p - sign * least * abs(times_p)
        return f"{power} * {self.whole_power(factor, rest)}" if rest else power

    def whole_power(self, base: sp.Expr, exponent: int) -> str:
        """Return a power with an integer exponent; note the base if it is a denominator."""
        term = self.term(base)
        if exponent < 0 and not base.is_Number:
            self.divide(base)
        power = term if abs(exponent) == 1 else f"{term} ^ {abs(exponent)}"
        return f"(/ {power})" if exponent < 0 else f"({power})"

    def divide(self, base: sp.Expr) -> None:
        """Note that an expression is not 0; the numerator, if it is a quotient itself."""
        numerator = base
        if not base.is_Symbol:
            numerator = sp.fraction(sp.together(self.rational(base)))[0]
            numerator = base if numerator in (base, -base) else numerator
        known = {sp.expand(sign * x) for x in self.denominators.values() for sign in (1, -1)}
        if sp.expand(numerator) not in known:
            self.denominators[self.term(numerator)] = numerator

    def rational(self, x: sp.Expr) -> sp.Expr:
        """Return an expression with unknowns in place of powers b^(k p + j)."""

        def split(part: sp.Expr) -> sp.Expr:
            factors = self.odd_power(part.base, part.exp)
            return sp.Mul(*(y**n for factor in factors for y, n in self.split_power(*factor)))

        return x.replace(lambda part: part.is_Pow and not part.exp.is_Integer, split)


def _lemma(name: str, title: str, identity: Identity) -> str:
    """Return the lemma of an identity, with a comment on its premises."""
    left, right = map(zero.rationalize, (identity.left, identity.right))
    if identity.variable is None and left == right:
        raise NotExportableError("both sides are the same expression as written")
    writer = _Writer(left, right, variable=identity.variable)
    if identity.variable is None:
        terms = writer.term(left), writer.term(right)
        statement = f"  {terms[0]} =\n  {terms[1]}."
        tactic = "field; nonzero" if writer.denominators or "/" in "".join(terms) else "ring"
    else:
        at = writer.variable(identity.variable)
        terms = writer.term(left), writer.term(right)
        statement = f"  is_derive (fun {at} => {terms[0]}) {at}\n  {terms[1]}."
        tactic = "auto_derive; [nonzero | degree; field; nonzero]"
    premises = "".join(f"  {x} <> 0 ->\n" for x in writer.denominators)
    names = " ".join(writer.variables.values())
    binders = ("(k : nat) " * writer.degree + f"({names} : R)" * bool(names)).strip()
    powers = (
        f"; {writer.variables[y]} = ({x})^(2 m)"
        for x, y in writer.unknowns.items()
        if y in writer.variables
    )
    degree = "; k = 2 m" * writer.degree
    comment = f"(* {_comment(title)}{degree}{''.join(powers)}{_witness(writer)} *)"
    forall = f"forall {binders},\n" if binders else ""
    lemma = f"Lemma {name} : {forall}{premises}{statement}\nProof. intros; {tactic}. Qed.\n"
    if len(lemma) > LARGEST:
        raise NotExportableError(f"the lemma would have more than {LARGEST} characters")
    return f"{comment}\n{lemma}"


def _witness(writer: _Writer) -> str:
    """Return a point at which no denominator vanishes, as text; empty without denominators.

    The variable of a derivative is 0 where e^(x/tau) occurs, so that this exponential is 1.
    """
    if not writer.denominators:
        return ""
    rng = random.Random(0)
    unknowns = {x for base in writer.denominators.values() for x in base.free_symbols}
    given = {y: Fraction(1) for y in writer.moving.values() if y in unknowns}
    given |= {x: Fraction(0) for x, y in writer.moving.items() if y in given}
    names = {x: writer.variables.get(x, x.name) for x in unknowns}
    for _ in range(zero.DRAWS_PER_POINT):
        point = zero.random_point(unknowns, rng) | given
        if all(zero.evaluate(base, point) != 0 for base in writer.denominators.values()):
            hidden = writer.moving.values()
            shown = (
                f"{names.get(x, writer.variables.get(x))} = {value}"
                for x, value in point.items()
                if x not in hidden
            )
            return f"; the premises hold at {', '.join(shown)}"
    raise NotExportableError("no point was found at which all denominators differ from 0")


def check(source: Source) -> Outcome:
    """Run ``coqc``, each time without the first lemma that it rejects.

    Parameters
    ----------
    source
        The Coq file.

    Raises
    ------
    CoqMissingError
        If Coq 8.16 is not installed.
    """
    require_coq()
    rejected: dict[str, str] = {}
    rest = dict(source.lemmas)
    while rest:
        error, printed = _compile(str(Source(source.header, rest)))
        if error is None:
            return Outcome(tuple(rest), rejected, _assumptions(printed))
        name = list(rest)[_lemma_at(source.header, rest, error[0])]
        rejected[name] = f"no proof in {TIMEOUT} s" if "Timeout" in error[1] else error[1]
        del rest[name]
    return Outcome((), rejected, ())


def require_coq() -> None:
    """Raise `CoqMissingError` unless ``coqc`` is version 8.16; MathComp 2 of later ones differs."""
    problem = "no coqc is installed"
    if shutil.which("coqc"):
        done = subprocess.run(["coqc", "--version"], capture_output=True, text=True, check=False)
        version = re.search(r"version ([\d.]+)", done.stdout)
        problem = f"coqc is version {version[1]}" if version else "coqc --version prints no number"
        if version and version[1].startswith("8.16"):
            return
    raise CoqMissingError(
        f"--check needs Coq 8.16 with Coquelicot and MathComp 1, but {problem}; on Debian 12:"
        " apt-get install coq libcoq-coquelicot libcoq-mathcomp-ssreflect libcoq-mathcomp-fingroup"
    )


def _compile(text: str) -> tuple[tuple[int, str] | None, str]:
    """Return the line and message of the first error, if any, and what Coq printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "patchdyn_check.v")
        path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["coqc", *_FLAGS, path.name], cwd=folder, capture_output=True, text=True, check=False
        )
    if done.returncode == 0:
        return None, done.stdout
    match = re.search(r"line (\d+), characters [\d-]+:\nError:(.*)", done.stderr, re.DOTALL)
    if match is None:
        raise RuntimeError(f"coqc ended with exit code {done.returncode}: {done.stderr[-500:]}")
    return (int(match[1]), " ".join(match[2].split())), done.stdout


def _lemma_at(header: str, lemmas: dict[str, str], line: int) -> int:
    """Return the index of the lemma that contains a line of the file."""
    end = header.count("\n") + 1
    for index, text in enumerate(lemmas.values()):
        end += text.count("\n") + 1
        if line <= end:
            return index
    raise RuntimeError(f"line {line} is behind the last lemma")


def _assumptions(printed: str) -> tuple[str, ...]:
    """Return the names of the axioms that ``Print Assumptions`` lists."""
    names = re.findall(r"^([\w.]+)\s*:", printed, re.MULTILINE)
    return tuple(sorted({name.rsplit(".", 1)[-1] for name in names} - {"Axioms"}))
