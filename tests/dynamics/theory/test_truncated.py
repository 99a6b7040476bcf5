"""Most probable data orbits, and the bound on the probability of the omitted ones.

Trusts: the enumeration of all orbits.
"""

from pathlib import Path

import numpy as np
import pytest

import symbolic
from dynamics.core.errors import ParameterError
from dynamics.theory import truncated as module
from dynamics.theory.data import count_orbits, orbits
from dynamics.theory.kernel import mean, mean_function
from dynamics.theory.truncated import truncated
from simulations.stated import examples
from simulations.stated.law import law
from symbolic.theory import load_theory
from symbolic.theory.source import source
from tests.closeness import close

LOOK_UP = Path(examples.__file__).parent / "look_up.py"
POSITIONAL = Path(symbolic.__file__).parent / "positional" / "stated.py"
MASKED = Path(symbolic.__file__).parent / "masked" / "stated.py"


@pytest.fixture(scope="module")
def laws():
    values = {"D": 16, "C": 2, "q": 0.1, "nu": 0.01, "beta": 1, "p": 3, "kappa": 1, "tau": 1}
    given = {
        LOOK_UP: {"K": 5, "N": 14},
        POSITIONAL: values,
        MASKED: {"G": 4, "C": 2, "N": 6, "M": 8, "z": 1},
    }
    return [
        law(theory, theory.checked(given[path])) for path in given for theory in [load_theory(path)]
    ]


@pytest.mark.parametrize("remainder", [1e-2, 1e-4, 1e-7])
def test_omitted_probability_is_bounded(laws, remainder):
    """The probabilities of the other orbits are exact."""
    fewer = 0
    for law_ in laws:
        every, some = orbits(law_), truncated(law_, remainder)
        assert 1.0 - some.weight.sum() <= some.remainder + 1e-14
        assert some.remainder <= remainder
        known = np.sort(every.weight)[::-1]
        for weight in some.weight:
            assert np.abs(known - weight).min() <= 1e-13 * weight
        fewer += len(some.weight) < len(every.weight)
    assert fewer >= (2 if remainder > 1e-6 else 1)


def test_tiny_remainder_omits_no_orbit(laws):
    for law_ in laws:
        every, some = orbits(law_), truncated(law_, 1e-300)
        assert len(every.weight) == len(some.weight)
        close(some.weight.sum(), 1.0, rel=1e-13)


def test_error_of_a_bounded_loss(laws):
    """The loss |attention - query|^2 / 2 is at most 1."""
    theory = load_theory(LOOK_UP)
    function = mean_function(source(theory), "look_up")
    for state in ([0.0, 0.0], [3.0, -1.0], [-4.0, 2.0]):
        exact = mean(function, orbits(laws[0]), state, [5, 14])[0]
        for remainder in (1e-2, 1e-5):
            some = truncated(laws[0], remainder)
            result = mean(function, some, state, [5, 14])[0]
            assert -1e-14 <= exact - result <= some.remainder + 1e-14


def test_sizes_beyond_enumeration():
    """Of 8e7 data orbits of the positional theory, 2,000 have probability 1 - 1e-6."""
    theory = load_theory(POSITIONAL)
    values = {"D": 64, "C": 4, "q": 1 / 32, "nu": 0.01, "beta": 1.0, "p": 3, "kappa": 1, "tau": 1}
    known = law(theory, theory.checked(values))
    assert count_orbits(known) > 5e7
    some = truncated(known, 1e-6)
    assert len(some.weight) < 3000
    assert 1e-8 < 1.0 - some.weight.sum() <= some.remainder <= 1e-6


def test_too_small_remainder_is_detected(laws, monkeypatch):
    monkeypatch.setattr(module, "ROUNDING", -0.5)  # half of the omitted probability is counted
    some = truncated(laws[1], 1e-4)
    assert 1.0 - some.weight.sum() > 0.0
    ratio = (1.0 - some.weight.sum()) / some.remainder
    monkeypatch.undo()
    again = truncated(laws[1], 1e-4)
    assert ratio > 1.5 * (1.0 - again.weight.sum()) / again.remainder


def test_rejected_input(laws, monkeypatch):
    for wrong in (0.0, 1.0, -1e-3, float("nan")):
        with pytest.raises(ParameterError, match=r"is not allowed: it must be in \(0, 1\)"):
            truncated(laws[0], wrong)
    monkeypatch.setattr(module, "MOST_ORBITS", 20)
    with pytest.raises(ParameterError, match="more than 20 data orbits are needed at remainder"):
        truncated(laws[1], 1e-6)
    theory = load_theory(LOOK_UP)
    for enumerate_orbits in (orbits, lambda known: truncated(known, 1e-3)):
        with pytest.raises(ParameterError, match="types are too many to enumerate"):
            enumerate_orbits(law(theory, {"K": 1000, "N": 1000}))
