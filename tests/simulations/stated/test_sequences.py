"""Theories on ordered positions: check values, full model, exact weights, proved digits."""

import re
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pytest

import patchdyn
from dynamics import ParameterError, gradient_flow
from dynamics.theory.data import count_orbits
from dynamics.theory.kernel import mean, mean_function
from dynamics.theory.sequences import States, Tokens
from simulations.stated import examples
from simulations.stated.check import compared
from simulations.stated.digits import digits
from simulations.stated.full import FullModel
from simulations.stated.law import law
from simulations.stated.runs import risk
from symbolic.theory import load_theory
from symbolic.theory.source import source
from tests.closeness import close, within

FOLDER = Path(examples.__file__).parent

#: Every operation, two exchangeable sets, three indices over tokens, a fixed orbit.
EVERYTHING = """
S, K = Size("S", least=2), Size("K", least=1)
(b,) = constants(b="> 0")
position = Ordered("position", 4)
token, head = Exchangeable("token", S), Exchangeable("head", K)
x = Words("x", position, token, LAW)
W = Tensor("W", (token, token), start=0.3)
V = Tensor("V", (position, token, token), start={"diagonal": 0.2})
V.fix("1, diagonal", b)
H = Tensor("H", (head, position), start=0.5)
R = Tensor("R", (token, token, token), start=0.1)
c = Tensor("c", start=0.7)
before = relation(lambda s, t: s < t, s=position, t=position)

def loss(W, V, H, R, c, x):
    own = (x["t", "m"] * W["m", "k"]).sum("m")
    over_tokens = (own + V["t", "k", "l"] * x["t", "l"]).softmax(over="k")
    read = (over_tokens * x["s", "k"]).sum("k")
    seen = (read.tanh() + c).softmax(over="s", where=before, empty="zero")
    heads = (H["h", "t"] * c).sigmoid().softmax(over="h")
    mixed = (heads * (H["h", "t"].abs() + H["h", "t"].relu() ** 2)).sum("h")
    out = (seen * x["s", "k"]).sum("s") + 0.1 * mixed + V.at(1, "k", "k")
    triple = (R["k", "l", "m"] * out * x["t", "l"]).sum("l").sum("k")
    logits = triple + (1 - Same(token)["m", "n"]) * V["t", "m", "n"]
    total = logits.logsumexp("n") + (c * W["m", "m"]).exp() * x["t", "m"].softplus()
    row = (total ** 2 + 1).log().cross_entropy(x.at(3, "m"), over="m")
    return (row * relation(lambda t: Fraction(1, t + 2), t=position)).sum("t")

THEORY = Theory("everything", "test", sizes=(S, K), parameters=(W, V, H, R, c), data=Data(x),
                loss=loss)
"""
LAWS = ["iid()", "polya(b)", "chain(b / (b + 2))", "tree((None, 0, 0, None), 2)"]


@pytest.fixture
def theory_of(tmp_path):
    """Return a function that loads a theory from its text."""

    def load(text):
        path = tmp_path / "mine.py"
        path.write_text(f"from fractions import Fraction\n{text}")
        return load_theory(path)

    return load


def example(name, *changes):
    """Return the text of an example file with replacements."""
    text = (FOLDER / f"{name}.py").read_text()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def derived(theory, values, state):
    """Return loss and gradient of the emitted program, as plain Python."""
    checked = theory.checked(values)
    function, data = mean_function(source(theory), theory.name), law(theory, checked).orbits()
    return mean(function, data, state, list(checked.values()))


def agreement_at(theory, values, seed=0):
    """Return the comparison with the full model at a random state."""
    checked = theory.checked(values)
    state = np.random.default_rng(seed).normal(size=len(theory.orders))
    full, data = FullModel(theory, checked), law(theory, checked).orbits()
    reduced = derived(theory, values, state)
    return compared(theory, checked, full, data, state, reduced)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("markov_chain", 4),
        ("causal_structure", 27),
        pytest.param("statistical_induction", 8, marks=pytest.mark.slow),
    ],
)
def test_examples_agree_with_the_full_model(name, most):
    check = patchdyn.load_theory(FOLDER / f"{name}.py").check()
    assert not check.miscounted
    assert len(check.derived) == most
    assert max(check.difference, check.spread) <= 1e-13


