"""Causal structure (arXiv 2402.14735): risk by hand, check values, stages and claim."""

import numpy as np
import pytest

from simulations.reproduction.predicates import Verdict
from simulations.stated.claims import causal_structure
from simulations.stated.trees import TreeRisk
from symbolic.theory import load_theory
from tests.closeness import close, within
from tests.simulations.quick import result

START = np.zeros((4, 4)), np.array([0.1, 0.0])


@pytest.fixture(scope="module")
def tree():
    return TreeRisk(3, causal_structure.TREE, 0.05)


def test_derived_loss_is_the_formula():
    theory = load_theory(causal_structure.FILE)
    assert causal_structure.difference(theory, seed=4) <= causal_structure.SAME


def test_slopes_are_derivatives(tree):
    rng = np.random.default_rng(1)
    scores, B, step = np.tril(rng.normal(size=(4, 4))), rng.normal(size=2), 1e-6
    _, by_scores, by_B = tree.value(scores, B)
    numeric = np.zeros((4, 4))
    for t, s in np.ndindex(4, 4):
        change = np.zeros((4, 4))
        change[t, s] = step
        up, down = (tree.value(scores + sign * change, B)[0] for sign in (1, -1))
        numeric[t, s] = (up - down) / (2.0 * step)
    within(by_scores, numeric, absolute=1e-9)
    slopes = [
        (tree.value(scores, B + x)[0] - tree.value(scores, B - x)[0]) / (2.0 * step)
        for x in step * np.eye(2)
    ]
    within(by_B * [3, 6], slopes, absolute=1e-9)
    assert np.abs(numeric[1:]).max() > 1e-3


def test_reference_values_of_the_stages(tree):
    """Compare with the printed digits of an independent implementation, at time 1e5."""
    first = tree.flow(*START, first=True, second=False, horizon=1e5)
    within(np.sort(tree.on_parents(first.scores[-1])), [0.997, 0.999], absolute=5e-4)
    second = tree.flow(first.scores[-1], START[1], first=False, second=True, horizon=1e5)
    within(second.loss[-1], 1.16186, absolute=5e-6)
    assert np.array_equal(second.scores[-1], first.scores[-1])
    joint = tree.flow(*START, first=True, second=True, horizon=1e5)
    within(joint.loss[-1], 1.12467, absolute=1e-5)
    assert tree.on_parents(joint.scores[-1]).max() < 0.1


def test_least_loss_is_that_of_parents_alone(tree):
    scores = np.full((4, 4), -1e3)
    for t, s in ((0, 0), (1, 0), (2, 1), (3, 3)):
        scores[t, s] = 0.0
    losses = [tree.value(scores, np.array([B, 0.0]))[0] for B in np.linspace(0.0, 3.0, 3001)]
    within(tree.least(), min(losses), absolute=1e-7)


def test_the_steepest_entry_of_another_tree_is_its_parent():
    row = causal_structure._of_gradient(3, (None, 0, 0, None, 3))
    assert (row["right"], row["children"]) == (2, 2)
    assert causal_structure.name((None, 0, 0, None, 3)) == "-00-3"


@pytest.mark.slow
def test_claim_in_short():
    outcome = result("theory-causal-structure")
    assert outcome.verdict is Verdict.FINDING
    (figure,) = outcome.measurement.figures
    close(float(figure.data["matrix"].sum()), 8.0, rel=1e-12)
