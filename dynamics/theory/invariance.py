"""Checks of the symmetry of a loss that is given as a Python function.

Losses in the language of `symbolic.theory` are invariant by construction. For a function, each
property is tested at one state, up to rounding.
"""

from collections.abc import Callable, Mapping

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.theory.closure import Integers, Partition
from dynamics.theory.data import Array

Tensors = Mapping[str, Array]
#: Numbers whose relative difference is below this are equal.
SAME = 1e-9


def require_invariant(
    loss: Callable[[Tensors], float], state: Tensors, description: str, moved: Tensors
) -> None:
    """Raise ParameterError if a group element changes the loss.

    Parameters
    ----------
    loss
        Function of a mapping from names to tensors.
    state, moved
        State off the invariant manifold, and its image under the group element.
    description
        Description of the group element, such as ``features (0 1)``.
    """
    before, after = float(loss(state)), float(loss(moved))
    if not abs(before - after) <= SAME * max(abs(before), abs(after)):
        raise ParameterError(
            f"the loss is not invariant under {description}: {before:.9g} becomes {after:.9g}"
        )


def require_closed(gradient: Tensors, orbits: Mapping[str, Integers]) -> None:
    """Raise ParameterError if the gradient at a symmetric state leads away from the manifold.

    Parameters
    ----------
    gradient, orbits
        Mappings from tensor names to the slopes and to the orbit numbers of the entries. The number
        is -1 for entries that remain 0.
    """
    largest = max((float(np.abs(slope).max(initial=0.0)) for slope in gradient.values()), default=0)
    for name, slope in gradient.items():
        for orbit in sorted(set(orbits[name].ravel().tolist())):
            own = np.argwhere(orbits[name] == orbit)
            values = slope[orbits[name] == orbit]
            low, high = int(values.argmin()), int(values.argmax())
            if orbit == -1:
                far = max(low, high, key=lambda i: abs(values[i]))
                if not abs(values[far]) <= SAME * largest:
                    raise ParameterError(
                        f"not closed: dL/d{_entry(name, own[far])} = {values[far]:.3g}, and that "
                        "entry is 0 under the group"
                    )
            elif not values[high] - values[low] <= SAME * largest:
                first, second = sorted((low, high))
                raise ParameterError(
                    f"not closed: dL/d{_entry(name, own[first])} = {values[first]:.3g} but "
                    f"dL/d{_entry(name, own[second])} = {values[second]:.3g}, and both belong to "
                    "one order parameter"
                )


def require_symmetric(start: Tensors, orbits: Mapping[str, Integers]) -> None:
    """Raise ParameterError if the group changes the initial state."""
    for name, values in start.items():
        for orbit in sorted(set(orbits[name].ravel().tolist())):
            chosen = orbits[name] == orbit
            mean = 0.0 if orbit == -1 else float(values[chosen].mean())
            far = int(np.abs(values[chosen] - mean).argmax())
            value = float(values[chosen][far])
            if not abs(value - mean) <= SAME * max(abs(value), abs(mean)):
                entry = _entry(name, np.argwhere(chosen)[far])
                raise ParameterError(
                    f"the start is not symmetric: {entry} = {value:.3g}, its orbit's mean is "
                    f"{mean:.3g}"
                )


def too_small(partition: Partition, orbits: int) -> str:
    """Return a message if fewer values than orbits move: a larger group exists then."""
    moving = int(partition.moves.sum())
    if moving >= orbits:
        return ""
    return f"the group is smaller than it could be: {orbits} orbits, but {moving} suffice"


def _entry(name: str, index: Array) -> str:
    """Return the name of an entry, such as ``A[0,1]``."""
    indices = ",".join(map(str, index.tolist()))
    return f"{name}[{indices}]" if indices else name
