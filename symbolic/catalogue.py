"""Catalogue of the derivations of all theories (`patchdyn derive`).

Each theory is a package of `symbolic` with a module ``contents`` (names, titles and places in the
order of the argument) and a module ``derivations`` (``BUILDERS``). Importing this module does not
import SymPy; derivations are built on first use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import symbolic

if TYPE_CHECKING:
    from symbolic.core.coq import Source
    from symbolic.core.derivation import Derivation

FORMATS = ("text", "latex", "python", "coq")


@cache
def packages() -> tuple[str, ...]:
    """Return the packages of the theories, sorted by ``ORDER``."""
    names = [
        f"symbolic.{path.parent.name}"
        for folder in symbolic.__path__
        for path in Path(folder).glob("*/contents.py")
    ]
    return tuple(sorted(names, key=lambda name: _contents(name).ORDER))


def _contents(package: str) -> Any:
    return import_module(f"{package}.contents")


class Catalogue(Mapping[str, "Derivation"]):
    """Mapping from names to derivations, each built on first use.

    Parameters
    ----------
    theories
        Packages of the theories; by default all packages of `symbolic`.
    """

    def __init__(self, theories: tuple[str, ...] | None = None) -> None:
        self.theories = packages() if theories is None else theories
        self._built: dict[str, Derivation] = {}

    @property
    def titles(self) -> dict[str, tuple[str, str]]:
        """Mapping from names to title and place in the paper."""
        return {
            name: title
            for theory in self.theories
            for name, title in _contents(theory).TITLES.items()
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
        """Return a derivation as text, as a LaTeX document, or as Python or Coq source.

        Parameters
        ----------
        name
            Name of the derivation.
        format
            ``"text"``, ``"latex"``, ``"python"`` or ``"coq"``.
        proofs
            Whether to run the proofs and include their outcome in text and LaTeX; takes a few
            seconds for Lemmas 4.1 and 4.2.

        Raises
        ------
        ValueError
            If the name or the format is unknown.
        """
        if format not in FORMATS:
            raise ValueError(f"no format is named {format!r}: choose one of {', '.join(FORMATS)}")
        if format == "coq":
            return str(self.coq_source(name))
        derivation = self[name]
        from symbolic.core import printing

        outcome = derivation.prove() if proofs and format != "python" else []
        return str(getattr(printing, format)(derivation, outcome))

    def coq_source(self, name: str) -> Source:
        """Return a Coq file: a proof for all sizes if there is one, else the identities as lemmas.

        Parameters
        ----------
        name
            Name of the derivation.

        Raises
        ------
        ValueError
            If the name is unknown.
        """
        from symbolic.core import coq

        derivation = self[name]
        if derivation.coq is not None:
            return coq.of_file(derivation.coq)
        source = coq.of_proofs(derivation.title, derivation.prove())
        if derivation.coq_lemmas is None:
            return source
        text = derivation.coq_lemmas.read_text(encoding="utf-8")
        # The file is named after its last theorem: the axioms of all names are printed at the end.
        name = re.findall(r"^Print Assumptions (\w+)\.", text, re.MULTILINE)[-1]
        title = f"all lemmas of {derivation.coq_lemmas.name}"
        return replace(
            source, lemmas=source.lemmas | {name: text}, titles=source.titles | {name: title}
        )


CATALOGUE = Catalogue()


def names() -> tuple[str, ...]:
    """Return the names of all derivations, in the order of the argument."""
    return tuple(CATALOGUE)


def render(name: str, format: str = "text", *, proofs: bool = True) -> str:
    """Return a derivation of any theory in a format; see `Catalogue.render`."""
    return CATALOGUE.render(name, format, proofs=proofs)
