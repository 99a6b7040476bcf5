"""The optional extra of this room: whether it is installed, and what a claim says if it is not."""

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec

from simulations.reproduction.outcome import Context, Outcome, Verdict
from simulations.vision import INSTALL

_NEEDED = ("jax", "sklearn", "skimage", "mlxtend")


def missing() -> list[str]:
    """Return the packages of the extra that are not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]


def needs_extra(run: Callable[[Context], Outcome]) -> Callable[[Context], Outcome]:
    """Make a claim tell what installs the extra where it is not installed."""

    @wraps(run)
    def checked(context: Context) -> Outcome:
        if not (names := missing()):
            return run(context)
        told = f"Not run: {', '.join(names)} not installed; {INSTALL} installs what is needed."
        return Outcome(Verdict.SKIPPED, (), None, {}, told)

    return checked
