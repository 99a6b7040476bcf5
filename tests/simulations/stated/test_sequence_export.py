"""Exports of theories on sequences: JAX and printed equations, compared with the kernel."""

import latex2mathml.converter
import numpy as np
import pytest

from simulations.reproduction.typeset import displayed
from symbolic.theory import Ordered, load_theory, relation
from symbolic.theory.export.printed import latex_equations
from symbolic.theory.export.sequence_latex import _comparison, _comparisons
from symbolic.theory.positions import entries
from tests.closeness import close, within
from tests.simulations.stated.sequence_values import printed
from tests.simulations.stated.test_export import jax
from tests.simulations.stated.test_sequences import (
    EVERYTHING,
    FOLDER,
    INDUCTION,
    LAWS,
    derived,
    example,
    theory_of,
)

__all__ = ["jax", "theory_of"]

EXAMPLES = {
    "bigram": {"S": 2, "stay": 0.8},
    "markov_chain": {"p": 0.2, "q": 0.3, "sign": -1},
    "statistical_induction": {"S": 2},
    "causal_structure": {"S": 2, "eps": 0.05},
}
#: Fewer positions, for sums over all sequences.
SHORT = {
    "markov_chain": [("T = 8", "T = 4")],
    "statistical_induction": [("T = 6", "T = 3")],
}


def assert_equal(result, theory, values, state):
    loss, gradient = derived(theory, values, state)
    close(float(result[0]), loss, rel=1e-12)
    within(np.asarray(result[1]), gradient, absolute=1e-12 * np.abs(gradient).max())


def assert_exported(theory, values, state):
    module = {}
    exec(compile(theory.export("jax"), "<exported>", "exec"), module)
    result = module["loss"](state, **values), module["gradient"](state, **values)
    assert_equal(result, theory, values, state)


def assert_printed(theory, values, state):
    loss, entry = printed(theory, theory.checked(values), state)
    gradient = [entry[name][0] for name in theory.order_parameters]
    assert_equal((loss, gradient), theory, values, state)
    largest = max(abs(x) for x in gradient)
    assert max(spread for _, spread, _ in entry.values()) <= 1e-12 * largest


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_jax_equals_the_kernel(name, jax):
    theory = load_theory(FOLDER / f"{name}.py")
    state = np.sin(1.0 + np.arange(len(theory.orders)))
    values = EXAMPLES[name] | ({"S": 3} if "S" in EXAMPLES[name] else {})
    for x in (state, 0.0 * state):  # equal scores: the largest is not unique
        assert_exported(theory, values, x)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [{"S": 2, "K": 1}, {"S": 5, "K": 3}])
def test_jax_has_every_operation(theory_of, sizes, jax):
    theory = theory_of(EVERYTHING.replace("LAW", LAWS[1]))
    assert_exported(theory, sizes | {"b": 0.7}, np.sin(1.0 + np.arange(len(theory.orders))))


