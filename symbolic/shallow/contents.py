"""The derivations of the shallow vision transformer by name; nothing is imported here."""

ORDER = 3  # among the theories

#: name -> (title, place in the paper), in the order of the argument.
TITLES: dict[str, tuple[str, str]] = {
    "shallow-reduction": (
        "Shallow ViT: a step of SGD on the full matrices in A and H",
        "Li et al. 2023, the model and its SGD, derived here",
    ),
    "shallow-gram": ("The Gram form closes, whatever the widths", "derived here"),
    "shallow-conserved": ("What the flow conserves, and how steps let it drift", "derived here"),
    "shallow-scalars": ("Population descent keeps 32 scalars", "derived here"),
    "shallow-concentration": (
        "Why attention concentrates: two equations",
        "Li et al. 2023, Proposition 2, derived here",
    ),
}
