"""Claims of Li, Wang, Liu, Chen (2023), one module each; they are imported when they are used."""

from simulations.reproduction.claim import Paper

PAPER = Paper(
    "Li, Wang, Liu, Chen",
    "A Theoretical Understanding of Shallow Vision Transformers: Learning, Generalization, and "
    "Sample Complexity",
    "ICLR 2023",
)

#: Claim id -> module here, in the order of the paper.
CLAIMS = {
    "li-reduction": "reduction",
    "li-conserved": "conserved",
    "li-theorem-1-iterations": "theorem_1_iterations",
    "li-proposition-2": "proposition_2",
    "li-optimizers": "optimizers",
    "li-sample-complexity": "sample_complexity",
    "li-sparsification": "sparsification",
    "li-noise": "noise",
}
