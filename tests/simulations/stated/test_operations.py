"""Softmax over several indices, cross-entropy, |x| and max(x, 0).

Trusts: the full model, which has separate rules for these operations, and formulas in NumPy.
"""

import math
from itertools import product

import numpy as np
import pytest

from dynamics.theory import functions
from dynamics.theory.data import orbits
from dynamics.theory.kernel import mean, mean_function
from dynamics.theory.pairs import columns, with_errors
from simulations.stated.check import agreement
from simulations.stated.full import FullModel
from simulations.stated.law import law
from symbolic.theory.source import source
from tests.closeness import close
from tests.dynamics.theory.high_precision import high_precision_mean
from tests.simulations.stated.agreement import assert_lifted_is_dense

FILE = """\
from symbolic.theory import *
n, m = Size("n", least=2), Size("m", least=2)
token = Exchangeable("token", n); word = Exchangeable("word", m)
A = Tensor("A", (token, token), start=0.3); w = Tensor("w", start=0.2)
B = Tensor("B", (token, word), start=0.1)
s = Colouring("s", token, {1: 0.25, -1: 0.75})
def loss(A, B, w, s):
    return LOSS
THEORY = Theory("words", "none", sizes=(n, m), parameters=(A, B, w), data=Data(s), loss=loss)
"""
LOSSES = {
    "two indices": '((w * A["i", "j"] * s["j"]).softmax(over=("i", "j")) * s["i"] * A["i", "j"])'
    '.sum("i").sum("j").tanh() + (0 * B["i", "k"]).sum("i").sum("k")',
    "three indices": '((A["i", "j"] * s["j"] + B["i", "k"] * w).softmax(over=("k", "i", "j"))'
    ' * s["i"] * A["j", "i"]).sum("i").sum("j").sum("k")',
    "a free index": '((A["i", "j"] * s["j"] + B["i", "k"] * w).softmax(over=("i", "k"))'
    ' * B["i", "k"]).sum("i").sum("k").tanh().sum("j")',
    "logsumexp": '(A["i", "j"] * s["j"] * w + B["i", "k"]).logsumexp(("j", "k")).tanh().sum("i")',
    "logsumexp of a constant": '(w + 0 * s["j"]).logsumexp("j") + (A["i", "i"] * B["i", "k"] * '
    's["i"]).sum("i").sum("k")',
    "cross-entropy": '(A["i", "j"] * s["j"] + w).cross_entropy(Same(token)["i", "j"], over="j")'
    '.sum("i") + (B["i", "k"] * s["i"]).sum("i").sum("k")**2',
    "soft target": '(A["i", "j"] * w).cross_entropy((s["j"] + 1) / 2, over="j").sum("i")'
    ' + (B["i", "k"] * s["i"]).sum("i").sum("k")**2',
    "abs": '((A["i", "j"] * s["j"] - w).abs() * s["i"]).sum("i").sum("j")'
    ' + B["i", "k"].abs().sum("k").sum("i")',
    "relu": '((A["i", "j"] * s["j"] - w).relu() * s["i"]).sum("i").sum("j").tanh()'
    ' + (B["i", "k"] * s["i"]).relu().sum("k").sum("i")',
}

#: Losses whose bounds take seconds in balls.
LARGE = {"two indices", "three indices", "a free index", "logsumexp"}
LONG = LARGE | {"relu", "cross-entropy", "abs", "soft target"}


@pytest.fixture
def theory_with_loss(theory_of):
    return lambda loss: theory_of(FILE, LOSS=loss)


@pytest.mark.parametrize(
    "word",
    [pytest.param(x, marks=pytest.mark.slow if x == "two indices" else ()) for x in LOSSES],
)
def test_reduction_agrees_with_the_full_model(theory_with_loss, word):
    theory = theory_with_loss(LOSSES[word])
    assert agreement(theory).agrees
    rng = np.random.default_rng(0)
    for n, m in ((2, 2), (3, 2)):
        for _ in range(2):
            state = rng.normal(size=len(theory.orders))
            assert_lifted_is_dense(theory, {"n": n, "m": m}, state)


@pytest.mark.parametrize(
    "word", [pytest.param(x, marks=pytest.mark.slow if x in LONG else ()) for x in LOSSES]
)
def test_error_bounds_and_exports(theory_with_loss, word):
    """The exact result is within the bound, and exported modules have the same results."""
    theory, values = theory_with_loss(LOSSES[word]), {"n": 3, "m": 2}
    data, state = orbits(law(theory, values)), np.linspace(0.7, -0.4, len(theory.orders))
    function = mean_function(source(theory), theory.name)
    loss, gradient = mean(function, data, state, list(values.values()))
    bounded = with_errors(source(theory), theory.name)
    slopes, errors = np.zeros(len(state)), np.zeros(len(state))
    again, bound = bounded(state, slopes, errors, np.array([3.0, 2.0]), *columns(bounded, data))
    assert 0.0 < bound < 1e-12
    assert errors.max() < 1e-12
    close(again, loss, rel=1e-12)
    exact, exact_slopes = high_precision_mean(
        source(theory), list(values.values()), state, data, 40
    )
    assert abs(again - exact) <= bound
    assert (np.abs(slopes - exact_slopes) <= errors).all()
    module = {}
    exec(theory.export("python"), module)
    close(module["loss"](state, **values), loss, rel=1e-12)
    close(module["gradient"](state, **values), gradient, rel=1e-10)
    assert "raised" not in theory.export("text") + theory.export("latex")


