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
from pathlib import Path

import sympy as sp

from symbolic.core import zero
from symbolic.core.proof import Proof
from symbolic.core.symbols import p

_PRELUDE = """\
Require Import Reals.
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
Ltac nonzero := repeat split; try (apply pow_nonzero); first [ assumption | from_premise | discrR ].
"""

#: Seconds for each command of a proof.
TIMEOUT = 120
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
        Mapping from names to statements with proofs, each followed by ``Print Assumptions``.
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
        return "\n".join([self.header, *self.lemmas.values()])


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
    """Return one lemma for each expression that was found to vanish.

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
        left_out += [
            f"{identity}: compared at chosen sizes or over sums"
            for identity in proof.identities
            if identity not in {name for name, _ in proof.decided}
        ]
        for identity, expression in proof.decided:
            if expression == 0:
                left_out.append(f"{identity}: both sides are one expression to SymPy")
                continue
            name = f"identity_{len(lemmas) + 1}"
            try:
                lemmas[name], titles[name] = _lemma(name, identity, expression), identity
            except NotExportableError as error:
                left_out.append(f"{identity}: {error}")
    comments = "".join(f"(* Not exported: {_comment(line)} *)\n" for line in left_out)
    header = f"(* {_comment(title)} *)\n\n{_PRELUDE.replace('TIMEOUT', str(TIMEOUT))}\n{comments}"
    return Source(header, lemmas, titles, tuple(left_out))


def _comment(text: str) -> str:
    return text.replace("(*", "( *").replace("*)", "* )").replace('"', "''")


class _Writer:
    """Write expressions as terms of Coq; collect variables, denominators, unknowns f^(2 m)."""

    def __init__(self) -> None:
        self.variables: dict[sp.Symbol, str] = {}
        self.denominators: dict[str, sp.Expr] = {}
        self.unknowns: dict[sp.Expr, sp.Symbol] = {}

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

    def term(self, x: sp.Expr) -> str:
        """Return a term of type R."""
        if x.is_Integer:
            return str(x) if x >= 0 else f"(- {-x})"
        if x.is_Rational:
            return f"({self.term(sp.Integer(x.p))} / {x.q})"
        if x.is_Symbol:
            return self.variable(x)
        if x.is_Add or x.is_Mul:
            return f"({(' + ' if x.is_Add else ' * ').join(map(self.term, x.args))})"
        if x.is_Pow:
            return self.power(x.base, x.exp)
        raise NotExportableError(f"{x.func.__name__} is no rational function")

    def power(self, base: sp.Expr, exponent: sp.Expr) -> str:
        """Return a power whose exponent is an integer, or linear in p with integer coefficients."""
        if exponent.is_Integer:
            return self.whole_power(base, int(exponent))
        factors = [self.whole_power(x, count) for x, count in self.odd_power(base, exponent)]
        return f"({' * '.join(factors)})" if factors else "1"

    def odd_power(self, base: sp.Expr, exponent: sp.Expr) -> list[tuple[sp.Expr, int]]:
        """Return base^(k p + j), p = 2 m + 3, as factors with integer exponents.

        A factor f of the base contributes its unknown f^(2 m) to the power k, and f^(3 k + j).
        """
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
                if factor != -1:
                    unknown = self.unknowns.setdefault(
                        factor, sp.Symbol(f"power_{len(self.unknowns) + 1}")
                    )
                    result.append((unknown, total * int(times_p)))
                result.append((factor, total * int(3 * times_p + rest)))
        return result

    def whole_power(self, base: sp.Expr, exponent: int) -> str:
        """Return a power with an integer exponent; note the base if it is a denominator."""
        term = self.term(base)
        if exponent < 0 and not base.is_Number:
            numerator = sp.fraction(sp.together(self.rational(base)))[0]
            same = numerator in (base, -base) or base.is_Symbol
            self.denominators[term if same else self.term(numerator)] = numerator
        power = term if abs(exponent) == 1 else f"{term} ^ {abs(exponent)}"
        return f"(/ {power})" if exponent < 0 else f"({power})"

    def rational(self, x: sp.Expr) -> sp.Expr:
        """Return an expression with unknowns in place of powers b^(k p + j)."""
        return x.replace(
            lambda part: part.is_Pow and not part.exp.is_Integer,
            lambda part: sp.Mul(*(y**n for y, n in self.odd_power(part.base, part.exp))),
        )


def _lemma(name: str, identity: str, expression: sp.Expr) -> str:
    """Return the lemma that an expression vanishes, with a comment on its premises."""
    writer = _Writer()
    term = writer.term(expression)
    premises = "".join(f"  {x} <> 0 ->\n" for x in writer.denominators)
    variables = f"forall {' '.join(writer.variables.values())} : R,\n" if writer.variables else ""
    tactic = "field; nonzero" if writer.denominators or "/" in term else "ring"
    powers = (f"; {writer.variables[y]} = ({x})^(2 m)" for x, y in writer.unknowns.items())
    comment = f"(* {_comment(identity)}{''.join(powers)}{_witness(writer)} *)"
    statement = f"Lemma {name} : {variables}{premises}  {term} = 0."
    proof = f"Proof. intros; {tactic}. Qed.\nPrint Assumptions {name}.\n"
    return f"{comment}\n{statement}\n{proof}"


def _witness(writer: _Writer) -> str:
    """Return a point at which no denominator vanishes, as text; empty without denominators."""
    if not writer.denominators:
        return ""
    rng = random.Random(0)
    unknowns = {x for base in writer.denominators.values() for x in base.free_symbols}
    names = {x: writer.variables.get(x, x.name) for x in unknowns}
    for _ in range(zero.DRAWS_PER_POINT):
        point = zero.random_point(unknowns, rng)
        if all(zero.evaluate(base, point) != 0 for base in writer.denominators.values()):
            shown = ", ".join(f"{names[x]} = {value}" for x, value in point.items())
            return f"; the premises hold at {shown}"
    raise NotExportableError("no point was found at which all denominators differ from 0")


def check(source: Source) -> Outcome:
    """Run ``coqc``; leave out a rejected lemma and go on with the others.

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
    accepted: list[str] = []
    rejected: dict[str, str] = {}
    rest, printed = dict(source.lemmas), ""
    while rest:
        error, output = _compile(str(Source(source.header, rest)))
        printed += output
        names = list(rest)
        done = len(names) if error is None else _lemma_at(source.header, rest, error[0])
        accepted += names[:done]
        if error is not None:
            rejected[names[done]] = (
                f"no proof in {TIMEOUT} s" if "Timeout" in error[1] else error[1]
            )
        rest = {name: rest[name] for name in names[done + 1 :]}
    return Outcome(tuple(accepted), rejected, _assumptions(printed))


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
