"""Digits of emitted kernels for large logits, late in training and near ties.

Trusts: the emitted expression in 60 digits, and the full model for the expression.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import symbolic
from dynamics.core.jit import plain_python
from dynamics.theory import functions
from dynamics.theory.data import orbits
from dynamics.theory.kernel import compiled, mean, mean_function
from simulations.stated import examples
from simulations.stated.full import FullModel
from simulations.stated.law import law
from symbolic.theory import load_theory
from symbolic.theory import theory as theory_module
from symbolic.theory.source import source
from tests.closeness import close, within
from tests.dynamics.theory.high_precision import high_precision_mean

PACKAGE, EXAMPLES = Path(symbolic.__file__).parent, Path(examples.__file__).parent
FILES = {
    "positional": PACKAGE / "positional" / "stated.py",
    "masked": PACKAGE / "masked" / "stated.py",
    "look_up": EXAMPLES / "look_up.py",
    "teacher": EXAMPLES / "teacher.py",
}
SIZES = {
    "positional": {"D": 6, "C": 2, "q": 0.3, "nu": 0.01, "beta": 1.0, "p": 3, "kappa": 6, "tau": 1},
    "masked": {"G": 2, "C": 2, "N": 2, "M": 2, "z": 1.0},
    "look_up": {"K": 3, "N": 4},
    "teacher": {"D": 16, "K": 4, "nu": 1.0},
}
#: Signs of the growth of the order parameters of the masked theory.
GROWTH = np.array([1, -1, -1, 1, -1, 1, 1, -1, -1, 1, 1, -1])
RANDOM_STATE = np.random.default_rng(0).normal(size=12)
#: States, with changes of `SIZES`: late in training, logits that overflow, nearly equal logits.
STATES = [
    *(("positional", [0.3, x, -x / 2], {}) for x in (0.5, 8.0, 20.0, 40.0, 100.0)),
    ("positional", [0.3, 1e3 + 20.0, 1e3 - 10.0], {"beta": 1e3}),
    ("positional", [0.3, 1e5 + 1.0, 1e5 - 2.0], {"beta": 1e5}),
    ("positional", [0.3, 40.0, 150.0], {"beta": -100.0}),
    *(("masked", [*(RANDOM_STATE + x * GROWTH)], {}) for x in (0.0, 8.0, 20.0, 40.0)),
    ("masked", [*(1e-7 * RANDOM_STATE)], {}),
    ("masked", [*(np.round(8 * RANDOM_STATE) / 8 + np.array([0] * 5 + [1e5] * 7))], {}),
    *(("look_up", [x, -x / 2], {}) for x in (0.5, 8.0, 20.0, 40.0, 150.0)),
    ("look_up", [1e3, 1e3 - 12.0], {}),
    ("look_up", [1e5, 1e5 + 3.0], {}),
    ("look_up", [1e-7, 2e-7], {}),
    ("teacher", [1.0, 20.0, -5.0], {}),
    ("teacher", [3.99, 60.0, -20.0], {}),
    ("teacher", [1.0, 4e5, 4e5 - 10.0], {}),
]


@cache
def emitted(name):
    theory = load_theory(FILES[name])
    return theory, source(theory)


def prepared(name, others):
    theory, text = emitted(name)
    values = theory.checked(SIZES[name] | others)
    return theory, text, list(values.values()), orbits(law(theory, values))


def errors(text, function, constants, data, state, digits=60):
    """Return the relative errors of risk and gradient, and the exact values."""
    risk, gradient = mean(function, data, state, constants)
    exact, slopes = high_precision_mean(text, constants, state, data, digits)
    result, wanted = np.array([risk, *gradient]), np.array([exact, *slopes])
    assert np.all(wanted != 0.0)
    return np.abs(result / wanted - 1.0), wanted


@pytest.mark.parametrize(("name", "state", "others"), STATES)
def test_relative_error_of_every_entry(name, state, others):
    """The error is relative to the entry itself, also for tiny entries."""
    _, text, constants, data = prepared(name, others)
    result, _ = errors(text, compiled(text, name), constants, data, state)
    assert result.max() <= 1e-13


@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-7])
def test_positional_near_a_tie_of_all_three_logits(apart):
    """Slopes are as small as the differences of logits, and sums of larger terms that cancel."""
    _, text, constants, data = prepared("positional", {})
    state = [0.3, 1.0 + apart, 1.0 - 2.0 * apart]
    result, wanted = errors(text, compiled(text, "positional"), constants, data, state)
    assert result[:2].max() <= 1e-13
    assert result[2:].max() <= 1e-14 / apart
    assert 0.01 * apart < np.abs(wanted[2:]).max() < apart


@pytest.mark.parametrize(
    ("name", "state", "others"),
    [
        ("positional", [0.3, 1e5 + 1.0, 1e5 - 2.0], {"D": 4, "beta": 1e5}),
        ("masked", [*(RANDOM_STATE + np.array([0] * 5 + [1e3] * 7))], {}),
        ("look_up", [1e5, 1e5 - 2.0], {"N": 3}),
        ("teacher", [1.0, 4e5, 4e5 - 10.0], {"D": 8, "K": 2}),
    ],
)
def test_large_logits_agree_with_the_full_model(name, state, others):
    theory, text, constants, data = prepared(name, others)
    at = dict(zip([order.name for order in theory.orders], state))
    full = FullModel(theory, theory.checked(SIZES[name] | others))
    risk, gradient = full.dense.evaluate(full.embed(at))
    wanted = [value for value, _, _ in full.mean(gradient).values()]
    result = mean(compiled(text, name), data, state, constants)
    close(result[0], risk, rel=1e-10)
    within(result[1], wanted, absolute=1e-10 * np.abs(wanted).max())


def test_exponentials_overflow_without_the_largest_score():
    _, text, constants, data = prepared("look_up", {})
    plain = text.replace("_raised(", "(lambda score, top: _math.exp(score))(")
    assert plain != text
    close(
        mean(mean_function(plain, "plain"), data, [1.0, 0.5], constants)[0],
        mean(mean_function(text, "theory"), data, [1.0, 0.5], constants)[0],
        rel=1e-14,
    )
    with pytest.raises(OverflowError):
        mean(mean_function(plain, "plain"), data, [1e3, 0.0], constants)


@pytest.mark.parametrize("plain", [True, False])
def test_nan_scores(plain):
    raised, highest = functions.raised, functions.highest
    if plain:
        raised, highest = plain_python(raised), plain_python(highest)
    assert np.isnan(raised(np.nan, 1.0))
    assert np.isnan(raised(np.inf, np.inf))
    assert np.isnan(highest(1.0, np.nan, 3.0))
    assert highest(0.0, 5.0, 3.0) == 3.0
    assert highest(2.0, 5.0, -np.inf) == 5.0
    assert raised(7.0, 1.0) == 1.0  # a score without elements


def test_scores_without_elements_are_not_the_largest():
    """If they were, all weights would underflow: 0 / 0."""
    _, text, constants, data = prepared("look_up", {})
    every = text.replace("_highest(", "(lambda n, score, others: max(score, others))(")
    state = [0.0, 2e3]
    assert np.isfinite(mean(mean_function(text, "theory"), data, state, constants)[0])
    with pytest.raises(RuntimeWarning, match="invalid value"):
        mean(mean_function(every, "every"), data, state, constants)


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        lambda centred: lambda loss: loss,  # 1 - a for a near 1
        lambda centred: lambda x: x if has_softmax_tangent(x) else centred(x),
    ],
)
def test_errors_that_are_not_centred_lose_their_digits(wrong, monkeypatch):
    """Masked theory: the error of an area that receives nearly all of the attention."""
    monkeypatch.setattr(theory_module, "centred", wrong(theory_module.centred))
    text = source(load_theory(FILES["masked"]))
    _, right, constants, data = prepared("masked", {})
    state = [*(RANDOM_STATE + 20.0 * GROWTH)]
    result, wanted = errors(text, mean_function(text, "theory"), constants, data, state, digits=120)
    again, same = errors(right, mean_function(right, "theory"), constants, data, state, digits=120)
    assert result.max() > 1e-8
    assert again.max() <= 1e-13
    close(wanted, same, rel=1e-15)


def has_softmax_tangent(x):
    return any(y.op == "softmax_tangent" for y in x.all)
