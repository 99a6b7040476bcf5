"""Results of one evaluation of the population expectation, the same for all methods."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dynamics.positional.problem import State


class Loss(NamedTuple):
    """Loss at a state.

    Attributes
    ----------
    loss
        ``E log(1 + e^{-F})``, nats.
    bound
        Absolute error of the loss and of each gradient entry.
    """

    loss: float
    bound: float


@dataclass(frozen=True, slots=True)
class Value:
    """Population risk and its gradient at a state, with bounds of their errors.

    Attributes
    ----------
    loss
        ``E log(1 + e^{-F})``, nats.
    gradient
        ``(d ell / d alpha, dL/dA_ij same set, dL/dA_ij different sets)``: the vector that
        gradient descent multiplies by minus the learning rate.
    test_error, ties
        ``P[F <= 0]`` for y = +1, ties included as in Theorem 4.1, and ``P[F = 0]``.
    mean_sigmoid
        ``E[1 / (1 + e^F)]``, the average weight of an image in the gradient.
    bound
        Absolute error of the loss and of each gradient entry: certified for enumeration and
        Fourier, three standard errors for sampling.
    bounds
        The named parts whose sum is ``bound``.
    test_error_bound
        Absolute error of ``test_error``, including images where the sign of F is undecided.
    loss_bound, gradient_bound, mean_sigmoid_bound
        Absolute errors of these values, per entry; ``bound`` is the maximum of the first two.
    ties_bound
        Absolute error of ``ties``; infinite if the method does not compute it.
    """

    loss: float
    gradient: State
    test_error: float
    ties: float
    mean_sigmoid: float
    bound: float
    bounds: Mapping[str, float]
    test_error_bound: float
    loss_bound: float
    gradient_bound: State
    mean_sigmoid_bound: float
    ties_bound: float = field(default=math.inf, kw_only=True)


def require_finite(numbers: tuple[float, ...], state: State) -> None:
    """Raise OverflowError unless all numbers computed at a state are finite."""
    if not all(math.isfinite(number) for number in numbers):
        raise OverflowError(
            f"the output F or its derivatives overflow at alpha = {state.alpha:.6g}, "
            f"gamma = {state.gamma:.6g}, rho = {state.rho:.6g}: alpha^p must stay below about 1e300"
        )
