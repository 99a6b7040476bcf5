"""A loss given as a function: which symmetry it lacks, said in one sentence."""

import numpy as np
import pytest

from dynamics.core.errors import ParameterError
from dynamics.theory.closure import discover
from dynamics.theory.invariance import (
    require_closed,
    require_invariant,
    require_symmetric,
    too_small,
)

#: The orbits of a 3 x 3 matrix when rows and columns are exchanged together.
ORBITS = {"Q": 1 - np.eye(3, dtype=np.int64)}


def square(weight):
    return lambda tensors: float((weight * tensors["Q"] ** 2).sum())


def swapped(Q):
    place = [1, 0, 2]
    return Q[np.ix_(place, place)]


def test_a_loss_that_names_a_feature_is_not_invariant():
    Q = np.random.default_rng(0).normal(size=(3, 3))
    state, moved = {"Q": Q}, {"Q": swapped(Q)}
    require_invariant(square(1.0), state, "features (0 1)", moved)
    weight = np.diag([1.0, 2.0, 2.0])
    words = f"{square(weight)(state):.9g} becomes {square(weight)(moved):.9g}"
    with pytest.raises(ParameterError) as refusal:
        require_invariant(square(weight), state, "features (0 1)", moved)
    assert str(refusal.value) == f"the loss is not invariant under features (0 1): {words}"


def test_a_gradient_that_leads_away_is_not_closed():
    slope = np.diag([1.0, 1.0, 1.0]) - 0.5
    require_closed({"Q": slope}, ORBITS)
    require_closed({"Q": slope + 1e-12}, ORBITS)
    slope[2, 1] = -0.25
    with pytest.raises(ParameterError) as refusal:
        require_closed({"Q": slope}, ORBITS)
    assert str(refusal.value) == (
        "not closed: dL/dQ[0,1] = -0.5 but dL/dQ[2,1] = -0.25, and both belong to one order "
        "parameter"
    )
    flips = {"Q": np.where(np.eye(3) == 1, 0, -1)}
    require_closed({"Q": np.eye(3)}, flips)
    with pytest.raises(ParameterError, match=r"dL/dQ\[0,1\] = 0.1, and that entry is 0 under"):
        require_closed({"Q": np.eye(3) + 0.1 * np.eye(3, k=1)}, flips)


def test_a_start_that_is_not_symmetric():
    start = {"Q": np.eye(3), "v": np.array(0.3)}
    orbits = {**ORBITS, "v": np.zeros((), np.int64)}
    require_symmetric(start, orbits)
    start["Q"] = start["Q"] + 0.1 * np.eye(3, k=2)
    with pytest.raises(ParameterError) as refusal:
        require_symmetric(start, orbits)
    assert str(refusal.value) == (
        "the start is not symmetric: Q[0,2] = 0.1, its orbit's mean is 0.0167"
    )


def test_a_group_that_is_smaller_than_it_could_be():
    """Nothing tells the three rows of a sum apart."""
    result = discover(lambda x: np.full(3, x.sum() - 1.0), np.zeros(3))
    assert too_small(result, 3) == (
        "the group is smaller than it could be: 3 orbits, but 1 suffice"
    )
    assert too_small(result, 1) == ""
