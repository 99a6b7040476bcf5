"""Claims of Section 6 of Jelassi, Sander, Li (2022) on real images, one module each; light."""

#: Claim id -> module here, in the order of the section.
CLAIMS = {
    "figure-1a": "figure_1a",
    "figure-5": "figure_5",
    "figure-6-7": "figure_6_7",
    "section-2-trained-P": "section_2",
    "augmentation-makes-locality": "augmentation",
}

#: They need this extra, and run only on request (`patchdyn reproduce --images`).
EXTRA = "vision"
