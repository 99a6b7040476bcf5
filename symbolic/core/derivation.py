"""Data classes of a derivation: its equations, their notation and their proof."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sympy as sp

from symbolic.core.proof import Proof


@dataclass(frozen=True)
class Equation:
    """The equation ``left = right``.

    Attributes
    ----------
    name
        Python identifier of the equation.
    left, right
        The two sides.
    note
        A remark.
    evaluates
        Whether ``right`` can be exported as a Python function of numbers; false for expectations
        and sums over sets.
    compact
        Displayed instead of a long ``right``.
    justification
        What proves the equation.
    """

    name: str
    left: sp.Expr
    right: sp.Expr
    note: str = ""
    evaluates: bool = True
    compact: sp.Expr | None = None
    justification: str = ""

    @property
    def shown(self) -> sp.Expr:
        """Right-hand side in text and LaTeX."""
        return self.right if self.compact is None else self.compact


@dataclass(frozen=True)
class Notation:
    """Display of symbols in LaTeX and in plain text where it differs from their names."""

    latex: Mapping[sp.Symbol, str] = field(default_factory=dict)
    text: Mapping[sp.Symbol, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Derivation:
    """A step of the argument of a paper.

    Attributes
    ----------
    name
        Name on the command line, such as ``"lemma-4.1"``.
    title, place
        Heading, and where the paper states it.
    statement
        What is derived.
    equations
        The displayed equations.
    prove
        Function that runs the proofs.
    notation
        Display of symbols.
    emitted
        Function that returns the source of the module of `dynamics` that is generated from the
        derivation; ``None`` if there is none.
    coq
        Coq file with a proof for all sizes; ``None`` if there is none.
    coq_lemmas
        Coq file that follows the lemmas of the identities: what follows from them by induction;
        ``None`` if there is none.
    """

    name: str
    title: str
    place: str
    statement: str
    equations: tuple[Equation, ...]
    prove: Callable[[], list[Proof]]
    notation: Notation = field(default_factory=Notation)
    emitted: Callable[[], str] | None = None
    coq: Path | None = None
    coq_lemmas: Path | None = None


def from_contents(
    titles: Mapping[str, tuple[str, str]],
    name: str,
    statement: str | None,
    equations: Iterable[Equation],
    prove: Callable[[], list[Proof]],
    **rest: Any,
) -> Derivation:
    """Return a derivation with the title and place in the contents of a theory.

    Parameters
    ----------
    titles
        Mapping from names to title and place.
    name
        Name of the derivation.
    statement
        What is derived; line breaks are removed.
    equations
        The displayed equations.
    prove
        Function that runs the proofs.
    **rest
        Other attributes of `Derivation`.
    """
    title, place = titles[name]
    text = " ".join((statement or "").split())
    return Derivation(name, title, place, text, tuple(equations), prove, **rest)