def softmax_mean(scores, s):
    weights = np.exp(scores) / np.exp(scores).sum()
    return (weights * s[:, None]).sum()


def cross_entropy(scores, s):
    return -np.log(np.diag(np.exp(scores)) / np.exp(scores).sum(axis=1)).sum()


REST = ' + w * (B["i", "k"] * s["i"]).sum("i").sum("k")'


@pytest.mark.parametrize(
    ("loss", "formula"),
    [
        ('((A["i", "j"] * s["i"]).softmax(over=("i", "j")) * s["i"]).sum("i").sum("j")',
         lambda A, s: softmax_mean(A * s[:, None], s)),
        ('((A["i", "j"] * s["j"]).softmax(over=("j", "i")) * s["i"]).sum("i").sum("j")',
         lambda A, s: softmax_mean(A * s[None, :], s)),
        ('(A["i", "j"] * s["j"]).cross_entropy(Same(token)["i", "j"], over="j").sum("i")',
         lambda A, s: cross_entropy(A * s[None, :], s)),
    ],
)  # fmt: skip
def test_definitions(theory_with_loss, loss, formula):
    """Compare with the mean over all values of the data, by the definition in NumPy."""
    diagonal, other = 1.3, -0.4
    A = np.full((3, 3), other) + (diagonal - other) * np.eye(3)
    expected = 0.0
    for s in product((1, -1), repeat=3):
        probability = math.prod({1: 0.25, -1: 0.75}[x] for x in s)
        expected += probability * formula(A, np.array(s))
    state = np.array([diagonal, other, 0.0, 0.0])
    close(
        assert_lifted_is_dense(theory_with_loss(loss + REST), {"n": 3, "m": 2}, state)[0],
        expected,
        rel=1e-13,
    )


def test_cross_entropy_does_not_overflow(theory_with_loss):
    theory = theory_with_loss(LOSSES["cross-entropy"])
    values = {"n": 3, "m": 2}
    data = orbits(law(theory, values))
    state = np.zeros(len(theory.orders))
    state[0], state[1] = 2000.0, -2000.0
    function = mean_function(source(theory), theory.name)
    loss, gradient = mean(function, data, state, list(values.values()))
    assert math.isfinite(loss)
    assert loss > 1000.0
    assert np.isfinite(gradient).all()
    module = {}
    exec(theory.export("python"), module)
    close(module["loss"](state, **values), loss, rel=1e-12)
    full = FullModel(theory, values)
    named = dict(zip([order.name for order in theory.orders], state.tolist()))
    close(full.dense.evaluate(full.embed(named))[0], loss, rel=1e-12)


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        ('A["i", "j"].softmax(over=("i", "i"))', "it must be an index, or a tuple of different"),
        ('A["i", "j"].softmax(over=())', "it must be an index, or a tuple of different"),
        ('A["i", "j"].softmax(over=("i", "k"))', "softmax over 'k' is not allowed: it must be a"),
        ('A["i", "j"].cross_entropy(1, over="k")', "cross_entropy over 'k' is not allowed"),
    ],
)
def test_bad_indices(theory_with_loss, loss, sentence):
    with pytest.raises(ValueError, match=sentence):
        theory_with_loss(loss)


def test_named_start_of_a_tensor_with_a_single_orbit(theory_of):
    sentence = "all entries of w are one orbit without a name; give one number, as in start=0.1"
    with pytest.raises(ValueError, match=sentence):
        theory_of(FILE.replace("start=0.2", 'start={"near": 1}'), LOSS="w")


UNION = """\
from symbolic.theory import *
n, m = Size("n"), Size("m"); a, b = constants(a="> 0", b="real")
both = Union("both", SET("first", n), SET("second", m))
W = Tensor("W", (both, both)); g = Gaussian("g", both, variance={"first": a, "second": 2})
scale = ByPart(both, {"first": a, "second": b})
THEORY = Theory("parts", "none", sizes=(n, m), parameters=(W,), data=Data(g), loss=lambda W, g:
    ((scale["i"] * g["i"] - (W["i", "j"] * scale["j"] * g["j"]).sum("j")) ** 2).sum("i"))
"""


@pytest.mark.parametrize("family", ["Exchangeable", "Signed"])
def test_constants_of_the_parts_of_a_union(theory_of, family):
    theory = theory_of(UNION, SET=family)
    assert set(theory.free_constants) == {"a", "b"}
    state = np.random.default_rng(0).normal(size=len(theory.orders))
    values = {"n": 2, "m": 3, "a": 0.7, "b": -1.3}
    loss, _ = assert_lifted_is_dense(theory, values, state)
    if family == "Signed":  # sum_i variance_i scale_i^2 (1 - W_ii)^2
        expected = 2 * 0.7**3 * (1 - state[0]) ** 2 + 3 * 2 * 1.3**2 * (1 - state[1]) ** 2
        close(loss, expected, rel=1e-13)
    wrong = UNION.replace('"second": b', '"third": b')
    with pytest.raises(ValueError, match="it must have one number for each part of a union"):
        theory_of(wrong, SET=family)


@pytest.mark.parametrize("derivative", [functions.step, functions.sign])
def test_derivative_at_a_kink(derivative):
    assert derivative(0.0) == 0.0
    assert derivative(1e-300) == 1.0
    assert np.isnan(derivative(np.nan))