@pytest.mark.parametrize("name", ["markov_chain", "causal_structure", "statistical_induction"])
def test_examples_are_short(name):
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) <= 64


@pytest.mark.parametrize("text", LAWS)
def test_every_operation_agrees_with_the_full_model(theory_of, text):
    theory = theory_of(EVERYTHING.replace("LAW", text))
    for sizes in ({"S": 2, "K": 1}, {"S": 3, "K": 2}, {"S": 5, "K": 3}):
        check = agreement_at(theory, sizes | {"b": 0.7})
        assert check.difference <= 1e-13, sizes
        assert check.spread <= 1e-12  # of the full model: rounding in sums over all entries
        assert check.slopes


def test_check_values_of_a_markov_chain(theory_of):
    """Values of an independent implementation (B), with all the digits that it printed."""
    theory = theory_of(example("markov_chain", ("T = 8", "T = 4")))
    state = [0.7, -0.4, 0.3, 0.2]
    loss, gradient = derived(theory, {"p": 0.2, "q": 0.3, "sign": -1}, state)
    close(loss, 0.7033881962935, rel=1e-13)
    slopes = [-0.0182534732, -0.015032272, 0.0008453985, 0.1912813139]
    within(gradient, slopes, 6e-11)


def test_check_value_of_statistical_induction(theory_of):
    theory = theory_of(example("statistical_induction", ("T = 6", "T = 3")))
    loss, _ = derived(theory, {"S": 3}, [0.1, 0.8, -0.3, 0.9, -0.2])
    close(loss, 1.077860559175, rel=1e-12)


@pytest.mark.slow
def test_joint_training_ignores_the_parents():
    """At T = 4, S = 3, eps = 0.05, training both layers reaches 1.12467, below 1.16186."""
    population = risk(load_theory(FOLDER / "causal_structure.py"), S=3, eps=0.05)
    run = gradient_flow(population, horizon=1e5)
    within(run.loss[-1], 1.12467, 5e-6)


@pytest.mark.slow
def test_the_first_layer_alone_attends_to_the_parents(theory_of):
    """With the second layer at its start, more than 0.997 of the attention is on the parents."""
    start = 'start={"diagonal": 0.1})'
    fixed = f'{start}\nB.fix("diagonal", 0.1)\nB.fix("other token", 0)'
    population = risk(theory_of(example("causal_structure", (start, fixed))), S=3, eps=0.05)
    run = gradient_flow(population, horizon=1e6)
    final = dict(zip(run.order_parameters, run.states[-1]))
    for t, parent in ((1, 0), (2, 1)):
        scores = np.exp([final[f"A[{t},{s}]"] for s in range(t + 1)])
        assert scores[parent] / scores.sum() > 0.997


@pytest.mark.slow
@pytest.mark.parametrize(("p", "loss"), [(0.1, 0.325083), (0.9, 0.69315)])
def test_a_chain_is_learned_or_not(theory_of, p, loss):
    """From (e, w) = (0.02, -0.02), without attention: the bigram loss, or that of a coin."""
    changes = [
        ("T = 8", "T = 4"),
        ('x["t"] + a * mean', 'x["t"]'),
        ('    mean = (weight * x["s"]).sum("s")\n', ""),
        ("parameters=(e, w, a, c)", "parameters=(e, w, c)"),
        ("def loss(e, w, a, c, x)", "def loss(e, w, c, x)"),
        ('"e", start=0.1', '"e", start=0.02'),
        ('"w", start=0.1', '"w", start=-0.02'),
    ]
    population = risk(theory_of(example("markov_chain", *changes)), p=p, q=p, sign=-1)
    run = gradient_flow(population, horizon=1e5)
    within(run.loss[-1], loss, 5e-6)
    e, w, _ = run.states.T
    conserved = e**2 - w**2 + np.log(np.abs(w))
    within(conserved, conserved[0], 1e-6)


@pytest.mark.parametrize(
    ("size", "length", "number"), [(9, 7, 877), (8, 8, 4140), (2, 7, 64), (12, 12, 4213597)]
)
def test_numbers_of_set_partitions(size, length, number):
    tokens = Tokens("iid", size, Fraction(1), (None,) * length)
    assert tokens.count == number
    if number < 10_000:
        assert sum(1 for _ in tokens.orbits()) == number


