"""Whether a loss has the symmetry that is stated of it: for a loss that is given as a function.

What is written in the language of `symbolic.theory` is invariant by construction; a function may be
anything. Each question is decided at one state, to rounding, and refused with one sentence.
"""

from collections.abc import Callable, Mapping

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.theory.closure import Integers, Partition
from dynamics.theory.data import Array

Tensors = Mapping[str, Array]
#: Numbers whose difference is below this share of the larger are the same.
SAME = 1e-9


def require_invariant(
    loss: Callable[[Tensors], float], state: Tensors, words: str, moved: Tensors
) -> None:
    """Refuse a loss that a move of the group changes.

    Parameters
    ----------
    loss
        Of tensors by name.
    state, moved
        A state, off the manifold, and where the move takes it.
    words
        What the move is called, such as ``features (0 1)``.
    """
    before, after = float(loss(state)), float(loss(moved))
    if not abs(before - after) <= SAME * max(abs(before), abs(after)):
        raise ParameterError(
            f"the loss is not invariant under {words}: {before:.9g} becomes {after:.9g}"
        )


def require_closed(gradient: Tensors, orbits: Mapping[str, Integers]) -> None:
    """Refuse a gradient, at a state on the manifold, that leads away from it.

    Parameters
    ----------
    gradient, orbits
        Slope and number of the orbit of every entry, by tensor; -1: entries that stay 0.
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
                one, other = sorted((low, high))
                raise ParameterError(
                    f"not closed: dL/d{_entry(name, own[one])} = {values[one]:.3g} but "
                    f"dL/d{_entry(name, own[other])} = {values[other]:.3g}, and both belong to one "
                    "order parameter"
                )


def require_symmetric(start: Tensors, orbits: Mapping[str, Integers]) -> None:
    """Refuse a start that the group moves."""
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


def too_small(found: Partition, orbits: int) -> str:
    """Return a sentence if fewer values move than there are orbits that are trained, else ""."""
    moving = int(found.moves.sum())
    if moving >= orbits:
        return ""
    return f"the group is smaller than it could be: {orbits} orbits, but {moving} suffice"


def _entry(name: str, place: Array) -> str:
    indices = ",".join(map(str, place.tolist()))
    return f"{name}[{indices}]" if indices else name
