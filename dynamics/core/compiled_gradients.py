"""Registry of compiled gradients for the descent loop.

A plan is an immutable NamedTuple of arrays and numbers, precomputed for the gradient near a state.
A theory registers a kernel for its class of plans::

    @gradient_of(GradientData)
    @kernel
    def gradient_within(plan, theta, out): ...

The kernel writes the gradient at ``theta`` (n,) to ``out`` (n,) and returns whether the plan is
accurate enough at that state. If it is not, the loop requests a new plan from
:meth:`dynamics.core.risk.Risk.plan`.
"""

from collections.abc import Callable
from typing import Any

_GRADIENTS: dict[type, Any] = {}


def gradient_of(plan: type) -> Callable[[Any], Any]:
    """Register a kernel as the gradient of a class of plans (a decorator)."""

    def register(gradient: Any) -> Any:
        _GRADIENTS[plan] = gradient
        return gradient

    return register


def compiled_gradient(plan: type | None) -> Any:
    """Return the kernel registered for a class of plans, or ``None``."""
    return None if plan is None else _GRADIENTS.get(plan)