@pytest.mark.parametrize("law", ["iid", "stay", "polya"])
@pytest.mark.parametrize("size", [2, 3, 9])
def test_weights_of_data_orbits_sum_to_one_exactly(law, size):
    tokens = Tokens(law, size, Fraction(2, 7), (None, 0, 1, 1, None, 4))
    assert sum(weight for _, _, weight in tokens.orbits()) == 1


def test_weights_of_a_chain_sum_to_one_and_are_stationary():
    states = States(5, Fraction(1, 5), Fraction(3, 10))
    rows = list(states.orbits())
    assert sum(weight for _, _, weight in rows) == 1
    for t in range(5):
        assert sum(weight for row, _, weight in rows if row[t]) == Fraction(2, 5)


def test_partitions_of_equal_probability_are_uniform_over_sequences():
    """The weight of a partition is the number of its sequences over all, S^T."""
    for labels, blocks, weight in Tokens("iid", 4, Fraction(1), (None,) * 5).orbits():
        number = np.prod([4 - i for i in range(blocks)])
        assert blocks == len(set(labels))
        assert weight == Fraction(int(number), 4**5)


def test_too_many_partitions_are_rejected(theory_of):
    theory = theory_of(example("statistical_induction", ("T = 6", "T = 12")))
    assert count_orbits(law(theory, theory.checked({"S": 2}))) == 2**12
    with pytest.raises(ParameterError, match=r"^2\.8e\+07 partitions of the positions are too"):
        law(theory, theory.checked({"S": 13})).orbits()


def test_a_remainder_is_rejected():
    with pytest.raises(
        ParameterError, match=r"remainder = 0\.1 is not allowed for a theory on ord"
    ):
        risk(load_theory(FOLDER / "causal_structure.py"), remainder=0.1, S=3, eps=0.1)


def test_the_code_does_not_grow_with_the_number_of_positions(theory_of):
    lines = [
        source(theory_of(example("statistical_induction", ("T = 6", f"T = {T}")))).count("\n")
        for T in (3, 12)
    ]
    assert lines[0] == lines[1]


@pytest.mark.slow
def test_digits_are_proved_in_ball_arithmetic(theory_of):
    theory = theory_of(example("statistical_induction", ("T = 6", "T = 4")))
    proved = digits(theory, {"S": 3}, [0.3, -0.2, 0.1, 0.4, 1.1, 0.2])
    assert not proved.failure
    assert min(proved.proved.values()) >= 13


@pytest.mark.slow
def test_error_bounds_contain_the_error(theory_of):
    """Bounds exceed the distance to the full model, which errs by rounding as well."""
    population = risk(load_theory(FOLDER / "causal_structure.py"), S=3, eps=0.05)
    state = np.sin(1.0 + np.arange(27))
    value = population.evaluate(state)
    assert 0.0 < value.bound < 1e-13
    assert np.all(value.gradient_bound < 1e-13)


@pytest.mark.slow
def test_the_jacobian_is_the_derivative_of_the_gradient():
    population = risk(load_theory(FOLDER / "markov_chain.py"), p=0.2, q=0.3, sign=1)
    state = np.array([0.7, 0.4, 0.3, 0.2])
    exact = population.jacobian(state)
    for k, direction in enumerate(np.eye(4)):
        step = 1e-5 * direction
        slope = population.gradient(state + step) - population.gradient(state - step)
        within(exact[:, k], slope / 2e-5, 1e-9)


def test_the_number_of_orbits_of_two_symbols():
    theory = load_theory(FOLDER / "markov_chain.py")
    values = theory.checked({"p": 0.2, "q": 0.3, "sign": 1})
    assert count_orbits(law(theory, values)) == sum(comb(8, k) for k in range(9))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("markov_chain", {"p": 0.2, "q": 0.3, "sign": -1}),
        pytest.param("statistical_induction", {"S": 3}, marks=pytest.mark.slow),
        ("causal_structure", {"S": 3, "eps": 0.05}),
    ],
)
def test_an_exported_module_has_the_same_numbers(name, values):
    theory, module = load_theory(FOLDER / f"{name}.py"), {}
    exec(compile(theory.export("python"), "<exported>", "exec"), module)
    state = np.sin(1.0 + np.arange(len(theory.orders)))
    loss, gradient = derived(theory, values, state)
    close(module["loss"](state, **values), loss, rel=1e-13)
    within(module["gradient"](state, **values), gradient, 1e-14)


