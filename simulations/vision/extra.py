"""The optional extra ``vision``: whether its packages are installed."""

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec

from simulations.reproduction.claim import Context, Measurement, SkipClaim
from simulations.vision import INSTALL

_NEEDED = ("jax", "sklearn", "skimage", "mlxtend")


def missing() -> list[str]:
    """Return the packages of the extra that are not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]


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
