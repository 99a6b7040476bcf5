"""`dynamics.masked.diversity` under its public name."""

from dynamics.masked.diversity import *  # noqa: F403 - all of it, under this name
from dynamics.masked.diversity import __all__  # noqa: F401 - what that is
