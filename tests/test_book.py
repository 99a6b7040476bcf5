"""Generated pages of the book, its formulas and its links."""

import importlib
import importlib.util
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from simulations import theories
from simulations.reproduction.folder import StoredReport
from simulations.reproduction.registry import load
from symbolic import catalogue
from tests.simulations.fakes import claim, figure, run

DOCS = Path(__file__).parents[1] / "notebooks" / "book"


def _module(name):
    """Import a module of the book, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def chapters():
    return _module("chapters")


@pytest.fixture(scope="module")
def mathml():
    return _module("mathml")


@pytest.fixture
def report(tmp_path):
    """Return a report with one claim whose result is invented."""
    real = load("li-reduction")
    invented = replace(claim(real.id, figures=[figure()], finding="It is so."), paper=real.paper)
    run(tmp_path / "report", [invented], quick=True)
    return StoredReport.read(tmp_path / "report")


def test_a_chapter_contains_derivations_parameters_and_claims(chapters, report, tmp_path):
    text = chapters.chapter("shallow", report, tmp_path)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    derivations = catalogue.Catalogue(("symbolic.shallow",))
    equations = sum(len(derivation.equations) for derivation in derivations.values())
    assert text.count("\n$$\n") == 2 * equations
    assert all(f"`{name}`" in text for name in derivations)
    assert set(theories.submodule("shallow", "claims").CLAIMS) <= set(headings)
    theory = theories.load("shallow")
    for quantity in (*theory.parameters, *theory.outcomes):
        assert f"`{quantity.name}`\n: " in text
    assert text.count("**holds**: It is so.") == 1
    assert (tmp_path / "line.png").read_bytes() == report.bytes_of(report.image_path("line"))


def test_markdown_escapes_special_characters(chapters):
    assert chapters.markdown("alpha* of A_ij, *so* `x_y`: 5 [a] leading_rho_over_gamma") == (
        r"$\alpha^{*}$ of $A_{ij}$, *so* `x_y`: 5 \[a\] leading\_rho\_over\_gamma"
    )


def test_every_page_is_in_the_book(chapters, tmp_path):
    """The tables of contents list the written pages and the folders of generated ones."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert all(re.search(rf"^{page}$", index, re.MULTILINE) for page in pages)
    assert {"made/theories/*", "made/notebooks/*", "made/contributing"} <= set(index.split())
    shutil.rmtree(tmp_path)


class TestFormulas:
    """Formulas are MathML, so that pages need no scripts and no network."""

    def test_every_formula_converts_to_mathml(self, chapters, mathml, tmp_path):
        texts = [chapters.chapter("shallow", None, tmp_path)]
        texts += [page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")]
        for notebook in DOCS.parent.glob("*.ipynb"):
            cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
            texts += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        text = "\n\n".join(re.sub(r"`[^`]+`", "", text) for text in texts)
        formulas = re.findall(r"\$\$(.+?)\$\$|\$([^$]+?)\$", text, re.DOTALL)
        assert len(formulas) > 500
        for block, inline in formulas:
            assert mathml.mathml(block or inline, block=bool(block)).startswith("<math")

    def test_an_unknown_command_raises(self, mathml):
        with pytest.raises(ValueError, match="unheardof"):
            mathml.mathml(r"a + \unheardof{b}")

    def test_pages_load_no_external_scripts(self):
        conf = (DOCS / "conf.py").read_text(encoding="utf-8")
        assert 'html_math_renderer = "mathml"' in conf
        assert "mathjax" not in conf


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ('<a href="other.html#here">', ""),
        ('<a href="https://example.org/page">', ""),
        ('<a href="#top">', ""),
        ('<a href="other.html#gone">', "names no anchor"),
        ('<a href="gone.html">', "leads to no page"),
        ('<script src="https://example.org/a.js">', "is loaded from another site"),
        ('<link href="//example.org/a.css">', "is loaded from another site"),
        ('<img src="gone.png">', "leads to no page"),
    ],
)
def test_bad_links_are_reported(tmp_path, link, fault):
    (tmp_path / "index.html").write_text(f'<p id="top">{link}</p>')
    (tmp_path / "other.html").write_text('<p id="here">')
    messages = _module("check_links").faults(tmp_path)
    assert [fault in message for message in messages] == ([True] if fault else [])


@pytest.mark.parametrize(
    "package",
    [
        "patchdyn",
        "dynamics",
        "dynamics.empirical",
        "dynamics.full",
        "dynamics.masked",
        "dynamics.shallow",
        "symbolic.theory",
        "simulations.falsify",
        "simulations.strategies",
        "simulations.validated",
    ],
)
def test_the_reference_lists_every_public_name(package):
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   (\w+)$|autoclass:: [\w.]+\.(\w+)|`(\w+)`", page, re.MULTILINE))
    names = {name for match in listed for name in match}
    public = set(importlib.import_module(package).__all__)
    assert public - names <= {"MAX_PATTERNS"}
