"""Claims of Jelassi, Sander, Li (2022), one module each, imported when they are loaded."""

from simulations.reproduction.claim import Paper

PAPER = Paper(
    "Jelassi, Sander, Li", "Vision Transformers provably learn spatial structure", "NeurIPS 2022"
)

#: Claim id -> module here, in the order of the paper.
CLAIMS = {
    "figure-1b": "figure_1b",
    "labelling-function": "labelling_function",
    "theorem-3.1": "theorem_3_1",
    "theorem-3.2": "theorem_3_2",
    "figure-2": "figure_2",
    "figure-3": "figure_3",
    "diagonal": "diagonal",
    "equation-T": "equation_T",
    "lemma-4.1": "lemma_4_1",
    "lemma-4.2": "lemma_4_2",
    "lemma-4.3": "lemma_4_3",
    "theorem-4.1": "theorem_4_1",
    "theorem-4.1-proved": "theorem_4_1_proved",
    "theorem-4.1-dimension": "theorem_4_1_dimension",
    "events": "events",
    "lemma-D.2": "lemma_d_2",
    "linear-at-start": "linear_at_start",
    "gamma-ge-rho": "gamma_ge_rho",
    "gamma-ge-rho-boundary": "gamma_ge_rho_boundary",
    "gamma-ge-rho-certified": "gamma_ge_rho_certified",
    "gamma-ge-rho-proved": "gamma_ge_rho_proved",
    "gamma-ge-rho-refuted": "gamma_ge_rho_refuted",
    "optimizers": "optimizers",
    "sigma-a-breaks-symmetry": "sigma_a_breaks_symmetry",
    "stated": "stated",
    "reduced-equals-full": "reduced_equals_full",
    "expectation-methods": "expectation_methods",
    "theorem-4.1-large-D": "theorem_4_1_large_D",
    "events-large-D": "events_large_D",
    "lemma-D.11": "lemma_d_11",
    "scaling-theory": "scaling_theory",
    "regime-of-theorem-4.1": "regime_of_theorem_4_1",
    "theorem-4.2": "theorem_4_2",
    "theorem-4.2-one-rate": "theorem_4_2_one_rate",
    "figure-4": "figure_4",
    "realistic-tracks-idealized": "realistic_tracks_idealized",
    "random-initialization": "random_initialization",
    "encodings": "encodings",
    "theorem-5.1": "theorem_5_1",
    "theorem-5.2": "theorem_5_2",
    "transfer-partial": "transfer_partial",
}
