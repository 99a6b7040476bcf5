"""Exact population gradients of the full and of the reduced model at a rational point.

The full gradient is the expectation of -s(-F) dF/dA_ij and -s(-F) dF/dv_k over the signal set and
all 3^(D-C) patterns of the random sets. The reduced gradient is the expectation of the
contributions in `symbolic.positional.margins` over multisets of set types.

On the invariant manifold F depends on the data only through this multiset (tested in
`symbolic.positional.lemma_4_1`, not assumed), and hence so does the logistic weight s(-F). It is
replaced by an independent rational number per multiset: an identity for arbitrary weights is true
for the logistic ones, and no transcendental numbers occur. The comparison is valid for any law
under which the probability of a pattern depends on its multiset only
(`symbolic.positional.all_sizes` tests this for the law of the paper).
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
    """Return all partitions of range(D) into sets of size C, the contiguous one first."""

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
    """Return the contiguous partition and one with interleaved sets."""
    partitions = layouts(D, C)
    return [partitions[0], partitions[-1]]


@dataclass
class RationalPoint:
    """A random rational point of the invariant manifold, with random values of the weights s(-F).

    Coordinates are integers, so that fractions stay short; q is a fraction in (0, 1).

    Attributes
    ----------
    rng
        Source of random numbers.
    scores
        e^{beta/tau}, e^{gamma/tau}, e^{rho/tau}.
    alpha, q
        Order parameter alpha, and the probability of a feature.
    constants
        Values of ``"kappa"``, ``"nu"`` and ``"tau"``.
    """

    rng: random.Random
    scores: tuple[Fraction, Fraction, Fraction] = field(init=False)
    alpha: Fraction = field(init=False)
    q: Fraction = field(init=False)
    constants: dict[str, Fraction] = field(init=False)
    _weights: dict[Multiset, Fraction] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        randint = self.rng.randint
        self.scores = (
            Fraction(randint(1, 9999)),
            Fraction(randint(1, 9999)),
            Fraction(randint(1, 9999)),
        )
        self.alpha = Fraction(self.rng.choice((-1, 1)) * randint(1, 9999))
        self.q = Fraction(randint(1, 96), 97)
        self.constants = {k: Fraction(randint(1, 9999)) for k in ("kappa", "nu", "tau")}

    def weight(self, key: Multiset) -> Fraction:
        """Return s(-F) of a multiset, a random number in (0, 1) per multiset."""
        if key not in self._weights:
            self._weights[key] = Fraction(self.rng.randint(1, 996), 997)
        return self._weights[key]

    def loss_slope(self, key: Multiset) -> Fraction:
        """Return d loss/dF of a multiset, for the label +1."""
        return evaluate(LOSS_SLOPE, {sym.y: Fraction(1), sym.weight: self.weight(key)})

    def score_matrix(self, layout: Layout) -> list[list[Fraction]]:
        """Return e^{A_ij/tau} on the manifold for a partition."""
        beta, gamma, rho = self.scores
        set_of = {j: index for index, patches in enumerate(layout) for j in patches}
        D = len(set_of)
        return [
            [beta if i == j else gamma if set_of[i] == set_of[j] else rho for j in range(D)]
            for i in range(D)
        ]

    def probability(self, key: Multiset, C: int) -> Fraction:
        """Return the probability of one pattern of the random sets with given types."""
        nonzero = sum(a + b for a, b in key)
        return (self.q / 2) ** nonzero * (1 - self.q) ** (C * len(key) - nonzero)


def error_bound(p: int) -> Fraction:
    """Return a bound of the probability that a false identity of gradients passes at one point.

    Multiplied by Z^(p+1) tau the difference is a polynomial, of degree p + 1 in the three scores, p
    in alpha and in kappa, and 1 in nu. It is linear in the weights s(-F), whose coefficients
    contain probabilities that are not zero for q in (0, 1). If the difference is not zero, one of
    these coefficients is a nonzero polynomial, which vanishes at a random point with probability at
    most the sum of degree over grid size (Schwartz-Zippel lemma). If it does not vanish, the linear
    form vanishes for at most one value of this weight.
    """
    return Fraction(p + 1 + p + 1, 9999) + Fraction(p, 2 * 9999) + Fraction(1, 996)


@dataclass
class FullExpectation:
    """Population gradients of the full model.

    Attributes
    ----------
    by_signal_set
        Gradient given each signal set.
    margins
        Values of F, by multiset of set types.
    patterns
        Number of patterns of the data.
    """

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
    """Return the exact population gradient of the full model on the manifold.

    All patterns of the data are enumerated. The noise is 0; `symbolic.positional.lemma_4_2` shows
    that it does not contribute.

    Parameters
    ----------
    model
        The D x D model.
    layout
        Partition of the patches into sets.
    point
        Point of the manifold.
    perturbed_entry
        Entry of A that is moved off the manifold (for tests).
    off_span
        Second component of v, which is then not in the span of w* (for tests).
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
    """Yield the coefficients of all patches and the multiset of set types, for label +1."""
    C = len(layout[0])
    free = [patches for index, patches in enumerate(layout) if index != signal]
    for values in product((-1, 0, 1), repeat=C * len(free)):
        signs = [1] * (C * len(layout))
        for j, value in zip((j for patches in free for j in patches), values):
            signs[j] = value
        types = ([signs[j] for j in patches] for patches in free)
        yield signs, tuple(sorted((t.count(1), t.count(-1)) for t in types))


@dataclass(frozen=True)
class ReducedExpectation:
    """F by multiset, and the gradient of ell in plain form and in excess form."""

    margins: dict[Multiset, Fraction]
    gradient: tuple[Fraction, ...]
    excess_gradient: tuple[Fraction, ...]


def reduced_expectation(D: int, C: int, p: int, point: RationalPoint) -> ReducedExpectation:
    """Return the expectation of the contributions in `symbolic.positional.margins`."""
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
    """Compile the contributions of the signal set and of a random set to F and its derivatives."""
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
    """Return the number of patterns of the random sets with a given multiset of types."""
    orders = factorial(len(key)) // prod(factorial(key.count(t)) for t in set(key))
    return orders * prod(comb(C, a) * comb(C - a, b) for a, b in key)
