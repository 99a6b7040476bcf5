"""Claims of the toy theory."""

from simulations.reproduction.claim import Paper

PAPER = Paper("Nobody", "A toy", "none")
CLAIMS = {"toy-balance": "balance"}
