"""Exact population gradients of the full and of the reduced model at a rational point.

The full gradient is the expectation of -s(-F) dF/dA_ij and -s(-F) dF/dv_k over the signal set and
all 3^(D-C) patterns of the random sets. The reduced one is the expectation of the contributions of
`symbolic.positional.margins` over multisets of set types. On the invariant manifold F depends on
the data only through that multiset (checked in `symbolic.positional.lemma_4_1`, not assumed), hence
so does the logistic weight s(-F), and one independent rational number per multiset stands for it:
an identity that holds for arbitrary weights holds for the logistic ones, and no transcendental
number enters. The law of the data enters both sides alike: the comparison is one for any law under
which a pattern has a probability that depends on its multiset only (`symbolic.positional.all_sizes`
tests that of the paper).
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from math import comb, factorial, prod
from typing import Any

import sympy as sp

from symbolic.core.zero import compile_exact, evaluate, rationalize
from symbolic.positional import attention, margins
from symbolic.positional import symbols as sym
from symbolic.positional.full_model import LOSS_SLOPE, FullModel, OutputAndGradient, Pair

Layout = tuple[tuple[int, ...], ...]
SetType = tuple[int, int]
Multiset = tuple[SetType, ...]


def layouts(D: int, C: int) -> list[Layout]:
    """Return every partition of range(D) into sets of size C, the contiguous one first."""

    def split(rest: tuple[int, ...]) -> Iterator[Layout]:
        if not rest:
            yield ()
            return
        for others in combinations(rest[1:], C - 1):
            chosen = (rest[0], *others)
            for tail in split(tuple(j for j in rest if j not in chosen)):
                yield (chosen, *tail)

    return list(split(tuple(range(D))))


def first_and_last(D: int, C: int) -> list[Layout]:
    """Return two partitions: the contiguous one and one whose sets are interleaved."""
    every = layouts(D, C)
    return [every[0], every[-1]]


@dataclass
class RationalPoint:
    """A point of the invariant manifold with exact coordinates, and the weights s(-F).

    The coordinates are integers, which keeps the fractions short; q is a proper fraction.
    ``scores`` holds e^{beta/tau}, e^{gamma/tau}, e^{rho/tau}; ``weight(multiset)`` draws one number
    in (0, 1) per multiset of set types and remembers it.
    """

    rng: random.Random
    scores: tuple[Fraction, Fraction, Fraction] = field(init=False)
    alpha: Fraction = field(init=False)
    q: Fraction = field(init=False)
    constants: dict[str, Fraction] = field(init=False)
    _weights: dict[Multiset, Fraction] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        draw = self.rng.randint
        self.scores = (Fraction(draw(1, 9999)), Fraction(draw(1, 9999)), Fraction(draw(1, 9999)))
        self.alpha = Fraction(self.rng.choice((-1, 1)) * draw(1, 9999))
        self.q = Fraction(draw(1, 96), 97)
        self.constants = {k: Fraction(draw(1, 9999)) for k in ("kappa", "nu", "tau")}

    def weight(self, key: Multiset) -> Fraction:
        """Return the number that stands for s(-F) on this multiset."""
        if key not in self._weights:
            self._weights[key] = Fraction(self.rng.randint(1, 996), 997)
        return self._weights[key]

    def loss_slope(self, key: Multiset) -> Fraction:
        """Return d loss/dF on this multiset, for the label +1."""
        return evaluate(LOSS_SLOPE, {sym.y: Fraction(1), sym.weight: self.weight(key)})

    def score_matrix(self, layout: Layout) -> list[list[Fraction]]:
        """Return e^{A_ij/tau} on the manifold for this partition."""
        beta, gamma, rho = self.scores
        set_of = {j: index for index, members in enumerate(layout) for j in members}
        D = len(set_of)
        return [
            [beta if i == j else gamma if set_of[i] == set_of[j] else rho for j in range(D)]
            for i in range(D)
        ]

    def probability(self, key: Multiset, C: int) -> Fraction:
        """Probability of one pattern of the random sets with these types."""
        nonzero = sum(a + b for a, b in key)
        return (self.q / 2) ** nonzero * (1 - self.q) ** (C * len(key) - nonzero)


def error_bound(p: int) -> Fraction:
    """Return how likely a false comparison of two gradients is to pass at one random point.

    Times Z^(p+1) tau the difference is a polynomial, of degree p + 1 in the three scores, p in
    alpha and in kappa, 1 in nu. If it is not zero, then one of its coefficients of the weights
    s(-F) (linear, each with a probability that q in (0, 1) cannot make zero) is a polynomial not
    zero, and by Schwartz and Zippel it vanishes with probability at most the sum of degree over
    grid; if it does not, the linear form vanishes for at most one value of that weight.
    """
    return Fraction(p + 1 + p + 1, 9999) + Fraction(p, 2 * 9999) + Fraction(1, 996)


@dataclass
class FullExpectation:
    """Gradients of the population loss given each signal set, and the values of F by multiset."""

    by_signal_set: list[OutputAndGradient]
    margins: dict[Multiset, set[Fraction]]
    patterns: int

    def mean(self) -> OutputAndGradient:
        """Average over the (uniform) signal set."""
        share = Fraction(1, len(self.by_signal_set))
        pairs = self.by_signal_set[0].dA
        dA = {pair: share * sum(g.dA[pair] for g in self.by_signal_set) for pair in pairs}
        dv = [share * sum(values) for values in zip(*(g.dv for g in self.by_signal_set))]
        return OutputAndGradient(Fraction(0), dA, dv)


def full_expectation(
    model: FullModel,
    layout: Layout,
    point: RationalPoint,
    *,
    perturbed_entry: Pair | None = None,
    off_span: Fraction = Fraction(0),
) -> FullExpectation:
    """Enumerate all patterns of the full model on the manifold and average its exact gradient.

    The noise is set to 0 here; `symbolic.positional.lemma_4_2` shows that it drops out.
    ``perturbed_entry`` (one entry of A leaves the manifold) and ``off_span`` (second component of
    v) exist so that the proofs can be seen to fail where the lemmas do not apply.
    """
    scores = point.score_matrix(layout)
    if perturbed_entry is not None:
        i, j = perturbed_entry
        scores[i][j] *= Fraction(7, 5)
    v = [point.alpha, off_span, *[Fraction(0)] * (model.d - 2)]
    noise = [[Fraction(0)] * (model.d - 1)] * model.D
    result = FullExpectation([], {}, 0)
    for signal in range(len(layout)):
        sums: dict[Multiset, list[Fraction]] = {}
        for signs, key in _patterns(layout, signal):
            value = model.evaluate(scores, v, signs, noise, point.constants)
            result.margins.setdefault(key, set()).add(value.F)
            result.patterns += 1
            gradient = [*value.dA.values(), *value.dv]
            sums[key] = [x + g for x, g in zip(sums[key], gradient)] if key in sums else gradient
        masses = [point.probability(key, len(layout[0])) * point.loss_slope(key) for key in sums]
        total = [sum(m * x for m, x in zip(masses, column)) for column in zip(*sums.values())]
        dA = dict(zip(model.pairs, total))
        result.by_signal_set.append(OutputAndGradient(Fraction(0), dA, total[len(dA) :]))
    return result


def _patterns(layout: Layout, signal: int) -> Iterator[tuple[list[int], Multiset]]:
    """Yield (coefficients of all patches, multiset of set types) for label +1."""
    C = len(layout[0])
    free = [members for index, members in enumerate(layout) if index != signal]
    for values in product((-1, 0, 1), repeat=C * len(free)):
        signs = [1] * (C * len(layout))
        for j, value in zip((j for members in free for j in members), values):
            signs[j] = value
        types = ([signs[j] for j in members] for members in free)
        yield signs, tuple(sorted((t.count(1), t.count(-1)) for t in types))


@dataclass(frozen=True)
class ReducedExpectation:
    """F by multiset and the gradient of ell, plainly and through the excess form."""

    margins: dict[Multiset, Fraction]
    gradient: tuple[Fraction, ...]
    excess_gradient: tuple[Fraction, ...]


def reduced_expectation(D: int, C: int, p: int, point: RationalPoint) -> ReducedExpectation:
    """Average what `symbolic.positional.margins` gives over the multisets of set types."""
    x_values = dict(zip((sym.x_beta, sym.x_gamma, sym.x_rho), point.scores))
    size = {sym.D: Fraction(D), sym.C: Fraction(C)}
    weights = [evaluate(rationalize(w), x_values | size) for w in attention.WRITTEN_OUT.values()]
    constants = [point.constants[k] for k in ("kappa", "nu", "tau")]
    signal, random_set = _contributions(D, C, p)
    types = [(a, b) for a in range(C + 1) for b in range(C + 1 - a)]
    values: dict[Multiset, Fraction] = {}
    total = [Fraction(0)] * 6
    for key in combinations_with_replacement(types, D // C - 1):
        T = Fraction(C + sum(a - b for a, b in key))
        shared = [T, point.alpha, *weights, *constants]
        rows = [signal(*shared), *(random_set(Fraction(a), Fraction(b), *shared) for a, b in key)]
        F, *gradient = (sum(column) for column in zip(*rows))
        values[key] = F
        mass = _number_of_patterns(key, C) * point.loss_slope(key)
        mass *= point.probability(key, C)
        total = [t + mass * g for t, g in zip(total, gradient)]
    return ReducedExpectation(values, tuple(total[:3]), tuple(total[3:]))


@cache
def _contributions(D: int, C: int, p: int) -> tuple[Any, Any]:
    """Compile what the signal set and a random set add to F and to its derivatives."""
    rows = [margins.activation(margins.MARGIN), *margins.row_gradient()]
    rows += margins.row_gradient(margins.excess_slope)
    size = {sym.D: D, sym.C: C, sym.p: p}
    arguments = [sym.T, sym.alpha, *attention.WRITTEN_OUT, sym.kappa, sym.nu, sym.tau]
    signal = [sp.sympify(margins.of_signal_set(row), strict=True).subs(size) for row in rows]
    random_set = [sp.sympify(margins.of_random_set(row), strict=True).subs(size) for row in rows]
    return (
        compile_exact(arguments, signal),
        compile_exact([sym.a, sym.b, *arguments], random_set),
    )


def _number_of_patterns(key: Sequence[SetType], C: int) -> int:
    """Number of patterns of the random sets whose types form this multiset."""
    orders = factorial(len(key)) // prod(factorial(key.count(t)) for t in set(key))
    return orders * prod(comb(C, a) * comb(C - a, b) for a, b in key)
