"""Names, titles and places of the derivations of the shallow transformer; imports nothing."""

ORDER = 3  # position among the theories

#: Mapping from names to title and place in the paper, in the order of the argument.
TITLES: dict[str, tuple[str, str]] = {
    "shallow-reduction": (
        "Shallow ViT: a step of SGD on the full matrices in A and H",
        "Li et al. 2023, the model and its SGD, derived here",
    ),
    "shallow-gram": ("The Gram form closes for all widths", "derived here"),
    "shallow-conserved": (
        "Conserved quantities of the flow, and their drift in steps",
        "derived here",
    ),
    "shallow-scalars": ("Population descent has 32 scalars", "derived here"),
    "shallow-concentration": (
        "Why attention concentrates: two equations",
        "Li et al. 2023, Proposition 2, derived here",
    ),
}
