"""Population descent from a symmetric start has 32 scalars, for every M >= 4.

The problem is invariant under all permutations of the n = M - 2 irrelevant patterns, and under the
exchange of patterns 1 and 2 together with y -> -y and a -> -a. The start has the same symmetry if a
neuron of either sign of a is aligned with every pattern; then so has every later state. An
invariant matrix has one number per orbit of its entries. By Burnside's lemma the number of orbits
is the mean number of entries that a symmetry fixes. A random permutation of n elements has X fixed
points and C_2 exchanged pairs, E[X] = E[X (X - 1)] = 1 and E[C_2] = 1/2 for n >= 2.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product

import sympy as sp

from symbolic.core.proof import Proof, ProofBuilder

SIZES = (4, 5, 6)
n = sp.Symbol("n", integer=True, positive=True)
X, C_2 = sp.symbols("X C_2", nonnegative=True)
Entry = tuple[int, ...]
Symmetry = Callable[[Entry], Entry]

#: Numbers of fixed entries, without and with the exchange of patterns 1 and 2.
FIXED: dict[str, tuple[sp.Expr, sp.Expr]] = {
    "patterns x patterns": ((X + 2) ** 2, X**2),
    "transposed": (X + 2 * C_2 + 2, X + 2 * C_2 + 2),  # (i, j) -> (g j, g i): points of g^2
    "neurons x patterns": (
        2 * (X + 2) * (X + 2),
        sp.S.Zero,
    ),  # the exchange changes the sign of every neuron
}


def mean(polynomial: sp.Expr) -> sp.Expr:
    """Return the mean over permutations of a polynomial of degree at most 2 in X and 1 in C_2."""
    falling = sp.Poly(sp.expand(polynomial), X, C_2)
    values = {(0, 0): 1, (1, 0): 1, (2, 0): 2, (0, 1): sp.Rational(1, 2)}
    return sp.Add(*(number * values[powers] for powers, number in falling.terms()))


def moments() -> dict[str, sp.Expr]:
    """Return the three means for every n, as numbers of choices times probabilities."""
    return {
        "E[X]": n * sp.factorial(n - 1) / sp.factorial(n),
        "E[X (X - 1)]": n * (n - 1) * sp.factorial(n - 2) / sp.factorial(n),
        "E[C_2]": n * (n - 1) / 2 * sp.factorial(n - 2) / sp.factorial(n),
    }


def orbit_number(action: str) -> sp.Expr:
    """Return the number of orbits of an action in `FIXED` for every M >= 4."""
    without, with_exchange = FIXED[action]
    return (mean(without) + mean(with_exchange)) / 2


def numbers() -> dict[str, sp.Expr]:
    """Return the number of scalars of each matrix; symmetric ones have one per unordered pair."""
    pairs, transposed = orbit_number("patterns x patterns"), orbit_number("transposed")
    gram = (pairs + transposed) / 2
    return {
        "W_O": orbit_number("neurons x patterns"),
        "V": pairs,
        "A": pairs,
        "S_K": gram,
        "S_Q": gram,
    }


#: Number of scalars of each matrix.
NUMBERS: dict[str, int] = {"W_O": 10, "V": 6, "A": 6, "S_K": 5, "S_Q": 5}


def symmetries(M: int) -> Iterator[tuple[Symmetry, Symmetry]]:
    """Yield the action of each symmetry on pairs of patterns and on pairs (neuron, pattern)."""
    for order in permutations(range(2, M)):
        yield _actions((0, 1, *order), exchange=0)
        yield _actions((1, 0, *order), exchange=1)


def _actions(g: Entry, exchange: int) -> tuple[Symmetry, Symmetry]:
    """Return the actions of a permutation; the exchange changes the sign of each neuron."""

    def on_pair(pair: Entry) -> Entry:
        return g[pair[0]], g[pair[1]]

    def on_neuron(entry: Entry) -> Entry:
        return entry[0] ^ exchange, g[entry[1]], g[entry[2]]

    return on_pair, on_neuron


def orbits(M: int) -> dict[str, int]:
    """Count the orbits of all entries by enumeration of the symmetries."""
    on_pairs, on_neurons = zip(*symmetries(M))
    pairs = list(product(range(M), repeat=2))
    neurons = list(product((0, 1), range(M), range(M)))
    orbits_of_pairs = _orbits(pairs, on_pairs)
    general, rows = len(orbits_of_pairs), len(_orbits(neurons, on_neurons))
    gram = len({orbit | {pair[::-1] for pair in orbit} for orbit in orbits_of_pairs})
    return {"W_O": rows, "V": general, "A": general, "S_K": gram, "S_Q": gram}


def _orbits(entries: Sequence[Entry], symmetries: Sequence[Symmetry]) -> set[frozenset[Entry]]:
    """Return the orbits of entries under a group."""
    return {frozenset(symmetry(entry) for symmetry in symmetries) for entry in entries}


def prove() -> Proof:
    """Prove the numbers for every M >= 4, and for small M by enumeration of the orbits."""
    builder = ProofBuilder("Scalars of the symmetric case")
    for name, value in moments().items():
        target = sp.Rational(1, 2) if name == "E[C_2]" else sp.S.One
        builder.equal(name, sp.combsimp(value), target)
    derived = numbers()
    for name, number in NUMBERS.items():
        builder.equal(f"{name} has {number}", derived[name], number)
    builder.equal("32 in all", sum(NUMBERS.values()), 32)
    for M in SIZES:
        for name, number in orbits(M).items():
            builder.equal("orbits by enumeration", number, NUMBERS[name], (M, name))
    return builder.build()
