"""The digits of emitted kernels where logits are large, late in training, and near ties.

Trusts: the emitted expression in 60 digits; the dense reading of the same statement for what it is.
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
from tests.dynamics.theory.more_digits import with_digits

ROOM, EXAMPLES = Path(symbolic.__file__).parent, Path(examples.__file__).parent
FILES = {
    "positional": ROOM / "positional" / "stated.py",
    "masked": ROOM / "masked" / "stated.py",
    "look_up": EXAMPLES / "look_up.py",
    "teacher": EXAMPLES / "teacher.py",
}
SIZES = {
    "positional": {"D": 6, "C": 2, "q": 0.3, "nu": 0.01, "beta": 1.0, "p": 3, "kappa": 6, "tau": 1},
    "masked": {"G": 2, "C": 2, "N": 2, "M": 2, "z": 1.0},
    "look_up": {"K": 3, "N": 4},
    "teacher": {"D": 16, "K": 4, "nu": 1.0},
}
#: Order parameters of the masked theory that grow: those of a patch's own area.
_GROWS = np.array([1, -1, -1, 1, -1, 1, 1, -1, -1, 1, 1, -1])
_SOME = np.random.default_rng(0).normal(size=12)
#: States and what differs from `SIZES`: late in training, logits that overflow, nearly equal ones.
AT = [
    *(("positional", [0.3, x, -x / 2], {}) for x in (0.5, 8.0, 20.0, 40.0, 100.0)),
    ("positional", [0.3, 1e3 + 20.0, 1e3 - 10.0], {"beta": 1e3}),
    ("positional", [0.3, 1e5 + 1.0, 1e5 - 2.0], {"beta": 1e5}),
    ("positional", [0.3, 40.0, 150.0], {"beta": -100.0}),
    *(("masked", [*(_SOME + x * _GROWS)], {}) for x in (0.0, 8.0, 20.0, 40.0)),
    ("masked", [*(1e-7 * _SOME)], {}),
    ("masked", [*(np.round(8 * _SOME) / 8 + np.array([0] * 5 + [1e5] * 7))], {}),
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
    """Return the relative errors of risk and gradient of a function, and what they should be."""
    risk, gradient = mean(function, data, state, constants)
    exact, slopes = with_digits(text, constants, state, data, digits)
    result, wanted = np.array([risk, *gradient]), np.array([exact, *slopes])
    assert np.all(wanted != 0.0)
    return np.abs(result / wanted - 1.0), wanted


@pytest.mark.parametrize(("name", "state", "others"), AT)
def test_every_entry_keeps_its_digits(name, state, others):
    """Relative to the entry itself, however small it is."""
    _, text, constants, data = prepared(name, others)
    result, _ = errors(text, compiled(text, name), constants, data, state)
    assert result.max() <= 1e-13


@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-7])
def test_positional_near_a_tie_of_all_three_logits(apart):
    """dL/d gamma is of the order of the differences, a sum of terms that are not: they are lost."""
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
        ("masked", [*(_SOME + np.array([0] * 5 + [1e3] * 7))], {}),
        ("look_up", [1e5, 1e5 - 2.0], {"N": 3}),
        ("teacher", [1.0, 4e5, 4e5 - 10.0], {"D": 8, "K": 2}),
    ],
)
def test_large_logits_are_those_of_the_full_model(name, state, others):
    theory, text, constants, data = prepared(name, others)
    at = dict(zip([order.name for order in theory.orders], state))
    full = FullModel(theory, theory.checked(SIZES[name] | others))
    risk, gradient = full.dense.evaluate(full.embed(at))
    wanted = [value for value, _, _ in full.mean(gradient).values()]
    result = mean(compiled(text, name), data, state, constants)
    close(result[0], risk, rel=1e-10)
    within(result[1], wanted, absolute=1e-10 * np.abs(wanted).max())


def test_without_the_largest_score_it_overflows():
    _, text, constants, data = prepared("look_up", {})
    plain = text.replace("_raised(", "(lambda score, top: _math.exp(score))(")
    assert plain != text
    close(
        mean(mean_function(plain, "it"), data, [1.0, 0.5], constants)[0],
        mean(mean_function(text, "it"), data, [1.0, 0.5], constants)[0],
        rel=1e-14,
    )
    with pytest.raises(OverflowError):
        mean(mean_function(plain, "it"), data, [1e3, 0.0], constants)


@pytest.mark.parametrize("plain", [True, False])
def test_a_score_that_is_no_number_stays_none(plain):
    raised, highest = functions.raised, functions.highest
    if plain:
        raised, highest = plain_python(raised), plain_python(highest)
    assert np.isnan(raised(np.nan, 1.0))
    assert np.isnan(raised(np.inf, np.inf))
    assert np.isnan(highest(1.0, np.nan, 3.0))
    assert highest(0.0, 5.0, 3.0) == 3.0
    assert highest(2.0, 5.0, -np.inf) == 5.0
    assert raised(7.0, 1.0) == 1.0  # of a score that no element has


def test_only_scores_of_elements_that_there_are_count():
    """The largest score of any kind would leave nothing of the others: 0 / 0."""
    _, text, constants, data = prepared("look_up", {})
    every = text.replace("_highest(", "(lambda n, score, others: max(score, others))(")
    state = [0.0, 2e3]
    assert np.isfinite(mean(mean_function(text, "it"), data, state, constants)[0])
    with pytest.raises(RuntimeWarning, match="invalid value"):
        mean(mean_function(every, "it"), data, state, constants)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda honest: lambda loss: loss,  # 1 - a, where a is nearly 1
        lambda honest: lambda x: x if has_softmax_tangent(x) else honest(x),
    ],
)
def test_without_its_mean_an_error_loses_its_digits(wrong, monkeypatch):
    """Masked: what a reconstruction misses of an area that has nearly all of the attention."""
    honest = theory_module.centred
    monkeypatch.setattr(theory_module, "centred", wrong(honest))
    text = source(load_theory(FILES["masked"]))
    _, right, constants, data = prepared("masked", {})
    state = [*(_SOME + 20.0 * _GROWS)]
    result, wanted = errors(text, mean_function(text, "it"), constants, data, state, digits=120)
    again, same = errors(right, mean_function(right, "it"), constants, data, state, digits=120)
    assert result.max() > 1e-8
    assert again.max() <= 1e-13
    close(wanted, same, rel=1e-15)


def has_softmax_tangent(x):
    return any(y.op == "softmax_tangent" for y in x.all)
