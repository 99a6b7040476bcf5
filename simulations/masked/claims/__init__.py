"""Claims of Huang, Wen, Chi, Liang (2024), one module each, imported when they are used."""

from simulations.reproduction.claim import Paper

PAPER = Paper(
    "Huang, Wen, Chi, Liang",
    "Transformers Provably Learn Feature-Position Correlations in Masked Image Modeling",
    "2024",
)

#: Claim id -> module here, in the order of the paper.
CLAIMS = {
    "huang-lemma-5.1": "lemma_5_1",
    "huang-lemma-5.2": "lemma_5_2",
    "huang-two-phases": "two_phases",
    "huang-growth-stages": "growth_stages",
    "huang-one-phase": "one_phase",
    "huang-optimizers": "optimizers",
    "huang-theorem-4.1": "theorem_4_1",
    "huang-scaling": "scaling",
    "huang-pp-small": "pp_small",
    "huang-positional-is-not-enough": "positional_is_not_enough",
    "huang-loss-lemma": "loss_lemma",
    "huang-diversity": "diversity",
    "huang-reduced-equals-full": "reduced_equals_full",
    "huang-stated": "stated",
}
