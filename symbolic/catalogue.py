"""The derivations by name, and how they are printed (`patchdyn derive`).

Importing this module imports no SymPy; a derivation is built when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symbolic.positional.derivations import Derivation

#: name -> (title, place in the paper), in the order of the argument: the model and its symmetries,
#: what stays (v in span(w*), three values of A on two orbits), the increments, what follows.
TITLES: dict[str, tuple[str, str]] = {
    "full-model": ("Gradient of the full D x D model", "equations (T), (P) and (GD)"),
    "symmetry": ("Symmetries of the full model", "Section 4.1, Invariance and symmetries"),
    "lemma-4.2": ("v stays in span(w*)", "Lemma 4.2"),
    "attention": ("The attention weights Lambda, Gamma, Xi and G", "Section 4.1, above Lemma 4.3"),
    "margins": ("Margins of the patches and what a set adds to F", "Section 4.1, derived here"),
    "lemma-4.1": ("Three values of A and their gradients", "Lemma 4.1"),
    "lemma-4.3": ("The increments and their leading terms", "Lemma 4.3"),
    "excess": ("The excess form of the attention gradients", "derived here"),
    "symmetric-line": ("The drift of gamma - rho on gamma = rho", "after Lemma 4.3, derived here"),
    "diagonal": ("The diagonal trained too", "Simplification 3.1, derived here"),
    "large-D": (
        "The limit of many patches: drift, branches of alpha*, powers of D",
        "Assumption 2 and Parametrization 3.1, derived here",
    ),
    "kernels": ("The stable forms that the solvers run", "derived here"),
    "masked-area-form": (
        "Masked images: loss and gradients in area attentions",
        "Huang et al. 2024, Section 3, derived here",
    ),
    "masked-lemma-5.1": ("Feature-position correlations", "Huang et al. 2024, Lemma 5.1"),
    "masked-lemma-5.2": ("Position-position correlations", "Huang et al. 2024, Lemma 5.2"),
    "masked-reduction": (
        "One query keeps few values; masks enter by counts",
        "Huang et al. 2024, derived here",
    ),
    "masked-kernels": ("The summands that the masked solvers run", "derived here"),
}
FORMATS = ("text", "latex", "python")


def names() -> tuple[str, ...]:
    """Return the names of all derivations, in the order of the argument."""
    return tuple(TITLES)


class _Catalogue(Mapping[str, "Derivation"]):
    """Mapping from names to derivations, each built on first use."""

    def __getitem__(self, name: str) -> Derivation:
        if name not in TITLES:
            raise ValueError(f"no derivation is named {name!r}: choose one of {', '.join(TITLES)}")
        from symbolic.positional.derivations import build

        return build(name)

    def __contains__(self, name: object) -> bool:
        return name in TITLES

    def __iter__(self) -> Iterator[str]:
        return iter(TITLES)

    def __len__(self) -> int:
        return len(TITLES)


CATALOGUE: Mapping[str, Derivation] = _Catalogue()


def render(name: str, format: str = "text", *, proofs: bool = True) -> str:
    """Print a derivation as text, as a LaTeX document that compiles, or as runnable Python.

    With ``proofs`` the identities are decided anew and the outcome is part of text and LaTeX (a few
    seconds for Lemmas 4.1 and 4.2). Raises ValueError for an unknown name or format.
    """
    if format not in FORMATS:
        raise ValueError(f"no format is named {format!r}: choose one of {', '.join(FORMATS)}")
    derivation = CATALOGUE[name]
    from symbolic.core import printing

    outcome = derivation.prove() if proofs and format != "python" else []
    return getattr(printing, format)(derivation, outcome)
