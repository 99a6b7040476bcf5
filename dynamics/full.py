"""`dynamics.positional.oracle.descent` under its public name."""

from dynamics.positional.oracle.descent import *  # noqa: F403 - all of it, under this name
from dynamics.positional.oracle.descent import __all__  # noqa: F401 - what that is
