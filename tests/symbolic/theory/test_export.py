"""Exported equations: names, sums over elements, formats."""

import re

import latex2mathml.converter
import pytest

from symbolic.theory import TheoryError, load_theory
from symbolic.theory.export.equations import equations

LOOK_UP = "simulations/stated/examples/look_up.py"
TEACHER = "simulations/stated/examples/teacher.py"


@pytest.fixture(scope="module")
def positional():
    return load_theory("symbolic/positional/stated.py")


def test_attention_reads_as_in_the_paper(positional):
    lines = positional.export("text").splitlines()
    assert "  a1 = (D - C)*exp(rho/tau) + (C - 1)*exp(gamma/tau) + exp(beta/tau)" in lines
    assert "  p2 = exp(gamma/tau)/a1" in lines
    assert "  a2 = sum_k(n[1](k) - n[-1](k))" in lines
    assert "  gamma: A[same set], D*(C - 1) entries, start 0" in lines


def test_a_sum_over_other_elements_names_the_one_left_out():
    assert "sum_l!=k(" in load_theory(LOOK_UP).export("text")
    assert r"\sum_{l \neq k}" in load_theory(LOOK_UP).export("latex")


def test_each_definition_comes_before_its_first_use(positional):
    for theory in (positional, load_theory(LOOK_UP)):
        known = set()
        own = {str(x.name).partition("(")[0] for x in equations(theory).definitions}
        for definition in equations(theory).definitions:
            used = set(re.findall(r"\b[aup]\d+\b", str(definition.value))) & own
            assert used <= known
            known.add(str(definition.name).partition("(")[0])


def test_latex_has_one_row_for_each_definition_and_output(positional):
    fragment = positional.export("latex")
    body = fragment[fragment.index(r"\begin{align*}") : fragment.index(r"\end{align*}")]
    rows = [row for row in body.split("\\\\\n") if not row.startswith("&\\qquad")]
    assert len(rows) == len(equations(positional).definitions) + 4
    assert all(row.count("&") == 1 for row in rows)
    for row in rows:
        mathematics = row.removeprefix("\\begin{align*}\n").replace("&", "")
        assert "merror" not in latex2mathml.converter.convert(mathematics)


def test_latex_states_the_flow_and_text_the_gradient():
    teacher = load_theory(TEACHER)
    assert "  dL/d c_in = -a4*v/2" in teacher.export("text").splitlines()
    assert r"\frac{d}{dt} c_{in} &= \frac{a_{4} v}{2} \\" in teacher.export("latex").splitlines()


def test_names_do_not_clash_with_those_of_the_theory(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        'n = Size("n"); (a1,) = constants(a1="> 0"); s = Exchangeable("s", n)\n'
        'A = Tensor("A", (s, s)); A.fix("diagonal", a1)\n'
        'THEORY = Theory("mine", "none", sizes=(n,), parameters=(A,), loss=lambda A: '
        '((A["i", "j"].softmax(over="j") * A["i", "j"]).sum("j") ** 2).sum("i"))\n'
    )
    names = [str(x.name) for x in equations(load_theory(path)).definitions]
    assert names
    assert "a1" not in names


def test_an_unknown_format_is_rejected():
    with pytest.raises(TheoryError, match="export = 'word' is not allowed: it must be one of text"):
        load_theory(TEACHER).export("word")
