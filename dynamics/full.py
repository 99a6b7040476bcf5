"""`dynamics.positional.oracle.descent` under its public name."""

from dynamics.positional.oracle.descent import *  # noqa: F403 - a public alias of the module
from dynamics.positional.oracle.descent import __all__  # noqa: F401 - public names of the alias
