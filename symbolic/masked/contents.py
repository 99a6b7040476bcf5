"""Names, titles and places of the derivations of masked image modelling; imports nothing."""

ORDER = 2  # position among the theories

#: Mapping from names to title and place in the paper, in the order of the argument.
TITLES: dict[str, tuple[str, str]] = {
    "masked-area-form": (
        "Masked images: loss and gradients in area attentions",
        "Huang et al. 2024, Section 3, derived here",
    ),
    "masked-lemma-5.1": ("Feature-position correlations", "Huang et al. 2024, Lemma 5.1"),
    "masked-lemma-5.2": ("Position-position correlations", "Huang et al. 2024, Lemma 5.2"),
    "masked-reduction": (
        "Few values per query; masks enter through counts",
        "Huang et al. 2024, derived here",
    ),
    "masked-kernels": ("Kernels of the masked solvers", "derived here"),
}
