"""`dynamics.positional.samples` under its public name."""

from dynamics.positional.samples import *  # noqa: F403 - a public alias of the module
from dynamics.positional.samples import __all__  # noqa: F401 - public names of the alias
