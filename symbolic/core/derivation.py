"""A derivation as data: its equations, what decides each, and the function that proves them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from symbolic.core.proof import Proof


@dataclass(frozen=True)
class Equation:
    """``left = right``; ``name`` is a Python identifier for it, ``note`` a remark.

    ``compact`` is displayed in the place of a long ``right``;
    ``evaluates`` is false for equations with expectations or sums over sets, which are displayed
    but cannot be turned into a function of numbers; ``ground`` says what decides it.
    """

    name: str
    left: sp.Expr
    right: sp.Expr
    note: str = ""
    evaluates: bool = True
    compact: sp.Expr | None = None
    ground: str = ""

    @property
    def shown(self) -> sp.Expr:
        """Return what text and LaTeX display on the right-hand side."""
        return self.right if self.compact is None else self.compact


@dataclass(frozen=True)
class Notation:
    """How symbols are shown where their names would not do: in LaTeX and in plain text."""

    latex: Mapping[sp.Symbol, str] = field(default_factory=dict)
    text: Mapping[sp.Symbol, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Derivation:
    """A step of the argument: what it says, its equations, and a function that proves it.

    ``emitted`` returns the source of the module that is written from it, if one is.
    """

    name: str
    title: str
    place: str
    statement: str
    equations: tuple[Equation, ...]
    prove: Callable[[], list[Proof]]
    notation: Notation = field(default_factory=Notation)
    emitted: Callable[[], str] | None = None


def titled(
    titles: Mapping[str, tuple[str, str]],
    name: str,
    statement: str | None,
    equations: Iterable[Equation],
    prove: Callable[[], list[Proof]],
    **rest: Any,
) -> Derivation:
    """Return a derivation with the title and the place that the contents of a theory give it."""
    title, place = titles[name]
    text = " ".join((statement or "").split())
    return Derivation(name, title, place, text, tuple(equations), prove, **rest)
