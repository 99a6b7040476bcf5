"""Output of `patchdyn derive`: every derivation in every format."""

import ast
import math
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from symbolic import catalogue, emit
from symbolic.core.proof import Proof
from symbolic.core.prose import pieces
from symbolic.positional import attention
from symbolic.positional.derivations import Derivation
from symbolic.positional.justifications import JUSTIFICATIONS
from tests.closeness import close

PROOF = Proof("A claim", {"D": 4}, 2, {"some_identity & more": 3}, ("one failed",), 1, {"fact": 2})


@cache
def rendered(name: str, format: str) -> str:
    return catalogue.render(name, format, proofs=False)


class TestNames:
    def test_all_lemmas_are_listed(self) -> None:
        lemmas = {"lemma-4.1", "lemma-4.2", "lemma-4.3", "masked-lemma-5.1", "masked-lemma-5.2"}
        assert lemmas | {"attention", "masked-reduction"} <= set(catalogue.names())
        assert tuple(catalogue.CATALOGUE) == catalogue.names()
        assert len(catalogue.CATALOGUE) == len(catalogue.names())
        assert "lemma-9.9" not in catalogue.CATALOGUE

    def test_unknown_name_is_rejected_with_the_allowed_names(self) -> None:
        with pytest.raises(ValueError, match=r"no derivation is named 'lemma-9\.9'") as error:
            catalogue.render("lemma-9.9")
        assert all(name in str(error.value) for name in catalogue.names())
        assert "\n" not in str(error.value)

    def test_unknown_format_is_rejected(self) -> None:
        with pytest.raises(ValueError, match="text, latex, python"):
            catalogue.render("attention", "html")

    def test_importing_the_catalogue_imports_no_sympy(self) -> None:
        code = "import sys, symbolic.catalogue as c; c.names(); print('sympy' in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", catalogue.names())
