"""The theories by name: the one place where a theory enters.

A theory is a folder of the same name in `symbolic`, `dynamics`, `simulations` and `tests`. The one
in `simulations` holds, for the tools that run many problems,

``system``
    ``SYSTEM``, a :class:`simulations.system.System`;
``maps``
    ``maps_of(sweep)``, its regime maps;
``claims``
    ``CLAIMS``, the ids of its claims in the order of the paper, and the module of each.

Nothing of a theory is imported before it is asked for, so that listing names stays quick.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulations.system import Case, System

#: Name -> package of its folder in `simulations` and in `symbolic`; the first is the default.
_PACKAGES = {
    name: (f"simulations.{name}", f"symbolic.{name}")
    for name in ("positional", "masked", "shallow")
}
DEFAULT = next(iter(_PACKAGES))
#: Theories of files that the user named, for the length of this process.
_STATED: dict[str, System] = {}
#: Packages that are no theory and contain experiments of its paper: ``claims`` with ``CLAIMS``.
_EXPERIMENTS = {"positional": ("simulations.vision",)}
#: The package of theories that are stated in one file; its claims name their papers themselves.
_FILES = "simulations.stated"


def names() -> tuple[str, ...]:
    """Return the names of all theories, the default first."""
    return tuple(_PACKAGES)


def submodule(name: str, module: str) -> ModuleType:
    """Import one module of a theory's folder in `simulations`, such as ``maps``."""
    package = _FILES if name in _STATED else _PACKAGES[name][0]
    return import_module(f"{package}.{module}")


def packages_of_claims() -> Iterator[tuple[str, str]]:
    """Yield each theory and the packages that hold claims of its paper, its own folder first.

    Last come those of theories in one file, whose claims name their papers.
    """
    for name, (package, _) in _PACKAGES.items():
        for own in (package, *_EXPERIMENTS.get(name, ())):
            yield name, f"{own}.claims"
    yield "", f"{_FILES}.claims"


def packages_of_derivations() -> tuple[str, ...]:
    """Return the packages of the theories' derivations."""
    return tuple(derivations for _, derivations in _PACKAGES.values())


def folders() -> tuple[str, ...]:
    """Return the theories' folders in `simulations`, relative to the folder of the packages."""
    return tuple(tools.replace(".", "/") for tools, _ in _PACKAGES.values())


def load(name: str) -> System:
    """Return the theory with this name.

    Raises
    ------
    ParameterError
        If there is none.
    """
    from dynamics.core.checks import require

    if name in _STATED:
        return _STATED[name]
    require(name in _PACKAGES, "system", repr(name), f"one of {', '.join(_PACKAGES)}")
    theory: System = submodule(name, "system").SYSTEM
    return theory


def from_file(path: str | Path) -> System:
    """Read a theory from a file that the user names, and know it by its name from then on.

    Raises
    ------
    TheoryError
        If the file states no theory, or cannot be read.
    """
    theory: System = import_module(f"{_FILES}.system").UserTheorySystem(path)
    _STATED[theory.name] = theory
    return theory


def of_files() -> tuple[str, ...]:
    """Return the names of the theories that were read from files."""
    return tuple(_STATED)


def is_of_a_file(name: str) -> bool:
    """Tell whether a name is that of a theory in a file, which only its user can name."""
    return name.startswith("stated:")


def command(case: Case, theory: System | None = None) -> str:
    """Return the shell command that reproduces a run of a theory, by default of a known one."""
    theory = theory or load(case.system)
    words = [] if theory.name == DEFAULT else [theory.chosen_by]
    for name, value in theory.flags(case).items():
        parameter = theory.parameter(name)
        if value is not None and parameter is not None:
            words.append(f"{parameter.flag} {value}")
    return " ".join(["patchdyn run", *words])


@contextmanager
def registered(name: str, package: str) -> Iterator[None]:
    """Add a theory, its folders subpackages of ``package``, for the length of a ``with`` block."""
    if name in _PACKAGES:
        raise ValueError(f"a theory named {name!r} is there already")
    _PACKAGES[name] = f"{package}.simulations", f"{package}.symbolic"
    try:
        yield
    finally:
        del _PACKAGES[name]
