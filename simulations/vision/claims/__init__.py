"""Claims of Section 6 of Jelassi, Sander, Li (2022) on real images, one module each; light."""

import math
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any

from simulations.reproduction.claim import Context, Measurement, SkipClaim
from simulations.reproduction.predicates import Column
from simulations.vision import INSTALL

#: Claim id -> module here, in the order of the section.
CLAIMS = {
    "figure-1a": "figure_1a",
    "figure-5": "figure_5",
    "figure-6-7": "figure_6_7",
    "section-2-trained-P": "section_2",
    "augmentation-makes-locality": "augmentation",
}

#: They need this extra, and run only on request (`patchdyn reproduce --images`).
EXTRA = "vision"

_PACKAGES = ("jax", "sklearn", "skimage", "mlxtend")


def missing() -> list[str]:
    """Return the packages of the extra that are not installed."""
    return [name for name in _PACKAGES if find_spec(name) is None]


def needs_extra(measure: Callable[[Context], Measurement]) -> Callable[[Context], Measurement]:
    """Make a claim raise `SkipClaim` with the command to run if the extra is not installed."""

    @wraps(measure)
    def checked(context: Context) -> Measurement:
        if names := missing():
            raise SkipClaim(
                f"Not run: {', '.join(names)} not installed; {INSTALL} installs what is needed."
            )
        return measure(context)

    return checked


def seeded(**labels: str) -> dict[str, Column]:
    """Return columns of numbers that depend on the seed, given the label of each."""
    return {name: Column(label, rtol=math.inf) for name, label in labels.items()}


def extremes(values: Any) -> str:
    """Return the least and greatest of some numbers as text."""
    return f"{min(values):.2f} to {max(values):.2f}"
