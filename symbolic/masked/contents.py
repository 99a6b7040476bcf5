"""The derivations of masked image modelling by name; nothing is imported here."""

ORDER = 2  # among the theories

#: name -> (title, place in the paper), in the order of the argument.
TITLES: dict[str, tuple[str, str]] = {
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
