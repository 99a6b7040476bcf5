"""`dynamics.positional.events` under its public name."""

from dynamics.positional.events import *  # noqa: F403
from dynamics.positional.events import __all__  # noqa: F401