@pytest.mark.slow
def test_jax_without_data_and_sizes(theory_of, jax):
    text = """
position = Ordered("position", 3)
A = Tensor("A", (position, position))
past = relation(lambda s, t: s < t, s=position, t=position)

def loss(A):
    weights = A["t", "s"].softmax(over="s", where=past, empty="zero")
    return (weights * relation(lambda s: s + 1, s=position) * A["t", "s"]).sum("s").sum("t")

THEORY = Theory("small", "test", sizes=(), parameters=(A,), loss=loss)
"""
    assert_exported(theory_of(text), {}, np.sin(np.arange(9.0)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_printed_equations_equal_the_kernel(theory_of, name):
    theory = theory_of(example(name, *SHORT.get(name, ())))
    assert_printed(theory, EXAMPLES[name], np.sin(1.0 + np.arange(len(theory.orders))))


def test_printed_equations_of_every_operation(theory_of):
    theory = theory_of(EVERYTHING.replace("LAW", LAWS[3]))
    state = np.sin(1.0 + np.arange(len(theory.orders)))
    assert_printed(theory, {"S": 2, "K": 1, "b": 0.7}, state)


def test_printed_equations_of_the_induction_head(theory_of):
    assert_printed(theory_of(INDUCTION), {}, np.sin(np.arange(1.0, 20.0)))


@pytest.mark.parametrize("text", [*EXAMPLES, "everything", "induction"])
def test_latex_has_no_unknown_command(theory_of, text):
    if text in EXAMPLES:
        theory = load_theory(FOLDER / f"{text}.py")
    else:
        theory = theory_of({"everything": EVERYTHING.replace("LAW", LAWS[0]),
                            "induction": INDUCTION}[text])  # fmt: skip
    rows = latex_equations(theory)
    exported = theory.export("latex").splitlines()
    assert [row.partition(" = ")[0] for row in rows] == [
        row.partition(" &= ")[0] for row in exported if " &= " in row
    ]
    for row in rows:
        assert "merror" not in latex2mathml.converter.convert(row)
        assert displayed(row).startswith('<math display="block"')


def test_latex_of_a_causal_structure():
    rows = latex_equations(load_theory(FOLDER / "causal_structure.py"))
    assert r"u^{(1)}_{c} = \sum_{t} p^{(2)}_{t} x_{t, c} + \mathrm{eps}" in rows
    assert (
        r"\bar{A}_{t, s} = p^{(1)}_{t, s} \left(\bar{p}^{(1)}_{t, s} - \sum_{s'} p^{(1)}_{t, s'} "
        r"\bar{p}^{(1)}_{t, s'}\right)" in rows
    )
    assert rows[-2:] == [
        r"\dot{B}_{m, m} = -\mathbb{E}\left[\bar{B}_{m, m}\right]",
        r"\dot{B}_{m, k} = -\mathbb{E}\left[\bar{B}_{m, k}\right], \quad m \neq k",
    ]


def test_fixed_entries_do_not_move(theory_of):
    rows = latex_equations(theory_of(example(
        "bigram", ('start={"diagonal": 0.1})', 'start={"diagonal": 0.1})\nW.fix("diagonal", 0.1)')
    )))  # fmt: skip
    assert [row.partition(" = ")[0] for row in rows if row.startswith(r"\dot")] == [
        r"\dot{v}_{k}",
        r"\dot{W}_{m, c'}",
    ]


POSITION = Ordered("position", 5)
RELATIONS = {
    r"s \leq t": lambda s, t, u: s <= t,
    "s < t": lambda s, t, u: s < t,
    "t = s + 1": lambda s, t, u: t == s + 1,
    "s = t, u = 3": lambda s, t, u: s == t and u == 3,
    "s = t + u": lambda s, t, u: s - t == u,
    r"s \leq u, u \leq 3": lambda s, t, u: s <= u < 4,
    r"t \geq s + 2": lambda s, t, u: t >= s + 2,
    r"s \leq t + 1": lambda s, t, u: s <= t + 1,
    "": lambda s, t, u: True,
}


@pytest.mark.parametrize("text", RELATIONS)
def test_a_relation_is_described_by_comparisons(text):
    array = relation(RELATIONS[text], s=POSITION, t=POSITION, u=POSITION).detail
    terms = _comparisons(array)
    assert ", ".join(_comparison(term, "stu") for term in terms) == text
    for row, value in zip(entries(array.axes), array.values):
        sums = [(sum(x * y for x, y in zip(signs, row)), most, name) for signs, most, name in terms]
        assert value == all(x == most if name == "=" else x <= most for x, most, name in sums)


def test_other_relations_are_matrices():
    for rule in (lambda s, t: s != t, lambda s, t: 2 * (s < t), lambda s, t: (s + t) % 2):
        assert _comparisons(relation(rule, s=POSITION, t=POSITION).detail) is None
