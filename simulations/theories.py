"""Registry of theories: the only module that names them.

A theory is a folder of the same name in `symbolic`, `dynamics`, `simulations` and `tests`. In
`simulations`, it contains the modules

``system``
    ``SYSTEM``, a :class:`simulations.system.System`;
``maps``
    ``maps_of(sweep)``, its regime maps;
``claims``
    ``CLAIMS``, the ids of its claims in the order of the paper, and the module of each.

A theory is imported only when it is used, so that listing names is fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulations.case import Case
    from simulations.system import System

#: Name -> packages of the theory in `simulations` and in `symbolic`; the first is the default.
_PACKAGES = {
    name: (f"simulations.{name}", f"symbolic.{name}")
    for name in ("positional", "masked", "shallow")
}
DEFAULT = next(iter(_PACKAGES))
#: Theories that were loaded from files in this process.
_LOADED: dict[str, System] = {}
#: Further packages with claims of the paper of a theory.
_EXPERIMENTS = {"positional": ("simulations.vision",)}
#: Package of user-defined theories; its claims are from several papers.
_USER_DEFINED = "simulations.stated"


def names() -> tuple[str, ...]:
    """Return the names of the built-in theories, the default first."""
    return tuple(_PACKAGES)


def submodule(name: str, module: str) -> ModuleType:
    """Import a module of the folder of a theory in `simulations`, such as ``maps``."""
    package = _USER_DEFINED if name in _LOADED else _PACKAGES[name][0]
    return import_module(f"{package}.{module}")


def packages_of_claims() -> Iterator[tuple[str, str]]:
    """Yield pairs of a theory and a package with claims of its paper.

    The last pair is the package of user-defined theories, with an empty name.
    """
    for name, (package, _) in _PACKAGES.items():
        for own in (package, *_EXPERIMENTS.get(name, ())):
            yield name, f"{own}.claims"
    yield "", f"{_USER_DEFINED}.claims"


def packages_of_derivations() -> tuple[str, ...]:
    """Return the packages with the derivations of the theories."""
    return tuple(derivations for _, derivations in _PACKAGES.values())


def folders() -> tuple[str, ...]:
    """Return the folders of the theories in `simulations`, relative to the root of the packages."""
    return tuple(tools.replace(".", "/") for tools, _ in _PACKAGES.values())


def load(name: str) -> System:
    """Return the theory with this name; a file is loaded only by `from_file`.

    Raises
    ------
    ParameterError
        If there is no theory with this name.
    """
    from dynamics.core.checks import require

    if name in _LOADED:
        return _LOADED[name]
    require(name in _PACKAGES, "system", repr(name), f"one of {', '.join(_PACKAGES)}")
    theory: System = submodule(name, "system").SYSTEM
    return theory


def from_file(path: str | Path) -> System:
    """Load a theory from a file and register it under its name.

    Raises
    ------
    TheoryError
        If the file contains no theory, or cannot be read.
    """
    theory: System = import_module(f"{_USER_DEFINED}.system").UserTheorySystem(path)
    _LOADED[theory.name] = theory
    return theory


def names_from_files() -> tuple[str, ...]:
    """Return the names of the theories that were loaded from files."""
    return tuple(_LOADED)


def is_from_file(name: str) -> bool:
    """Return whether a name is that of a theory loaded from a file."""
    return name.startswith("stated:")


def command(case: Case, theory: System | None = None) -> str:
    """Return the shell command that reproduces a run.

    Parameters
    ----------
    case
        Case of the run.
    theory
        Theory of the case; by default the one registered under its name.
    """
    theory = theory or load(case.system)
    options = [] if theory.name == DEFAULT else [theory.command_option]
    for name, value in theory.flags(case).items():
        parameter = theory.parameter(name)
        if value is not None and parameter is not None:
            options.append(f"{parameter.flag} {value}")
    return " ".join(["patchdyn run", *options])


@contextmanager
def registered(name: str, package: str) -> Iterator[None]:
    """Register a theory, with folders in ``package``, for the duration of a ``with`` block."""
    if name in _PACKAGES:
        raise ValueError(f"a theory named {name!r} is registered already")
    _PACKAGES[name] = f"{package}.simulations", f"{package}.symbolic"
    try:
        yield
    finally:
        del _PACKAGES[name]