def test_an_exported_module_imports_only_numpy():
    text = load_theory(FOLDER / "markov_chain.py").export("python")
    lines = [line for line in text.splitlines() if re.match(r"(import|from) ", line)]
    assert lines == ["import math as _math", "import numpy as _np"]


def test_the_export_as_text_names_data_and_order_parameters():
    text = load_theory(FOLDER / "statistical_induction.py").export("text")
    assert "  W[other token]: W[other token], S*(S - 1) entries, start 0\n" in text
    assert "  x: sequence over position (7), token (S)\n" in text


#: The induction head of arXiv 2511.01033 with its 19 order parameters typed as tensors, N = 2.
INDUCTION = """
N = 2
T, query = 2 * N + 1, 2 * N
position, word = Ordered("position", T), Ordered("word", 2 * N)
spell = [*range(2 * N), 2 * N - 2]
first, block, slot = Ordered("first", 3), Ordered("block", 3), Ordered("slot", 2)
a = Tensor("a", first, start=0)
b = Tensor("b", (block, slot, slot), start=0)
g = Tensor("g", (slot, slot), start=0)

def on(rule, t, s, over=position):
    return relation(rule, **{t: position, s: over})

def same(t, s):
    return on(lambda i, j: spell[i] == spell[j], t, s)

def here(t, s):
    return on(lambda i, j: i == j, t, s)

def turned(t, s):
    return on(lambda i, j: int(i == j + 1 and j % 2 == 0 and i < query)
              - int(j == i + 1 and i % 2 == 0 and j < query), t, s)

def only(expression, index, value, over):
    return (relation(lambda i: i == value, **{index: over}) * expression).sum(index)

def of_slots(entry, p, r):
    return only(only(entry, "p", p, slot), "r", r, slot)

def loss(a, b, g):
    kinds = (same, here, turned)
    score = sum(a.at(i) * kinds[i]("t", "s") for i in range(3))
    before = on(lambda t, s: s < t, "t", "s")
    A = score.softmax(over="s", where=before, empty="zero")
    made = lambda p, t, u: here(t, u) if p == 0 else A.renamed({"t": t, "s": u})
    score = 0
    for i in range(3):
        for p in range(2):
            for r in range(2):
                left = only(made(p, "c", "u"), "c", query, position)
                inner = ((left * kinds[i]("u", "w")).sum("u") * made(r, "x", "w")).sum("w")
                score = score + of_slots(b.at(i, "p", "r"), p, r) * inner
    seen = score.softmax(over="x", where=relation(lambda i: i < query, x=position))
    result = 0
    for e in range(2):
        for r in range(2):
            read = (seen * made(r, "x", "u")).sum("x")
            read = read if e else only(made(r, "c", "u"), "c", query, position)
            item = on(lambda i, k: spell[i] == k, "u", "k", word)
            result = result + of_slots(g["p", "r"], e, r) * (read * item).sum("u")
    label = relation(lambda k: k == 2 * N - 1, k=word)
    return 0.5 * ((result - label) ** 2).sum("k")

THEORY = Theory("induction in full", "Musat et al.", sizes=(), parameters=(a, b, g), loss=loss)
"""


def test_check_value_of_the_induction_head_in_full(theory_of):
    """Values of an independent implementation (C): x = sin(1..19), N = 2."""
    theory = theory_of(INDUCTION)
    loss, gradient = derived(theory, {}, np.sin(np.arange(1.0, 20.0)))
    slopes = dict(zip(theory.order_parameters, gradient))
    assert len(slopes) == 19
    close(loss, 1.32592227878, rel=1e-11)
    close(slopes["a[2]"], -0.017128173456, rel=1e-10)
    close(slopes["g[1,0]"], -0.597240467438, rel=1e-11)
    check = agreement_at(theory, {})
    assert max(check.difference, check.spread) <= 1e-13
