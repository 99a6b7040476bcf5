"""The derivations of all theories by name, and how they are printed (`patchdyn derive`).

A theory is a folder here with a module ``contents`` (the names, in the order of the argument) and a
module ``derivations`` (``BUILDERS``). Importing this module imports no SymPy; a derivation is built
when it is asked for.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import symbolic

if TYPE_CHECKING:
    from symbolic.core.derivation import Derivation

FORMATS = ("text", "latex", "python")


@cache
def packages() -> tuple[str, ...]:
    """Return the folders of the theories, in their order."""
    folders = [
        f"symbolic.{one.name}"
        for one in pkgutil.iter_modules(symbolic.__path__)
        if one.ispkg and one.name not in ("core", "theory")
    ]
    return tuple(sorted(folders, key=lambda name: _contents(name).ORDER))


def _contents(package: str) -> Any:
    return import_module(f"{package}.contents")


class Catalogue(Mapping[str, "Derivation"]):
    """Mapping from names to derivations, each built on first use.

    ``theories`` are the packages whose derivations it holds: by default all folders of `symbolic`.
    """

    def __init__(self, theories: tuple[str, ...] | None = None) -> None:
        self.theories = packages() if theories is None else theories
        self._built: dict[str, Derivation] = {}

    @property
    def titles(self) -> dict[str, tuple[str, str]]:
        """The title of each derivation and its place in the paper."""
        return {
            name: title for one in self.theories for name, title in _contents(one).TITLES.items()
        }

    def __getitem__(self, name: str) -> Derivation:
        for package in self.theories:
            if name in _contents(package).TITLES:
                if name not in self._built:
                    builders = import_module(f"{package}.derivations").BUILDERS
                    self._built[name] = builders[name](name)
                return self._built[name]
        raise ValueError(f"no derivation is named {name!r}: choose one of {', '.join(self)}")

    def __contains__(self, name: object) -> bool:
        return name in self.titles

    def __iter__(self) -> Iterator[str]:
        return iter(self.titles)

    def __len__(self) -> int:
        return len(self.titles)

    def render(self, name: str, format: str = "text", *, proofs: bool = True) -> str:
        """Print a derivation as text, as a LaTeX document that compiles, or as runnable Python.

        With ``proofs`` the identities are decided anew and the outcome is part of text and LaTeX (a
        few seconds for Lemmas 4.1 and 4.2). Raises ValueError for an unknown name or format.
        """
        if format not in FORMATS:
            raise ValueError(f"no format is named {format!r}: choose one of {', '.join(FORMATS)}")
        derivation = self[name]
        from symbolic.core import printing

        outcome = derivation.prove() if proofs and format != "python" else []
        return str(getattr(printing, format)(derivation, outcome))


CATALOGUE = Catalogue()


def names() -> tuple[str, ...]:
    """Return the names of all derivations, in the order of the argument."""
    return tuple(CATALOGUE)


def render(name: str, format: str = "text", *, proofs: bool = True) -> str:
    """Print a derivation of any theory; see `Catalogue.render`."""
    return CATALOGUE.render(name, format, proofs=proofs)