class TestFormats:
    def test_text(self, name: str) -> None:
        text = rendered(name, "text")
        derivation = catalogue.CATALOGUE[name]
        assert isinstance(derivation, Derivation)
        assert text.startswith(derivation.title)
        assert derivation.place in text
        assert all(f"{equation.name}" in text for equation in derivation.equations)
        assert max(map(len, text.splitlines())) <= 104

    def test_latex_is_balanced(self, name: str) -> None:
        document = rendered(name, "latex")
        opened = re.findall(r"\\begin\{(.*?)\}", document)
        closed = re.findall(r"\\end\{(.*?)\}", document)
        assert sorted(opened) == sorted(closed)
        unescaped = re.sub(r"\\[{}]", "", document)
        assert unescaped.count("{") == unescaped.count("}")
        assert document.count(r"\left") == document.count(r"\right")

    def test_latex_of_statements(self, name: str) -> None:
        document = rendered(name, "latex")
        assert "textasciicircum" not in document
        assert len(re.findall(r"(?<!\\)\$", document.replace(r"\displaystyle #1$}", ""))) % 2 == 1
        statement = catalogue.CATALOGUE[name].statement
        assert "".join(piece.source for piece in pieces(statement)) == statement

    def test_python_runs(self, name: str) -> None:
        """All functions of the printed module return finite numbers at a generic point."""
        if name.endswith("kernels"):
            assert rendered(name, "python") == emit.source(
                emit.TARGETS[0 if name == "kernels" else -1]
            )
            return
        source = rendered(name, "python")
        functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        namespace: dict[str, object] = {}
        exec(compile(source, name, "exec"), namespace)
        for function in functions:
            arguments = {a.arg: GENERIC.get(a.arg, 0.5) for a in function.args.args}
            value = namespace[function.name](**arguments)  # type: ignore[operator]
            assert math.isfinite(value), function.name

    @pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
    def test_latex_compiles(self, name: str, tmp_path: Path) -> None:
        document = tmp_path / "derivation.tex"
        document.write_text(rendered(name, "latex"), encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", document.name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Overfull" not in done.stdout
        assert document.with_suffix(".pdf").exists()


GENERIC = {"D": 12, "C": 3, "p": 3, "T": 4, "R": 1, "a": 1, "b": 0, "s": 1, "n": 1, "tau": 1.3}


class TestJustifications:
    @pytest.mark.parametrize("name", JUSTIFICATIONS)
    def test_all_equations_have_a_justification(self, name: str) -> None:
        shown = [equation.name for equation in catalogue.CATALOGUE[name].equations]
        assert sorted(JUSTIFICATIONS[name]) == sorted(shown)
        text = " ".join(rendered(name, "text").split())
        assert text.count("[by definition]") + text.count("[decided: ") == len(shown)
        assert rendered(name, "latex").count(r"\emph{[") == len(shown)

    @pytest.mark.slow
    @pytest.mark.no_cover  # tracing slows SymPy 2.4 times; claims and other tests run these proofs
    def test_justifications_are_proved_identities(self) -> None:
        proofs = {name: catalogue.CATALOGUE[name].prove() for name in JUSTIFICATIONS}
        assert all(proof.all_zero for of_name in proofs.values() for proof in of_name)
        proved = {
            name: {identity for proof in of_name for identity in proof.identities}
            for name, of_name in proofs.items()
        }
        for name, equations in JUSTIFICATIONS.items():
            for equation, identities in equations.items():
                for identity in identities:
                    other, _, rest = identity.partition(": ")
                    if other in proved:
                        assert rest in proved[other], (name, equation)
                    else:
                        assert identity in proved[name], (name, equation)

    def test_definitions(self) -> None:
        definitions = {
            (name, label) for name, of in JUSTIFICATIONS.items() for label in of if not of[label]
        }
        weights = {("attention", label) for label in ("Lambda", "Gamma", "Xi", "G")}
        assert definitions == weights | {("full-model", label) for label in ("S_ij", "O_i", "F")}

    def test_order_of_the_argument(self) -> None:
        order = "full-model symmetry lemma-4.2 attention margins lemma-4.1 lemma-4.3 excess"
        assert list(catalogue.names())[:8] == order.split()


def test_notes_of_lemma_4_3_define_h_and_k() -> None:
    text, document = (" ".join(rendered("lemma-4.3", x).split()) for x in ("text", "latex"))
    assert "decided for every number of sets D/C" in text
    for parameter in ("alpha", "gamma", "rho"):
        assert f"h_{parameter}(a, b, T) is the share of a random set of type (a, b)" in text
        assert f"k_{parameter}(s) = d act(O)/d {parameter} of a patch with coefficient s" in text
        assert (
            rf"$k_{{\{parameter}}}(s) = d \mathrm{{act}}(O)/d \{parameter}$ of a patch" in document
        )


def test_exported_python_functions() -> None:
    namespace: dict[str, object] = {}
    exec(rendered("attention", "python"), namespace)
    arguments = {"C": 2, "D": 8, "beta": 1.0, "gamma": 0.2, "rho": -0.03, "tau": 1.3}
    Lambda, Gamma, Xi = (namespace[str(x)](**arguments) for x in attention.WRITTEN_OUT)  # type: ignore[operator]
    close(Lambda + Gamma + 6 * Xi, 1.0, rel=1e-15)
    close(Lambda / Gamma, math.exp(0.8 / 1.3), rel=1e-14)


def test_proofs_are_printed() -> None:
    text = catalogue.render("attention")
    assert "9 exact identities at 6 random rational points, all zero" in text
    document = catalogue.render("attention", "latex")
    assert r"\item rows of $S$ sum to 1: 1" in document


def test_failures_are_printed() -> None:
    from symbolic.core import printing

    derivation = catalogue.CATALOGUE["attention"]
    assert "FAILS: one failed" in printing.text(derivation, [PROOF])
    document = printing.latex(derivation, [PROOF])
    assert "1 of 3 identities" in document
    assert r"some\_identity \& more: 3" in document
