"""Messages about the missing symmetry of a loss that is given as a function."""

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

#: Orbits of a 3 x 3 matrix under simultaneous permutations of rows and columns.
ORBITS = {"Q": 1 - np.eye(3, dtype=np.int64)}


def square(weight):
    return lambda tensors: float((weight * tensors["Q"] ** 2).sum())


def swapped(Q):
    order = [1, 0, 2]
    return Q[np.ix_(order, order)]


def test_loss_that_depends_on_the_label_of_a_feature():
    Q = np.random.default_rng(0).normal(size=(3, 3))
    state, moved = {"Q": Q}, {"Q": swapped(Q)}
    require_invariant(square(1.0), state, "features (0 1)", moved)
    weight = np.diag([1.0, 2.0, 2.0])
    change = f"{square(weight)(state):.9g} becomes {square(weight)(moved):.9g}"
    with pytest.raises(ParameterError) as error:
        require_invariant(square(weight), state, "features (0 1)", moved)
    assert str(error.value) == f"the loss is not invariant under features (0 1): {change}"


def test_gradient_that_leaves_the_manifold():
    slope = np.diag([1.0, 1.0, 1.0]) - 0.5
    require_closed({"Q": slope}, ORBITS)
    require_closed({"Q": slope + 1e-12}, ORBITS)
    slope[2, 1] = -0.25
    with pytest.raises(ParameterError) as error:
        require_closed({"Q": slope}, ORBITS)
    assert str(error.value) == (
        "not closed: dL/dQ[0,1] = -0.5 but dL/dQ[2,1] = -0.25, and both belong to one order "
        "parameter"
    )
    flips = {"Q": np.where(np.eye(3) == 1, 0, -1)}
    require_closed({"Q": np.eye(3)}, flips)
    with pytest.raises(ParameterError, match=r"dL/dQ\[0,1\] = 0.1, and that entry is 0 under"):
        require_closed({"Q": np.eye(3) + 0.1 * np.eye(3, k=1)}, flips)


def test_start_that_is_not_symmetric():
    start = {"Q": np.eye(3), "v": np.array(0.3)}
    orbits = {**ORBITS, "v": np.zeros((), np.int64)}
    require_symmetric(start, orbits)
    start["Q"] = start["Q"] + 0.1 * np.eye(3, k=2)
    with pytest.raises(ParameterError) as error:
        require_symmetric(start, orbits)
    assert str(error.value) == (
        "the start is not symmetric: Q[0,2] = 0.1, its orbit's mean is 0.0167"
    )


def test_group_smaller_than_the_symmetry():
    """The loss depends on the sum of three entries only."""
    result = discover(lambda x: np.full(3, x.sum() - 1.0), np.zeros(3))
    assert too_small(result, 3) == (
        "the group is smaller than it could be: 3 orbits, but 1 suffice"
    )
    assert too_small(result, 1) == ""
