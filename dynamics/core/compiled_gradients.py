"""Which gradients are compiled: plans of data that the descent loop may evaluate by itself.

A plan is a NamedTuple of arrays and numbers. A theory registers the gradient of its class of plans
where it defines both::

    @gradient_of(GradientData)
    @kernel
    def gradient_within(plan, theta, out): ...

writes the gradient at ``theta`` to ``out``, both of shape (n,), and returns whether this is the
plan for that state: where it is not, the loop asks :meth:`dynamics.core.risk.Risk.plan` for
another. A plan is a value: nothing that is evaluated changes it.
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
    """Return the kernel registered for a class, ``None`` where there is none."""
    return None if plan is None else _GRADIENTS.get(plan)
