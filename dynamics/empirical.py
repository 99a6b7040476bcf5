"""`dynamics.positional.samples` under its public name."""

from dynamics.positional.samples import *  # noqa: F403 - all of it, under this name
from dynamics.positional.samples import __all__  # noqa: F401 - what that is
