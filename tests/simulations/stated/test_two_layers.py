"""Two attention layers (arXiv 2511.01033): every entry, 19 order parameters, and three of them.

Three implementations share no code: matrices with every entry and rotated inputs, inner products of
tokens, and the kernel derived from simulations/stated/examples/induction.py.
"""

from pathlib import Path

import numpy as np
import pytest

from dynamics.theory import closure
from simulations.stated import examples, two_layers
from simulations.stated.findings import examine
from simulations.stated.runs import risk
from simulations.stated.two_layers import HEAD, NAMES, Entries, loss_of, slopes_of
from symbolic.theory import load_theory
from tests.closeness import close, within

FILE = Path(examples.__file__).parent / "induction.py"
IDLE = {"a2", "b5", "b6", "b9", "b10"}


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)])
def entries(request):
    return Entries(request.param)


@pytest.fixture(scope="module")
def two_pairs():
    return Entries(2)


def normal(seed, size=19):
    return np.random.default_rng(seed).normal(size=size)


def by_hand(N, a3, b2, g3):
    """Return 1/2 [(1 - g3 w)^2 + g3^2 (1 - w)^2 / (2 N - 1)]."""
    a = np.exp(a3) / (np.exp(a3) + 2 * N - 2)
    w = np.exp(b2 * a) / (np.exp(b2 * a) + 2 * N - 1)
    return 0.5 * ((1 - g3 * w) ** 2 + g3**2 * (1 - w) ** 2 / (2 * N - 1))


def test_reduction_agrees_with_the_full_model():
    result = examine(load_theory(FILE))
    assert result.agrees
    assert result.manifold.discovered == 3
    assert result.conserved == ()


@pytest.mark.parametrize("N", [2, 5, 128])
def test_three_order_parameters(N):
    """Compare derived kernel, inner products and formula."""
    population = risk(load_theory(FILE), N=N)
    for seed in range(3):
        state = 2.0 * normal(seed, 3)
        numbers = np.zeros(len(NAMES))
        numbers[[NAMES.index(name) for name in HEAD]] = state
        value = population.evaluate(state).loss
        close(value, by_hand(N, *state), rel=1e-13)
        close(value, loss_of(N, numbers).real, rel=1e-13)
        slopes = [by_hand(N, *(state + 1e-100j * e)).imag / 1e-100 for e in np.eye(3)]
        close(np.array(population.gradient(state)), np.array(slopes), rel=1e-10)
        close(np.array(slopes), slopes_of(N, numbers)[[2, 4, 17]], rel=1e-10)


def test_order_parameters_agree_with_every_entry(entries):
    for seed in range(3):
        numbers = normal(seed)
        at = entries.lift @ numbers
        close(entries.loss(at).real, loss_of(entries.N, numbers).real, rel=1e-12)
        slopes, gradient = slopes_of(entries.N, numbers), entries.gradient(at)
        within(entries.lift.T @ gradient, slopes, 1e-13 * np.abs(slopes).max())
        off = gradient - entries.lift @ slopes / entries.d  # tangential to the manifold
        assert np.abs(off).max() <= 1e-13 * np.abs(gradient).max()


def test_every_moving_order_parameter_changes_the_loss():
    """The loss does not depend on the others."""
    numbers = normal(0)
    before = loss_of(3, numbers).real
    for i, name in enumerate(NAMES):
        change = abs(loss_of(3, numbers - 2.0 * numbers[i] * np.eye(len(NAMES))[i]).real - before)
        assert (change == 0.0) == (name in IDLE), name
        assert name in IDLE or change > 1e-6, name


def test_gradient_in_every_entry(entries):
    """Compare with complex-step derivatives off the manifold."""
    at = 0.3 * normal(1, entries.size)
    gradient = entries.gradient(at)
    for seed in (2, 3):
        direction = normal(seed, entries.size)
        slope = entries.loss(at + 1e-100j * direction).imag / 1e-100
        close(gradient @ direction, slope, rel=1e-11)


