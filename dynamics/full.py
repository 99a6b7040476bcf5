"""`dynamics.positional.oracle.descent` under its public name."""

from dynamics.positional.oracle.descent import *  # noqa: F403
from dynamics.positional.oracle.descent import __all__  # noqa: F401
