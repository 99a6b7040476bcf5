"""Names, titles and places of the derivations of positional attention; imports nothing."""

ORDER = 1  # position among the theories

#: Mapping from names to title and place in the paper, in the order of the argument: the model and
#: its symmetries, the invariant manifold (v in span(w*), three values of A), the increments, and
#: consequences.
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
    "floor": ("The floor of the loss on gamma = rho", "after Lemma 4.3, derived here"),
    "diagonal": ("Training the diagonal", "Simplification 3.1, derived here"),
    "large-D": (
        "The limit of many patches: drift, branches of alpha*, powers of D",
        "Assumption 2 and Parametrization 3.1, derived here",
    ),
    "kernels": ("Numerically stable forms in the solvers", "derived here"),
}