def rotated(entries, at, x, p):
    """Return the entries for rotated items and positions."""
    token = np.block([[x, np.zeros_like(x)], [np.zeros_like(p), p]])
    w1, w2, w3 = entries.split(at)
    two, four = np.kron(np.eye(2), token), np.kron(np.eye(4), token)
    moved = token @ w1 @ token.T, two @ w2 @ two.T, x @ w3 @ four.T
    return np.concatenate([w.ravel() for w in moved])


def test_risk_has_the_symmetry(two_pairs):
    at = 0.3 * normal(4, two_pairs.size)
    before = two_pairs.loss(at).real
    for x, p in (two_pairs.turns[i] for i in (1, 77, 4000)):
        close(two_pairs.loss(rotated(two_pairs, at, x, p)).real, before, rel=1e-12)
    x, p = two_pairs.turns[0]
    apart = p[:, [1, 0, *range(2, two_pairs.d)]]  # exchanges positions, and does not commute with M
    assert abs(two_pairs.loss(rotated(two_pairs, at, x, apart)).real - before) > 1e-8


def test_nineteen_orbits(entries):
    assert entries.orbits == len(NAMES) == 19
    fixed = entries.fixed(normal(5, entries.size))
    inside = entries.lift @ (entries.lift.T @ fixed) / entries.d
    assert np.abs(fixed - inside).max() <= 1e-13
    assert np.abs(fixed).max() > 1e-3


def test_smaller_group_has_more_invariants(two_pairs):
    """The group without signs."""
    smaller = Entries(2)
    smaller.turns = [(x, p) for x, p in smaller.turns if x.min() >= 0.0 and p.min() >= 0.0]
    assert 0 < len(smaller.turns) < len(two_pairs.turns)
    assert smaller.orbits > 19


@pytest.mark.slow
def test_order_parameters_detected_from_the_gradient(entries):
    """From an invariant start there are 19 values, of which 14 move; from 0 12 values move."""
    start = entries.fixed(normal(6, entries.size))
    start[np.abs(start) < 1e-12] = 0.0
    result = closure.discover(entries.gradient, start)
    assert (len(result.moves), int(result.moves.sum())) == (19, 14)
    first = [int(np.flatnonzero(column)[0]) for column in entries.lift.T]
    assert {n for n, at in zip(NAMES, first) if not result.moves[result.label[at]]} == IDLE
    assert sorted(result.label[first].tolist()) == list(range(19))
    assert int(closure.discover(entries.gradient, np.zeros(entries.size)).moves.sum()) == 12


@pytest.mark.parametrize("N", [2, 3, 7])
def test_conserved_forms(N):
    slopes = np.array([slopes_of(N, normal(seed)) for seed in range(40)])
    moving = [i for i, name in enumerate(NAMES) if name not in IDLE]
    forms = closure.linear(slopes[:, moving])
    terms = {
        frozenset((NAMES[moving[i]], round(x, 9)) for i, x in enumerate(form) if x)
        for form in forms.tolist()
    }
    assert terms == {frozenset({("b3", 1.0), ("b7", -1.0)}), frozenset({("b4", 1.0), ("b8", -1.0)})}
    assert len(closure.closure(lambda x: slopes_of(N, x), np.zeros(len(NAMES)))) == 12


@pytest.mark.parametrize("wrong", ["mask", "sign of M"])
def test_wrong_implementation_is_detected(two_pairs, monkeypatch, wrong):
    numbers = normal(0)
    at = two_pairs.lift @ numbers
    if wrong == "mask":  # a token attends to itself
        softmax = two_layers._softmax
        monkeypatch.setattr(
            two_layers,
            "_softmax",
            lambda score, mask: softmax(score, np.tri(5) if np.ndim(mask) == 2 else mask),
        )
    else:
        numbers[[NAMES.index(name) for name in ("a3", "b9", "b10", "b11", "b12")]] *= -1.0
    assert abs(two_pairs.loss(at).real - loss_of(2, numbers).real) > 1e-6
