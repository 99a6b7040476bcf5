"""`dynamics.positional.events` under its public name."""

from dynamics.positional.events import *  # noqa: F403 - all of it, under this name
from dynamics.positional.events import __all__  # noqa: F401 - what that is
